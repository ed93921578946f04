"""The view of a page (everything that the user can set), and its form in the page's address."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Iterable, Mapping
from urllib.parse import parse_qsl, urlencode

from rl_coach.runs.experiments import EVALUATION_REWARD

X_AXES = {
    "episode": "Episode",
    "iteration": "Training iteration",
    "steps": "Environment steps",
    "time": "Wall-clock time (minutes)",
}
SMOOTHINGS = ("none", "window", "exponential")
DRAWINGS = ("runs", "std", "confidence", "iqm")
TABS = ("plot", "charts", "compare", "episodes", "histograms", "videos", "output", "parameters")
THEMES = ("", "light", "dark")
SCALES = ("", "linear", "log")
SIGNAL = "signal:"
"""The prefix of an x-axis that is a signal."""
USUAL_COLUMNS = (
    "state", "steps", "last", "best", "target", "seed", "preset", "agent", "environment", "speed", "start", "minutes",
)  # fmt: skip
LARGEST_WINDOW = 500
_MOST_ITEMS = 2000


def x_label(axis: str) -> str:
    """The title of an x-axis. :param axis: the value of ``View.x``"""
    return axis.removeprefix(SIGNAL) if axis.startswith(SIGNAL) else X_AXES[axis]


@dataclass(frozen=True)
class View:
    """Everything that the user can set on the page.

    :param runs: the ids of the selected runs
    :param colours: the index of each selected run's colour
    :param left: the signals on the left axis
    :param right: the signals on the right axis
    :param x: a key of ``X_AXES``, or a signal's name after ``SIGNAL``
    :param smoothing: one of ``SMOOTHINGS``
    :param window: number of rows for smoothing; 1 does not smooth, 0 uses a twentieth of each line's rows
    :param raw: True also draws the line before smoothing
    :param group: the property that groups runs: a column of the table, or a parameter's dotted name; empty for none
    :param draw: ``runs`` draws each run. The others draw a line with a band for each group: ``std`` the mean and the
        standard deviation, ``confidence`` the mean and its 95% confidence interval, ``iqm`` the interquartile mean and
        its 95% confidence interval
    :param log_x: True for a logarithmic x-axis
    :param log_y: True for logarithmic y-axes
    :param zoom: the ranges of x, left and right axis, two numbers for each axis; empty shows all points
    :param filter: the text or regular expression that filters the table
    :param regex: True if ``filter`` is a regular expression
    :param sort: a column of the table, with ``-`` before it for the largest first
    :param tab: one of ``TABS``
    :param episode: the episode whose steps are shown; -1 for the newest
    :param steps: the signals of the steps of this episode
    :param live: True shows new rows as they are written
    :param theme: one of ``THEMES``; empty for the browser's theme
    :param columns: the columns of the table after the run's name
    :param archived: True shows archived runs in the table
    :param pins: the signals whose charts come first
    :param across: the parameter on the horizontal axis of the scatter plot; empty for the first parameter
    :param across_scale: the scale of the horizontal axis, one of ``SCALES``; empty selects a scale by the values
    :param result: the result on the vertical axis of the scatter plot; empty for the first result
    :param result_scale: the scale of the vertical axis, one of ``SCALES``; empty selects a scale by the values
    :param axes: the parameters of the parallel coordinates; empty for the parameters that differ
    """

    runs: tuple[str, ...] = ()
    colours: tuple[int, ...] = ()
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    x: str = "steps"
    smoothing: str = "none"
    window: int = 0
    raw: bool = True
    group: str = ""
    draw: str = "runs"
    log_x: bool = False
    log_y: bool = False
    zoom: tuple[float, ...] = ()
    filter: str = ""
    regex: bool = False
    sort: str = "-start"
    tab: str = "plot"
    episode: int = -1
    steps: tuple[str, ...] = ()
    live: bool = True
    theme: str = ""
    columns: tuple[str, ...] = USUAL_COLUMNS
    archived: bool = False
    pins: tuple[str, ...] = (EVALUATION_REWARD,)
    across: str = ""
    across_scale: str = ""
    result: str = ""
    result_scale: str = ""
    axes: tuple[str, ...] = ()


_CHOICES = {
    "x": tuple(X_AXES),
    "smoothing": SMOOTHINGS,
    "draw": DRAWINGS,
    "tab": TABS,
    "theme": THEMES,
    "across_scale": SCALES,
    "result_scale": SCALES,
}
_NUMBERS_IN = {"colours": int, "zoom": float}


def to_query(view: View) -> str:
    """The view as a query string with ``?``. Fields that have their default value are left out."""
    default = View()
    pairs: list[tuple[str, str]] = []
    for field in fields(View):
        value = getattr(view, field.name)
        if value == getattr(default, field.name):
            continue
        if field.name in _NUMBERS_IN:
            pairs.append((field.name, ",".join(format(number, ".10g") for number in value)))
        elif isinstance(value, tuple):
            # One empty item means an empty tuple; a missing field means the default.
            pairs.extend((field.name, item) for item in value or ("",))
        else:
            pairs.append((field.name, str(int(value)) if isinstance(value, bool) else str(value)))
    return "?" + urlencode(pairs, safe="/,:#").replace("#", "%23") if pairs else ""


def from_query(query: str) -> View:
    """The view of a query string. Fields with invalid values get their default values."""
    given: dict[str, list[str]] = {}
    for name, value in parse_qsl(query.lstrip("?"), keep_blank_values=True)[:_MOST_ITEMS]:
        given.setdefault(name, []).append(value)
    return View(**dict(_read_fields(given)))


def _read_fields(given: Mapping[str, list[str]]) -> Iterable[tuple[str, Any]]:
    default = View()
    for field in fields(View):
        if field.name in given:
            try:
                yield field.name, _read(field.name, getattr(default, field.name), given[field.name])
            except ValueError:
                continue


def _read(name: str, default: Any, texts: list[str]) -> Any:
    text = texts[-1]
    if name == "zoom":
        zoom = tuple(float(part) for part in text.split(","))
        if len(zoom) not in (4, 6) or not all(math.isfinite(number) for number in zoom):
            raise ValueError(name)
        return zoom
    if name in _NUMBERS_IN:
        return tuple(max(0, int(part)) for part in text.split(","))
    if isinstance(default, tuple):
        return tuple(dict.fromkeys(text for text in texts if text))
    if isinstance(default, bool):
        return text in ("1", "true", "True")
    if isinstance(default, int):
        return min(max(int(text), 0), LARGEST_WINDOW) if name == "window" else int(text)
    if name == "x" and text.startswith(SIGNAL):
        return text
    if name in _CHOICES and text not in _CHOICES[name]:
        raise ValueError(name)
    return text
