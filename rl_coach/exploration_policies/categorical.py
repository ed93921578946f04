"""Draws discrete actions from the agent's own distribution."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.core_types import RunPhase
from rl_coach.exploration_policies.exploration_policy import (
    ActionAndProbabilities,
    DiscreteActionExplorationPolicy,
    ExplorationParameters,
    best_action,
    best_actions,
)
from rl_coach.policy.action_choice import CategoricalChoice
from rl_coach.policy.drawing import allowed_probabilities, sample_action, sample_actions
from rl_coach.spaces import ActionSpace, BoxActionSpace, DiscreteActionSpace, MultiDiscreteActionSpace


class CategoricalParameters(ExplorationParameters):
    """Discrete actions are drawn with the agent's own probabilities."""

    path = "rl_coach.exploration_policies.categorical:Categorical"


def categorical_or(continuous: ExplorationParameters) -> dict[type[ActionSpace], ExplorationParameters]:
    """Exploration parameters by kind of action space. Discrete actions are drawn with the agent's probabilities.

    :param continuous: the exploration for continuous actions
    """
    return {DiscreteActionSpace: CategoricalParameters(), BoxActionSpace: continuous}


class Categorical(DiscreteActionExplorationPolicy):
    """Draws an action with the agent's probabilities in training; takes the most probable action in other phases.

    :param action_space: discrete
    """

    episode_attributes = ()
    supported_actions = (DiscreteActionSpace, MultiDiscreteActionSpace)

    draws_by_probabilities = True
    acts_in_columns = True

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> ActionAndProbabilities:
        """Choose an action.

        :param action_values: [A] probabilities; or [K, M] for an action of K parts, then the action is [K]
        """
        if np.ndim(action_values) == 2 and isinstance(self.action_space, MultiDiscreteActionSpace):
            parts, masks = np.asarray(action_values)[None], None if action_mask is None else action_mask[None]
            action = self.get_actions(lambda: parts, 1, masks)[0]
            return action, (parts if masks is None else allowed_probabilities(parts, masks))[0]
        if self.phase == RunPhase.TRAIN:
            return sample_action(action_values, self.rng, action_mask)
        probabilities = np.ravel(action_values)
        return best_action(probabilities, self.rng, action_mask)

    def get_actions(
        self, action_values: Callable[[], Any], count: int, action_masks: np.ndarray | None = None
    ) -> np.ndarray:
        choose = sample_actions if self.phase == RunPhase.TRAIN else best_actions
        return choose(action_values(), self.rng, action_masks)

    def action_choice(self) -> CategoricalChoice:
        return CategoricalChoice()
