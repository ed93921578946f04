"""Computes lines from columns: smoothing, means over groups, bands, and thinning to the points that a screen shows."""

from __future__ import annotations

import math
import re
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
from rl_coach.runs.workers import RunSignals

from .view import LARGEST_WINDOW, SIGNAL

POINTS_OF_A_CURVE = 1600
"""About the width of a plot in pixels: the smallest and the largest value of every second pixel."""
_PARTS_OF_A_LINE = 20
_LONGEST_TITLE = 44
_BETWEEN_PARTS = " · "
_ENDS_OF_WORDS = re.compile(r"[\W_]+")
_AXIS_COLUMNS = {
    "episode": (EPISODE,),
    "iteration": (TRAINING_ITERATION,),
    "steps": (TOTAL_STEPS,),
    "time": (WALL_CLOCK_MINUTES, WALL_CLOCK),
}


def axis_columns(axis: str) -> tuple[str, ...]:
    """The columns with the places of a run's rows. :param axis: the value of ``View.x``"""
    return (axis.removeprefix(SIGNAL),) if axis.startswith(SIGNAL) else _AXIS_COLUMNS[axis]


@dataclass(frozen=True)
class Curve:
    """Line of the plot; every array is float64 [points].

    :param key: identifies the line over updates
    :param raw: the values before smoothing, None without smoothing
    :param low: the lower edge of the band, None without a band
    :param count: number of runs in the mean at each point; None for a single run
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


def short_titles(labels: Sequence[str]) -> list[str]:
    """Short labels for a legend. A first part that all labels share is removed. If a label is long, shared first words
    become "…", and long labels are cut in the middle.
    """
    first_parts = [label.partition(_BETWEEN_PARTS) for label in labels]
    if len(labels) > 1 and len({first for first, _, _ in first_parts}) == 1 and all(rest for _, _, rest in first_parts):
        labels = [rest for _, _, rest in first_parts]
    if max(map(len, labels), default=0) <= _LONGEST_TITLE:
        return list(labels)
    first, last = min(labels), max(labels)  # a beginning that both share is shared by all
    same = next((place for place, (a, b) in enumerate(zip(first, last)) if a != b), 0)
    cut = max((match.end() for match in _ENDS_OF_WORDS.finditer(first[:same])), default=0)
    titles = [_without_middle(f"…{label[cut:]}" if cut > 1 else label) for label in labels]
    return titles if len(set(titles)) == len(set(labels)) else list(labels)


def _without_middle(title: str) -> str:
    if len(title) <= _LONGEST_TITLE:
        return title
    return f"{title[: _LONGEST_TITLE // 2]}…{title[-_LONGEST_TITLE // 2 + 1 :]}"


def x_values(file: RunSignals, axis: str, counts_minutes: bool) -> np.ndarray | None:
    """Places of a run's rows on an axis [rows], None if the run has no such column.

    :param axis: the value of ``View.x``
    :param counts_minutes: as in ``RunDescription``
    """
    names = file.names
    if axis == "time":
        minutes = wall_clock_minutes(names, file.column, counts_minutes)
        return minutes if minutes.size else None
    wanted = axis_columns(axis)[0]
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
    """Smooth values without NaN [points] over ``window`` of them, or over a twentieth of them if it is 0.

    The method ``window`` is the mean of the last ``window`` values, or of all values at the start. The method
    ``exponential`` weights values by (1 - 2 / (window + 1))^age, so that both methods have the same lag.
    """
    window = window or min(LARGEST_WINDOW, y.size // _PARTS_OF_A_LINE)
    if kind == "none" or window <= 1 or y.size == 0:
        return y
    series = pd.Series(y)
    if kind == "window":
        return series.rolling(window, min_periods=1).mean().to_numpy()
    return series.ewm(span=window).mean().to_numpy()


def thin(curve: Curve, x_range: tuple[float, float] | None = None, points: int = POINTS_OF_A_CURVE) -> Curve:
    """Keep only visible points: many within ``x_range``, few outside, so that panning shows no gap."""
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
