"""Mean curves over runs, with bands for their uncertainty."""

from __future__ import annotations

import math
from typing import Sequence

import numpy as np

from rl_coach.runs.statistics import FEWEST_RUNS, interval_over_runs, iqm
from rl_coach.utilities.students_t import t_95

POINTS_OF_A_GROUP = 600
_NEARLY_TOGETHER = 0.05


def mean_of(
    lines: Sequence[tuple[np.ndarray, np.ndarray]],
    band: str,
    log_x: bool = False,
    strata: Sequence[str] = (),
    within: tuple[float, float] | None = None,
) -> dict[str, np.ndarray]:
    """The mean over runs and its band. The lines are interpolated to one grid.

    At each x, the mean includes the runs that begin before it and end after it. If all runs begin or end at nearly the
    same x, the mean begins or ends where all runs are present.

    :param lines: x and y of each run, x ascending
    :param band: ``std``: mean ± the sample standard deviation; ``confidence``: the 95% interval of the mean by
        Student's t (none for a single run); ``iqm``: the interquartile mean and its 95% interval by ``statistics``
    :param strata: for ``iqm`` the environment of each run; empty for one environment
    :param within: the range of y if it is known. Intervals are cut to this range. A range is ignored if a value is
        outside
    :return: x, y, low, high and count, each [points]
    """
    strata = [stratum for stratum, (x, _) in zip(strata or [""] * len(lines), lines) if x.size]
    lines = [(x, y) for x, y in lines if x.size]
    if not lines:
        return {name: np.empty(0) for name in ("x", "y", "low", "high", "count")}
    grid = _grid([x for x, _ in lines], log_x)
    values = np.stack([np.interp(grid, x, y, left=np.nan, right=np.nan) for x, y in lines])
    count = np.isfinite(values).sum(axis=0)
    grid, values, count = grid[count > 0], values[:, count > 0], count[count > 0]
    if band == "iqm":
        low, high = interval_over_runs([values[np.equal(strata, one)] for one in dict.fromkeys(strata)])
        middle = iqm(values)
        ends = np.where(np.isnan(low), middle, low), np.where(np.isnan(high), middle, high)
        low, high = _inside(values, within, *ends)
        return {"x": grid, "y": middle, "low": low, "high": high, "count": count.astype(float)}
    mean = np.nansum(values, axis=0) / count
    variance = np.nansum((values - mean) ** 2, axis=0) / np.maximum(count - 1, 1)
    spread = np.sqrt(variance)
    if band == "confidence":
        spread *= np.array([t_95(int(n) - 1) if n >= FEWEST_RUNS else 0.0 for n in count]) / np.sqrt(count)
    low, high = mean - spread, mean + spread
    if band == "confidence":
        low, high = _inside(values, within, low, high)
    return {"x": grid, "y": mean, "low": low, "high": high, "count": count.astype(float)}


def _inside(
    values: np.ndarray, within: tuple[float, float] | None, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    if within is None or np.nanmin(values) < within[0] or np.nanmax(values) > within[1]:
        return low, high
    return np.maximum(low, within[0]), np.minimum(high, within[1])


def _grid(xs: Sequence[np.ndarray], log_x: bool) -> np.ndarray:
    first, last = _ends(xs, log_x)
    longest = max(xs, key=len)
    if longest.size <= POINTS_OF_A_GROUP:
        inside = longest[(longest >= first) & (longest <= last)]
        return np.unique(np.concatenate([inside, [first, last]]))
    if log_x:
        return np.geomspace(first, last, POINTS_OF_A_GROUP)
    return np.linspace(first, last, POINTS_OF_A_GROUP)


def _ends(xs: Sequence[np.ndarray], log_x: bool) -> tuple[float, float]:
    """The beginning and the end of a mean. A part where runs begin or end within 5% of the axis is left out, because
    the mean would jump from run to run there."""
    starts, ends = [float(x[0]) for x in xs], [float(x[-1]) for x in xs]
    first, common_first, common_last, last = min(starts), max(starts), min(ends), max(ends)
    if common_first >= common_last:
        return first, last
    place = math.log if log_x else float
    near = (place(last) - place(first)) * _NEARLY_TOGETHER
    return (
        common_first if place(common_first) - place(first) <= near else first,
        common_last if place(last) - place(common_last) <= near else last,
    )
