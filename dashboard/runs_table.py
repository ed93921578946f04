"""The table of runs. Only changed rows are sent to the browser."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections import Counter
from typing import Any, Iterable, Mapping, Sequence

import param
from panel.custom import JSComponent

from rl_coach.core_types import RunPhase
from rl_coach.graph_managers.schedule_parameters import PLURALS, UNITS
from rl_coach.runs.differences import NO_SETTING, is_administrative, ranked_by_difference
from rl_coach.runs.experiments import Summary, parse_timestamp
from rl_coach.runs.status import RUNNING

from .components import script, style
from .store import Run
from .view import USUAL_COLUMNS

GROUPINGS = {
    "experiment": "Experiment",
    "preset": "Preset",
    "agent": "Agent",
    "environment": "Environment",
    "seed": "Seed",
    "framework": "Framework",
    "tags": "Tags",
    "state": "State",
}
COLUMNS = {
    "preset": "Preset",
    "agent": "Agent",
    "environment": "Environment",
    "framework": "Framework",
    "settings": "-cp",
    "seed": "Seed",
    "state": "State",
    "steps": "Steps",
    "speed": "Steps/s",
    "last": "Last eval",
    "best": "Best eval",
    "target": "To target",
    "start": "Started",
    "minutes": "Duration",
    "note": "Note",
}
RESULTS = {
    "Best evaluation reward": lambda summary: summary.best_evaluation_reward if summary.complete else math.nan,
    "Last evaluation reward": lambda summary: summary.last_evaluation_reward,
    "Environment steps": lambda summary: summary.steps,
    "Steps to the target": lambda summary: summary.steps_to_target,
    "Steps per second": lambda summary: summary.steps_per_second,
    "Minutes": lambda summary: summary.minutes,
}
MOST_SETTINGS = 6
"""The largest number of columns for differing settings. The user can choose more columns."""
PARAMETER = "parameter:"
"""The prefix of a column that shows a parameter."""
_PHASES_OF_TRAINING = (RunPhase.TRAIN.value, RunPhase.TEST.value)


class RunsTable(JSComponent):
    """The table in the browser. The browser filters, sorts and selects runs without the server.

    :param asked: a counter; the browser increases it to request all rows
    :param sent: JSON: ``rows`` from ``row_of``; ``whole`` is true if these are all rows, and false if these are new and
        changed rows; ``gone`` are the ids of removed runs
    :param selected: the ids of the selected runs, in the order of their selection
    :param filter: the text or regular expression that filters runs
    :param regex: True if ``filter`` is a regular expression
    :param sort: the column to sort by, with ``-`` before it for the largest first
    :param grouped: True if runs are grouped
    :param columns: the columns after the run's name
    :param titles: JSON of the titles of the columns, by key
    :param offered: JSON of key, title and heading of each column that the user can choose
    :param archived: True shows archived runs
    :param editable: True allows users to name, tag, archive and delete runs
    :param told: JSON of the user's action: ``what``, the ``ids`` of runs and the ``changes``
    :param answer: JSON of the action's result: a ``text``, and ``undo``, which is true if the action can be undone
    """

    asked = param.Integer()
    sent = param.String()
    selected = param.List()
    filter = param.String()
    regex = param.Boolean()
    sort = param.String(default="-start")
    grouped = param.Boolean()
    columns = param.List()
    titles = param.String()
    offered = param.String()
    archived = param.Boolean()
    editable = param.Boolean()
    told = param.String()
    answer = param.String()

    _esm = script("table")
    _stylesheets = style("table")

    def __init__(self, **params: Any):
        super().__init__(**params)
        self._rows: dict[str, dict[str, Any]] = {}

    def show_rows(self, rows: Iterable[dict[str, Any]]) -> None:
        """Show rows in the table. Only rows that have changed are sent to the browser."""
        before, self._rows = self._rows, {row["id"]: row for row in rows}
        changed = [row for run_id, row in self._rows.items() if before.get(run_id) != row]
        gone = [run_id for run_id in before if run_id not in self._rows]
        if self.asked and (changed or gone):
            self._send(changed, gone, whole=False)

    def send_all(self) -> None:
        """Send all rows to the browser."""
        self._send(list(self._rows.values()), [], whole=True)

    def _send(self, rows: list[dict[str, Any]], gone: list[str], whole: bool) -> None:
        # JSON text, because Bokeh's own encoding of a thousand rows takes ten times as long.
        self.sent = json.dumps({"whole": whole, "asked": self.asked, "rows": rows, "gone": gone})


def rows_of(
    runs: Mapping[str, Run], group: str, colours: Mapping[str, str], columns: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The rows of the table.

    :param runs: the runs by id
    :param group: the property that groups the rows; empty for none
    :param colours: the colours of the drawn runs, by id
    :param columns: the columns of the table; a row contains only parameters that have a column
    """
    directories = Counter(os.path.dirname(run.path) for run in runs.values())
    parameters = [column[len(PARAMETER) :] for column in columns if column.startswith(PARAMETER)]
    now = time.time()
    return [
        row_of(run, group, colours.get(run.id, ""), directories[os.path.dirname(run.path)] == 1, now, parameters)
        for run in runs.values()
    ]


def row_of(
    run: Run, group: str, colour: str, alone: bool, now: float, parameters: Sequence[str] = ()
) -> dict[str, Any]:
    """The row of a run: words, numbers, and None for unknown values.

    :param run: the run
    :param group: the property that groups the rows; empty for none
    :param colour: the colour of the run; empty if the run is not drawn
    :param alone: True if no other run is in the same directory
    :param now: the current time in seconds since the epoch
    :param parameters: the parameters to include
    """
    about, summary = run.description, run.summary
    minutes = summary.minutes
    details = workers_of(run) if alone else detail_of(run)
    tells = group != "experiment" and not run.annotation.name and _is_of_group(run)
    if not math.isfinite(minutes) and about.start is not None:
        minutes = ((now if run.state == RUNNING else run.modified) - about.start) / 60
    return {
        "id": run.id,
        "name": name_of(run, group),
        "called": run.annotation.name,
        "experiment": about.experiment,
        "tags": list(run.annotation.tags),
        "note": run.annotation.note,
        "archived": run.annotation.archived,
        "evaluates": about.evaluates_only,
        "remark": run.remark,
        "detail": " · ".join(part for part in (about.experiment if tells else "", details) if part),
        "parts": [_part_row(part) for part in run.agents or run.workers],
        "preset": about.preset,
        "agent": about.agent,
        "environment": about.environment,
        "framework": about.framework,
        "settings": about.settings,
        "values": {name: plain_value(about.parameters.get(name)) for name in parameters},
        "seed": about.seed,
        "state": run.state,
        "doing": _doing(run),
        "error": run.error,
        **_results(summary),
        "start": about.start,
        "minutes": _known(max(0.0, minutes)),
        "colour": colour,
        "group": group_of(run, group) if group else "",
    }


def _results(summary: Summary) -> dict[str, float | None]:
    return {
        "steps": _known(summary.steps),
        "speed": _known(summary.steps_per_second),
        "last": _known(summary.last_evaluation_reward),
        "best": _known(summary.best_evaluation_reward) if summary.complete else None,
        "target": _known(summary.steps_to_target),
    }


def _doing(run: Run) -> str:
    """The phase of a running run that does not train, such as ``heatup 40%``."""
    given = run.printed.get("progress")
    progress = given if isinstance(given, dict) else {}
    phase = progress.get("phase")
    if run.state != RUNNING or not isinstance(phase, str) or phase in _PHASES_OF_TRAINING:
        return ""
    done, total = progress.get("done"), progress.get("total")
    if isinstance(done, int) and isinstance(total, int) and total > 0:
        return f"{phase.lower()} {done / total:.0%}"
    return phase.lower()


def _part_row(part: Run) -> dict[str, Any]:
    """The row of a worker or an agent, which is shown below the row of its run."""
    about = part.description
    return {
        "name": part.agent or f"worker {about.worker}",
        **({"agent": about.agent} if part.agent else {}),
        "evaluates": about.evaluates_only,
        "remark": part.remark,
        **_results(part.summary),
        "minutes": _known(part.summary.minutes),
    }


_STEPS = re.compile(rf"({'|'.join(UNITS)})\((\d+)\)")


def plain_value(value: Any) -> Any:
    """A parameter for JSON: a number, None, or words. ``EnvironmentSteps(400)`` becomes ``400 steps``, because a narrow
    column would not show the number.
    """
    if isinstance(value, str) and (steps := _STEPS.fullmatch(value)):
        return f"{steps[2]} {PLURALS[UNITS[steps[1]]]}"
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)):
        return value
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def titles_of(columns: Sequence[str]) -> dict[str, str]:
    """The titles of the table's columns, by key. The titles of parameters are short names."""
    parameters = [column.removeprefix(PARAMETER) for column in columns if column.startswith(PARAMETER)]
    short = {f"{PARAMETER}{name}": title for name, title in zip(parameters, short_names(parameters))}
    return {"name": "Run", **COLUMNS, **short}


def offered_columns(
    differing: Sequence[str], others: Iterable[str], shown: Sequence[str]
) -> list[tuple[str, str, str]]:
    """All columns that the table can have, as (key, title, heading). Columns of differing parameters come before
    columns of other parameters.

    :param differing: the parameters that differ between runs
    :param others: other parameters
    :param shown: the columns that are shown
    """
    asked = [column[len(PARAMETER) :] for column in shown if column.startswith(PARAMETER)]
    rest = [name for name in dict.fromkeys([*asked, *others]) if name not in set(differing)]
    return [
        *((key, title, "Columns of all runs") for key, title in COLUMNS.items()),
        *((f"{PARAMETER}{name}", name, "Parameters that differ") for name in differing),
        *((f"{PARAMETER}{name}", name, "Other parameters") for name in rest),
    ]


def group_options(varied: Sequence[str], differing: Sequence[str], asked: str) -> dict[str, str]:
    """The properties that can group runs, by title. Settings that users have varied come first, with short names.

    :param varied: the result of ``store.varied_parameters``
    :param differing: the parameters that differ between runs
    :param asked: the current property, which is always included
    """
    settings = dict(zip(short_names(varied), varied))
    offered = {*varied, *GROUPINGS}
    others = [name for name in differing if name not in offered and not name.endswith("__class__")]
    if asked and asked not in offered and asked not in others:
        others.append(asked)
    titles = {title: name for name, title in GROUPINGS.items()}
    return {"Nothing": "", **settings, **titles, **{name: name for name in others}}


def short_names(names: Sequence[str]) -> list[str]:
    """Short forms of dotted names: the last part, or as many parts from the end as are needed to distinguish the
    names."""
    parts = [name.split(".") for name in names]
    shortest = []
    for one in parts:
        length = next((n for n in range(1, len(one)) if [other[-n:] for other in parts].count(one[-n:]) == 1), len(one))
        shortest.append(".".join(one[-length:]))
    return shortest


def shown_columns(
    columns: Sequence[str], varied: Sequence[str], rows: Sequence[Mapping[str, Any]] | None = None
) -> tuple[str, ...]:
    """The columns of the table. If the user has not changed the usual columns, differing settings are added.

    :param columns: the user's columns
    :param varied: the settings that differ
    :param rows: the rows of the table; usual columns that are empty in all rows are left out. None keeps all columns
    """
    if tuple(columns) != USUAL_COLUMNS:
        return tuple(columns)
    place = USUAL_COLUMNS.index("seed")
    settings = [f"{PARAMETER}{name}" for name in varied[:MOST_SETTINGS]]
    every = (*USUAL_COLUMNS[:place], *settings, *USUAL_COLUMNS[place:])
    return tuple(column for column in every if not rows or any(_has(row, column) for row in rows))


def _has(row: Mapping[str, Any], column: str) -> bool:
    name = column.removeprefix(PARAMETER)
    return (row["values"].get(name) if name != column else row[column]) not in (None, "")


def comparison(
    runs: Sequence[Run], labels: Mapping[str, str], colours: Mapping[str, str], which: str
) -> dict[str, Any]:
    """The parameters and results of runs, for the scatter plot and the parallel coordinates.

    Parameters that differ between the runs come first, sorted by the number of runs that differ.

    :param runs: the runs
    :param labels: the label of each run, by id
    :param colours: the colour of each run, by id
    :param which: a description of the runs
    """
    names = {name for run in runs for name in run.description.parameters}
    differing = ranked_by_difference([run.description for run in runs])
    ordered = differing + sorted(names.difference(differing))
    points = []
    same_unit = {name for name in ordered if len({_unit(run.description.parameters.get(name)) for run in runs}) == 1}
    for run in runs:
        values = {name: _number_or_words(run.description.parameters.get(name), name in same_unit) for name in ordered}
        values |= {name: _known(read(run.summary)) for name, read in RESULTS.items()}
        points.append({"id": run.id, "label": labels[run.id], "colour": colours.get(run.id, ""), "values": values})
    return {
        "runs": points,
        "parameters": ordered,
        "differing": differing,
        "settings": [name for name in differing if not is_administrative(name) and not name.endswith(NO_SETTING)],
        "results": list(RESULTS),
        "which": which,
    }


def _unit(value: Any) -> str:
    steps = _STEPS.fullmatch(value) if isinstance(value, str) else None
    return steps[1] if steps else ""


def _number_or_words(value: Any, has_same_unit: bool) -> Any:
    """A parameter as a number or words; see ``plain_value``. ``EnvironmentSteps(400)`` becomes the number 400 if all
    runs have the same unit."""
    steps = _STEPS.fullmatch(value) if isinstance(value, str) and has_same_unit else None
    return int(steps[2]) if steps else plain_value(value)


def name_of(run: Run, group: str) -> str:
    """The name of a run in the table: its title. If the run is in the group of its experiment, or was started together
    with other runs, the name of its directory."""
    if run.annotation.name or not (group == "experiment" or _is_of_group(run)):
        return run.title
    return os.path.basename(os.path.dirname(run.path)) or run.title


def _is_of_group(run: Run) -> bool:
    directory = run.description.path.parent
    return parse_timestamp(directory.name) is None and directory.parent.name == run.title.rpartition("/")[2]


def detail_of(run: Run) -> str:
    """The run's workers and agent, which distinguish it from other runs in its directory."""
    source = run.description.source.rpartition(".")[2]
    return " · ".join(part for part in (workers_of(run), source) if part)


def workers_of(run: Run) -> str:
    """A text with the number of a run's agents or workers; empty for a single agent and worker."""
    if len(run.agents) > 1:
        return f"{len(run.agents)} agents"
    return f"{len(run.workers)} workers" if run.workers else ""


def group_of(run: Run, group: str) -> str:
    """The name of the group that a run belongs to; empty if the run has no value of the property.

    :param run: the run
    :param group: the property that groups runs: a column of the table or a parameter
    """
    if group == "state":
        return run.state
    if group == "tags":
        return ", ".join(run.annotation.tags)
    about = run.description
    value = getattr(about, group) if group in GROUPINGS else about.parameters.get(group)
    return "" if value is None else str(value)


def _known(number: float) -> float | None:
    return float(f"{number:.7g}") if math.isfinite(number) else None
