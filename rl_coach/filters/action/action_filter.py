"""The base of all filters of actions."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.core_types import ActionType
from rl_coach.filters.base_filter import Filter
from rl_coach.spaces import ActionSpace
from rl_coach.utils import CoachError


class ActionFilter(Filter):
    """Turns actions of one space, the input action space, into actions of another, the output action space.

    :param input_action_space: the space of the actions that come in; known once
        ``get_unfiltered_action_space`` was called
    """

    def __init__(self, input_action_space: ActionSpace | None = None):
        super().__init__()
        self.input_action_space = input_action_space
        self.output_action_space: ActionSpace | None = None

    def get_unfiltered_action_space(self, output_action_space: ActionSpace) -> ActionSpace:
        """The space of the filter's inputs, for the space of its outputs."""
        self.output_action_space = output_action_space
        self.input_action_space = output_action_space
        return output_action_space

    def validate_output_action_space(self, output_action_space: ActionSpace) -> None:
        """Make sure that the filter can lead to a space.

        :raises CoachError: it cannot
        """

    def validate_output_action(self, action: ActionType) -> None:
        """Make sure that an action is one of the output space.

        :raises CoachError: it is not
        """
        space = self.output_action_space
        if space is not None and not space.val_matches_space_definition(action):
            raise CoachError(f"{type(self).__name__}: the action {action} does not belong to {space}")

    def filter(self, action: ActionType) -> Any:
        """The output space's action for one of the input space."""
        raise NotImplementedError(f"{type(self).__name__} does not filter")

    def reverse_filter(self, action: ActionType) -> Any:
        """The input space's action that leads to one of the output space."""
        raise NotImplementedError(f"{type(self).__name__} cannot be reversed")

    def _require(self, space: ActionSpace, wanted: type[ActionSpace]) -> None:
        if not isinstance(space, wanted):
            raise CoachError(f"{type(self).__name__} needs a {wanted.__name__}, not {space}; remove the filter")

    def _require_bounded(self, space: ActionSpace) -> None:
        if not (np.all(np.isfinite(space.low)) and np.all(np.isfinite(space.high))):
            raise CoachError(
                f"{type(self).__name__} needs actions with finite bounds, not {space}; put a BoxMasking before it"
            )
