"""Computes lines from columns: smoothing, and thinning to the points that a screen can show."""

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
"""The number of points of a drawn line, about the width of a plot in pixels."""
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
    """The columns that contain the x-values of a run's rows. :param axis: the value of ``View.x``"""
    return (axis.removeprefix(SIGNAL),) if axis.startswith(SIGNAL) else _AXIS_COLUMNS[axis]


@dataclass(frozen=True)
class Curve:
    """A line of the plot. Every array is float64 [points].

    :param key: the id of the line, which does not change when the line gets new points
    :param label: the text in the legend
    :param colour: the index of the colour
    :param dash: the index of the dash pattern
    :param right: True for the right axis
    :param x: the x-values
    :param y: the y-values
    :param raw: the values before smoothing; None without smoothing
    :param low: the lower edge of the band; None without a band
    :param high: the upper edge of the band; None without a band
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
        """The curve with only some of its points. :param indices: the indices of these points"""
        arrays = ("x", "y", "raw", "low", "high", "count")
        return replace(
            self, **{name: getattr(self, name)[indices] for name in arrays if getattr(self, name) is not None}
        )


def short_titles(labels: Sequence[str]) -> list[str]:
    """Short labels for a legend. If all labels have the same first part, this part is removed. If a label is long, the
    first words that all labels share become "…", and long labels are cut in the middle.
    """
    first_parts = [label.partition(_BETWEEN_PARTS) for label in labels]
    if len(labels) > 1 and len({first for first, _, _ in first_parts}) == 1 and all(rest for _, _, rest in first_parts):
        labels = [rest for _, _, rest in first_parts]
    if max(map(len, labels), default=0) <= _LONGEST_TITLE:
        return list(labels)
    first, last = min(labels), max(labels)  # if these two have the same beginning, all labels have it
    same = next((place for place, (a, b) in enumerate(zip(first, last)) if a != b), 0)
    cut = max((match.end() for match in _ENDS_OF_WORDS.finditer(first[:same])), default=0)
    titles = [_without_middle(f"…{label[cut:]}" if cut > 1 else label) for label in labels]
    return titles if len(set(titles)) == len(set(labels)) else list(labels)


def _without_middle(title: str) -> str:
    if len(title) <= _LONGEST_TITLE:
        return title
    return f"{title[: _LONGEST_TITLE // 2]}…{title[-_LONGEST_TITLE // 2 + 1 :]}"


def x_values(file: RunSignals, axis: str, counts_minutes: bool) -> np.ndarray | None:
    """The x-values of a run's rows, [rows]; None if the run does not have the column.

    :param file: the run's signals
    :param axis: the value of ``View.x``
    :param counts_minutes: see ``RunDescription``
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
    """The points that can be drawn, sorted by x. Numbers that are not finite, and non-positive numbers on a logarithmic
    axis, are left out.

    :param x: [points]
    :param y: [points]
    :param log_x: True for a logarithmic x-axis
    :param log_y: True for a logarithmic y-axis
    """
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
    """Smooth values.

    :param y: [points] without NaN
    :param kind: ``window`` computes the mean of the last ``window`` values, or of all values at the start.
        ``exponential`` weights values by (1 - 2 / (window + 1))^age, so that both kinds have the same lag. ``none``
        does not smooth
    :param window: number of values; 0 for a twentieth of all values
    """
    window = window or min(LARGEST_WINDOW, y.size // _PARTS_OF_A_LINE)
    if kind == "none" or window <= 1 or y.size == 0:
        return y
    series = pd.Series(y)
    if kind == "window":
        return series.rolling(window, min_periods=1).mean().to_numpy()
    return series.ewm(span=window).mean().to_numpy()


def thin(curve: Curve, x_range: tuple[float, float] | None = None, points: int = POINTS_OF_A_CURVE) -> Curve:
    """Reduce a curve to the points that are visible.

    :param curve: the curve
    :param x_range: the visible range of x; outside of it, a quarter of the points is kept for panning. None for the
        whole curve
    :param points: the number of points
    """
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
    """The range of an axis that shows all values; None without values.

    :param low: the values at the lower edges of the lines and bands
    :param high: the values at the upper edges
    :param log: True for a logarithmic axis
    :param margin: the space around the values, as a share of the range
    """
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
