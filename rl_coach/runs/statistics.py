"""Statistics over runs with their uncertainty: the interquartile mean, the optimality gap, performance profiles, the
probability of improvement, and intervals that are valid for few runs.

After Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS 2021 (rliable).
"""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np

from rl_coach.utilities.students_t import t_95

FEWEST_RUNS = 3
"""The smallest number of runs of one environment for an interval. With two runs, each half of the interval would be
12.7 standard errors wide."""
RESAMPLES = 1000
_LARGEST_RESAMPLE_BYTES = 32 << 20
_NORMAL_95 = 1.96
_BISECTIONS = 50


def iqm(values: np.ndarray) -> np.ndarray:
    """The interquartile mean over runs: the mean of the middle half of the values.

    Of n values, the floor(n / 4) smallest and the floor(n / 4) largest are left out, as in
    ``scipy.stats.trim_mean(values, 0.25)``. So outliers do not count, but more values count than for a median. NaN
    counts as a missing value.

    :param values: [runs, ...]
    :return: values without the axis of the runs; NaN if all values are NaN
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=0)  # NaN comes last
    count = np.isfinite(ordered).sum(axis=0)
    rank = np.arange(len(ordered)).reshape((-1,) + (1,) * (ordered.ndim - 1))
    cut = count // 4
    middle = (rank >= cut) & (rank < count - cut)
    total = np.where(middle, ordered, 0.0).sum(axis=0)
    return np.divide(total, count - 2 * cut, out=np.full(total.shape, np.nan), where=count > 0)


def optimality_gap(values: np.ndarray, target: float = 1.0) -> np.ndarray:
    """The mean shortfall of runs below a target. Scores above the target do not compensate for others.

    :param values: scores [runs, ...]
    :param target: the score with a shortfall of 0
    :return: the gaps, without the axis of the runs; 0 is the best
    """
    return target - np.minimum(np.asarray(values, np.float64), target).mean(axis=0)


def performance_profile(strata: Sequence[np.ndarray], thresholds: np.ndarray) -> np.ndarray:
    """The share of runs that score more than a threshold: the mean of the shares in all environments.

    :param strata: for each environment the scores of its runs [runs]
    :return: shares, 0 to 1, at the thresholds [points]
    """
    return np.mean([(np.asarray(one)[:, None] > thresholds).mean(axis=0) for one in strata], axis=0)


def profile_interval(strata: Sequence[np.ndarray], thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pointwise 95% interval of ``performance_profile``, for the same arguments [points].

    The percentiles of a bootstrap have no width where all runs score more, or all score less. With three runs they
    contain the true share in 40% of the cases. This interval joins Wilson's intervals of the environments, with
    continuity correction (Newcombe, "Two-sided confidence intervals for the single proportion", 1998, method 4).
    """
    shares = [(np.asarray(one)[:, None] > thresholds).mean(axis=0) for one in strata]
    lows = [_wilson_low(share, len(one)) for share, one in zip(shares, strata)]
    highs = [1.0 - _wilson_low(1.0 - share, len(one)) for share, one in zip(shares, strata)]
    return _interval_of_mean(shares, lows, highs)


def _wilson_low(share: np.ndarray, count: int) -> np.ndarray:
    """The lower end of Wilson's 95% interval with continuity correction. :param count: number of runs"""
    squared = _NORMAL_95**2
    root = np.sqrt(squared - 2.0 - 1.0 / count + 4.0 * share * (count * (1.0 - share) + 1.0))
    low = (2.0 * count * share + squared - 1.0 - _NORMAL_95 * root) / (2.0 * (count + squared))
    return np.where(share > 0.0, np.maximum(low, 0.0), 0.0)


def _interval_of_mean(
    values: Sequence[np.ndarray | float], lows: Sequence[np.ndarray | float], highs: Sequence[np.ndarray | float]
) -> tuple[np.ndarray, np.ndarray]:
    """The interval of a mean over environments (Zou and Donner, "Construction of confidence limits about effect
    measures: a general approach", 2008)."""
    each = np.asarray(values)
    mean = each.mean(axis=0)
    below, above = (np.sqrt(((each - np.asarray(ends)) ** 2).sum(axis=0)) / len(each) for ends in (lows, highs))
    return mean - below, mean + above


def probability_of_improvement(better: Sequence[np.ndarray], worse: Sequence[np.ndarray]) -> float:
    """The probability that a run of one algorithm scores more than a run of another in the same environment; equal
    scores count half. The mean over environments of the Mann-Whitney statistic, divided by the number of pairs.

    :param better: for each environment the scores of its runs [runs]
    :param worse: the scores of the other algorithm, for the same environments in the same order [other runs]
    :return: 0 to 1; 0.5 means no difference
    """
    pairs = [(np.asarray(a)[:, None], np.asarray(b)) for a, b in zip(better, worse)]
    return float(np.mean([((a > b) + 0.5 * (a == b)).mean() for a, b in pairs]))


def improvement_interval(better: Sequence[np.ndarray], worse: Sequence[np.ndarray]) -> tuple[float, float]:
    """The 95% interval of ``probability_of_improvement``, for the same arguments.

    The percentiles of a bootstrap have no width if all runs of one algorithm score more than all of the other. With
    three runs each, this happens in 10% of the cases without any difference. This interval joins Newcombe's intervals
    of the environments ("Confidence intervals for an effect size measure based on the Mann-Whitney statistic", 2006,
    method 5), with Student's t instead of the normal quantile.
    """
    wins = [probability_of_improvement([a], [b]) for a, b in zip(better, worse)]
    lows = [_newcombe_end(win, 0.0, len(a), len(b)) for win, a, b in zip(wins, better, worse)]
    highs = [_newcombe_end(win, 1.0, len(a), len(b)) for win, a, b in zip(wins, better, worse)]
    low, high = _interval_of_mean(wins, lows, highs)
    return float(low), float(high)


def _newcombe_end(win: float, outermost: float, runs: int, other_runs: int) -> float:
    """The end of an interval: the probability whose distance from ``win`` is its standard error times Student's t.

    :param win: the share of pairs that the first algorithm wins
    :param outermost: 0 for the lower end, 1 for the upper end
    """
    quantile = t_95(max(1, runs + other_runs - 2))

    def variance(p: float) -> float:
        of_pairs = (runs + other_runs) / 2 - 1
        return p * (1 - p) * (1 + of_pairs * ((1 - p) / (2 - p) + p / (1 + p))) / (runs * other_runs)

    inside, outside = win, outermost
    for _ in range(_BISECTIONS):
        middle = (inside + outside) / 2
        if (middle - win) ** 2 <= quantile**2 * variance(middle):
            inside = middle
        else:
            outside = middle
    return outside


def interval_over_runs(
    strata: Sequence[np.ndarray],
    statistic: Callable[[np.ndarray], np.ndarray] = iqm,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The 95% interval of a statistic over runs: the statistic, plus and minus Student's t times its standard error.

    The percentiles of a bootstrap are too narrow for few runs: with normal scores and three runs they contain the true
    mean in 75% of the cases. This interval uses only the standard error from a stratified bootstrap: each resample
    draws as many runs from each stratum as the stratum has. For the mean of one stratum, the result is Student's
    interval. The degrees of freedom are Satterthwaite's.

    :param strata: for each environment the values of its runs, [runs, points] or [runs]; NaN counts as a missing value
    :param statistic: function of values [runs, resamples, points] that reduces the first axis
    :return: the lower and the upper end, [points] or scalars; NaN if no environment has ``FEWEST_RUNS`` values
    :raises ValueError: if there are no runs
    """
    strata = [np.asarray(values, np.float64) for values in strata if len(values)]
    if not strata:
        raise ValueError("no runs to resample")
    scalar = strata[0].ndim == 1
    strata = [values.reshape(len(values), -1) for values in strata]
    centre = statistic(np.concatenate(strata)[:, None])[0]
    half = _half_width(strata, statistic, resamples, np.random.default_rng(seed))
    low, high = centre - half, centre + half
    return (low[0], high[0]) if scalar else (low, high)


def _half_width(
    strata: Sequence[np.ndarray],
    statistic: Callable[[np.ndarray], np.ndarray],
    resamples: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Half the width of an interval [points]; NaN if there is no interval. :param strata: values [runs, points]"""
    draws = [generator.integers(len(values), size=(len(values), resamples)) for values in strata]
    spread = [_spread_out(values) for values in strata]
    runs, points = sum(map(len, strata)), strata[0].shape[1]
    at_once = max(1, _LARGEST_RESAMPLE_BYTES // (8 * runs * resamples))
    error = np.full(points, np.nan)
    for first in range(0, points, at_once):
        part = slice(first, first + at_once)
        drawn = statistic(np.concatenate([values[:, part][draw] for values, draw in zip(spread, draws)]))
        has_values = np.isfinite(drawn).any(axis=0)
        error[part][has_values] = np.nanstd(drawn[:, has_values], axis=0)
    return error * _quantiles(strata)


def _spread_out(values: np.ndarray) -> np.ndarray:
    """Scale deviations by sqrt(n / (n - 1)), because resamples of n values have only (n - 1) / n of their variance."""
    count = np.isfinite(values).sum(axis=0)
    mean = np.divide(np.nansum(values, axis=0), count, out=np.zeros(count.shape), where=count > 0)
    return mean + (values - mean) * np.sqrt(count / np.maximum(count - 1, 1))


def _quantiles(strata: Sequence[np.ndarray]) -> np.ndarray:
    """Student's t at each point with Satterthwaite's degrees of freedom; NaN with too few runs [points]."""
    counts = np.stack([np.isfinite(values).sum(axis=0) for values in strata])
    variances = np.zeros(counts.shape)
    for values, count, variance in zip(strata, counts, variances):
        has_several = count > 1
        variance[has_several] = np.nanvar(values[:, has_several], axis=0, ddof=1) * count[has_several]
    freedom = np.maximum(counts - 1, 1)
    parts = (variances**2 / freedom).sum(axis=0)
    together = np.divide(variances.sum(axis=0) ** 2, parts, out=freedom.max(axis=0).astype(float), where=parts > 0)
    quantiles = np.array([t_95(int(one)) for one in together])
    return np.where(counts.max(axis=0) >= FEWEST_RUNS, quantiles, np.nan)
