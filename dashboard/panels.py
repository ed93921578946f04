"""The contents of the page's tabs: parameters, output, videos, histograms, and messages if there is nothing to show."""

from __future__ import annotations

import html
import os
import pathlib
import re
import shlex
import time
from typing import Any, Mapping, Sequence

import numpy as np

from rl_coach.logger import CONSOLE_FILE
from rl_coach.runs import histogram_file
from rl_coach.runs.experiments import videos, wall_clock_minutes
from rl_coach.runs.record import GIT_DIFF_FILE
from rl_coach.runs.signal_file import TOTAL_STEPS
from rl_coach.runs.workers import RunSignals

from .colours import line_colour
from .drawing import labels_of
from .media import url_of
from .store import Run

MOST_VIDEOS = 1000
MOST_OUTPUTS = 8
MOST_OUTPUT_BYTES = 200_000
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
MOST_COMPARED = 24
_VIDEO_NAME = re.compile(r"^(?P<name>.*)_(?P<day>\d\d_\d\d_\d{4})-(?P<time>\d\d_\d\d_\d\d)(?:_\d+)?$")


def message(text: str) -> str:
    """A text as HTML, for the middle of an empty space."""
    return f'<div class="message">{html.escape(text)}</div>'


def no_experiments(root: pathlib.Path, exists: bool) -> str:
    """The HTML of the page if there are no runs. It explains how to start a run."""
    where = html.escape(str(root))
    said = f"There are no runs in <code>{where}</code> yet." if exists else f"<code>{where}</code> does not exist yet."
    return f"""
<div class="empty">
  <svg viewBox="0 0 220 90" aria-hidden="true"><path class="axis" d="M10 4v76h204"/>
  <path class="curve" d="M14 76c30-2 38-6 52-20s20-10 32-16 18-22 34-24 30-4 78-6"/></svg>
  <h1>No experiments yet</h1>
  <p>{said}</p>
  <p>Start a training, and it appears here:</p>
  <pre>coach -p CartPole_DQN</pre>
  <p class="faint">For runs in another directory: <code>dashboard --experiment_dir DIR</code></p>
</div>"""


def parameters_table(
    runs: Sequence[Run], colours: Mapping[str, int], theme: str, words: str, only_differences: bool
) -> str:
    """A table of the parameters of runs as HTML. Differing parameters are marked.

    :param runs: the runs
    :param colours: the index of the colour of each run, by id
    :param theme: ``light`` or ``dark``
    :param words: show only parameters with this text in their name or value, in upper or lower case
    :param only_differences: True shows only parameters that differ
    """
    if not runs:
        return message("Select a run in the table above to see its parameters. Select several runs to compare them.")
    shown = list(runs[:MOST_COMPARED])
    if not any(run.description.parameters for run in shown):
        return message("No parameters: the JSON file next to the CSV is missing or cannot be read.")
    names = sorted({name for run in shown for name in run.description.parameters})
    rows = [_parameter_row(name, shown) for name in names]
    kept = [
        row
        for row in rows
        if words.lower() in " ".join(row[:-1]).lower() and (row[-1] or not only_differences or len(shown) == 1)
    ]
    if not kept:
        return message("No parameter contains this text." if words else "These runs have the same parameters.")
    labels = labels_of(shown)
    heads = "".join(
        f'<th title="{html.escape(run.id)}"><i style="background:{line_colour(colours.get(run.id, 0), theme)}"></i>'
        f"{html.escape(labels[run.id])}</th>"
        for run in shown
    )
    more = f"<caption>Only {MOST_COMPARED} of {len(runs)} runs are shown</caption>" if len(runs) > MOST_COMPARED else ""
    body = "".join(_parameter_html(row, len(shown) > 1) for row in kept)
    return (
        f'<div class="parameters"><table>{more}<thead><tr><th>Parameter</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _parameter_row(name: str, runs: Sequence[Run]) -> tuple[Any, ...]:
    values = [_value(run.description.parameters.get(name, "")) for run in runs]
    return (name, *values, len(set(values)) > 1)


def _value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return shlex.join(value)
    return "–" if value is None else str(value)


def _parameter_html(row: tuple[Any, ...], mark: bool) -> str:
    name, *values, differs = row
    group, _, last = name.rpartition(".")
    prefix = f"<span>{_breakable(group)}.<wbr></span>" if group else ""
    cells = "".join(f"<td>{html.escape(value)}</td>" for value in values)
    kind = ' class="differs"' if differs and mark else ""
    return f"<tr{kind}><th>{prefix}{_breakable(last)}</th>{cells}</tr>"


def _breakable(name: str) -> str:
    """A dotted name as HTML with possible line breaks between its words."""
    return re.sub(r"(?<=\w)([._])(?=[a-z])", r"\1<wbr>", html.escape(name))


def output(runs: Sequence[Run]) -> str:
    """The lines that runs have printed, and the uncommitted changes (git diff) of their directories, as HTML."""
    if not runs:
        return message("Select a run in the table above to see what it printed.")
    labels = labels_of(runs)
    parts = []
    for run in runs[:MOST_OUTPUTS]:
        directory = pathlib.Path(run.path).parent
        printed = _end_of(directory / CONSOLE_FILE) or _end_of(directory.with_name(f"{directory.name}.log"))
        diff = _end_of(directory / GIT_DIFF_FILE)
        parts.append(f"<h2>{html.escape(labels[run.id])}</h2>")
        parts.append(f"<pre>{html.escape(printed)}</pre>" if printed else "<p>No output.</p>")
        if diff:
            parts.append(f"<h3>git diff</h3><pre>{''.join(map(_diff_line, diff.splitlines()))}</pre>")
    if len(runs) > MOST_OUTPUTS:
        parts.append(f"<p>Only {MOST_OUTPUTS} of {len(runs)} runs are shown</p>")
    return f'<div class="output">{"".join(parts)}</div>'


def _end_of(path: pathlib.Path) -> str:
    """The last lines of a text file; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_OUTPUT_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return _ESCAPES.sub("", text if size <= MOST_OUTPUT_BYTES else f"…{text.partition(chr(10))[2]}")


def _diff_line(line: str) -> str:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "")
    return f'<span class="{kind}">{html.escape(line)}\n</span>'


def media_of(
    runs: Sequence[Run], files: Mapping[str, RunSignals], colours: Mapping[str, str], root: pathlib.Path
) -> dict[str, Any]:
    """The GIFs and videos of runs with their environment steps, the oldest first, in the form for ``media.js``.

    :param runs: the runs
    :param files: the columns of times and steps of the runs, by id
    :param colours: the colour of each run, by id
    :param root: the experiments directory
    """
    if not runs:
        return {"runs": [], "message": "Select a run in the table above to see its videos."}
    labels, found = labels_of(runs), []
    for run in runs:
        items = [_media_item(path, run, files.get(run.lines[0].id), root) for path in _media_files(run)]
        if items:
            found.append({"id": run.id, "label": labels[run.id], "colour": colours.get(run.id, ""), "items": items})
    text = "" if found else "No videos. A run writes videos with --dump_gifs or --dump_mp4."
    return {"runs": found, "message": text}


def histograms_of(runs: Sequence[Run], colours: Mapping[str, str]) -> dict[str, Any]:
    """The distributions of the actions and weights of runs over environment steps, in the form for
    ``histograms.js``."""
    if not runs:
        return {"charts": [], "message": "Select a run in the table above to see its actions and weights."}
    labels, charts = labels_of(runs), []
    for run in runs[:MOST_OUTPUTS]:
        for name, rows in histogram_file.read(pathlib.Path(run.path).parent).items():
            title = name if len(runs) == 1 else f"{labels[run.id]} · {name}"
            charts.append({"name": title, "colour": colours.get(run.id, ""), "rows": rows})
    text = "" if charts else "No distributions of actions and weights. A run writes them with --callback Histograms."
    return {"charts": charts, "message": text}


def _media_files(run: Run) -> list[pathlib.Path]:
    try:
        return videos(run.path)[:MOST_VIDEOS][::-1]
    except OSError:
        return []


def _media_item(path: pathlib.Path, run: Run, file: RunSignals | None, root: pathlib.Path) -> dict[str, Any]:
    match = _VIDEO_NAME.match(path.stem)
    written = _written(match) if match else path.stat().st_mtime
    when = time.strftime("%d.%m.%Y %H:%M:%S", time.localtime(written))
    title = match["name"] if match else path.stem
    return {"url": url_of(path, root), "title": title, "when": when, "step": _step_at(written, run, file)}


def _written(match: re.Match[str]) -> float:
    try:
        return time.mktime(time.strptime(f"{match['day']} {match['time']}", "%d_%m_%Y %H_%M_%S"))
    except (ValueError, OverflowError):
        return 0.0


def _step_at(written: float, run: Run, file: RunSignals | None) -> float | None:
    """The environment steps that a run had made at a given time; None if they are unknown."""
    about = run.description
    if file is None or about.start is None or TOTAL_STEPS not in file.names:
        return None
    minutes = wall_clock_minutes(file.names, file.column, about.counts_minutes)
    steps = file.column(TOTAL_STEPS)
    known = np.isfinite(minutes) & np.isfinite(steps) if minutes.size else np.zeros(0, bool)
    return float(np.interp((written - about.start) / 60, minutes[known], steps[known])) if known.any() else None
