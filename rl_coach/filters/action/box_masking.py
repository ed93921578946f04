"""A filter that limits actions to a part of a box."""

from __future__ import annotations

from typing import Any, Union

import numpy as np

from rl_coach.core_types import ActionType
from rl_coach.filters.action.action_filter import ActionFilter
from rl_coach.spaces import ActionSpace, BoxActionSpace
from rl_coach.utils import CoachError

Bound = Union[None, int, float, np.ndarray]


class BoxMasking(ActionFilter):
    """Limits the actions to a part of the box. The agent's actions range from 0 to the size of this part, and the
    filter adds the lowest allowed action. For example, the environment's box is from 10 to 32, and 20 to 25 is allowed:
    the agent sees a box from 0 to 5, and its action 1 becomes 21.

    :param masked_target_space_low: the lowest allowed action, a number or an array with a number for each element
    :param masked_target_space_high: the highest allowed action
    """

    episode_attributes = ()

    def __init__(self, masked_target_space_low: Bound, masked_target_space_high: Bound):
        super().__init__()
        self.masked_target_space_low = masked_target_space_low
        self.masked_target_space_high = masked_target_space_high

    def set_masking(self, masked_target_space_low: Bound, masked_target_space_high: Bound) -> None:
        """Change the allowed part of the box.

        :raises CoachError: if the part is not within the box
        """
        self.masked_target_space_low = masked_target_space_low
        self.masked_target_space_high = masked_target_space_high
        if self.output_action_space is not None:
            self.validate_output_action_space(self.output_action_space)
            self.get_unfiltered_action_space(self.output_action_space)

    def validate_output_action_space(self, output_action_space: ActionSpace) -> None:
        self._require(output_action_space, BoxActionSpace)
        low, high = self.masked_target_space_low, self.masked_target_space_high
        if low is None or high is None:
            raise CoachError("BoxMasking does not know which actions to allow: call set_masking")
        if np.any(np.asarray(low) > high):
            raise CoachError(f"BoxMasking: masked_target_space_low {low} is above masked_target_space_high {high}")
        space = output_action_space
        if np.any(low < space.low) or np.any(high > space.high):
            raise CoachError(
                f"BoxMasking: {low} to {high} is not within {space.low.tolist()} to {space.high.tolist()}, the "
                f"bounds of {space}; choose bounds within these"
            )

    def get_unfiltered_action_space(self, output_action_space: ActionSpace) -> BoxActionSpace:
        self.output_action_space = output_action_space
        size = np.subtract(self.masked_target_space_high, self.masked_target_space_low)  # type: ignore[arg-type]
        space = BoxActionSpace(output_action_space.shape, low=0, high=size)
        self.input_action_space = space
        return space

    def filter(self, action: ActionType) -> Any:
        return np.add(action, self.masked_target_space_low)  # type: ignore[arg-type]

    def reverse_filter(self, action: ActionType) -> Any:
        return np.subtract(action, self.masked_target_space_low)  # type: ignore[arg-type]
