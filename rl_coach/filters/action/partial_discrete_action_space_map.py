"""A filter that gives numbers to chosen actions of any space."""

from __future__ import annotations

from typing import Any, Sequence, Union

import numpy as np

from rl_coach.core_types import ActionType
from rl_coach.filters.action.action_filter import ActionFilter
from rl_coach.space_values import allowed_values
from rl_coach.spaces import ActionSpace, DiscreteActionSpace
from rl_coach.utils import CoachError


class PartialDiscreteActionSpaceMap(ActionFilter):
    """Gives numbers to chosen actions. The agent chooses a number, and the environment gets the action with this
    number.

    :param target_actions: the chosen actions, in the order of their numbers
    :param descriptions: a readable name for each action
    """

    episode_attributes = ()

    def __init__(
        self,
        target_actions: Union[Sequence[ActionType], np.ndarray, None] = None,
        descriptions: list[str] | None = None,
    ):
        super().__init__()
        self.target_actions = target_actions
        self.descriptions = descriptions

    def validate_output_action_space(self, output_action_space: ActionSpace) -> None:
        if self.target_actions is None or len(self.target_actions) == 0:
            raise CoachError(f"{type(self).__name__} has no target_actions; give the actions that it maps to")
        for action in self.target_actions:
            if not output_action_space.val_matches_space_definition(action):
                raise CoachError(
                    f"{type(self).__name__}: the target action {action} does not belong to {output_action_space}; "
                    f"{allowed_values(output_action_space)}"
                )

    def get_unfiltered_action_space(self, output_action_space: ActionSpace) -> DiscreteActionSpace:
        assert self.target_actions is not None
        self.output_action_space = output_action_space
        self.input_action_space = DiscreteActionSpace(
            len(self.target_actions), self.descriptions, filtered_action_space=output_action_space
        )
        return self.input_action_space

    def filter(self, action: Any) -> Any:
        assert self.target_actions is not None
        return self.target_actions[action]

    def reverse_filter(self, action: ActionType) -> int:
        """Find the number of an action.

        :raises CoachError: if the action is not in ``target_actions``
        """
        targets = np.asarray(self.target_actions)
        same = np.all(np.isclose(targets, np.asarray(action)).reshape(len(targets), -1), axis=1)
        number = int(np.argmax(same))
        if not same[number]:
            raise CoachError(f"{type(self).__name__}: the action {action} is not one of the target actions")
        return number
