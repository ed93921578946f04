"""The table of runs: what it shows of each, sent to the browser only where it changed."""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any, Iterable, Mapping

import param
from panel.custom import JSComponent

from rl_coach.runs.status import RUNNING

from .store import Run

GROUPINGS = {
    "experiment": "Experiment",
    "preset": "Preset",
    "agent": "Agent",
    "environment": "Environment",
    "seed": "Seed",
    "worker": "Worker",
    "state": "State",
}
_HERE = Path(__file__).parent


class RunsTable(JSComponent):
    """The table in the browser. Filtering, sorting and selecting happen there, at once.

    :param asked: the browser counts it up when it has a new table, and wants every row then
    :param sent: JSON: ``rows`` as ``row_of`` makes them, ``whole`` if they are all, otherwise those that are new or
        changed, and the ids of those that are ``gone``
    :param selected: ids in the order of their selection
    """

    asked = param.Integer()
    sent = param.String()
    selected = param.List()
    filter = param.String()
    regex = param.Boolean()
    sort = param.String(default="-start")
    grouped = param.Boolean()

    _esm = _HERE / "table.js"
    _stylesheets = [(_HERE / "table.css").read_text()]

    def __init__(self, **params: Any):
        super().__init__(**params)
        self._rows: dict[str, dict[str, Any]] = {}

    def show_rows(self, rows: Iterable[dict[str, Any]]) -> None:
        """Show these rows: send those that differ from what the browser has."""
        before, self._rows = self._rows, {row["id"]: row for row in rows}
        changed = [row for run_id, row in self._rows.items() if before.get(run_id) != row]
        gone = [run_id for run_id in before if run_id not in self._rows]
        if self.asked and (changed or gone):
            self._send(changed, gone, whole=False)

    def send_all(self) -> None:
        """Send every row."""
        self._send(list(self._rows.values()), [], whole=True)

    def _send(self, rows: list[dict[str, Any]], gone: list[str], whole: bool) -> None:
        # As text: Bokeh's own encoding of a thousand rows takes ten times as long.
        self.sent = json.dumps({"whole": whole, "asked": self.asked, "rows": rows, "gone": gone})


def rows_of(runs: Mapping[str, Run], group: str, colours: Mapping[str, str]) -> list[dict[str, Any]]:
    """The table's rows.

    :param group: what to group by, empty for nothing
    :param colours: the colour of each run that is drawn, by its id
    """
    directories = Counter(os.path.dirname(run.path) for run in runs.values())
    now = time.time()
    return [
        row_of(run, group, colours.get(run.id, ""), directories[os.path.dirname(run.path)] == 1, now)
        for run in runs.values()
    ]


def row_of(run: Run, group: str, colour: str, alone: bool, now: float) -> dict[str, Any]:
    """A run as a row: words, numbers, and None for what is not known."""
    about, summary = run.description, run.summary
    minutes = summary.minutes
    if not math.isfinite(minutes) and about.start is not None:
        minutes = ((now if run.state == RUNNING else run.modified) - about.start) / 60
    return {
        "id": run.id,
        "name": about.experiment,
        "detail": "" if alone else detail_of(run),
        "preset": about.preset,
        "agent": about.agent,
        "environment": about.environment,
        "seed": about.seed,
        "state": run.state,
        "error": run.error,
        "steps": _known(summary.steps),
        "speed": _known(summary.steps_per_second),
        "last": _known(summary.last_evaluation_reward),
        "best": _known(summary.best_evaluation_reward) if summary.complete else None,
        "start": about.start,
        "minutes": _known(max(0.0, minutes)),
        "colour": colour,
        "group": group_of(run, group) if group else "",
    }


def detail_of(run: Run) -> str:
    """What tells a run from the others in its directory: its worker and its agent."""
    about = run.description
    source = about.source.rpartition(".")[2]
    worker = f"worker {about.worker}" if about.worker is not None else ""
    return " · ".join(part for part in (worker, source) if part)


def group_of(run: Run, group: str) -> str:
    """The value that groups a run: a column of the table or a parameter, as words; empty if it has none."""
    if group == "state":
        return run.state
    about = run.description
    value = getattr(about, group) if group in GROUPINGS else about.parameters.get(group)
    return "" if value is None else str(value)


def _known(number: float) -> float | None:
    return float(f"{number:.7g}") if math.isfinite(number) else None
