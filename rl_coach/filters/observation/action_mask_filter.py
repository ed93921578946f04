"""A filter of action masks, for agents with an output filter that numbers the environment's actions."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.core_types import ActionInfo
from rl_coach.filters.filter import InputFilter, OutputFilter
from rl_coach.filters.observation.observation_filter import VectorizedFilter
from rl_coach.spaces import ActionMaskSpace, DiscreteActionSpace, ObservationSpace, SpacesDefinition
from rl_coach.utils import CoachError


class ActionMaskFilter(VectorizedFilter):
    """Converts masks of the environment's actions to masks of the agent's actions.

    :param targets: the environment's action for each of the agent's A actions: [A], or [A, K] if actions have K parts
    """

    def __init__(self, targets: Any):
        super().__init__()
        self.targets = np.asarray(targets, int)

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        masks, targets = np.asarray(observation), self.targets
        if targets.ndim == 1:
            allowed = masks[..., targets]
        else:
            allowed = masks[..., np.arange(targets.shape[1]), targets].min(axis=-1)
        return ActionMaskSpace(len(targets)).encode(allowed)

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        return ActionMaskSpace(len(self.targets))


def with_masks_behind(output_filter: OutputFilter, input_filter: InputFilter, spaces: SpacesDefinition) -> InputFilter:
    """An agent's input filter that also converts the environment's action masks, if the output filter gives other
    numbers to the actions. Otherwise, the input filter itself.

    :param spaces: the environment's spaces
    :raises CoachError: if the agent's actions behind the output filter are not discrete
    """
    name = spaces.state.action_mask_name
    actions = spaces.action if name is None else output_filter.get_unfiltered_action_space(spaces.action)
    if name is None or actions is spaces.action:
        return input_filter
    if not isinstance(actions, DiscreteActionSpace):
        raise CoachError(
            f"the environment has action masks, but the agent's output_filter makes {actions} of its actions: masks "
            "need discrete actions, so remove the output_filter"
        )
    targets = [output_filter.filter(ActionInfo(number)).action for number in range(actions.num_actions)]
    chain = input_filter()  # a copy, because several agents may share the filter
    chain.add_observation_filter(name, name, ActionMaskFilter(targets))
    return chain
