"""The plot as a Bokeh figure. The figure is created once. Then it gets new data and keeps the user's zoom."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Sequence

import numpy as np
from bokeh.core.validation import silence
from bokeh.core.validation.warnings import MISSING_RENDERERS
from bokeh.events import RangesUpdate, Reset
from bokeh.models import (
    BasicTickFormatter,
    ColumnDataSource,
    InlineStyleSheet,
    LinearAxis,
    LogAxis,
    LogScale,
    Range1d,
)
from bokeh.models.annotations import Legend, LegendItem
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from .colours import DASHES, PLOT, line_colour
from .curves import Curve, bounds, short_titles, thin

# An empty figure is created first, and is hidden until there are lines.
silence(MISSING_RENDERERS, True)

MOST_LEGEND_ENTRIES = 24
MOST_CURVES = 80
_FONT = "Inter, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
STYLE = ":host, :host(:focus), .bk-events:focus { outline: none !important; }"
_EMPTY: dict[str, list[float]] = {"x": [], "y": [], "raw": [], "low": [], "high": [], "count": []}


@dataclass
class _Drawn:
    source: ColumnDataSource
    renderers: list[GlyphRenderer]
    style: tuple[Any, ...]


class SignalPlot:
    """Curves on one or two axes.

    :param theme: ``light`` or ``dark``
    :param log_x: True for a logarithmic x-axis
    :param log_y: True for logarithmic y-axes
    :param zoomed: called after the user has zoomed or panned, with the ranges of x, left and right axis (six numbers);
        called with an empty tuple after a reset of the zoom
    :param in_order: a function that runs another function after all earlier requests
    """

    def __init__(
        self,
        theme: str,
        log_x: bool,
        log_y: bool,
        zoomed: Callable[[tuple[float, ...]], None],
        in_order: Callable[[Callable[[], None]], None],
    ):
        self.log_x, self.log_y = log_x, log_y
        self._zoomed = zoomed
        self._theme = theme
        self._drawn: dict[tuple[str, str, str], _Drawn] = {}
        self._curves: list[Curve] = []
        self._zoom: tuple[float, ...] = ()
        self._given: tuple[float, ...] = ()
        self._legend_shows: list[tuple[str, list[Any]]] = []
        self._ranges = [Range1d(start=0.0, end=1.0) for _ in range(3)]
        self.figure = self._make_figure()
        self.figure.on_event(RangesUpdate, lambda event: in_order(self._take_ranges))
        self.figure.on_event(Reset, lambda event: in_order(self._reset))
        self.legend = self._make_legend()
        self.set_theme(theme)

    def _make_figure(self) -> figure:
        plot = figure(
            sizing_mode="stretch_both",
            x_axis_type="log" if self.log_x else "linear",
            y_axis_type="log" if self.log_y else "linear",
            x_range=self._ranges[0],
            y_range=self._ranges[1],
            tools="box_zoom,pan,wheel_zoom,reset",
            active_drag="box_zoom",
            active_scroll="wheel_zoom",
            toolbar_location="right",
            min_border=6,
            min_border_right=12,
            output_backend="canvas",
            visible=False,
        )
        plot.toolbar.logo = None
        plot.toolbar.stylesheets = [InlineStyleSheet(css=_TOOLBAR)]
        plot.extra_y_ranges = {"right": self._ranges[2]}
        if self.log_y:
            plot.extra_y_scales = {"right": LogScale()}
        axis = LogAxis if self.log_y else LinearAxis
        self.right_axis = axis(y_range_name="right", visible=False)
        plot.add_layout(self.right_axis, "right")
        for axis in [*plot.xaxis, *plot.yaxis, self.right_axis]:
            axis.axis_label_text_font_style = "normal"
            axis.axis_label_text_font = axis.major_label_text_font = _FONT
            axis.axis_label_text_font_size, axis.major_label_text_font_size = "12px", "11.5px"
            axis.minor_tick_line_color = None
            axis.major_tick_in, axis.major_tick_out = 0, 4
            axis.axis_label_standoff = 8
        if not self.log_x:
            plot.xaxis.formatter = BasicTickFormatter(use_scientific=False)
        return plot

    def _make_legend(self) -> Legend:
        legend = Legend(
            items=[],
            click_policy="hide",
            border_line_color=None,
            label_text_font=_FONT,
            label_text_font_size="12px",
            glyph_width=22,
            spacing=2,
            margin=4,
            location="top_left",
        )
        legend.padding = 12  # type: ignore[assignment]  # the stubs know only the longer forms
        self.figure.add_layout(legend, "right")
        return legend

    def set_theme(self, theme: str) -> None:
        """Draw in light or dark colours. The colours of curves change with the next ``show``, because a change of a
        curve that the browser does not have yet would be an error in the browser.
        """
        self._theme = theme
        colours = PLOT[theme]
        plot = self.figure
        plot.background_fill_color = plot.border_fill_color = colours["paper"]
        plot.outline_line_color = None
        for grid in plot.grid:
            grid.grid_line_color = colours["grid"]
        for axis in [*plot.xaxis, *plot.yaxis, self.right_axis]:
            axis.axis_line_color = axis.major_tick_line_color = colours["edge"]
            axis.major_label_text_color = colours["faint"]
            axis.axis_label_text_color = colours["ink"]
        self.legend.background_fill_alpha = 0
        self.legend.label_text_color = colours["ink"]

    def show(self, curves: Sequence[Curve], x_label: str, left_label: str, right_label: str) -> None:
        """Draw curves. A curve that exists already gets only new data. The user's zoom is kept."""
        self._take_ranges()
        self._curves = list(curves[:MOST_CURVES])
        document = self.figure.document
        # Bokeh searches all models of the page after each added line. While frozen, it waits for the last line.
        with document.models.freeze() if document is not None else contextlib.nullcontext():
            self._show(x_label, left_label, right_label)

    def _show(self, x_label: str, left_label: str, right_label: str) -> None:
        # Change the axes first: the browser applies changes in order, and new lines must not appear on old axes.
        plot = self.figure
        plot.xaxis.axis_label, plot.yaxis[0].axis_label = x_label, left_label
        self.right_axis.axis_label = right_label
        self.right_axis.visible = any(curve.right for curve in self._curves)
        self.fit()
        self._remove(set(self._drawn) - {curve.key for curve in self._curves})
        for curve in self._curves:
            self._draw(curve)
        self._arrange_legend()

    def _draw(self, curve: Curve) -> None:
        kinds = (curve.raw is None, curve.low is None, curve.x.size == 1)
        style = (self._theme, curve.colour, curve.dash, curve.right, *kinds, curve.label)
        drawn = self._drawn.get(curve.key)
        if drawn is not None and drawn.style != style:
            self._remove({curve.key})
            drawn = None
        if drawn is None:
            drawn = self._drawn[curve.key] = self._add(curve, style)
        data = _data(thin(curve, self._shown_x()))
        if not _same(drawn.source.data, data):
            drawn.source.data = data

    def _add(self, curve: Curve, style: tuple[Any, ...]) -> _Drawn:
        source = ColumnDataSource(_EMPTY)
        colour, dash = line_colour(curve.colour, self._theme), DASHES[curve.dash % len(DASHES)]
        where: dict[str, Any] = {"source": source, "y_range_name": "right" if curve.right else "default"}
        renderers: list[Any] = []
        if curve.low is not None:
            band = self.figure.varea(
                x="x", y1="low", y2="high", fill_color=colour, fill_alpha=0.16, level="underlay", **where
            )
            renderers.append(band)
        if curve.raw is not None:
            raw = self.figure.line(x="x", y="raw", line_color=colour, line_alpha=0.22, line_width=1, **where)
            renderers.append(raw)
        line = self.figure.line(x="x", y="y", line_color=colour, line_dash=dash, line_width=1.8, **where)
        if curve.x.size == 1:  # a line with one point is invisible
            renderers.append(self.figure.scatter(x="x", y="y", color=colour, size=7, **where))
        line.name = curve.label  # the browser shows the values of lines that have a name
        return _Drawn(source, [*renderers, line], style)

    def _remove(self, keys: Iterable[tuple[str, str, str]]) -> None:
        removed = [self._drawn.pop(key) for key in keys]
        gone = {renderer.id for drawn in removed for renderer in drawn.renderers}
        if gone:
            self.figure.renderers = [renderer for renderer in self.figure.renderers if renderer.id not in gone]

    def _arrange_legend(self) -> None:
        labels: list[tuple[str, list[Any]]] = []
        titles = short_titles([curve.label for curve in self._curves])
        for curve, title in zip(self._curves[:MOST_LEGEND_ENTRIES], titles):
            drawn = self._drawn[curve.key]
            labels.append((title, [*reversed(drawn.renderers)]))
        hidden = len(self._curves) - len(labels)
        if hidden > 0:
            labels.append((f"and {hidden} more", []))
        if labels != self._legend_shows:
            self._legend_shows = labels
            self.legend.items = [LegendItem(label={"value": label}, renderers=drawn) for label, drawn in labels]

    def fit(self) -> None:
        """Set the ranges of the axes: to the user's zoom, or to all points if the user has not zoomed."""
        everything = self._everything()
        shown = self._zoom + everything[len(self._zoom) :]
        for place, axis in enumerate(self._ranges):
            start, end = shown[2 * place : 2 * place + 2]
            first, last = everything[2 * place : 2 * place + 2]
            if (axis.start, axis.end, axis.reset_start, axis.reset_end) != (start, end, first, last):
                axis.update(start=start, end=end, reset_start=first, reset_end=last)
        self._given = shown

    def _everything(self) -> tuple[float, ...]:
        curves = self._curves
        xs = bounds([curve.x for curve in curves], [curve.x for curve in curves], self.log_x, 0.015) or (0.0, 1.0)
        ranges = list(xs)
        for right in (False, True):
            side = [curve for curve in curves if curve.right == right]
            low = [values for curve in side for values in (curve.y, curve.low, curve.raw) if values is not None]
            high = [values for curve in side for values in (curve.y, curve.high, curve.raw) if values is not None]
            if self.log_y:
                low = [values[values > 0] for values in low]
            ranges += bounds(low, high, self.log_y, 0.05) or (1.0, 10.0)
        return tuple(ranges)

    def set_zoom(self, zoom: tuple[float, ...]) -> None:
        """Show the given ranges. :param zoom: see ``View.zoom``; an empty tuple shows all points, also later points"""
        self._zoom = tuple(zoom)
        self._refine()
        self.fit()

    def _shown_x(self) -> tuple[float, float] | None:
        return (self._zoom[0], self._zoom[1]) if self._zoom else None

    def _refine(self) -> None:
        for curve in self._curves:
            drawn = self._drawn[curve.key]
            data = _data(thin(curve, self._shown_x()))
            if not _same(drawn.source.data, data):
                drawn.source.data = data

    def _take_ranges(self) -> None:
        """Store the ranges if the user has zoomed or panned since the last ``fit``."""
        numbers = [number for axis in self._ranges for number in (axis.start, axis.end)]
        ranges = tuple(float(number) for number in numbers if isinstance(number, (int, float)))
        if len(ranges) != 6 or not all(math.isfinite(number) for number in ranges):
            return
        if not self._given or np.allclose(ranges[:4], self._given[:4], rtol=1e-9, atol=0):
            return
        everything = np.allclose(ranges[:4], self._everything()[:4], rtol=1e-9, atol=0)
        self._zoom = () if everything else ranges
        self._refine()
        self._zoomed(self._zoom)

    def _reset(self) -> None:
        self.set_zoom(())
        self._zoomed(())


_TOOLBAR = """
:host { margin-left: 10px; }
.bk-divider { background-color: var(--edge); }
"""


def _data(curve: Curve) -> dict[str, np.ndarray]:
    empty = np.full(curve.x.size, np.nan)
    values = {name: getattr(curve, name) for name in ("raw", "low", "high", "count")}
    return {"x": curve.x, "y": curve.y, **{name: empty if value is None else value for name, value in values.items()}}


def _same(old: Any, new: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(old[name], values, equal_nan=True) for name, values in new.items())
