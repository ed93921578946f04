"""Filters of rewards."""

from rl_coach.filters.reward.reward_clipping_filter import RewardClippingFilter
from rl_coach.filters.reward.reward_ewma_normalization_filter import RewardEwmaNormalizationFilter
from rl_coach.filters.reward.reward_filter import RewardFilter
from rl_coach.filters.reward.reward_normalization_filter import RewardNormalizationFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.filters.reward.reward_return_scaling_filter import RewardReturnScalingFilter

__all__ = [
    "RewardClippingFilter",
    "RewardEwmaNormalizationFilter",
    "RewardFilter",
    "RewardNormalizationFilter",
    "RewardRescaleFilter",
    "RewardReturnScalingFilter",
]
