"""A filter that scales one box of actions to another box."""

from __future__ import annotations

from typing import Any, Union

import numpy as np

from rl_coach.core_types import ActionType
from rl_coach.filters.action.action_filter import ActionFilter
from rl_coach.spaces import ActionSpace, BoxActionSpace
from rl_coach.utils import CoachError


class LinearBoxToBoxMap(ActionFilter):
    """Maps the agent's box linearly to the environment's box. For example, it maps a box of -42 to -10 to a box of 10
    to 32: the action -26 (the middle) becomes 21.

    :param input_space_low: the agent's lowest action, a number or an array with a number for each element
    :param input_space_high: the agent's highest action
    """

    episode_attributes = ()

    def __init__(self, input_space_low: Union[int, float, np.ndarray], input_space_high: Union[int, float, np.ndarray]):
        super().__init__()
        if np.any(np.asarray(input_space_low) >= input_space_high):
            raise CoachError(
                f"LinearBoxToBoxMap: input_space_low {input_space_low} is not below input_space_high {input_space_high}"
            )
        self.input_space_low = input_space_low
        self.input_space_high = input_space_high
        self.rescale: Any = None

    def validate_output_action_space(self, output_action_space: ActionSpace) -> None:
        self._require(output_action_space, BoxActionSpace)
        self._require_bounded(output_action_space)

    def get_unfiltered_action_space(self, output_action_space: ActionSpace) -> BoxActionSpace:
        self.output_action_space = output_action_space
        space = BoxActionSpace(output_action_space.shape, self.input_space_low, self.input_space_high)
        self.input_action_space = space
        self.rescale = (output_action_space.high - output_action_space.low) / (space.high - space.low)
        return space

    def filter(self, action: ActionType) -> Any:
        assert self.output_action_space is not None
        return self.output_action_space.low + np.subtract(action, self.input_space_low) * self.rescale

    def reverse_filter(self, action: ActionType) -> Any:
        assert self.output_action_space is not None
        return self.input_space_low + np.subtract(action, self.output_action_space.low) / self.rescale
