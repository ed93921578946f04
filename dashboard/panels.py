"""Plain HTML of the page: parameters, videos, and messages if there is nothing to show."""

from __future__ import annotations

import html
import pathlib
import re
import shlex
from typing import Any, Mapping, Sequence

from rl_coach.runs.experiments import videos

from .colours import line_colour
from .drawing import labels_of
from .media import url_of
from .store import Run

MOST_VIDEOS = 60
MOST_COMPARED = 24
_VIDEO_NAME = re.compile(r"^(?P<name>.*)_(?P<day>\d\d_\d\d_\d{4})-(?P<time>\d\d_\d\d_\d\d)(?:_\d+)?$")


def message(text: str) -> str:
    """A line in the middle of an empty space."""
    return f'<div class="message">{html.escape(text)}</div>'


def no_experiments(root: pathlib.Path, exists: bool) -> str:
    """Text of the page if there is no run: how to start one."""
    where = html.escape(str(root))
    said = f"There are no runs in <code>{where}</code> yet." if exists else f"<code>{where}</code> does not exist yet."
    return f"""
<div class="empty">
  <svg viewBox="0 0 220 90" aria-hidden="true"><path class="axis" d="M10 4v76h204"/>
  <path class="curve" d="M14 76c30-2 38-6 52-20s20-10 32-16 18-22 34-24 30-4 78-6"/></svg>
  <h1>No experiments yet</h1>
  <p>{said}</p>
  <p>Train something, and it appears here by itself:</p>
  <pre>coach -p CartPole_DQN</pre>
  <p class="faint">Runs elsewhere? <code>dashboard --experiment_dir DIR</code></p>
</div>"""


def parameters_table(
    runs: Sequence[Run], colours: Mapping[str, int], theme: str, words: str, only_differences: bool
) -> str:
    """The parameters of runs side by side; differing parameters are marked.

    :param words: show only parameters whose name or value contains this, ignoring case
    """
    if not runs:
        return message("Select a run in the table above to see its parameters; select several to compare them.")
    shown = list(runs[:MOST_COMPARED])
    if not any(run.description.parameters for run in shown):
        return message("No parameters: there is no JSON of the same name next to this CSV.")
    names = sorted({name for run in shown for name in run.description.parameters})
    rows = [_parameter_row(name, shown) for name in names]
    kept = [
        row
        for row in rows
        if words.lower() in " ".join(row[:-1]).lower() and (row[-1] or not only_differences or len(shown) == 1)
    ]
    if not kept:
        return message("No parameter fits." if words else "These runs have the same parameters.")
    labels = labels_of(shown)
    heads = "".join(
        f'<th title="{html.escape(run.id)}"><i style="background:{line_colour(colours.get(run.id, 0), theme)}"></i>'
        f"{html.escape(labels[run.id])}</th>"
        for run in shown
    )
    more = f"<caption>The first {MOST_COMPARED} of {len(runs)} runs</caption>" if len(runs) > MOST_COMPARED else ""
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
    """A dotted name as HTML that may break between its words."""
    return re.sub(r"(?<=\w)([._])(?=[a-z])", r"\1<wbr>", html.escape(name))


def video_gallery(runs: Sequence[Run], root: pathlib.Path) -> str:
    """The GIFs and videos of runs, newest first."""
    if not runs:
        return message("Select a run in the table above to see its videos.")
    found: dict[pathlib.Path, str] = {}
    labels = labels_of(runs)
    for run in runs:
        try:
            found.update((path, labels[run.id]) for path in videos(run.path) if path not in found)
        except OSError:
            continue
    if not found:
        return message("No videos. A run keeps its episodes with --dump_gifs or --dump_mp4.")
    cards = "".join(_video(path, label, root) for path, label in list(found.items())[:MOST_VIDEOS])
    return f'<div class="videos">{cards}</div>'


def _video(path: pathlib.Path, label: str, root: pathlib.Path) -> str:
    address = html.escape(url_of(path, root))
    match = _VIDEO_NAME.match(path.stem)
    title = match["name"] if match else path.stem
    when = f"{match['day'].replace('_', '.')} {match['time'].replace('_', ':')}" if match else ""
    if path.suffix == ".gif":
        shown = f'<img src="{address}" alt="{html.escape(title)}" loading="lazy">'
    else:
        shown = f'<video src="{address}" controls loop muted preload="metadata"></video>'
    caption = f"<b>{html.escape(label)}</b><span>{html.escape(title)}</span><span>{when}</span>"
    return f"<figure>{shown}<figcaption>{caption}</figcaption></figure>"
