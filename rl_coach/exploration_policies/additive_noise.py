"""Adds Gaussian noise to continuous actions."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.core_types import RunPhase
from rl_coach.exploration_policies.exploration_policy import ContinuousActionExplorationPolicy, ExplorationParameters
from rl_coach.policy.action_choice import GaussianChoice
from rl_coach.schedules import LinearSchedule, Schedule
from rl_coach.spaces import ActionSpace
from rl_coach.utilities.requirements import FLAG, number, schedule


class AdditiveNoiseParameters(ExplorationParameters):
    """Gaussian noise around the agent's action.

    :ivar noise_schedule: the standard deviation in training
    :ivar evaluation_noise: the standard deviation in evaluation; 0 gives the mean
    :ivar noise_as_percentage_from_action_space: True: the standard deviations are fractions of the action space's range
        (0.1 is a tenth of the range); False: they are absolute. An element without two finite bounds has the range 1
    """

    constraints = {
        "noise_schedule": schedule(number(0)),
        "evaluation_noise": number(0),
        "noise_as_percentage_from_action_space": FLAG,
    }
    path = "rl_coach.exploration_policies.additive_noise:AdditiveNoise"

    def __init__(self) -> None:
        super().__init__()
        self.noise_schedule: Schedule = LinearSchedule(0.1, 0.1, 50000)
        self.evaluation_noise = 0.05
        self.noise_as_percentage_from_action_space = True


class NoiseLevel(ContinuousActionExplorationPolicy):
    """Base class of policies that draw an action around the mean. This class computes the standard deviation.

    If the agent predicts a standard deviation as well as the mean, this deviation is used, except in evaluation.
    """

    episode_attributes = ()
    schedule_names = ("noise_schedule",)

    def __init__(
        self,
        action_space: ActionSpace,
        noise_schedule: Schedule,
        evaluation_noise: float,
        noise_as_percentage_from_action_space: bool = True,
    ):
        super().__init__(action_space)
        self.noise_schedule = noise_schedule
        self.evaluation_noise = evaluation_noise
        self.noise_as_percentage_from_action_space = noise_as_percentage_from_action_space
        self._unit: Any = _range_of(action_space) if noise_as_percentage_from_action_space else 1.0

    def _current_noise(self) -> float:
        return self.evaluation_noise if self.phase == RunPhase.TEST else self.noise_schedule.current_value

    def _mean_and_noise(self, action_values: Any) -> tuple[np.ndarray, Any]:
        """The mean and the standard deviation of the next draw. In TRAIN, the schedule advances by a step."""
        mean, std = self._mean_and_std(action_values)
        if std is None or self.phase == RunPhase.TEST:
            std = self._current_noise() * self._unit
        if self.phase == RunPhase.TRAIN:
            self.noise_schedule.step()
        return mean, std

    def _levels(self, count: int) -> np.ndarray:
        """The standard deviations [count] of the next ``count`` actions. In TRAIN, the schedule advances by ``count``
        steps."""
        if self.phase != RunPhase.TRAIN:
            return np.full(count, self._current_noise())
        return self.noise_schedule.next_values(count)

    @property
    def evaluation_deviation(self) -> Any:
        """The standard deviation in evaluations, a number or [D]."""
        return self.evaluation_noise * self._unit

    def get_control_param(self) -> np.ndarray:
        """The scheduled standard deviation of each element, [D]."""
        return np.full(tuple(self.action_space.shape), self.noise_schedule.current_value, dtype=np.float64)


def _range_of(space: ActionSpace) -> np.ndarray:
    """The range of each element; 1 for an element without two finite bounds."""
    is_bounded = np.isfinite(space.low) & np.isfinite(space.high)
    high, low = (np.where(is_bounded, bound, default) for bound, default in ((space.high, 1.0), (space.low, 0.0)))
    return high - low


class AdditiveNoise(NoiseLevel):
    """The mean plus Gaussian noise of a scheduled standard deviation. ``AdditiveNoiseParameters`` explains the other
    arguments.

    :param action_space: a box
    """

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> np.ndarray:
        mean, std = self._mean_and_noise(action_values)
        return self.rng.normal(mean, std)

    acts_in_columns = True

    def get_actions(
        self, action_values: Callable[[], Any], count: int, action_masks: np.ndarray | None = None
    ) -> np.ndarray:
        predicted, shape = action_values(), (count, *self.action_space.shape)
        means, *learned = predicted if isinstance(predicted, (list, tuple)) else [predicted]
        levels = self._levels(count)  # advances the schedule, also if the agent learns the deviation
        if learned and self.phase != RunPhase.TEST:
            deviations = np.reshape(learned[0], shape)
        else:
            deviations = np.reshape(levels, (count, *[1] * len(shape[1:]))) * self._unit
        return self.rng.normal(np.reshape(means, shape), deviations)

    def action_choice(self) -> GaussianChoice:
        return GaussianChoice()
