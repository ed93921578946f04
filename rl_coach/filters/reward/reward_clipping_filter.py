"""A filter that clips rewards."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.filters.reward.reward_filter import RewardFilter
from rl_coach.spaces import RewardSpace
from rl_coach.utils import CoachError


class RewardClippingFilter(RewardFilter):
    """Replaces rewards outside the bounds with the nearest bound.

    :param clipping_low: the lowest reward; minus infinity for no limit
    :param clipping_high: the highest reward; infinity for no limit
    """

    episode_attributes = ()

    def __init__(self, clipping_low: float = -np.inf, clipping_high: float = np.inf):
        super().__init__()
        if clipping_low > clipping_high:
            raise CoachError(
                f"RewardClippingFilter: clipping_low {clipping_low} is above clipping_high {clipping_high}"
            )
        self.clipping_low = float(clipping_low)
        self.clipping_high = float(clipping_high)

    def filter(self, reward: Any, update_internal_state: bool = True) -> Any:
        if isinstance(reward, np.ndarray) and reward.ndim:
            return np.clip(reward, self.clipping_low, self.clipping_high)
        return max(self.clipping_low, min(self.clipping_high, float(reward)))

    def pure(self, ops: Any) -> Callable[[Any], Any]:
        return lambda rewards: ops.clip(rewards, self.clipping_low, self.clipping_high)

    def get_filtered_reward_space(self, input_reward_space: RewardSpace) -> RewardSpace:
        space = input_reward_space
        low, high = (np.clip(bound, self.clipping_low, self.clipping_high) for bound in (space.low, space.high))
        return RewardSpace(space.shape, low, high, space.reward_success_threshold)
