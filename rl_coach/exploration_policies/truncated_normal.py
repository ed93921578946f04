"""Draws continuous actions from a normal distribution that is cut off at bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters, NoiseLevel
from rl_coach.policy.action_choice import GaussianChoice
from rl_coach.schedules import Schedule
from rl_coach.spaces import ActionSpace


class TruncatedNormalParameters(AdditiveNoiseParameters):
    """Gaussian noise around the agent's action. The noisy action never leaves the bounds. The standard deviations are
    set as in ``AdditiveNoiseParameters``.

    :ivar clip_low: the lowest possible action
    :ivar clip_high: the highest possible action
    """

    path = "rl_coach.exploration_policies.truncated_normal:TruncatedNormal"

    def __init__(self) -> None:
        super().__init__()
        self.clip_low: Any = 0
        self.clip_high: Any = 1


class TruncatedNormal(NoiseLevel):
    """A normal distribution around the mean, truncated at bounds. With clipping instead of truncation, the policy would
    choose the bounds themselves too often. ``AdditiveNoiseParameters`` explains the other arguments.

    :param action_space: a box
    :param noise_schedule: the standard deviation in training, before the truncation
    :param clip_low: the lowest possible action, a number or one for each element
    :param clip_high: the highest possible action, a number or one for each element
    """

    def __init__(
        self,
        action_space: ActionSpace,
        noise_schedule: Schedule,
        evaluation_noise: float,
        clip_low: float,
        clip_high: float,
        noise_as_percentage_from_action_space: bool = True,
    ):
        super().__init__(action_space, noise_schedule, evaluation_noise, noise_as_percentage_from_action_space)
        if np.any(np.asarray(clip_low) > clip_high):
            raise self._refuse(f"clip_low {clip_low} is above clip_high {clip_high}; exchange them")
        self.clip_low = clip_low
        self.clip_high = clip_high

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> np.ndarray:
        mean, std = self._mean_and_noise(action_values)
        elements = np.broadcast_arrays(mean, std, self.clip_low, self.clip_high)
        drawn = [self._draw(*element) for element in zip(*(array.ravel().tolist() for array in elements))]
        return np.reshape(drawn, elements[0].shape)

    def action_choice(self) -> GaussianChoice:
        return GaussianChoice()

    def _draw(self, mean: float, std: float, low: float, high: float) -> float:
        if not math.isfinite(mean + std):
            return math.nan  # no proposal would be accepted, so the loop would not end
        if std <= 0:
            return min(max(mean, low), high)
        drawn = mean + std * truncated_standard_normal((low - mean) / std, (high - mean) / std, self.rng)
        return min(max(drawn, low), high)  # rounding may move it past a bound


def truncated_standard_normal(low: float, high: float, rng: np.random.Generator) -> float:
    """A draw from the standard normal distribution between two bounds, exact even for bounds far in the tail.

    It uses rejection sampling with a normal, uniform or exponential proposal, whichever fits the bounds (Robert 1995,
    "Simulation of truncated normal variables").
    """
    if high < 0:
        return -truncated_standard_normal(-high, -low, rng)
    if low <= 0 and high - low > math.sqrt(2 * math.pi):
        return _draw_until(rng.standard_normal, lambda x: low <= x <= high)
    peak = max(low, 0.0)
    rate = (peak + math.sqrt(peak * peak + 4)) / 2
    if low <= 0 or high - low < 1 / rate:
        return _draw_until(
            lambda: rng.uniform(low, high), lambda x: rng.random() <= math.exp((peak * peak - x * x) / 2)
        )
    return _draw_until(
        lambda: low + rng.exponential(1 / rate),
        lambda x: x <= high and rng.random() <= math.exp(-((x - rate) ** 2) / 2),
    )


def _draw_until(propose: Any, accepts: Any) -> float:
    while True:
        proposal = propose()
        if accepts(proposal):
            return float(proposal)
