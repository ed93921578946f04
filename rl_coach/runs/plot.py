"""Plots as plain SVG, for notebooks and reports."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from itertools import cycle
from typing import Sequence

import numpy as np

_COLOURS = ("#128de3", "#e1706a", "#0d5212", "#92088f", "#ac8806", "#5043d1", "#f41543", "#41474e")
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" font-size="11" font-family="sans-serif"'
_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 40
_ROW = 24
_MOST_POINTS = 600
_LEGEND_LINE = 14


@dataclass(frozen=True)
class Line:
    """A line of a plot: one signal of a run.

    :param label: the name in the legend
    :param x: environment steps [points]
    :param y: the signal's values [points]
    :param band: the lowest and the highest value around ``y``, each [points]
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    band: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True)
class SignalPlot:
    """A plot that a notebook shows if it is the last value of a cell.

    :param lines: the lines; the legend is above the plot
    :param x_label: the unit of the horizontal axis
    :param background: a colour of CSS; by default the notebook's own
    """

    lines: Sequence[Line]
    x_label: str = "environment steps"
    background: str = "none"

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """Return the picture."""
        drawn = [line for line in self.lines if line.x.size]
        if not drawn:
            return f'{_SVG} width="320" height="24">{_text(0, 16, "no values yet")}</svg>'
        axes = _Axes.around(drawn)
        legend = _LEGEND_LINE * len(drawn)
        parts = [f'<rect width="100%" height="100%" fill="{self.background}"/>']
        parts += [f'<g transform="translate(0 {legend})">', *axes.parts(self.x_label)]
        for line, colour in zip(drawn, cycle(_COLOURS)):
            if line.band is not None:
                edge = axes.points(np.append(line.x, line.x[::-1]), np.append(line.band[0], line.band[1][::-1]))
                parts.append(f'<polygon points="{edge}" fill="{colour}" opacity="0.2"/>')
            points = axes.points(line.x, line.y)
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
            if len(line.x) == 1:  # a line with one point is invisible
                across, down = points.split(",")
                parts.append(f'<circle cx="{across}" cy="{down}" r="3" fill="{colour}"/>')
        parts.append("</g>")
        for number, (line, colour) in enumerate(zip(drawn, cycle(_COLOURS)), start=1):
            parts.append(_text(_LEFT + 8, _LEGEND_LINE * number, line.label, colour))
        size = f'width="{_WIDTH}" height="{_HEIGHT + legend}" viewBox="0 0 {_WIDTH} {_HEIGHT + legend}"'
        return f'{_SVG} {size} style="max-width: 100%; height: auto">{"".join(parts)}</svg>'


@dataclass(frozen=True)
class _Axes:
    """The ranges of both axes, which convert values to places in the picture."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float

    @classmethod
    def around(cls, lines: Sequence[Line]) -> _Axes:
        values = [array for line in lines for array in (line.y, *(line.band or ()))]
        return cls(*_range([line.x for line in lines]), *_range(values))

    def points(self, x: np.ndarray, y: np.ndarray) -> str:
        across = _LEFT + (x - self.low_x) / (self.high_x - self.low_x) * (_WIDTH - _LEFT - _RIGHT)
        down = _HEIGHT - _BOTTOM - (y - self.low_y) / (self.high_y - self.low_y) * (_HEIGHT - _TOP - _BOTTOM)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down))

    def parts(self, x_label: str) -> list[str]:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        frame = f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="currentColor" opacity="0.5"/>'
        return [
            frame,
            _text(_LEFT - 6, bottom, f"{self.low_y:.4g}", anchor="end"),
            _text(_LEFT - 6, _TOP + 8, f"{self.high_y:.4g}", anchor="end"),
            _text(_LEFT, bottom + 16, _end(self.low_x, self.high_x - self.low_x)),
            _text(right, bottom + 16, _end(self.high_x, self.high_x - self.low_x), anchor="end"),
            _text((_LEFT + right) / 2, bottom + 30, x_label, anchor="middle"),
        ]


@dataclass(frozen=True)
class Interval:
    """A value with its interval, the text next to it, and the index of its colour."""

    label: str
    value: float
    low: float
    high: float
    colour: int = 0


@dataclass(frozen=True)
class IntervalPlot:
    """Values with their intervals, one line for each value.

    :param intervals: from the top to the bottom
    :param x_label: the meaning of the values
    :param ends: the values at both ends of the axis
    :param mark: a value that a dashed line marks; None for no mark
    """

    intervals: Sequence[Interval]
    x_label: str
    ends: tuple[float, float]
    mark: float | None = None

    def _repr_svg_(self) -> str:
        low, high = self.ends
        left = _LEFT + 6 * max(len(one.label) for one in self.intervals)
        bottom = _TOP + _ROW * len(self.intervals)

        def place(value: float) -> float:
            return left + (value - low) / (high - low) * (_WIDTH - left - 2 * _RIGHT)

        parts = [
            f'<path d="M{left} {bottom}H{_WIDTH - _RIGHT}" fill="none" stroke="currentColor" opacity="0.5"/>',
            _text(left, bottom + 16, f"{low:.4g}"),
            _text(_WIDTH - 2 * _RIGHT, bottom + 16, f"{high:.4g}", anchor="end"),
            _text((left + _WIDTH) / 2, bottom + 30, self.x_label, anchor="middle"),
        ]
        if self.mark is not None:
            x = place(self.mark)
            parts.append(
                f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="currentColor" opacity="0.5" stroke-dasharray="4 3"/>'
            )
        for number, one in enumerate(self.intervals):
            colour, y = _COLOURS[one.colour % len(_COLOURS)], _TOP + _ROW * (number + 0.5)
            parts.append(_text(left - 10, y + 4, one.label, colour, anchor="end"))
            parts.append(
                f'<path d="M{place(one.low):.1f} {y}H{place(one.high):.1f}" stroke="{colour}" stroke-width="6"'
                ' opacity="0.35"/>'
            )
            parts.append(f'<circle cx="{place(one.value):.1f}" cy="{y}" r="4" fill="{colour}"/>')
        return f'{_SVG} width="{_WIDTH}" height="{bottom + _BOTTOM}">{"".join(parts)}</svg>'


def line(label: str, x: np.ndarray, y: np.ndarray) -> Line:
    """A line of the finite values, with only as many points as a plot can show."""
    there = np.isfinite(x) & np.isfinite(y)
    step = max(1, math.ceil(there.sum() / _MOST_POINTS))
    return Line(label, x[there][::step], y[there][::step])


def _range(values: Sequence[np.ndarray]) -> tuple[float, float]:
    low, high = min(float(array.min()) for array in values), max(float(array.max()) for array in values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _end(value: float, span: float) -> str:
    """A number at the end of an axis, as text. A short axis needs more digits."""
    return f"{value:,.0f}" if span >= 10 else f"{value:.4g}"


def _text(x: float, y: float, text: str, colour: str = "currentColor", anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}" text-anchor="{anchor}">{html.escape(text)}</text>'
