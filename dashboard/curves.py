"""Computation of lines from columns: smoothing, means over groups, bands, and no more points than a screen shows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Sequence

import numpy as np
import pandas as pd

from rl_coach.runs.experiments import wall_clock_minutes
from rl_coach.runs.signal_file import (
    EPISODE,
    TOTAL_STEPS,
    TRAINING_ITERATION,
    WALL_CLOCK,
    WALL_CLOCK_MINUTES,
    extremes,
)
from rl_coach.runs.statistics import bootstrap_interval, iqm
from rl_coach.runs.workers import RunSignals
from rl_coach.utilities.students_t import t_95

POINTS_OF_A_CURVE = 1600
"""About as many as a wide plot has pixels: the smallest and the largest value of every other pixel."""
POINTS_OF_A_GROUP = 600
_NEARLY_TOGETHER = 0.05
AXIS_COLUMNS = {
    "episode": (EPISODE,),
    "iteration": (TRAINING_ITERATION,),
    "steps": (TOTAL_STEPS,),
    "time": (WALL_CLOCK_MINUTES, WALL_CLOCK),
}
"""Columns that a run's places on each axis may be taken from."""


@dataclass(frozen=True)
class Curve:
    """Line of the plot; every array is float64 [points].

    :param key: identifies the line over updates
    :param raw: the values before smoothing, None if they are what is drawn
    :param low: the lower edge of the band, None if there is none
    :param count: how many runs each point is the mean of, None for a single run
    """

    key: tuple[str, str, str]
    label: str
    colour: int
    dash: int
    right: bool
    x: np.ndarray
    y: np.ndarray
    raw: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    count: np.ndarray | None = None

    def take(self, indices: np.ndarray | slice) -> Curve:
        """The curve at some of its points."""
        arrays = ("x", "y", "raw", "low", "high", "count")
        return replace(
            self, **{name: getattr(self, name)[indices] for name in arrays if getattr(self, name) is not None}
        )


def x_values(file: RunSignals, axis: str, counts_minutes: bool) -> np.ndarray | None:
    """Places of a run's rows on an axis [rows], None if the run has no such column.

    :param axis: a key of ``view.X_AXES``
    :param counts_minutes: as in ``RunDescription``
    """
    names = file.names
    if axis == "time":
        minutes = wall_clock_minutes(names, file.column, counts_minutes)
        return minutes if minutes.size else None
    wanted = AXIS_COLUMNS[axis][0]
    if wanted in names:
        return file.column(wanted)
    return file.column(names[0]) if axis == "episode" and names else None


def line_of(x: np.ndarray, y: np.ndarray, log_x: bool = False, log_y: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The points that can be drawn, in the order of x: finite, and positive on a logarithmic axis."""
    drawable = np.isfinite(x) & np.isfinite(y)
    if log_x:
        drawable &= x > 0
    if log_y:
        drawable &= y > 0
    x, y = x[drawable], y[drawable]
    if x.size > 1 and np.any(np.diff(x) < 0):
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
    return x, y


def smooth(y: np.ndarray, kind: str, window: int) -> np.ndarray:
    """Smooth values without NaN [points] over ``window`` of them.

    ``window`` is the mean of the last ``window`` values (of fewer at the start); ``exponential`` weighs them by
    (1 - 2 / (window + 1))^age, normalised, so that it lags as much as the window does.
    """
    if kind == "none" or window <= 1 or y.size == 0:
        return y
    series = pd.Series(y)
    if kind == "window":
        return series.rolling(window, min_periods=1).mean().to_numpy()
    return series.ewm(span=window).mean().to_numpy()


def thin(curve: Curve, x_range: tuple[float, float] | None = None, points: int = POINTS_OF_A_CURVE) -> Curve:
    """Reduce points to those that can be seen: fine within ``x_range``, coarse outside, so panning shows no gap."""
    if curve.x.size <= points:
        return curve
    shape = curve.raw if curve.raw is not None else curve.y
    if x_range is None:
        return curve.take(extremes(shape, points))
    left, right = np.searchsorted(curve.x, x_range)
    left, right = max(0, int(left) - 1), min(curve.x.size, int(right) + 1)
    coarse = points // 4
    parts = [
        extremes(shape[:left], coarse),
        left + extremes(shape[left:right], points),
        right + extremes(shape[right:], coarse),
    ]
    return curve.take(np.concatenate(parts))


def mean_of(
    lines: Sequence[tuple[np.ndarray, np.ndarray]], band: str, log_x: bool = False, strata: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """The mean over runs and its band, on a grid that all runs share; the runs' lines are interpolated onto it.

    At each x, the mean is over the runs that begin before it and end after it; if runs begin or end almost together,
    the mean begins or ends with all of them. ``std`` draws mean ± the sample
    standard deviation, ``confidence`` the 95% interval of the mean by Student's t; a single run has no band. ``iqm``
    draws the interquartile mean and its 95% interval by a stratified bootstrap.

    :param lines: x and y of each run, x ascending
    :param strata: for ``iqm`` the environment of each run; without it they are of one
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
        low, high = bootstrap_interval([values[np.equal(strata, one)] for one in dict.fromkeys(strata)])
        return {"x": grid, "y": iqm(values), "low": low, "high": high, "count": count.astype(float)}
    mean = np.nansum(values, axis=0) / count
    variance = np.nansum((values - mean) ** 2, axis=0) / np.maximum(count - 1, 1)
    spread = np.sqrt(variance)
    if band == "confidence":
        spread *= np.array([t_95(int(n) - 1) for n in count]) / np.sqrt(count)
    return {"x": grid, "y": mean, "low": mean - spread, "high": mean + spread, "count": count.astype(float)}


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
    """Begin and end of a mean over runs. Over a mere fraction of the axis, in which some runs have not begun or
    are through, it would only jump from run to run."""
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


def bounds(
    low: Sequence[np.ndarray], high: Sequence[np.ndarray], log: bool, margin: float
) -> tuple[float, float] | None:
    """A range that shows every value and a margin, as a share of the range, around them; None without values."""
    lows = [float(values.min()) for values in low if values.size]
    highs = [float(values.max()) for values in high if values.size]
    if not lows:
        return None
    first, last = min(lows), max(highs)
    if log and first > 0:
        first, last = math.log10(first), math.log10(last)
        space = (last - first) * margin or 0.5
        return 10 ** (first - space), 10 ** (last + space)
    space = (last - first) * margin or abs(first) * 0.1 or 1.0
    return first - space, last + space
