"""A filter that subtracts a moving average from rewards."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.filters.reward.reward_filter import RewardFilter
from rl_coach.utilities.plain_data import State
from rl_coach.utils import CoachError


class RewardEwmaNormalizationFilter(RewardFilter):
    """Subtracts the exponentially weighted moving average of the rewards, which starts at the first reward.

    The average is updated with a reward before the subtraction. An array of rewards is one update, with its mean.

    :param alpha: the weight of the newest reward. With 0, the average stays at the first reward; with 1, it is the
        newest reward
    """

    episode_attributes = ()

    def __init__(self, alpha: float = 0.01):
        super().__init__()
        if not 0 <= alpha <= 1:
            raise CoachError(f"RewardEwmaNormalizationFilter: alpha {alpha} is not between 0 and 1")
        self.alpha = alpha
        self.moving_average = 0.0
        self.initialized = False

    def filter(self, reward: Any, update_internal_state: bool = True) -> Any:
        if update_internal_state:
            self._update(float(np.mean(reward)))
        return reward - self.moving_average

    def _update(self, mean_reward: float) -> None:
        if not self.initialized:
            self.moving_average = mean_reward
            self.initialized = True
        self.moving_average += self.alpha * (mean_reward - self.moving_average)

    def get_state(self) -> State:
        return {"moving_average": self.moving_average, "initialized": self.initialized}

    def set_state(self, state: State) -> None:
        try:
            self.moving_average, self.initialized = state["moving_average"], state["initialized"]
        except KeyError as missing:
            raise CoachError(f"the saved state of the RewardEwmaNormalizationFilter has no {missing}") from None
