"""Plots of signals that a notebook shows by itself, as plain SVG."""

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
_MOST_POINTS = 600


@dataclass(frozen=True)
class Line:
    """Signal of a run.

    :param label: names it in the legend
    :param x: environment steps [points]
    :param y: the signal's values [points]
    """

    label: str
    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class SignalPlot:
    """A plot that a notebook draws by itself: the last value of a cell is enough.

    :param lines: what is drawn
    """

    lines: Sequence[Line]

    def _repr_svg_(self) -> str:
        drawn = [line for line in self.lines if line.x.size]
        if not drawn:
            return f'{_SVG} width="320" height="24">{_text(0, 16, "no values yet")}</svg>'
        low_x, high_x = _range([line.x for line in drawn])
        low_y, high_y = _range([line.y for line in drawn])
        parts = [*_axes(low_x, high_x, low_y, high_y)]
        for number, line in enumerate(drawn):
            colour = _COLOURS[number % len(_COLOURS)]
            x = _LEFT + (line.x - low_x) / (high_x - low_x) * (_WIDTH - _LEFT - _RIGHT)
            y = _HEIGHT - _BOTTOM - (line.y - low_y) / (high_y - low_y) * (_HEIGHT - _TOP - _BOTTOM)
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
            parts.append(_text(_LEFT + 8, _TOP + 14 * (number + 1), line.label, colour))
        return f'{_SVG} width="{_WIDTH}" height="{_HEIGHT}">{"".join(parts)}</svg>'


def line(label: str, x: np.ndarray, y: np.ndarray) -> Line:
    """A line of the finite values, thinned to as many points as a plot can show."""
    there = np.isfinite(x) & np.isfinite(y)
    step = max(1, math.ceil(there.sum() / _MOST_POINTS))
    return Line(label, x[there][::step], y[there][::step])


def _range(values: Sequence[np.ndarray]) -> tuple[float, float]:
    low, high = min(float(array.min()) for array in values), max(float(array.max()) for array in values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _axes(low_x: float, high_x: float, low_y: float, high_y: float) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    frame = f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="currentColor" opacity="0.5"/>'
    return [
        frame,
        _text(_LEFT - 6, bottom, f"{low_y:.4g}", anchor="end"),
        _text(_LEFT - 6, _TOP + 8, f"{high_y:.4g}", anchor="end"),
        _text(_LEFT, bottom + 16, f"{low_x:,.0f}"),
        _text(right, bottom + 16, f"{high_x:,.0f}", anchor="end"),
        _text((_LEFT + right) / 2, bottom + 30, "environment steps", anchor="middle"),
    ]


def _text(x: float, y: float, text: str, colour: str = "currentColor", anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}" text-anchor="{anchor}">{html.escape(text)}</text>'
