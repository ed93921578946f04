"""Draws the learning curves of presets, and writes the Markdown that shows these pictures on a page.

``python -m benchmarks.scores --table`` and ``python -m benchmarks.golden --table`` write all pictures again.
"""

from __future__ import annotations

import pathlib
import re
from typing import Iterable, Mapping, Sequence

import numpy as np

from rl_coach.runs.plot import Line, SignalPlot

DIRECTORY = pathlib.PurePosixPath("images", "curves")
BACKGROUND = "white"  # a picture cannot know whether the page has a dark theme
Curve = Sequence[tuple[float, float]]


def write(docs: pathlib.Path, preset: str, lines: Iterable[Line], x_label: str = "environment steps") -> None:
    """Draw the lines of a preset, and write the SVG file in ``docs``."""
    path = docs / file_of(preset)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SignalPlot(list(lines), x_label, BACKGROUND).svg() + "\n", encoding="utf-8")


def file_of(preset: str) -> pathlib.PurePosixPath:
    """The path of a preset's picture, relative to ``docs``."""
    return DIRECTORY / f"{re.sub('/', '-', preset)}.svg"


def picture(preset: str, text: str, to_docs: str = "") -> str:
    """A picture in Markdown.

    :param text: a description of the picture, for readers who cannot see it
    :param to_docs: the relative path from the page's directory to ``docs``, for example ``../``
    """
    return f"![{text}]({to_docs}{file_of(preset)})"


def mean_and_band(label: str, curves: Sequence[Curve]) -> Line:
    """The mean of the curves of several seeds, with a band from the lowest curve to the highest. The line ends where
    the shortest curve ends.

    :param curves: [x, value] of each evaluation, in order of x; at least one
    """
    arrays = [np.array(curve, dtype=float) for curve in curves]
    end = min(array[-1, 0] for array in arrays)
    x = np.unique(np.concatenate([array[:, 0] for array in arrays]))
    x = x[(x >= max(array[0, 0] for array in arrays)) & (x <= end)]
    values = np.stack([np.interp(x, array[:, 0], array[:, 1]) for array in arrays])
    band = (values.min(axis=0), values.max(axis=0)) if len(curves) > 1 else None
    return Line(label, x, values.mean(axis=0), band)


def one_line_each(curves: Mapping[int, Curve]) -> list[Line]:
    """A line for each seed, for runs that end at different times."""
    return [
        Line(f"seed {seed}", *np.array(curve, dtype=float).reshape(-1, 2).T) for seed, curve in sorted(curves.items())
    ]
