"""The lines of a view: one for each run, or one for each group of runs."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from rl_coach.runs.differences import differing_parameters, varied_parameters
from rl_coach.runs.experiments import EVALUATION_REWARD, TRAINING_REWARD, reward_range
from rl_coach.runs.mean_curve import mean_of
from rl_coach.runs.workers import RunSignals

from .colours import DASHES
from .curves import Curve, line_of, smooth, x_values
from .runs_table import detail_of, group_of, plain_value, short_names
from .store import Run
from .view import View, x_label

_READ_AS_A_VALUE = re.compile(r"None|True|False|nan|-?inf|[-+]?[\d.]+(e[-+]?\d+)?|")
_CLASS = ".__class__"
_REWARDS = (EVALUATION_REWARD, TRAINING_REWARD)
_NUM_PARTS = 5
_LONGEST_LABEL = 60
_MOST_SETTINGS = 4
"""The largest number of settings in the name of a run."""


@dataclass(frozen=True)
class Drawing:
    """Curves and the labels of their axes, or a message if there is nothing to draw."""

    curves: tuple[Curve, ...]
    x_label: str
    left_label: str
    right_label: str
    message: str = ""


def labels_of(runs: Sequence[Run]) -> dict[str, str]:
    """A short unique label for each run, by the run's id: the title, and further properties if several runs have the
    same title, such as the settings that differ between them."""
    alike: dict[str, list[Run]] = {}
    for run in runs:
        alike.setdefault(run.title, []).append(run)
    labels: dict[str, str] = {}
    for title, members in alike.items():
        labels |= {run.id: title for run in members} if len(members) == 1 else _told_apart(members, len(alike) == 1)
    if len(set(labels.values())) < len(runs):
        labels = {run.id: run.id for run in runs}
    directories = {run.id: run.description.path.parent.name for run in runs}
    if max(map(len, labels.values()), default=0) > _LONGEST_LABEL and len(set(directories.values())) == len(runs):
        labels = directories
    agents = {run.id: run.agent for run in runs if run.agent and run.agent not in labels[run.id].split(" · ")}
    return {run_id: f"{label} · {agents[run_id]}" if run_id in agents else label for run_id, label in labels.items()}


def _told_apart(runs: Sequence[Run], is_alone: bool) -> dict[str, str]:
    """Labels of runs with the same title. :param is_alone: True if all runs have this title, so that it is left out"""
    settings = _settings(runs)
    parts = {run.id: _parts(run, settings) for run in runs}
    labels = {run.id: "" if is_alone else run.title for run in runs}
    for place in range(1, _NUM_PARTS):
        if len({part[place] for part in parts.values()}) > 1 and len(set(labels.values())) < len(runs):
            labels = {
                run_id: " · ".join(part for part in (label, parts[run_id][place]) if part)
                for run_id, label in labels.items()
            }
    are_told_apart = len(set(labels.values())) == len(runs) and "" not in labels.values()
    return labels if are_told_apart else {run.id: run.id for run in runs}


def _settings(runs: Sequence[Run]) -> dict[str, str]:
    """The settings that differ between these runs, and their short names."""
    varied = varied_parameters([run.description for run in runs])[:_MOST_SETTINGS]
    return dict(zip(varied, short_names(varied)))


def _parts(run: Run, varied: Mapping[str, str]) -> list[str]:
    """The properties that may distinguish a run from other runs: title, differing settings, seed, details and start.

    :param run: the run
    :param varied: the settings that differ, and their short names
    """
    about = run.description
    known = {short: about.parameters.get(name) for name, short in varied.items()}
    settings = [f"{short}={_written(value)}" for short, value in known.items() if value is not None]
    seed = f"seed {about.seed}" if about.seed is not None else ""
    start = time.strftime("%d %b %H:%M", time.localtime(about.start)) if about.start is not None else ""
    return [run.title, ", ".join(settings), seed, detail_of(run), start]


def _written(value: Any) -> str:
    """A parameter as a text. Different parameters have different texts, but 1 and 1.0 are equal. Words that can be
    read as another value have quotes."""
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    if isinstance(value, str) and _READ_AS_A_VALUE.fullmatch(value):
        return repr(value)
    return str(plain_value(value))


def draw(
    view: View, runs: Mapping[str, Run], files: Mapping[str, RunSignals], colour_of: Callable[[str], int]
) -> Drawing:
    """Compute the curves of a view.

    :param view: the view
    :param runs: all runs by id
    :param files: the columns of runs that could be read, by id
    :param colour_of: returns the index of the colour for a run's id, or for ``group:`` and a group's name
    """
    selected = [runs[run_id] for run_id in view.runs if run_id in runs]
    chosen = [line for run in selected for line in run.lines if line.id in files]
    signals = [(name, False) for name in view.left] + [(name, True) for name in view.right]
    left, right = _axis_label(view.left), _axis_label(view.right)
    if not chosen or not signals:
        what = "Choose a signal on the left to plot it."
        if not chosen:
            trouble = next((run.trouble for run in selected if run.trouble), "")
            nothing = f"A selected run {trouble}" if trouble else _NO_ROWS
            what = nothing if selected else "Select a run in the table above to plot it."
        return Drawing((), x_label(view.x), left, right, what)
    if view.draw == "runs":
        drawn = _curves_of_runs(view, selected, files, signals, colour_of)
    else:
        drawn = _curves_of_groups(view, chosen, files, signals, colour_of)
    curves = tuple(curve for curve in drawn if curve.x.size)
    return Drawing(curves, x_label(view.x), left, right, "" if curves else _why_nothing(view, chosen, files, signals))


_NO_ROWS = "No values yet: a run writes its first row after its first episode."


def _axis_label(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def _why_nothing(
    view: View, chosen: Sequence[Run], files: Mapping[str, RunSignals], signals: Sequence[tuple[str, bool]]
) -> str:
    which = "This run" if len(chosen) == 1 else "None of these runs"
    has = "has no" if len(chosen) == 1 else "has a"
    if all(x_values(files[run.id], view.x, run.description.counts_minutes) is None for run in chosen):
        return f"{which} {has} column for “{x_label(view.x)}”. Choose another x-axis."
    if view.log_x or view.log_y:
        return "There are no values to show: a logarithmic axis shows only positive values."
    names = ", ".join(f"“{name}”" for name, _ in signals)
    return f"{which} {'has no' if len(chosen) == 1 else 'has'} values of {names} yet."


def _line(view: View, run: Run, file: RunSignals, signal: str) -> tuple[np.ndarray, np.ndarray]:
    x = x_values(file, view.x, run.description.counts_minutes)
    if x is None or signal not in file.names:
        return np.empty(0), np.empty(0)
    return line_of(x, file.column(signal), view.log_x, view.log_y)


def _curves_of_runs(
    view: View,
    selected: Sequence[Run],
    files: Mapping[str, RunSignals],
    signals: Sequence[tuple[str, bool]],
    colour_of: Callable[[str], int],
) -> list[Curve]:
    labels = labels_of([line for run in selected for line in run.lines])
    curves = []
    for run in selected:
        drawn = [(line, signal) for line in run.lines if line.id in files for signal in signals]
        for place, (line, (signal, right)) in enumerate(drawn):
            x, values = _line(view, line, files[line.id], signal)
            smoothed = smooth(values, view.smoothing, view.window)
            curves.append(
                Curve(
                    key=(line.id, signal, "right" if right else "left"),
                    label=_label(labels[line.id], signal, len(signals)),
                    colour=colour_of(run.id),
                    dash=place % len(DASHES),
                    right=right,
                    x=x,
                    y=smoothed,
                    raw=values if view.raw and smoothed is not values else None,
                )
            )
    return curves


def _curves_of_groups(
    view: View,
    chosen: Sequence[Run],
    files: Mapping[str, RunSignals],
    signals: Sequence[tuple[str, bool]],
    colour_of: Callable[[str], int],
) -> list[Curve]:
    curves = []
    for name, members in groups_of(chosen, view.group).items():
        title = f"{name or 'none'} ({len(members)})"
        for place, (signal, right) in enumerate(signals):
            lines = [_line(view, run, files[run.id], signal) for run in members]
            lines = [(x, smooth(values, view.smoothing, view.window)) for x, values in lines]
            strata = [run.description.environment for run in members]
            mean = mean_of(lines, view.draw, view.log_x, strata, _range_of(signal, members))
            if view.log_y and mean["low"].size:
                mean["low"] = np.where(mean["low"] > 0, mean["low"], mean["y"].min())
            curves.append(
                Curve(
                    key=(f"group:{name}", signal, "right" if right else "left"),
                    label=_label(title, signal, len(signals)),
                    colour=colour_of(f"group:{name}"),
                    dash=place % len(DASHES),
                    right=right,
                    **mean,
                )
            )
    return curves


def _range_of(signal: str, runs: Sequence[Run]) -> tuple[float, float] | None:
    """The range of a reward signal, if it is known and the same for all runs; otherwise None."""
    ranges = {reward_range(run.printed) for run in runs if not run.agent} if signal in _REWARDS else set()
    return ranges.pop() if len(ranges) == 1 else None


EXPERIMENT = "experiment"


def groups_of(runs: Sequence[Run], by: str) -> dict[str, list[Run]]:
    """Groups of independent runs, by the group's name.

    Several agents of one run are not independent, so each agent is in a separate group. Without a property, or with the
    property ``experiment``, the runs of a group differ only in their seeds, because a mean over different settings
    would hide the effect of the settings.

    :param runs: the runs
    :param by: the property that groups runs, the value of ``View.group``
    """
    if by in ("", EXPERIMENT):
        groups = _sides(runs, (lambda run: run.description.experiment) if by else (lambda run: ""))
        return groups if len(groups) > 1 or by else {"All runs": list(runs)}
    return _grouped(runs, lambda run: group_of(run, by))


def sides_of(runs: Sequence[Run], by: str) -> dict[str, list[Run]]:
    """The groups of runs in a comparison, by name. Without a property, the runs of a group differ only in their seeds.

    :param runs: the runs
    :param by: the property that groups runs, the value of ``View.group``
    """
    if by:
        return groups_of(runs, by)
    sides = _sides(runs, lambda run: "")
    return sides if len(sides) > 1 else _grouped(runs, lambda run: run.title)


def _sides(runs: Sequence[Run], name_of: Callable[[Run], str]) -> dict[str, list[Run]]:
    """Groups of runs that differ only in their seeds, by name.

    :param runs: the runs
    :param name_of: returns the beginning of the name of a run's group, or an empty text
    """
    descriptions = [run.description for run in runs]
    varied = varied_parameters(descriptions)
    settings = dict(zip(varied, short_names(varied)))
    classes = [name for name in differing_parameters(descriptions) if name.endswith(_CLASS)]
    kinds = dict(zip(classes, short_names([name.removesuffix(_CLASS) for name in classes])))
    parts = {run.id: _what_differs(run, name_of(run), settings, kinds) for run in runs}
    keys = {run.id: tuple(parts[run.id][:1]) for run in runs}
    for place in range(1, min(map(len, parts.values()), default=0)):
        finer = {run.id: (*keys[run.id], parts[run.id][place]) for run in runs}
        if len(set(finer.values())) > len(set(keys.values())):
            keys = finer
    names = {run.id: " · ".join(part for part in keys[run.id] if part) for run in runs}
    if max(map(len, names.values()), default=0) > _LONGEST_LABEL and len(set(names.values())) == len(runs):
        names = labels_of(runs)  # if runs differ in many settings, such as the trials of coach tune
    return _grouped(runs, lambda run: names[run.id])


def _what_differs(run: Run, name: str, settings: Mapping[str, str], kinds: Mapping[str, str]) -> list[str]:
    title, setting, *_ = _parts(run, settings)
    about = run.description
    classes = ", ".join(f"{short}={about.parameters.get(name)}" for name, short in kinds.items())
    return [name, title, about.preset, about.agent, about.environment, about.framework, setting, classes]


def _grouped(runs: Sequence[Run], name_of: Callable[[Run], str]) -> dict[str, list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(" · ".join(part for part in (name_of(run), run.agent) if part), []).append(run)
    return groups


def _label(label: str, signal: str, signals: int) -> str:
    return label if signals == 1 else f"{label} · {signal}"
