"""The page: its widgets, and its reactions to the user and to new rows in CSVs."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import panel as pn

from rl_coach.runs import report
from rl_coach.runs.annotations import TRASH, take_back
from rl_coach.runs.comparison import compare_groups
from rl_coach.runs.experiments import EVALUATION_REWARD, TRAINING_REWARD, episode_files
from rl_coach.runs.run_group import is_group
from rl_coach.runs.signal_file import MOST_ROWS, TIME_COLUMNS, TOTAL_STEPS, SignalFile
from rl_coach.runs.status import FAILED, RUNNING
from rl_coach.runs.workers import RunSignals
from rl_coach.utils import CoachError

from .colours import line_colour, lowest_free
from .components import Bar, Comparison, HistogramWall, Media, PictureButtons, SignalPicker, Wall
from .curves import Curve, axis_columns, short_titles, thin
from .drawing import Drawing, draw, groups_of, labels_of, sides_of
from .importance import importance
from .panels import histograms_of, media_of, message, no_experiments, output, parameters_table
from .plot import MOST_CURVES, STYLE, SignalPlot
from .runs_table import RunsTable, comparison, group_options, offered_columns, rows_of, shown_columns, titles_of
from .signals import by_use
from .store import Run, Store
from .view import LARGEST_WINDOW, SIGNAL, TABS, USUAL_COLUMNS, View, from_query, to_query, x_label

LOOK_EVERY_MILLISECONDS = 750
_HERE = Path(__file__).parent
_WIDGETS = (_HERE / "widgets.css").read_text()
_LOST_VIEW = "The view of this link is unknown: another dashboard made the link, or the view is not stored any more."
_EPISODE_SIGNALS_AT_FIRST = 1
_PATIENCE_MILLISECONDS = 100
"""The plot is hidden if a drawing takes longer, so that users do not mistake old lines for new lines."""
_FIRST_PART_SECONDS = 1.5
_NEXT_PART_SECONDS = 2.5
_SHARE_OF_PARTS = 4
"""While runs are read, their lines are drawn from time to time. Reading between two drawings takes this many times as
long as a drawing."""
_POINTS_OF_A_CHART = 160
_DRAWS_NOTHING_NEW = {
    *("zoom", "filter", "regex", "sort", "live", "tab", "episode", "steps", "columns", "archived", "pins"),
    *("across", "across_scale", "result", "result_scale", "axes"),
}
_SETTINGS_OF_CHARTS = ("runs", "x", "smoothing", "window", "group", "draw", "log_x", "log_y", "theme")

_logger = logging.getLogger(__name__)


class _Superseded(Exception):
    """Raised to cancel the reading of columns that are not needed any more."""


class Page:
    """The page in one browser tab.

    ``view`` is the state of the page. Each widget shows one field of ``view``. If the user changes the widget, it calls
    ``change`` with the new value of the field.

    :param store: the runs
    :param query: the query string of the page's address
    """

    def __init__(self, store: Store, query: str):
        self.store = store
        whole = store.addresses.whole(query)
        self.view = from_query(whole or "")
        self._is_lost = whole is None
        self.warning = ""
        self._first_look = True
        self._seen_version = -1
        self._colours: dict[str, int] = dict(zip(self.view.runs, self.view.colours))
        self._writing_widgets = False
        self._pool = ThreadPoolExecutor(1, "page")
        self._drawing: Future | None = None
        self._draw_again = False
        self._settings = 0
        self._shown_settings = -1
        self._shows_a_part = False
        self._progress = (0, 0)
        self._drawn_runs: list[Run] = []
        self._wall_version = 0
        self._wall_shows: tuple[Any, ...] = ()
        self._weighed: tuple[Any, ...] = ()
        self._moved: list[tuple[Path, Path]] = []
        self._asked_for = {name for name, _ in parse_qsl((whole or "").lstrip("?"))}
        self._loaded = False
        self._closed = False
        self._document = pn.state.curdoc
        self._drawn: Drawing | None = None
        self._plot = self._new_plot()
        self._build()

    def _new_plot(self) -> SignalPlot:
        view = self.view
        plot = SignalPlot(self.theme, view.log_x, view.log_y, lambda zoom: self.change(zoom=zoom), self.in_order)
        plot.figure.name = "signals"
        return plot

    @property
    def theme(self) -> str:
        """``light`` or ``dark``; light before the browser has reported its preference."""
        return self.view.theme or "light"

    # the contents of the page

    def _build(self) -> None:
        self.bar = Bar(
            live=self.view.live, theme=self.view.theme, editable=self.store.editable, sizing_mode="stretch_width"
        )
        self.table = RunsTable(
            selected=list(self.view.runs),
            filter=self.view.filter,
            regex=self.view.regex,
            sort=self.view.sort,
            grouped=bool(self.view.group),
            columns=list(self.view.columns),
            titles=json.dumps(titles_of(self.view.columns)),
            archived=self.view.archived,
            editable=self.store.editable,
            sizing_mode="stretch_both",
        )
        self._build_controls()
        self._build_tabs()
        self._build_shown()
        self.cover = pn.pane.HTML("", stylesheets=[_WIDGETS], sizing_mode="stretch_both", margin=0)
        # Process changes that arrive together in one step. If one change were written back first, the others would be
        # lost.
        self.bar.param.watch(self._on_own_component, ["live", "theme"])
        self.bar.param.watch(self._on_query, "query")
        self.bar.param.watch(lambda event: self.in_order(partial(self._save_view, event.new)), "saving")
        self.table.param.watch(lambda event: self.in_order(self.table.send_all), "asked")
        self.table.param.watch(self._on_own_component, ["filter", "regex", "sort", "selected", "columns", "archived"])
        self.table.param.watch(lambda event: self.in_order(partial(self._do, event.new)), "told")

    def _build_controls(self) -> None:
        common: dict[str, Any] = {"stylesheets": [_WIDGETS], "sizing_mode": "stretch_width", "margin": (0, 14, 12, 14)}
        own: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (0, 14, 12, 14)}
        self.left = SignalPicker(title="Signals", **own)
        self.right = SignalPicker(title="Signals on the right axis", **own)
        self.x = _segments({"Episode": "episode", "Iteration": "iteration", "Steps": "steps", "Time": "time"}, common)
        self.x_signal = pn.widgets.Select(label="Or a signal", options={"–": ""}, **common)
        self.x_signal.param.watch(self._on_x_signal, "value")
        self.smoothing = _segments({"None": "none", "Window": "window", "Exponential": "exponential"}, common)
        label = "Rows to smooth over (0: 5% of them)"
        self.window = pn.widgets.IntSlider(label=label, start=0, end=LARGEST_WINDOW, **common)
        self.raw = _switch("Also show the raw line", **common)
        self.group = pn.widgets.Select(label="Group runs by", **common)
        drawings = {"Each run": "runs", "Mean ± std": "std", "Mean, 95%": "confidence", "IQM, 95%": "iqm"}
        self.draw = _segments(drawings, {**common, "css_classes": ["wrapped"]})
        self.log_x = _switch("Logarithmic x-axis", **common)
        self.log_y = _switch("Logarithmic y-axes", **common)
        names = ("left", "right", "x", "smoothing", "window", "raw", "group", "draw", "log_x", "log_y")
        self._widgets = {name: getattr(self, name) for name in names}
        for field, widget in self._widgets.items():
            watched = "value_throttled" if field == "window" else "value"
            widget.param.watch(partial(self._on_widget, field), watched)
        titles = {"x": "X-axis", "smoothing": "Smoothing", "draw": "Draw"}
        parts: list[Any] = [pn.Spacer(height=12, margin=0)]
        for field in names:
            if field in titles:
                parts.append(_title(titles[field]))
            parts.append(self._widgets[field])
            if field == "x":
                parts.append(self.x_signal)
        self.controls = pn.Column(*parts, sizing_mode="stretch_width", margin=0)

    def _build_tabs(self) -> None:
        style = {"stylesheets": [_WIDGETS], "margin": (8, 0, 8, 6), "height": 28, "css_classes": ["single"]}
        options = {name.capitalize(): name for name in TABS}
        self.tab = pn.widgets.RadioButtonGroup(
            options=options, stylesheets=[_WIDGETS], css_classes=["tab"], margin=0, height=43
        )
        self.tab.param.watch(partial(self._on_widget, "tab"), "value")
        self._widgets["tab"] = self.tab
        self.warned = pn.pane.HTML("", stylesheets=[_WIDGETS], margin=(8, 6), visible=False)
        self.pictures = PictureButtons(margin=0)
        self.csv = pn.widgets.FileDownload(
            callback=self._export_csv, filename="signals.csv", label="CSV", width=52, color="default", **style
        )
        self.exports = pn.Row(self.pictures, self.csv, margin=0)
        self.report = pn.widgets.FileDownload(
            callback=self._export_report, filename="report.html", label="Report", width=66, color="default",
            visible=False, **style,
        )  # fmt: skip
        self.tabs = pn.Row(
            self.tab,
            pn.Spacer(sizing_mode="stretch_width"),
            self.warned,
            self.exports,
            self.report,
            sizing_mode="stretch_width",
            margin=0,
            height=44,
        )

    def _build_shown(self) -> None:
        whole: dict[str, Any] = {"sizing_mode": "stretch_both", "margin": 0}
        beside: dict[str, Any] = {**whole, "margin": (4, 0, 4, 8)}
        self.plot_pane = pn.pane.Bokeh(self._plot.figure, stylesheets=[STYLE], **beside)
        self.plot_message = pn.pane.HTML(message("Reading …"), stylesheets=[_WIDGETS], **whole)
        self.plot_tab = pn.Column(self.plot_message, self.plot_pane, **whole)
        self.episodes: EpisodesPanel | None = None
        self.videos = Media(**whole)
        self.videos_tab = pn.Column(self.videos, visible=False, **whole)
        self.histograms = HistogramWall(**whole)
        self.histograms_tab = pn.Column(self.histograms, visible=False, **whole)
        self.output = pn.pane.HTML("", stylesheets=[_WIDGETS], **whole)
        self.output_tab = pn.Column(self.output, scroll=True, visible=False, **whole)
        self.words = pn.widgets.TextInput(
            placeholder="Find a parameter", width=240, stylesheets=[_WIDGETS], margin=(10, 8, 10, 16)
        )
        self.differences = _switch("Only what differs", stylesheets=[_WIDGETS], margin=(16, 8))
        self.parameters = pn.pane.HTML("", stylesheets=[_WIDGETS], **whole)
        self.words.param.watch(lambda event: self.in_order(self._show_parameters), "value_input")
        self.differences.param.watch(lambda event: self.in_order(self._show_parameters), "value")
        self.parameters_tab = pn.Column(
            pn.Row(self.words, self.differences, margin=0, height=52),
            pn.Column(self.parameters, scroll=True, **whole),
            visible=False,
            **whole,
        )
        self.wall = Wall(pins=list(self.view.pins), **whole)
        self.wall.param.watch(lambda event: self.in_order(self._fill_wall), "wanted")
        self.wall.param.watch(self._on_own_component, "pins")
        self.wall.param.watch(lambda event: self.in_order(partial(self._open_chart, event.new)), "opened")
        self.compared = Comparison(**self._compared_fields(), **whole)
        # A component of ours is always displayed, so it needs a column that can be hidden.
        self.wall_tab = pn.Column(self.wall, visible=False, **whole)
        self.compare_tab = pn.Column(self.compared, visible=False, **whole)
        self.compared.param.watch(self._on_own_component, list(self._compared_fields()))
        self.shown = pn.Column(
            self.plot_tab,
            self.wall_tab,
            self.compare_tab,
            self.histograms_tab,
            self.videos_tab,
            self.output_tab,
            self.parameters_tab,
            **whole,
        )

    def _compared_fields(self) -> dict[str, Any]:
        view = self.view
        scales = {"across_scale": view.across_scale, "result_scale": view.result_scale}
        return {"across": view.across, "result": view.result, "axes": list(view.axes), **scales}

    # reactions

    def in_order(self, work: Callable[[], None]) -> None:
        """Run a function after all earlier requests. Then send all its changes to the browser.

        Panel sends a change at once if it can, and otherwise later. So a change of a widget may arrive before the
        widget, and some changes never arrive. Bokeh sends all changes in a callback of its event loop in order, so the
        function runs in such a callback.
        """
        if self._document is None:
            work()
        elif not self._closed:
            self._document.add_next_tick_callback(partial(self._work, work))

    def _work(self, work: Callable[[], None]) -> None:
        if self._closed or self._document is None:
            return
        self._document.hold()
        try:
            work()
        finally:
            self._document.unhold()

    def _on_widget(self, field: str, event: Any) -> None:
        if self._writing_widgets:
            return
        if isinstance(event.obj, pn.widgets.CheckBoxGroup):
            value: Any = bool(event.new)
        else:
            value = tuple(event.new) if isinstance(event.new, list) else event.new
        self.in_order(partial(self.change, **{field: value}))

    def _on_x_signal(self, event: Any) -> None:
        if not self._writing_widgets:
            self.in_order(partial(self.change, x=event.new or "steps"))

    def _on_query(self, event: Any) -> None:
        if event.new != self._address():
            self.in_order(partial(self.visit, event.new))

    def _on_own_component(self, *events: Any) -> None:
        if self._writing_widgets:
            return
        changes = {event.name: event.new for event in events}
        if "selected" in changes:
            changes["runs"] = changes.pop("selected")
        changes = {name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()}
        self.in_order(partial(self.change, **changes))

    def change(self, **changes: Any) -> None:
        """Change fields of the view, and show the view."""
        view = replace(self.view, **changes)
        if any(getattr(view, name) != getattr(self.view, name) for name in ("x", "log_x", "log_y")):
            view = replace(view, zoom=())
        self._go_to(view)

    def visit(self, query: str) -> None:
        """Show the view of an address, after the user has gone back or forward in the browser's history."""
        whole = self.store.addresses.whole(query)
        if whole is not None and whole != to_query(self.view):
            view = from_query(whole)
            self._colours.update(zip(view.runs, view.colours))
            self._go_to(view)

    def _save_view(self, saving: str) -> None:
        asked = json.loads(saving)
        if self.store.editable:
            self.store.addresses.save(asked["name"], to_query(self.view) or "?" if asked["saves"] else None)
        self.look()

    def _address(self) -> str:
        return self.store.addresses.shortened(to_query(self.view))

    def _go_to(self, view: View) -> None:
        old, self.view = self.view, view
        changed = {field.name for field in fields(View) if getattr(old, field.name) != getattr(view, field.name)}
        if not changed:
            return
        if changed & {"log_x", "log_y"}:
            self._plot = self._new_plot()
            self._plot.set_zoom(view.zoom)
            self.plot_pane.object = self._plot.figure
            self._drawn = None
        self._keep_colours()
        self.show(changed)

    def _keep_colours(self) -> None:
        """Give each selected run a different colour. The run keeps the colour while it is selected."""
        runs = self.view.runs
        keep = {run_id: colour for run_id, colour in self._colours.items() if run_id in runs or ":" in run_id}
        for run_id in runs:
            if run_id not in keep:
                keep[run_id] = lowest_free(colour for key, colour in keep.items() if key in runs)
        self._colours = keep
        self.view = replace(self.view, colours=tuple(keep[run_id] for run_id in runs))

    def _colour_of(self, key: str) -> int:
        if key not in self._colours:
            taken = [colour for other, colour in self._colours.items() if other.startswith("group:")]
            self._colours[key] = lowest_free(taken)
        return self._colours[key]

    def show(self, changed: Iterable[str]) -> None:
        """Show the view after these fields have changed."""
        changed = set(changed)
        self._write_widgets()
        self.bar.query = self._address()
        if "theme" in changed:
            self._plot.set_theme(self.theme)
            if self.episodes is not None:
                self.episodes.plot.set_theme(self.theme)
        if changed & {"runs", "group", "theme", "columns"}:
            self._show_table()
        if "columns" in changed:
            self._offer_columns()
        if "runs" in changed:
            self._offer_signals()
        if "zoom" in changed:
            self._plot.set_zoom(self.view.zoom)
        if changed - _DRAWS_NOTHING_NEW:
            self._settings += 1
            self.redraw()
            self._fill_wall()
        if changed & {"tab", "runs", "theme", "episode", "steps", "result"}:
            self._show_tab()

    def _write_widgets(self) -> None:
        self._writing_widgets = True
        try:
            for field, widget in self._widgets.items():
                value = getattr(self.view, field)
                value = list(value) if isinstance(value, tuple) else value
                if isinstance(widget, pn.widgets.CheckBoxGroup):
                    value = list(widget.options) if value else []
                if widget.value != value and (not hasattr(widget, "options") or _offers(widget, value)):
                    widget.value = value
            grouped = bool(self.view.group)
            self.table.param.update(
                selected=list(self.view.runs),
                filter=self.view.filter,
                regex=self.view.regex,
                sort=self.view.sort,
                grouped=grouped,
                archived=self.view.archived,
            )
            view = self.view
            self.wall.param.update(pins=list(view.pins), log_x=view.log_x, log_y=view.log_y)
            self.compared.param.update(**self._compared_fields())
            is_signal = view.x.startswith(SIGNAL)
            self.x_signal.value = view.x if is_signal and _offers(self.x_signal, view.x) else ""
            if is_signal:
                self.x.value = None
            self.window.disabled = self.raw.disabled = self.view.smoothing == "none"
            self.raw.visible = self.view.draw == "runs"
        finally:
            self._writing_widgets = False

    def look(self) -> None:
        """Show the changes on disk since the last call, and the progress of a drawing. Called regularly."""
        self._show_whether_computing()
        self.bar.views = json.dumps(sorted(self.store.addresses.saved.items()))
        if self.store.version == self._seen_version:
            return
        if not self.view.live and not self._first_look:
            return
        self._seen_version = self.store.version
        self._show_cover()
        if not self.store.scanned.is_set():
            # The choice of runs and the colours of groups depend on all runs.
            self._show_table()
            return
        if self._first_look and self.store.runs:
            self._begin()
        self._show_table()
        self._offer_signals()
        self._offer_groups()
        self._offer_columns()
        self._write_widgets()
        self._say_what_is_missing()
        if self._runs_to_draw() != self._drawn_runs:
            self.redraw()
        self._fill_wall()
        if self.view.tab != "plot":
            self._show_tab()

    def _begin(self) -> None:
        """If the address does not select runs or signals, select the newest run and its reward. If this run was started
        together with other runs, show the interquartile mean of all these runs."""
        self._first_look = False
        runs = self.store.runs
        view = self.view
        if not view.runs:
            newest = max(runs.values(), key=_age_of)
            view = self._with_companions(replace(view, runs=(newest.id,)), newest)
        if not view.left and not view.right:
            view = replace(view, left=self._first_signal(view))
        has_signals = any(runs[run_id].has_signals for run_id in view.runs if run_id in runs)
        if "x" not in self._asked_for and has_signals and not self._have(view, TOTAL_STEPS):
            view = replace(view, x="episode")
        self.view = view
        self._keep_colours()
        self.bar.query = self._address()
        self._plot.set_zoom(view.zoom)
        self._show_tab()

    def _with_companions(self, view: View, newest: Run) -> View:
        if not is_group(Path(newest.path).parent.parent) or {"group", "draw"} & self._asked_for:
            return view
        group = newest.description.experiment
        companions = [run for run in self.store.runs.values() if run.description.experiment == group]
        return replace(view, runs=tuple(run.id for run in companions), group="experiment", draw="iqm")

    def _have(self, view: View, signal: str) -> bool:
        return any(signal in self.store.runs[run_id].names for run_id in view.runs if run_id in self.store.runs)

    def _first_signal(self, view: View) -> tuple[str, ...]:
        """The first signal to show: the evaluation reward; without an evaluation the training reward; without rewards
        the first signal of the runs."""
        chosen = [self.store.runs[run_id] for run_id in view.runs if run_id in self.store.runs]
        if not any(run.has_signals for run in chosen):
            return (TRAINING_REWARD,)
        if any(math.isfinite(run.summary.last_evaluation_reward) for run in chosen):
            return (EVALUATION_REWARD,)
        names = by_use(name for run in chosen for name in run.signals if name != EVALUATION_REWARD)
        return tuple(name for name in names if name not in TIME_COLUMNS)[:1]

    def _say_what_is_missing(self) -> None:
        gone = [run_id for run_id in self.view.runs if run_id not in self.store.runs]
        text = f"Not in this directory: {gone[0]}" if gone else ""
        if len(gone) > 1:
            text += f" and {len(gone) - 1} more"
        lost = _LOST_VIEW if self._is_lost else ""
        self._warn(self.store.trouble or lost or text or self._too_many())

    def _too_many(self) -> str:
        curves = len(self._drawn.curves) if self._drawn else 0
        return (
            f"Only {MOST_CURVES} of {curves} curves are shown: group or deselect runs." if curves > MOST_CURVES else ""
        )

    def _warn(self, text: str) -> None:
        if text != self.warning:
            self.warning = text
            self.warned.object = message(text).replace("message", "warning")
            self.warned.visible = bool(text)

    def _show_cover(self) -> None:
        nothing = not self.store.runs and self.store.scanned.is_set()
        text = no_experiments(self.store.root, os.path.isdir(self.store.root)) if nothing else ""
        self._set(self.cover, text)
        self.bar.covered = nothing

    def _show_table(self) -> None:
        runs = self.store.runs
        colours = dict(zip(self.view.runs, self.view.colours))
        if self.view.draw != "runs":
            lines = {line.id: run.id for run in self.chosen() for line in run.lines}
            groups = groups_of([line for run in self.chosen() for line in run.lines], self.view.group)
            colours = {
                lines[line.id]: self._colour_of(f"group:{name}") for name, members in groups.items() for line in members
            }
        shown = {
            run_id: line_colour(colour, self.theme)
            for run_id, colour in colours.items()
            if run_id in runs and self.store.scanned.is_set()
        }
        columns, varied = self.view.columns, self.store.varied_parameters
        rows = rows_of(runs, self.view.group, shown, shown_columns(columns, varied))
        self._set_columns(shown_columns(columns, varied, rows))
        self.table.show_rows(rows)

    def _set_columns(self, columns: Sequence[str]) -> None:
        self._writing_widgets = True
        try:
            self.table.param.update(columns=list(columns), titles=json.dumps(titles_of(columns)))
        finally:
            self._writing_widgets = False

    def _offer_signals(self) -> None:
        runs = self.store.runs
        chosen = [runs[run_id] for run_id in self.view.runs if run_id in runs] or list(runs.values())[:1]
        names = by_use(name for run in chosen for name in run.signals)
        for picker, shown in ((self.left, self.view.left), (self.right, self.view.right)):
            picker.names = names + [name for name in shown if name not in names]
        self.wall.names = [name for name in names if name not in TIME_COLUMNS]
        axis = self.view.x
        offered = list(dict.fromkeys([*self.wall.names, *([axis.removeprefix(SIGNAL)] if SIGNAL in axis else [])]))
        options = {"–": "", **{name: f"{SIGNAL}{name}" for name in offered}}
        if self.x_signal.options != options:
            self._writing_widgets = True
            self.x_signal.param.update(options=options, value=axis if axis.startswith(SIGNAL) else "")
            self._writing_widgets = False

    def _offer_columns(self) -> None:
        others = sorted({name for run in self.chosen() for name in run.description.parameters})
        store = self.store
        differing = list(dict.fromkeys([*store.varied_parameters, *store.differing_parameters]))
        offered = offered_columns(differing, others, self.view.columns)
        self.table.offered = json.dumps(offered)

    def _offer_groups(self) -> None:
        asked = self.view.group
        options = group_options(self.store.varied_parameters, self.store.differing_parameters, asked)
        if self.group.options != options:
            self._writing_widgets = True
            self.group.param.update(options=options, value=asked)
            self._writing_widgets = False

    def _show_tab(self) -> None:
        tab = self.view.tab
        self.plot_tab.visible = tab == "plot"
        if tab == "episodes" and self.episodes is None:
            # Created at its first use, so that the page opens faster.
            self.episodes = EpisodesPanel(self)
            self.shown.append(self.episodes.panel)
        if self.episodes is not None:
            self.episodes.panel.visible = tab == "episodes"
        self.wall_tab.visible = tab == "charts"
        self.compare_tab.visible = tab == "compare"
        self.videos_tab.visible = tab == "videos"
        self.output_tab.visible = tab == "output"
        self.histograms_tab.visible = tab == "histograms"
        self.parameters_tab.visible = tab == "parameters"
        self.exports.visible, self.report.visible = tab == "plot", tab == "compare"
        if tab == "videos":
            self._compute_for(self.videos, self._media)
        if tab == "histograms":
            self._compute_for(self.histograms, self._histograms)
        if tab == "output":
            self._set(self.output, output(self.chosen()))
        if tab == "parameters":
            self._show_parameters()
        if tab == "compare":
            self._show_comparison()
        if tab == "charts":
            self._fill_wall()
        self._show_whether_computing()
        if tab == "episodes" and self.episodes is not None:
            self.episodes.show()

    def _compute_for(self, component: Any, compute: Callable[[View, list[Run]], dict[str, Any]]) -> None:
        """Compute the contents of a component outside the page's thread, and send them to the component."""
        future = self._pool.submit(compute, self.view, self.chosen())
        future.add_done_callback(lambda future: self.in_order(partial(self._send_to, component, future)))

    def _send_to(self, component: Any, future: Future) -> None:
        found = self._result_of(future)
        if found is not None and not self._closed:
            component.sent = json.dumps(found)

    def _media(self, view: View, runs: list[Run]) -> dict[str, Any]:
        files = self.store.columns(view.runs, (*axis_columns("steps"), *axis_columns("time")))
        return media_of(runs, files, self._colours_in(view), self.store.root)

    def _histograms(self, view: View, runs: list[Run]) -> dict[str, Any]:
        return histograms_of(runs, self._colours_in(view))

    def _colours_in(self, view: View) -> dict[str, str]:
        return {run_id: line_colour(colour, self.theme) for run_id, colour in zip(view.runs, view.colours)}

    def _show_parameters(self) -> None:
        colours = dict(zip(self.view.runs, self.view.colours))
        words, only = self.words.value_input or "", bool(self.differences.value)
        colours |= {line.id: colours.get(run.id, 0) for run in self.chosen() for line in run.lines}
        lines = [line for run in self.chosen() for line in run.lines]
        self._set(self.parameters, parameters_table(lines, colours, self.theme, words, only))

    @staticmethod
    def _set(pane: pn.pane.HTML, text: str) -> None:
        if pane.object != text:
            pane.object = text

    def chosen(self) -> list[Run]:
        """The selected runs that exist."""
        runs = self.store.runs
        return [runs[run_id] for run_id in self.view.runs if run_id in runs]

    # reading and computing, outside the page's thread

    def redraw(self) -> None:
        """Read missing columns and draw, without blocking the page. If this method is called during a drawing, the page
        draws once more afterwards.
        """
        if not self._loaded or not self.store.scanned.is_set():
            return
        if self._is_stale and self._document is not None:
            self._document.add_timeout_callback(self._show_whether_computing, _PATIENCE_MILLISECONDS)
        if self._drawing is not None:
            self._draw_again = True
            return
        self._progress = (0, 0)
        self._drawn_runs = self._runs_to_draw()
        self._drawing = self._pool.submit(self._compute, self.view, self.store.runs, self._settings)
        self._drawing.add_done_callback(partial(self._hand_back, settings=self._settings))

    def _runs_to_draw(self) -> list[Run]:
        return [run.drawn for run in self.chosen()]

    @property
    def _is_stale(self) -> bool:
        """True if the lines on the page do not match the settings."""
        return self._shown_settings != self._settings

    def _show_whether_computing(self) -> None:
        """Show the progress of new lines: in place of the plot if the old lines do not match the settings, and next to
        the plot if some of the new lines are drawn."""
        works = self._drawing is not None and self.view.tab == "plot"
        done, total = self._progress
        text = f"Reading {done} of {total} runs …" if done < total else "Computing …"
        self.bar.computing = text if works and self._is_stale else ""
        self.bar.reading = text if works and self._shows_a_part and not self._is_stale else ""

    def begin(self) -> None:
        """Start to draw and to show changes on disk. Called after the browser has loaded the page, because earlier
        changes may not reach the browser."""
        self._loaded = True
        self.in_order(self.look)
        self.in_order(self.redraw)
        pn.state.add_periodic_callback(partial(self.in_order, self.look), period=LOOK_EVERY_MILLISECONDS)

    def _compute(self, view: View, runs: dict[str, Run], settings: int) -> Drawing:
        told = _Progress(self, view, runs, settings)
        files = self.store.columns(view.runs, (*axis_columns(view.x), *view.left, *view.right), told)
        return draw(view, runs, files, self._colour_of)

    def _note_progress(self, done: int, total: int, settings: int) -> None:
        self._progress = (done, total)
        if self._closed or settings != self._settings:
            raise _Superseded

    def _show_part(self, drawing: Drawing, settings: int) -> None:
        """Show the lines that are already computed."""
        if self._drawing is not None and settings == self._settings:
            self._shown_settings, self._shows_a_part = settings, True
            self._draw(drawing)
            self.in_order(self._show_whether_computing)

    def _fill_wall(self) -> None:
        """Send the visible charts that are new or have changed."""
        if self.view.tab != "charts" or not self._loaded or not self.store.scanned.is_set():
            return
        view, wanted = self.view, tuple(self.wall.wanted)
        settings = tuple(getattr(view, name) for name in _SETTINGS_OF_CHARTS)
        shows = (settings, wanted, self._runs_to_draw())
        if shows == self._wall_shows:
            return
        is_stale = self._wall_shows[:1] != shows[:1]
        self._wall_shows = shows
        self._wall_version += 1
        if is_stale:
            self.wall.sent = json.dumps({"stale": True, "charts": {}, "version": self._wall_version})
        future = self._pool.submit(self._compute_charts, view, self.store.runs, wanted, self._wall_version)
        future.add_done_callback(lambda future: self.in_order(partial(self._show_charts, future)))

    def _compute_charts(self, view: View, runs: dict[str, Run], signals: tuple[str, ...], version: int) -> str:
        if version != self._wall_version:
            return ""
        shows = self._wall_shows[:2]

        def told(*_: Any) -> None:
            if self._closed or self._wall_shows[:2] != shows:
                raise _Superseded

        files = self.store.columns(view.runs, (*axis_columns(view.x), *signals), told)
        charts = {}
        for signal in signals:
            curves = draw(replace(view, left=(signal,), right=()), runs, files, self._colour_of).curves[:MOST_CURVES]
            titles = short_titles([curve.label for curve in curves])
            charts[signal] = [_line_of_chart(curve, title, self.theme) for curve, title in zip(curves, titles)]
        legend = {line["label"]: line["colour"] for lines in charts.values() for line in lines}
        return json.dumps({"stale": False, "charts": charts, "legend": list(legend.items()), "version": version})

    def _show_charts(self, future: Future) -> None:
        sent = self._result_of(future)
        if sent and not self._closed:
            self.wall.sent = sent

    def _result_of(self, future: Future) -> Any:
        """The result of a computation. If the computation failed, show the error on the page, write it to the log, and
        return None."""
        if future.cancelled():
            return None
        error = future.exception()
        if error is None:
            return future.result()
        if not isinstance(error, (_Superseded, InterruptedError)):
            _logger.error("drawing failed", exc_info=error)
            self._warn(f"Drawing failed: {type(error).__name__}: {error}")
        return None

    def _open_chart(self, signal: str) -> None:
        if signal:
            self.wall.opened = ""
            self.change(left=(signal,), right=(), tab="plot")

    def _show_comparison(self) -> None:
        runs, are_chosen = self._compared_runs()
        which = "selected runs"
        colour_of = {run.id: self._colours.get(run.id, 0) for run in runs}
        if not are_chosen:
            which = "runs in the colours of their experiments; select runs to compare only these runs"
            experiments = list(dict.fromkeys(run.description.experiment for run in runs))
            colour_of = {run.id: experiments.index(run.description.experiment) for run in runs}
        colours = {run_id: line_colour(colour, self.theme) for run_id, colour in colour_of.items()}
        data = comparison(runs, labels_of(runs), colours, f"{len(runs)} {which}")
        self.compared.sent = json.dumps(data)
        self._weigh(data)

    def _compared_runs(self) -> tuple[list[Run], bool]:
        """The runs to compare: the selected runs, or all runs that train if fewer than two runs are selected. All runs
        do not include evaluations, because their settings would count twice.

        :return: the runs, and True if they are the selected runs
        """
        chosen = self.chosen()
        if len(chosen) > 1:
            return chosen, True
        runs = self.store.runs.values()
        return [run for run in runs if not (run.annotation.archived or run.description.evaluates_only)], False

    def _weigh(self, data: Mapping[str, Any]) -> None:
        """Compute the importance of each setting for the result outside the page's thread, if it is not known yet."""
        result = self.view.result if self.view.result in data["results"] else data["results"][0]
        values = [run["values"] for run in data["runs"]]
        weighed = result, [[run.get(name) for name in (*data["settings"], result)] for run in values]
        if weighed == self._weighed:
            return
        self._weighed = weighed
        future = self._pool.submit(importance, values, data["settings"], result)
        future.add_done_callback(lambda future: self.in_order(partial(self._show_importance, future, weighed)))

    def _show_importance(self, future: Future, weighed: tuple[Any, ...]) -> None:
        found = self._result_of(future)
        if found is not None and weighed is self._weighed and not self._closed:
            self.compared.importance = json.dumps({"result": weighed[0], "shares": found.shares, "text": found.text})

    # actions of the user on runs

    def _do(self, told: str) -> None:
        """Carry out an action of the user in the table, and send the result to the table.

        :param told: JSON of the action
        """
        asked = json.loads(told)
        try:
            text, undo = self._done(asked["what"], asked["ids"], asked["changes"])
        except CoachError as error:
            text, undo = str(error), False
        if text:
            self.table.answer = json.dumps({"text": text, "undo": undo, "count": asked["count"]})
        self.look()

    def _done(self, what: str, run_ids: list[str], changes: dict[str, Any]) -> tuple[str, bool]:
        """Carry out an action. :return: a text about the result, and True if the action can be undone"""
        if what == "columns":
            self.change(columns=USUAL_COLUMNS)
            return "", False
        if what == "annotate":
            return f"Saved for {_counted(self.store.annotate(run_ids, changes))}", False
        if what == "delete":
            self._moved = self.store.delete(run_ids)
            self.change(runs=tuple(run_id for run_id in self.view.runs if run_id not in run_ids))
            return f"{_counted(len(run_ids))} moved to {self.store.root / TRASH}", True
        if what == "undo":
            moved, self._moved = self._moved, []
            take_back(moved)
            return "Restored", False
        raise CoachError(f"the dashboard does not know '{what}'")

    def _hand_back(self, future: Future, settings: int) -> None:
        self.in_order(partial(self._show_drawing, future, settings))

    def _show_drawing(self, future: Future, settings: int) -> None:
        self._drawing = None
        drawing = self._result_of(future)
        if settings == self._settings:
            self._shown_settings, self._shows_a_part = settings, False
            self._draw(drawing or Drawing((), "", "", "", self.warning))
        if self._draw_again:
            self._draw_again = False
            self.redraw()
        # In order, because Panel would send this change at once, and so show the old lines before the new lines arrive.
        self.in_order(self._show_whether_computing)

    def _draw(self, drawing: Drawing) -> None:
        self._drawn = drawing
        if drawing.curves:
            self._plot.show(drawing.curves, drawing.x_label, drawing.left_label, drawing.right_label)
        elif drawing.message:
            self._set(self.plot_message, message(drawing.message))
        self.plot_message.visible = not drawing.curves
        # Hide the figure, because its pane would show an empty figure.
        self._plot.figure.visible = bool(drawing.curves)
        can_be_saved = bool(drawing.curves) and not self._shows_a_part
        self.pictures.ready, self.csv.disabled = can_be_saved, not can_be_saved
        self._say_what_is_missing()
        if self.view.draw != "runs":
            self._show_table()

    def _export_csv(self) -> io.BytesIO:
        curves = self._drawn.curves if self._drawn else ()
        return io.BytesIO(curves_as_csv(curves, x_label(self.view.x), self.view.zoom).encode())

    async def _export_report(self) -> io.BytesIO:
        """The report of ``coach compare`` about the compared runs."""
        sides = sides_of(self._compared_runs()[0], self.view.group)
        groups = {name: [csv.path for run in runs for csv in run.csvs] for name, runs in sides.items()}
        return io.BytesIO((await asyncio.wrap_future(self._pool.submit(_report_on, groups))).encode())

    def close(self) -> None:
        """Stop the work of a closed tab."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Progress:
    """Reports the progress while columns are read. From time to time it draws the runs that have been read so far."""

    def __init__(self, page: Page, view: View, runs: dict[str, Run], settings: int):
        self._page, self._view, self._runs, self._settings = page, view, runs, settings
        self._next = time.monotonic() + _FIRST_PART_SECONDS
        self._drawn = 0

    def __call__(self, done: int, total: int, files: Mapping[str, RunSignals]) -> None:
        self._page._note_progress(done, total, self._settings)
        if done == total:
            # now, because the page draws the lines before its next look
            self._page.in_order(self._page._show_whether_computing)
        started = time.monotonic()
        if started < self._next or done == total or self._drawn >= MOST_CURVES:
            return
        drawing = draw(self._view, self._runs, files, self._page._colour_of)
        took = time.monotonic() - started
        self._next = started + took + max(_NEXT_PART_SECONDS, _SHARE_OF_PARTS * took)
        self._drawn = len(drawing.curves)
        if drawing.curves:
            self._page.in_order(partial(self._page._show_part, drawing, self._settings))


class EpisodesPanel:
    """The steps of one episode of one run."""

    def __init__(self, page: Page):
        self.page = page
        style: dict[str, Any] = {"stylesheets": [_WIDGETS], "margin": (10, 6, 8, 6)}
        self.run = pn.widgets.Select(label="Run", width=260, **style)
        self.episode = pn.widgets.Select(label="Episode", width=110, **style)
        self.before = pn.widgets.Button(
            label="‹", width=30, stylesheets=[_WIDGETS], margin=(28, 0, 8, 2), css_classes=["single"]
        )
        self.after = pn.widgets.Button(
            label="›", width=30, stylesheets=[_WIDGETS], margin=(28, 0, 8, 2), css_classes=["single"]
        )
        self.signals = SignalPicker(title="Signals of each step", sizing_mode="stretch_width", margin=(10, 6, 8, 6))
        self.plot = SignalPlot(page.theme, False, False, lambda zoom: None, page.in_order)
        self.plot.figure.name = "episode"
        whole: dict[str, Any] = {"sizing_mode": "stretch_both", "margin": 0}
        self.figure = pn.pane.Bokeh(self.plot.figure, stylesheets=[STYLE], **whole)
        self.message = pn.pane.HTML("", stylesheets=[_WIDGETS], **whole)
        self.choices = pn.Row(
            self.run,
            self.episode,
            self.before,
            self.after,
            self.signals,
            sizing_mode="stretch_width",
            margin=(0, 10),
            visible=False,
        )
        self.panel = pn.Column(self.choices, self.message, self.figure, visible=False, **whole)
        self._files: dict[int, Path] = {}
        self._writing = False
        self.run.param.watch(self._on_run, "value")
        self.episode.param.watch(partial(self._on_widget, "episode"), "value")
        self.signals.param.watch(partial(self._on_widget, "steps"), "value")
        self.before.on_click(lambda event: page.in_order(partial(self._step, -1)))
        self.after.on_click(lambda event: page.in_order(partial(self._step, 1)))

    def _on_run(self, event: Any) -> None:
        if not self._writing:
            self.page.in_order(self.show)

    def _on_widget(self, field: str, event: Any) -> None:
        if not self._writing:
            value = tuple(event.new) if isinstance(event.new, list) else event.new
            self.page.in_order(partial(self.page.change, **{field: value}))

    def _step(self, by: int) -> None:
        episodes = list(self._files)
        if self.episode.value in episodes:
            place = episodes.index(self.episode.value) + by
            self.page.change(episode=episodes[min(max(place, 0), len(episodes) - 1)])

    def show(self) -> None:
        """Show the episode of the view, or the newest episode."""
        chosen = self.page.chosen()
        csvs = {csv.path: csv for run in chosen for csv in run.csvs}
        found = {path: files for path, csv in csvs.items() if (files := _episodes_of(csv))}
        if not found:
            text = "Select a run in the table above to see its episodes."
            if chosen:
                text = "No in-episode signals. A run writes them with -cp "
                text += "'visualization_parameters.dump_in_episode_signals=True'."
            return self._say(text)
        path = self.run.value if self.run.value in found else next(iter(found))
        self._files = found[path]
        asked = self.page.view.episode
        number = asked if asked in self._files else next(reversed(self._files))
        file = SignalFile(self._files[number], most_rows=MOST_ROWS)
        try:
            file.refresh()
        except OSError as error:
            return self._say(f"Episode {number} cannot be read: {error.strerror}.")
        self._offer({label: key for key, label in _labels_of_csvs(chosen).items() if key in found}, path, number, file)
        self._draw(path, number, file)

    def _offer(self, runs: dict[str, str], path: str, number: int, file: SignalFile) -> None:
        names = file.names[1:]
        interesting = [name for name in ("Reward", *names) if name in names and name not in TIME_COLUMNS]
        signals = list(self.page.view.steps) or interesting[:_EPISODE_SIGNALS_AT_FIRST]
        options = names + [name for name in signals if name not in names]
        self._writing = True
        self.run.param.update(options=runs, value=path)
        self.episode.param.update(options=list(self._files), value=number)
        self.signals.param.update(names=options, value=signals)
        self._writing = False
        episodes = list(self._files)
        self.before.disabled, self.after.disabled = number == episodes[0], number == episodes[-1]

    def _draw(self, path: str, number: int, file: SignalFile) -> None:
        curves = []
        for place, name in enumerate(self.signals.value):
            x, y = file.column(file.names[0]), file.column(name)
            good = np.isfinite(x) & np.isfinite(y)
            if good.any():
                curves.append(Curve((path, str(number), name), name, place, 0, False, x[good], y[good]))
        if not curves:
            return self._say(f"Episode {number} has no values of these signals.", choices=True)
        self.plot.show(curves, "Step of the episode", ", ".join(curve.label for curve in curves[:3]), "")
        self.message.visible, self.plot.figure.visible, self.choices.visible = False, True, True

    def _say(self, text: str, choices: bool = False) -> None:
        self.message.object = message(text)
        self.message.visible, self.plot.figure.visible, self.choices.visible = True, False, choices


def _age_of(run: Run) -> tuple[bool, bool, bool, bool, float, float]:
    """A sort key, larger for newer runs. A running run counts as newer than all ended runs. Runs that have failed, only
    evaluate, are archived or have a CSV without signals count as older than all other runs."""
    trained = not run.description.evaluates_only and not run.annotation.archived
    state = run.state != FAILED, run.state == RUNNING
    return (
        len(run.names) > 1 or not run.has_signals,
        trained,
        *state,
        run.description.start or run.modified,
        run.modified,
    )


def _episodes_of(run: Run) -> dict[int, Path]:
    try:
        return episode_files(run.path)
    except OSError:
        return {}


def _labels_of_csvs(runs: list[Run]) -> dict[str, str]:
    """A label for each CSV: the run's label, and the worker's number if there are several workers."""
    lines = [line for run in runs for line in run.lines]
    labels = labels_of(lines)
    return {
        csv.path: f"{labels[line.id]} · worker {csv.description.worker}" if line.workers else labels[line.id]
        for line in lines
        for csv in line.csvs
    }


def _report_on(groups: Mapping[str, Sequence[str]]) -> str:
    """The report about groups of runs as HTML, or the reason why the groups cannot be compared."""
    try:
        sections = report.sections_of(compare_groups(groups))
    except CoachError as error:
        sections = [report.Section("Comparison of runs", str(error))]
    return report.as_html(sections)


def _counted(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _line_of_chart(curve: Curve, title: str, theme: str) -> dict[str, Any]:
    """A curve for a small chart, with at most as many points as the chart has pixels. Values have five digits."""
    curve = thin(curve, points=_POINTS_OF_A_CHART)
    line: dict[str, Any] = {"label": title, "colour": line_colour(curve.colour, theme)}
    for name in ("x", "y", "low", "high"):
        values = getattr(curve, name)
        if values is not None:
            line[name] = [float(f"{value:.7g}" if name == "x" else f"{value:.5g}") for value in values]
    return line


def _segments(options: dict[str, str], common: dict[str, Any]) -> pn.widgets.RadioButtonGroup:
    return pn.widgets.RadioButtonGroup(options=options, **common)


def _switch(text: str, **settings: Any) -> pn.widgets.CheckBoxGroup:
    """A checkbox. The user can also click its text, unlike the text of Panel's ``Checkbox``."""
    return pn.widgets.CheckBoxGroup(options=[text], css_classes=["check"], **settings)


def _title(text: str) -> pn.pane.HTML:
    style = "label { display: block; }"
    return pn.pane.HTML(f"<label>{text}</label>", stylesheets=[_WIDGETS, style], margin=(0, 14), height=20)


def _offers(widget: Any, value: Any) -> bool:
    options = widget.options.values() if isinstance(widget.options, dict) else widget.options
    return all(item in options for item in value) if isinstance(value, list) else value in options


def curves_as_csv(curves: Iterable[Curve], x_name: str, zoom: tuple[float, ...] = ()) -> str:
    """The drawn curves as CSV, with one line for each point in the displayed range of x.

    :param curves: the curves
    :param x_name: the name of the x-axis
    :param zoom: the displayed ranges; empty for all points
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", "signal", x_name, "value", "raw", "low", "high", "runs"])
    first, last = (zoom[0], zoom[1]) if zoom else (-math.inf, math.inf)
    for curve in curves:
        inside = curve.take((curve.x >= first) & (curve.x <= last))
        extra = (inside.raw, inside.low, inside.high, inside.count)
        cells: list[Callable[[int], Any]] = [_cell(values) for values in (inside.x, inside.y, *extra)]
        for row in range(inside.x.size):
            writer.writerow([curve.key[0], curve.key[1], *(cell(row) for cell in cells)])
    return text.getvalue()


def _cell(values: np.ndarray | None) -> Callable[[int], Any]:
    if values is None:
        return lambda row: ""
    return lambda row: format(float(values[row]), ".10g")
