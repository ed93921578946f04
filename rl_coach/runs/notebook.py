"""Runs in notebooks: a table of a run's results and a plot of its rewards, as HTML."""

from __future__ import annotations

import html
import math
import os
import pathlib

import numpy as np

from rl_coach.utilities.system import shown
from rl_coach.utils import CoachError

_SUMMARY = (
    "preset", "agent", "environment", "seed", "kind", "state", "steps", "minutes", "last_evaluation_reward",
    "best_evaluation_reward", "path",
)  # fmt: skip


def directory_html(directory: str | os.PathLike[str]) -> str:
    """The summary of the run in a directory and a plot of its rewards; one line of text if it has no results yet."""
    from rl_coach.runs import experiments  # imports pandas and pyarrow, which a run does not need

    try:
        found = experiments.load(directory)
    except CoachError:
        return f"<p>{html.escape(os.fspath(directory))}: no results yet</p>"
    return "".join(
        _summary_table({name: row[name] for name in _SUMMARY} | {"path": shown(pathlib.Path(row["path"]))})
        + experiments.rewards_of(found, run)._repr_svg_()
        for run, row in found.runs.iterrows()
    )


def _summary_table(values: dict[str, object]) -> str:
    rows = "".join(
        f"<tr><th style='text-align:left'>{name.replace('_', ' ')}</th>"
        f"<td style='text-align:left'>{html.escape(_shown(value))}</td></tr>"
        for name, value in values.items()
        if _shown(value)
    )
    return f"<table>{rows}</table>"


def _shown(value: object) -> str:
    """A value as text; empty for None and NaN."""
    if isinstance(value, (float, np.floating)):
        return f"{value:,.6g}" if math.isfinite(value) else ""
    return "" if value is None else str(value)
