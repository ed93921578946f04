"""A filter that normalises rewards with the running statistics of all rewards so far."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.filters.reward.reward_filter import RewardFilter
from rl_coach.spaces import RewardSpace
from rl_coach.utilities.plain_data import State
from rl_coach.utilities.shared_running_stats import NumpySharedRunningStats


class RewardNormalizationFilter(RewardFilter):
    """Subtracts the running mean of the rewards and divides by their running standard deviation.

    The statistics are updated with a reward before it is normalised.

    :param clip_min: the lowest normalised reward, in standard deviations
    :param clip_max: the highest normalised reward
    """

    episode_attributes = ()

    def __init__(self, clip_min: float = -5.0, clip_max: float = 5.0):
        super().__init__("rewards_stats")
        self.clip_min = clip_min
        self.clip_max = clip_max
        self.running_rewards_stats = NumpySharedRunningStats("rewards_stats")
        self.running_rewards_stats.set_params((), (clip_min, clip_max))

    def set_device(self, device: Any, memory_backend_params: Any = None, mode: str = "numpy") -> None:
        self.running_rewards_stats.pubsub_params = memory_backend_params

    def filter(self, reward: Any, update_internal_state: bool = True) -> Any:
        if update_internal_state:
            self.running_rewards_stats.push(reward)
        normalized = self.running_rewards_stats.normalize(np.asarray(reward))
        return normalized if normalized.ndim else float(normalized)

    def get_filtered_reward_space(self, input_reward_space: RewardSpace) -> RewardSpace:
        space = input_reward_space
        return RewardSpace(space.shape, self.clip_min, self.clip_max, space.reward_success_threshold)

    def take_gathered(self) -> State:
        return self.running_rewards_stats.take_gathered()

    def merge_gathered(self, gathered: State) -> None:
        self.running_rewards_stats.merge(gathered)

    def get_state(self) -> State:
        return self.running_rewards_stats.get_state()

    def set_state(self, state: State) -> None:
        self.running_rewards_stats.set_state(state)
