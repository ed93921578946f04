"""The base class of all filters of actions."""

from __future__ import annotations

from typing import Any

from rl_coach.core_types import ActionType
from rl_coach.filters.base_filter import Filter
from rl_coach.space_values import allowed_values
from rl_coach.spaces import ActionSpace
from rl_coach.utils import CoachError


class ActionFilter(Filter):
    """Base class of filters of actions. A filter converts actions of the input action space (on the agent's side) to
    actions of the output action space (on the environment's side).

    :param input_action_space: the action space on the agent's side; None if ``get_unfiltered_action_space`` computes it
    """

    def __init__(self, input_action_space: ActionSpace | None = None):
        super().__init__()
        self.input_action_space = input_action_space
        self.output_action_space: ActionSpace | None = None

    def get_unfiltered_action_space(self, output_action_space: ActionSpace) -> ActionSpace:
        """Compute and store the input action space for an output action space. Return the input action space."""
        self.output_action_space = output_action_space
        self.input_action_space = output_action_space
        return output_action_space

    def validate_output_action_space(self, output_action_space: ActionSpace) -> None:
        """Check that the filter can output actions of a space.

        :raises CoachError: if the filter cannot output such actions
        """

    def validate_output_action(self, action: ActionType) -> None:
        """Check that an action belongs to the output action space.

        :raises CoachError: if the action does not belong to the space
        """
        space = self.output_action_space
        if space is not None and not space.val_matches_space_definition(action):
            raise CoachError(
                f"{type(self).__name__}: the action {action} does not belong to {space}; {allowed_values(space)}"
            )

    def filter(self, action: ActionType) -> Any:
        """Convert an action of the input space to an action of the output space."""
        raise NotImplementedError(f"{type(self).__name__} does not define filter")

    def reverse_filter(self, action: ActionType) -> Any:
        """Find the action of the input space that ``filter`` converts to the given action of the output space."""
        raise NotImplementedError(f"{type(self).__name__} does not define reverse_filter")

    def _require(self, space: ActionSpace, wanted: type[ActionSpace]) -> None:
        if not isinstance(space, wanted):
            raise CoachError(f"{type(self).__name__} needs the space {wanted.__name__}, not {space}; remove the filter")

    def _require_bounded(self, space: ActionSpace) -> None:
        if not space.is_bounded:
            raise CoachError(
                f"{type(self).__name__} needs actions with finite bounds, not {space}; add a BoxMasking between "
                "this filter and the environment"
            )
