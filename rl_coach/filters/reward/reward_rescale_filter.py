"""A filter that multiplies rewards."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.filters.reward.reward_filter import RewardFilter
from rl_coach.spaces import RewardSpace
from rl_coach.utils import CoachError


class RewardRescaleFilter(RewardFilter):
    """Multiplies each reward by a factor.

    :param rescale_factor: the factor. 1 changes nothing; 0 raises an error, because the agent could not learn
    """

    episode_attributes = ()

    def __init__(self, rescale_factor: float):
        super().__init__()
        if rescale_factor == 0:
            raise CoachError(
                "RewardRescaleFilter: a rescale_factor of 0 makes all rewards equal; choose another number"
            )
        self.rescale_factor = rescale_factor

    def filter(self, reward: Any, update_internal_state: bool = True) -> Any:
        return reward * self.rescale_factor

    def pure(self, ops: Any) -> Callable[[Any], Any]:
        return self.filter

    def get_filtered_reward_space(self, input_reward_space: RewardSpace) -> RewardSpace:
        space = input_reward_space
        ends = (space.low * self.rescale_factor, space.high * self.rescale_factor)
        return RewardSpace(space.shape, np.minimum(*ends), np.maximum(*ends), space.reward_success_threshold)
