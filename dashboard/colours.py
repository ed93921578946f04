"""The colours of lines, which people with any kind of colour vision can distinguish, and the other colours of the
plot."""

from __future__ import annotations

from typing import Iterable

# These colours maximise the smallest distance (CIE Lab) under normal, protan, deutan and tritan vision, among
# colours with a contrast of 3:1 to the page. A test checks this.
LINES = {
    "light": (
        *("#128de3", "#e1706a", "#0d5212", "#92088f", "#ac8806"),
        *("#5043d1", "#f41543", "#41474e", "#587638", "#207377"),
        *("#9970ae", "#391657", "#0e027a", "#181f08", "#bf166d"),
        *("#8517fa", "#430f2b", "#9a0813", "#f92fe5", "#92929a"),
    ),
    "dark": (
        *("#3090e2", "#d1705c", "#9cf0a2", "#fc3c91", "#ead63e"),
        *("#bca9db", "#f49b9e", "#8594a3", "#a3c651", "#76f0ec"),
        *("#fa7222", "#9123fb", "#a14aa0", "#e11223", "#557c29"),
        *("#fe1be0", "#2c8471", "#dbf8cf", "#eff913", "#ca2e59"),
    ),
}
DASHES = ("solid", "6 4", "2 3", "10 4 2 4", "14 4")

PLOT = {
    "light": {"paper": "#ffffff", "ink": "#1d242d", "faint": "#5d6875", "grid": "#e6eaef", "edge": "#c9d0d8"},
    "dark": {"paper": "#161b22", "ink": "#e6ebf1", "faint": "#98a4b3", "grid": "#262e38", "edge": "#3b4551"},
}


def line_colour(index: int, theme: str) -> str:
    """The colour with an index, as ``#rrggbb``. After the last colour of the palette, the first colour follows."""
    palette = LINES[theme]
    return palette[index % len(palette)]


def lowest_free(taken: Iterable[int]) -> int:
    """The index of the first colour that is not in ``taken``; if all colours are taken, of the least used colour."""
    counts = [0] * len(LINES["light"])
    for index in taken:
        counts[index % len(counts)] += 1
    return counts.index(min(counts))
