"""The widgets of the page that Bokeh and Panel do not have, or that show names as HTML there."""

from __future__ import annotations

from pathlib import Path

import param
from panel.custom import JSComponent

_HERE = Path(__file__).parent


def style(name: str) -> list[str]:
    """The style sheets of a widget."""
    return [(_HERE / f"{name}.css").read_text()]


def script(*names: str) -> str:
    """The JavaScript module of a widget, including the code that all widgets share."""
    return "".join((_HERE / f"{name}.js").read_text() for name in ("elements", *names))


class Bar(JSComponent):
    """The bar at the top of the page. It sets live updates, the theme and the address, and the heights of table and
    plot. It also shows the values of the lines next to the mouse.

    :param covered: True shows the message that there are no runs
    :param computing: text in place of the plot while the plot does not match the settings; otherwise empty
    :param reading: text next to the plot while it shows only some of the requested lines
    :param live: True shows new rows as they are written
    :param theme: ``light`` or ``dark``
    :param query: the query string of the page's address
    :param views: JSON of the saved views: pairs of a name and a query string
    :param saving: JSON of the ``name`` of a view and ``saves``: true saves the view, false removes it
    :param editable: True allows users to save and remove views
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
    """A field in which the user chooses signals.

    :param title: the text above the field
    :param names: all signals, the most used first
    :param value: the chosen signals
    """

    title = param.String()
    names = param.List()
    value = param.List()

    _esm = script("picker")
    _stylesheets = style("picker")


class PictureButtons(JSComponent):
    """Buttons that save the plot as PNG or SVG. :param ready: True if there is a plot"""

    ready = param.Boolean()

    _esm = script("export")
    _stylesheets = style("export")


class Wall(JSComponent):
    """A small chart for each signal.

    :param names: all signals, the most used first
    :param pins: signals that come before all others
    :param wanted: the visible signals, which the browser requests from the server
    :param sent: the server's response as JSON: ``charts`` with the lines by signal, and ``stale``, which is true if the
        charts in the browser are old
    :param opened: the signal that the user wants to see in the large plot
    :param log_x: True for a logarithmic x-axis
    :param log_y: True for a logarithmic y-axis
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
    """GIFs and videos, with a slider over environment steps. :param sent: the result of ``panels.media_of`` as JSON"""

    sent = param.String()

    _esm = script("media")
    _stylesheets = style("media")


class HistogramWall(JSComponent):
    """Distributions over environment steps. :param sent: the result of ``panels.histograms_of`` as JSON"""

    sent = param.String()

    _esm = script("histograms")
    _stylesheets = style("histograms")


class Comparison(JSComponent):
    """A scatter plot and parallel coordinates of parameters and results.

    :param sent: the result of ``runs_table.comparison`` as JSON
    :param importance: JSON of ``result``, the importance (``shares``) of each setting for this result, and a ``text``
    :param across: the parameter of the scatter plot; empty for the first parameter
    :param across_scale: the scale of this parameter's axis, one of ``view.SCALES``; empty selects a scale by the values
    :param result: the result of the scatter plot and of the last parallel axis; empty for the first result
    :param result_scale: the scale of the result's axes, one of ``view.SCALES``; empty selects a scale by the values
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
