"""The page's own widgets, which Bokeh and Panel do not have, or have only with unescaped names."""

from __future__ import annotations

from pathlib import Path

import param
from panel.custom import JSComponent

_HERE = Path(__file__).parent


def _style(name: str) -> list[str]:
    return [(_HERE / f"{name}.css").read_text()]


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

    _esm = _HERE / "bar.js"
    _stylesheets = _style("bar")


class SignalPicker(JSComponent):
    """A field that signals are chosen in.

    :param title: the text above it
    :param names: the signals there are, those used most first
    :param value: the signals chosen
    """

    title = param.String()
    names = param.List()
    value = param.List()

    _esm = _HERE / "picker.js"
    _stylesheets = _style("picker")


class PictureButtons(JSComponent):
    """Buttons that save the plot as PNG and as SVG; ``ready`` once there is one."""

    ready = param.Boolean()

    _esm = _HERE / "export.js"
    _stylesheets = _style("export")


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

    _esm = _HERE / "wall.js"
    _stylesheets = _style("wall")


class Comparison(JSComponent):
    """Parameters against results, in a scatter and in parallel coordinates.

    :param sent: JSON as ``runs_table.comparison`` makes it
    :param across: the scatter's parameter, empty for the first
    :param result: the scatter's result and the last of the parallel axes, empty for the first
    :param axes: the parallel axes' parameters, empty for those that differ
    """

    sent = param.String()
    across = param.String()
    result = param.String()
    axes = param.List()

    _esm = _HERE / "compare.js"
    _stylesheets = _style("compare")
