"""Plots that a notebook shows by itself and that reports contain, as plain SVG."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Sequence

import numpy as np

_COLOURS = ("#128de3", "#e1706a", "#0d5212", "#92088f", "#ac8806", "#5043d1", "#f41543", "#41474e")
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" font-size="11" font-family="sans-serif"'
_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 40
_ROW = 24
_MOST_POINTS = 600


@dataclass(frozen=True)
class Line:
    """Signal of a run.

    :param label: names it in the legend
    :param x: environment steps [points]
    :param y: the signal's values [points]
    :param low: lower edge of a band around it [points]; None for no band
    :param high: upper edge
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


@dataclass(frozen=True)
class SignalPlot:
    """A plot that a notebook draws by itself: the last value of a cell is enough.

    :param lines: what is drawn
    :param x_label: what lies along the horizontal axis
    """

    lines: Sequence[Line]
    x_label: str = "environment steps"

    def _repr_svg_(self) -> str:
        drawn = [line for line in self.lines if line.x.size]
        if not drawn:
            return f'{_SVG} width="320" height="24">{_text(0, 16, "no values yet")}</svg>'
        low_x, high_x = _range([line.x for line in drawn])
        edges = [edge for line in drawn for edge in (line.y, line.low, line.high) if edge is not None]
        low_y, high_y = _range(edges)
        parts = [*_axes(low_x, high_x, low_y, high_y, self.x_label)]

        def points(x: np.ndarray, y: np.ndarray) -> str:
            across = _LEFT + (x - low_x) / (high_x - low_x) * (_WIDTH - _LEFT - _RIGHT)
            up = _HEIGHT - _BOTTOM - (y - low_y) / (high_y - low_y) * (_HEIGHT - _TOP - _BOTTOM)
            return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up))

        for number, line in enumerate(drawn):
            colour = _COLOURS[number % len(_COLOURS)]
            if line.low is not None and line.high is not None:
                band = points(np.concatenate([line.x, line.x[::-1]]), np.concatenate([line.low, line.high[::-1]]))
                parts.append(f'<polygon points="{band}" fill="{colour}" opacity="0.15"/>')
            parts.append(
                f'<polyline points="{points(line.x, line.y)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            )
        below = _HEIGHT + 6
        for number, line in enumerate(drawn):
            parts.append(_text(_LEFT + 8, below + 14 * number, line.label, _COLOURS[number % len(_COLOURS)]))
        return f'{_SVG} width="{_WIDTH}" height="{below + 14 * len(drawn)}">{"".join(parts)}</svg>'


@dataclass(frozen=True)
class Interval:
    """A value with its interval.

    :param label: what it is of
    :param colour: its place among the colours of lines
    """

    label: str
    value: float
    low: float
    high: float
    colour: int = 0


@dataclass(frozen=True)
class IntervalPlot:
    """Values with their intervals, a line each.

    :param intervals: from the top
    :param x_label: what the values are
    :param ends: the values at both ends of the axis
    :param mark: a value at which a dashed line stands; None for none
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
    """A line of the finite values, thinned to as many points as a plot can show."""
    there = np.isfinite(x) & np.isfinite(y)
    step = max(1, math.ceil(there.sum() / _MOST_POINTS))
    return Line(label, x[there][::step], y[there][::step])


def _range(values: Sequence[np.ndarray]) -> tuple[float, float]:
    low, high = min(float(array.min()) for array in values), max(float(array.max()) for array in values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _axes(low_x: float, high_x: float, low_y: float, high_y: float, x_label: str) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    frame = f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="currentColor" opacity="0.5"/>'
    return [
        frame,
        _text(_LEFT - 6, bottom, f"{low_y:.4g}", anchor="end"),
        _text(_LEFT - 6, _TOP + 8, f"{high_y:.4g}", anchor="end"),
        _text(_LEFT, bottom + 16, _end(low_x, high_x - low_x)),
        _text(right, bottom + 16, _end(high_x, high_x - low_x), anchor="end"),
        _text((_LEFT + right) / 2, bottom + 30, x_label, anchor="middle"),
    ]


def _end(value: float, span: float) -> str:
    """A number at the end of an axis; a short axis needs digits."""
    return f"{value:,.0f}" if span >= 10 else f"{value:.4g}"


def _text(x: float, y: float, text: str, colour: str = "currentColor", anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}" text-anchor="{anchor}">{html.escape(text)}</text>'
