"""Outcomes of evaluations: statistics of one's episodes, and of several runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

import numpy as np

from rl_coach.runs.statistics import bootstrap_interval, iqm
from rl_coach.utilities.students_t import t_95


@dataclass(frozen=True)
class EvaluationStatistics:
    """Statistics of the total rewards of an evaluation's episodes.

    :param episodes: how many there were
    :param mean: their mean total reward
    :param standard_deviation: of a sample (n - 1); None for a single episode
    :param minimum: the smallest total reward
    :param maximum: the largest total reward
    :param confidence_low: the lower end of the mean's 95% confidence interval by Student's t; None for a single episode
    :param confidence_high: its upper end
    """

    episodes: int
    mean: float
    standard_deviation: float | None
    minimum: float
    maximum: float
    confidence_low: float | None
    confidence_high: float | None

    @classmethod
    def of(cls, rewards: Sequence[float]) -> EvaluationStatistics:
        """:param rewards: the total reward of each episode [episodes], at least one"""
        count, mean = len(rewards), float(np.mean(rewards))
        deviation = low = high = None
        if count > 1:
            deviation = float(np.std(rewards, ddof=1))
            half = t_95(count - 1) * deviation / math.sqrt(count)
            low, high = mean - half, mean + half
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
    """Statistics of several runs of one environment, each of which has one score.

    :param runs: number of them
    :param mean: their mean
    :param standard_deviation: of a sample (n - 1); None for a single run
    :param interquartile_mean: the mean of the middle half
    :param low: lower end of its 95% interval by a stratified bootstrap over runs; None for a single run
    :param high: upper end
    """

    runs: int
    mean: float
    standard_deviation: float | None
    interquartile_mean: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, scores: Sequence[float]) -> RunStatistics:
        """:param scores: one of each run [runs], at least one"""
        values = np.asarray(scores, np.float64)
        middle = float(iqm(values))
        if len(values) == 1:
            return cls(1, middle, None, middle, None, None)
        low, high = bootstrap_interval([values])
        return cls(len(values), float(values.mean()), float(values.std(ddof=1)), middle, float(low), float(high))

    def __str__(self) -> str:
        if self.standard_deviation is None:
            return f"{self.mean:.5g} of 1 run: a single run has no deviation"
        return (
            f"mean {self.mean:.5g}, standard deviation {self.standard_deviation:.5g}, interquartile mean "
            f"{self.interquartile_mean:.5g} (95% interval {self.low:.5g} to {self.high:.5g}), {self.runs} runs"
        )
