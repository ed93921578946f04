"""The page's own widgets, which Bokeh and Panel do not have, or have only with unescaped names."""

from __future__ import annotations

from pathlib import Path

import param
from panel.custom import JSComponent

_HERE = Path(__file__).parent


def style(name: str) -> list[str]:
    """The style sheets of a widget."""
    return [(_HERE / f"{name}.css").read_text()]


def script(name: str) -> str:
    """The module of a widget, after what all of them share."""
    return "".join((_HERE / file).read_text() for file in ("elements.js", f"{name}.js"))


class Bar(JSComponent):
    """Live or paused, the page's address, light or dark, the split; whether something covers all the rest.

    :param computing: text that replaces the plot while it does not match the settings; empty if it does
    :param reading: text next to the plot while it shows only a part of the requested lines
    """

    covered = param.Boolean()
    computing = param.String()
    reading = param.String()
    live = param.Boolean(default=True)
    theme = param.String()
    query = param.String()

    _esm = script("bar")
    _stylesheets = style("bar")


class SignalPicker(JSComponent):
    """A field that signals are chosen in.

    :param title: the text above it
    :param names: the signals there are, those used most first
    :param value: the signals chosen
    """

    title = param.String()
    names = param.List()
    value = param.List()

    _esm = script("picker")
    _stylesheets = style("picker")


class PictureButtons(JSComponent):
    """Buttons that save the plot as PNG and as SVG; ``ready`` once there is one."""

    ready = param.Boolean()

    _esm = script("export")
    _stylesheets = style("export")


class Wall(JSComponent):
    """A small chart for each signal.

    :param names: the signals there are, those used most first
    :param pins: those that come before all others
    :param wanted: those in sight, whose lines are to be ``sent``: JSON of ``charts``, lines by signal, and whether the
        charts that the browser has are ``stale``
    :param opened: the signal that the user wants to see large
    """

    names = param.List()
    pins = param.List()
    wanted = param.List()
    sent = param.String()
    opened = param.String()
    log_x = param.Boolean()
    log_y = param.Boolean()

    _esm = script("wall")
    _stylesheets = style("wall")


class Comparison(JSComponent):
    """Parameters against results, in a scatter and in parallel coordinates.

    :param sent: JSON as ``runs_table.comparison`` makes it
    :param importance: JSON of the ``result`` that settings are important for, their ``shares``, and a ``text``
    :param across: the scatter's parameter, empty for the first
    :param result: the scatter's result and the last of the parallel axes, empty for the first
    :param axes: the parallel axes' parameters, empty for those that differ
    """

    sent = param.String()
    importance = param.String()
    across = param.String()
    result = param.String()
    axes = param.List()

    _esm = script("compare")
    _stylesheets = style("compare")
