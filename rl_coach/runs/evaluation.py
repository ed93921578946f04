"""Results of evaluations: statistics over the episodes of one evaluation, and over several runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

import numpy as np

from rl_coach.runs.statistics import FEWEST_RUNS, iqm
from rl_coach.utilities.students_t import t_95

FRESH_EPISODES = 20
"""Number of new episodes that measure a policy after an evaluation has selected it."""

Range = tuple[float, float]
"""The smallest and the largest possible value."""


def mean_interval(values: Sequence[float], within: Range | None = None) -> tuple[float, float]:
    """The 95% confidence interval of the mean of two or more values by Student's t, cut to their range if it is
    known."""
    mean = float(np.mean(values))
    half = t_95(len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    low, high = mean - half, mean + half
    # ignore a wrong range, such as the range of rewards before a filter
    if within is not None and within[0] <= min(values) and max(values) <= within[1]:
        low, high = max(low, within[0]), min(high, within[1])
    return low, high


@dataclass(frozen=True)
class EvaluationStatistics:
    """Statistics of the total rewards of an evaluation's episodes.

    :param episodes: number of episodes
    :param mean: mean of the total rewards
    :param standard_deviation: the sample standard deviation (with n - 1); None for a single episode
    :param minimum: the smallest total reward
    :param maximum: the largest total reward
    :param confidence_low: the lower end of the mean's 95% confidence interval by Student's t; None for a single episode
    :param confidence_high: the upper end of this interval
    """

    episodes: int
    mean: float
    standard_deviation: float | None
    minimum: float
    maximum: float
    confidence_low: float | None
    confidence_high: float | None

    @classmethod
    def of(cls, rewards: Sequence[float], within: Range | None = None) -> EvaluationStatistics:
        """The statistics of one or more total rewards [episodes]. :param within: their range, if it is known"""
        count, mean = len(rewards), float(np.mean(rewards))
        deviation = low = high = None
        if count > 1:
            deviation = float(np.std(rewards, ddof=1))
            low, high = mean_interval(rewards, within)
        return cls(count, mean, deviation, float(min(rewards)), float(max(rewards)), low, high)

    def __str__(self) -> str:
        if self.standard_deviation is None:
            return f"reward {self.mean:.5g} in 1 episode: a single episode has no deviation"
        return (
            f"mean reward {self.mean:.5g}, 95% confidence interval {self.confidence_low:.5g} to "
            f"{self.confidence_high:.5g}; standard deviation {self.standard_deviation:.5g}, "
            f"minimum {self.minimum:.5g}, maximum {self.maximum:.5g}, {self.episodes:,} episodes"
        )


@dataclass(frozen=True)
class RunStatistics:
    """Statistics of several runs in one environment. Each run has one score.

    :param runs: number of runs
    :param mean: mean of the scores
    :param standard_deviation: the sample standard deviation (with n - 1); None for a single run
    :param interquartile_mean: the mean of the middle half of the scores
    :param low: lower end of the mean's 95% interval by Student's t; None for fewer than ``FEWEST_RUNS`` runs
    :param high: upper end of this interval
    """

    runs: int
    mean: float
    standard_deviation: float | None
    interquartile_mean: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, scores: Sequence[float], within: Range | None = None) -> RunStatistics:
        """The statistics of one or more scores [runs]. :param within: the range of scores, if it is known"""
        values = np.asarray(scores, np.float64)
        deviation = float(values.std(ddof=1)) if len(values) > 1 else None
        low, high = mean_interval(scores, within) if len(values) >= FEWEST_RUNS else (None, None)
        return cls(len(values), float(values.mean()), deviation, float(iqm(values)), low, high)

    def __str__(self) -> str:
        if self.standard_deviation is None:
            return f"{self.mean:.5g} of 1 run: a single run has no deviation"
        interval = f"no interval of {self.runs} runs"
        if self.low is not None:
            interval = f"95% interval {self.low:.5g} to {self.high:.5g}"
        return (
            f"mean {self.mean:.5g} ({interval}), standard deviation {self.standard_deviation:.5g}, "
            f"interquartile mean {self.interquartile_mean:.5g}, {self.runs} runs"
        )
