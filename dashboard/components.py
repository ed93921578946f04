"""The page's own widgets, for functions that Bokeh and Panel lack or offer only with unescaped names."""

from __future__ import annotations

from pathlib import Path

import param
from panel.custom import JSComponent

_HERE = Path(__file__).parent


def style(name: str) -> list[str]:
    """The style sheets of a widget."""
    return [(_HERE / f"{name}.css").read_text()]


def script(*names: str) -> str:
    """The JavaScript module of a widget, after the code that all widgets share."""
    return "".join((_HERE / f"{name}.js").read_text() for name in ("elements", *names))


class Bar(JSComponent):
    """The bar of the page. It also sets live updates, the theme, the address, the split and the cover of the page, and
    shows the values of the lines at the mouse.

    :param views: JSON of the saved views: pairs of a name and a query
    :param saving: JSON of a ``name``, and True for ``saves``; False removes the saved view
    :param computing: text that replaces the plot while it does not match the settings; empty if it does
    :param reading: text next to the plot while it shows only a part of the requested lines
    """

    covered = param.Boolean()
    computing = param.String()
    reading = param.String()
    live = param.Boolean(default=True)
    theme = param.String()
    query = param.String()
    views = param.String(default="[]")
    saving = param.String()
    editable = param.Boolean()

    _esm = script("hover", "bar")
    _stylesheets = style("bar")


class SignalPicker(JSComponent):
    """A field to choose signals.

    :param title: the text above it
    :param names: all signals, the most used first
    :param value: the chosen signals
    """

    title = param.String()
    names = param.List()
    value = param.List()

    _esm = script("picker")
    _stylesheets = style("picker")


class PictureButtons(JSComponent):
    """Buttons that save the plot as PNG and as SVG; ``ready`` if there is a plot."""

    ready = param.Boolean()

    _esm = script("export")
    _stylesheets = style("export")


class Wall(JSComponent):
    """A small chart for each signal.

    :param names: all signals, the most used first
    :param pins: signals that come before all others
    :param wanted: the visible signals. The server answers in ``sent``: JSON of ``charts`` (lines by signal), and
        ``stale`` if the browser's charts are old
    :param opened: the signal to show large
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


class Media(JSComponent):
    """GIFs and videos on a line of time. :param sent: JSON of ``panels.media_of``"""

    sent = param.String()

    _esm = script("media")
    _stylesheets = style("media")


class HistogramWall(JSComponent):
    """Distributions over steps. :param sent: JSON of ``panels.histograms_of``"""

    sent = param.String()

    _esm = script("histograms")
    _stylesheets = style("histograms")


class Comparison(JSComponent):
    """A scatter plot and parallel coordinates of parameters and results.

    :param sent: JSON of ``runs_table.comparison``
    :param importance: JSON of a ``result``, the ``shares`` of the settings in it, and a ``text``
    :param across: the parameter of the scatter plot; empty for the first
    :param across_scale: one of ``view.SCALES``, of the axis of this parameter; empty chooses by the values
    :param result: the result of the scatter plot, and the last of the parallel axes; empty for the first
    :param result_scale: as ``across_scale``, of the result's axes
    :param axes: the parameters of the parallel axes; empty for the parameters that differ
    """

    sent = param.String()
    importance = param.String()
    across = param.String()
    across_scale = param.String()
    result = param.String()
    result_scale = param.String()
    axes = param.List()

    _esm = script("compare")
    _stylesheets = style("compare")
