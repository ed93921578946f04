"""Comparisons of the scores of runs with different settings or algorithms.

The measures follow Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice", NeurIPS
2021.
"""

from __future__ import annotations

import itertools
import math
import os
import pathlib
from dataclasses import asdict, dataclass, field
from typing import Mapping, Sequence

import numpy as np
import pandas as pd

from rl_coach.runs import run_group
from rl_coach.runs.differences import varied_parameters
from rl_coach.runs.evaluation import Range, RunStatistics
from rl_coach.runs.experiments import (
    EVALUATION_REWARD,
    TRAINING_REWARD,
    Experiments,
    Summary,
    load,
    reward_range,
)
from rl_coach.runs.signal_file import TOTAL_STEPS, WALL_CLOCK, WALL_CLOCK_MINUTES
from rl_coach.runs.statistics import (
    FEWEST_RUNS,
    improvement_interval,
    interval_over_runs,
    iqm,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    profile_interval,
)
from rl_coach.runs.status import FINISHED, read_status
from rl_coach.utils import CoachError

LAST, BEST = "last", "best"
"""The evaluation that gives a run's score."""
_EPISODES_IN_SCORE = 100
_PROFILE_POINTS = 101
_MOST_NAMED = 4
_GAP = "  "
_WIDEST = 80

Numbers = Mapping[str, "Sequence[float] | np.ndarray"]
"""Numbers of the runs of each setting."""
Measure = tuple[float, float, float]
"""A value and the ends of its 95% interval; NaN without an interval."""


@dataclass(frozen=True)
class Side:
    """A group of runs that is compared with other groups.

    :param name: the experiment or the settings that the runs share
    :param scores: scores of the runs, by environment [runs]
    :param steps: environment steps of these runs, by environment [runs]
    :param curves: environment steps and evaluation rewards of the runs, by environment
    :param to_target: environment steps until an evaluation reached the target and ended training, for the runs that
        reached it, by environment
    :param reward_ranges: the range of a run's rewards, by environment; only if the range of all runs is known and equal
        and contains their scores
    :param contents: all signals of each run, as bytes, to find a run in two groups
    """

    name: str
    scores: Mapping[str, np.ndarray]
    steps: Mapping[str, np.ndarray]
    curves: Mapping[str, Sequence[tuple[np.ndarray, np.ndarray]]] = field(default_factory=dict)
    to_target: Mapping[str, np.ndarray] = field(default_factory=dict)
    reward_ranges: Mapping[str, Range] = field(default_factory=dict)
    contents: frozenset[bytes] = frozenset()


@dataclass(frozen=True)
class Comparison:
    """Groups of runs in the same environments.

    :param sides: the groups; all other groups are compared with the first group
    :param ranges: the scores that count as 0 and as 1, for each environment that has such a scale
    """

    sides: Sequence[Side]
    tasks: Sequence[str]
    ranges: Mapping[str, tuple[float, float]]
    notes: Sequence[str] = ()

    def strata(self, side: Side) -> list[np.ndarray]:
        """Scores of a group on the scale of 0 to 1, by environment [runs]."""
        return [(side.scores[task] - low) / (high - low) for task, (low, high) in self.ranges.items()]

    def aggregates(self, side: Side) -> dict[str, Measure]:
        """Measures over all environments that have a scale."""
        strata = self.strata(side)
        measures = {"IQM": iqm, "mean": lambda values: values.mean(axis=0), "optimality gap": optimality_gap}
        found: dict[str, Measure] = {}
        for name, measure in measures.items():
            low, high = interval_over_runs(strata, measure)
            if name == "optimality gap":  # a shortfall is never negative
                low = np.maximum(low, 0.0)
            if all(task in side.reward_ranges for task in self.ranges):
                least, most = np.sort(measure(self._extreme_scores(side)))
                low, high = np.maximum(low, least), np.minimum(high, most)
            found[name] = float(measure(np.concatenate(strata))), float(low), float(high)
        return found

    def _extreme_scores(self, side: Side) -> np.ndarray:
        """The smallest and the largest possible score of each run on the scale of 0 to 1 [runs, 2]."""
        ends = [
            (np.asarray(side.reward_ranges[task]) - low) / (high - low) for task, (low, high) in self.ranges.items()
        ]
        return np.repeat(ends, [len(side.scores[task]) for task in self.ranges], axis=0)

    def figures(self, task: str) -> tuple[Numbers, Numbers, Numbers, Mapping[str, Range]]:
        """The scores and steps of all groups in an environment, as arguments for ``table_of_scores``."""
        return (
            {side.name: side.scores[task] for side in self.sides},
            {side.name: side.steps[task] for side in self.sides},
            {side.name: side.to_target.get(task, ()) for side in self.sides},
            {side.name: side.reward_ranges[task] for side in self.sides if task in side.reward_ranges},
        )

    def improvement(self, side: Side, over: Side) -> Measure:
        """The probability that a run of ``side`` scores more than a run of ``over``, over all environments."""
        pair = [[one.scores[task] for task in self.tasks] for one in (side, over)]
        has_interval = all(max(map(len, one)) >= FEWEST_RUNS for one in pair)
        low, high = improvement_interval(*pair) if has_interval else (math.nan, math.nan)
        return probability_of_improvement(*pair), low, high

    def profiles(self) -> tuple[np.ndarray, dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
        """Thresholds on the scale of 0 to 1, and the performance profile of each group with its band [points]."""
        every = np.concatenate([scores for side in self.sides for scores in self.strata(side)])
        thresholds = np.linspace(min(0.0, every.min()), max(1.0, every.max()), _PROFILE_POINTS)
        return thresholds, {
            side.name: (
                performance_profile(self.strata(side), thresholds),
                *profile_interval(self.strata(side), thresholds),
            )
            for side in self.sides
        }


def compare(
    directories: Sequence[str], score: str = LAST, ranges: Mapping[str, tuple[float, float]] | None = None
) -> Comparison:
    """Compare the runs below these directories.

    Each directory is a group of runs. Exceptions: in the directory of a sweep, each setting is a group. If there is
    only one directory, and it has several experiments, each experiment is a group.

    :param score: ``last`` or ``best``: the evaluation that gives a run's score
    :param ranges: the scores that count as 0 and as 1, by environment; by default the lowest and the highest score of
        all runs
    :raises CoachError: if there are no runs, or no environment that all groups share
    """
    notes: list[str] = []
    sides: list[Side] = []
    for name, directory in zip(_names(directories), directories):
        sides += _sides_of(name, directory, score, len(directories) == 1, notes)
    return _comparison(sides, ranges or {}, notes)


def compare_groups(groups: Mapping[str, Sequence[str]]) -> Comparison:
    """Compare groups of runs, the CSVs of each by its name, by their last evaluations.

    :raises CoachError: if there are no runs, or no environment that all groups share
    """
    notes: list[str] = []
    sides = []
    for name, files in groups.items():
        experiments = load(files)
        sides.append(_side(experiments, experiments.runs, name, LAST, notes))
    return _comparison(sides, {}, notes)


def _comparison(sides: Sequence[Side], ranges: Mapping[str, tuple[float, float]], notes: list[str]) -> Comparison:
    tasks = [task for task in sides[0].scores if all(task in side.scores for side in sides)]
    if not tasks:
        lists = "; ".join(f"{side.name}: {', '.join(side.scores) or 'no scores'}" for side in sides)
        raise CoachError(f"no environment has scores of all compared groups ({lists})")
    unknown = next((task for task in ranges if task not in tasks), None)
    if unknown is not None:
        raise CoachError(f"a range is given for '{unknown}', but the environments are {', '.join(tasks)}")
    for one, other in itertools.combinations(sides, 2):
        shared = len(one.contents & other.contents)
        if shared:
            notes.append(f"{one.name} and {other.name}: {shared} runs are in both groups; compare separate runs")
    left_out = {task for side in sides for task in side.scores} - set(tasks)
    if left_out:
        notes.append(f"not compared: {', '.join(sorted(left_out))}, because not all groups have runs there")
    found = {task: ranges.get(task) or _range_of([side.scores[task] for side in sides]) for task in tasks}
    for task in (task for task in tasks if found[task] is None):
        notes.append(
            f"all scores in {task} are {sides[0].scores[task][0]:.6g}, so there is no scale from the worst run to the "
            f"best: --range {task}=LOW,HIGH gives one"
        )
    return Comparison(sides, tasks, {task: ends for task, ends in found.items() if ends is not None}, notes)


def _sides_of(name: str, directory: str, score: str, is_alone: bool, notes: list[str]) -> list[Side]:
    experiments = load(directory)
    runs = experiments.runs[experiments.runs["kind"] == "training"]
    if runs.empty:
        raise CoachError(f"there are only evaluations in '{directory}': give the runs that were trained")
    states = runs.groupby(runs["path"].map(os.path.dirname))["state"].first()
    unfinished = int((states != FINISHED).sum())
    if unfinished:
        notes.append(f"{name}: {unfinished} of {len(states)} runs have not finished; their scores so far count")
    settings = _settings_of(directory)
    if settings:
        key = pd.Series([settings.get(pathlib.Path(path).parent.name, "") for path in runs["path"]], runs.index)
        names = key if is_alone else f"{name}: " + key
    else:
        names = runs["experiment"] if is_alone else pd.Series(name, runs.index)
    return [_side(experiments, of_side, str(one), score, notes) for one, of_side in runs.groupby(names, sort=False)]


def _settings_of(directory: str) -> dict[str, str]:
    """The settings of a sweep by the directories of its runs; empty if the directory is not a sweep."""
    if not run_group.is_group(directory):
        return {}
    return {run["name"]: run["setting"] for run in run_group.read(directory)["runs"] if "setting" in run}


def _side(experiments: Experiments, runs: pd.DataFrame, name: str, score: str, notes: list[str]) -> Side:
    scores: dict[str, list[float]] = {}
    steps: dict[str, list[float]] = {}
    curves: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    to_target: dict[str, list[float]] = {}
    ranges: dict[str, set[Range | None]] = {}
    directories = runs.groupby(runs["path"].map(os.path.dirname), sort=False)
    without, copies, seen = 0, 0, set[bytes]()
    for directory, agents in directories:
        row, status = agents.iloc[0], read_status(str(directory))
        signals = experiments.signals[experiments.signals["run"] == row.name]
        content = _content(signals)
        if content in seen:
            copies += 1
            continue
        if content:
            seen.add(content)
        if row["plays_with_others"]:  # the rewards of single agents are no score of the run, so use the printed figures
            row = pd.Series({**row, **asdict(Summary().as_printed(status))}, name=row.name)
            signals = signals.iloc[:0]
        value = _score(row, signals, score)
        if not np.isfinite(value):
            without += 1
            continue
        task = str(row["environment"]).rpartition("/")[2]
        scores.setdefault(task, []).append(value)
        steps.setdefault(task, []).append(float(row["steps"]))
        curves.setdefault(task, []).append(_curve(signals))
        to_target.setdefault(task, []).append(float(row["steps_to_target"]))
        ranges.setdefault(task, set()).add(reward_range(status))
    if copies:
        notes.append(f"{name}: {copies} of {len(directories)} runs are copies of other runs and do not count")
    if without:
        notes.append(f"{name}: {without} of {len(directories)} runs have no score yet and do not count")
    varied = varied_parameters([experiments.descriptions[run] for run in runs.index])
    if varied:
        named = ", ".join(varied[:_MOST_NAMED]) + (" and others" if len(varied) > _MOST_NAMED else "")
        notes.append(f"{name}: its runs have several values of {named}; its scores are of all these runs")
    reached = {task: values[np.isfinite(values)] for task, values in _as_arrays(to_target).items()}
    known = {
        task: common
        for task, of_runs in ranges.items()
        if len(of_runs) == 1 and (common := next(iter(of_runs))) and _are_inside(scores[task], common)
    }
    return Side(name, _as_arrays(scores), _as_arrays(steps), curves, reached, known, frozenset(seen))


def _are_inside(scores: Sequence[float], within: Range) -> bool:
    """False if a score shows that the known range is wrong."""
    return within[0] <= min(scores) and max(scores) <= within[1]


def _as_arrays(values: Mapping[str, list[float]]) -> dict[str, np.ndarray]:
    return {task: np.array(of_task) for task, of_task in values.items()}


def _content(signals: pd.DataFrame) -> bytes:
    """All signals of a run, as hashes of its rows; empty without rows or times. Their times differ, so only a copy has
    equal content."""
    if signals.empty or not {WALL_CLOCK, WALL_CLOCK_MINUTES}.intersection(signals):
        return b""
    return pd.util.hash_pandas_object(signals.drop(columns="run"), index=False).to_numpy().tobytes()


def _score(run: pd.Series, signals: pd.DataFrame, score: str) -> float:
    """Mean reward of the last or best evaluation or, without an evaluation, of the last 100 training episodes."""
    evaluated = float(run[f"{score}_evaluation_reward"])
    if np.isfinite(evaluated) or TRAINING_REWARD not in signals:
        return evaluated
    return float(signals[TRAINING_REWARD].dropna().tail(_EPISODES_IN_SCORE).mean())


def _curve(signals: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    if EVALUATION_REWARD not in signals or TOTAL_STEPS not in signals:
        return np.empty(0), np.empty(0)
    rows = signals[[TOTAL_STEPS, EVALUATION_REWARD]].dropna()
    return rows[TOTAL_STEPS].to_numpy(np.float64), rows[EVALUATION_REWARD].to_numpy(np.float64)


def _range_of(scores: Sequence[np.ndarray]) -> tuple[float, float] | None:
    """The smallest and the largest score; None if all scores are equal, because equal scores define no scale."""
    low, high = float(min(map(np.min, scores))), float(max(map(np.max, scores)))
    return (low, high) if high > low else None


def _names(directories: Sequence[str]) -> list[str]:
    """Names of the directories: the shortest ends of their paths that differ."""
    parts = [pathlib.Path(directory).resolve().parts for directory in directories]
    repeated = [repr(directory) for directory, own in zip(directories, parts) if parts.count(own) > 1]
    if repeated:
        raise CoachError(f"the same directory is given twice: {', '.join(repeated)}")
    longest = max(map(len, parts))
    names = (["/".join(one[-length:]) for one in parts] for length in range(1, longest + 1))
    return next(one for one in names if len(set(one)) == len(one))


def table_of_scores(
    scores: Numbers, steps: Numbers, to_target: Numbers | None = None, ranges: Mapping[str, Range] | None = None
) -> list[str]:
    """A table with a line for each setting, sorted by the mean, then by fewer steps. If lines have more than 80
    columns, the name of each setting is above its numbers.

    The last column is the probability that a run of the best setting scores more than a run of this setting. The list
    is empty without scores.

    :param scores: scores of the runs of each setting
    :param steps: environment steps of these runs; NaN if unknown
    :param to_target: steps until training ended at the target, for the runs that reached it
    :param ranges: the range of the scores of a setting, if it is known. Intervals are cut to this range
    """
    if not scores:
        return []
    rows = rows_of_scores(scores, steps, to_target, ranges)
    widths = [max(map(len, column)) for column in zip(*rows)]
    numbers = [_GAP.join(cell.rjust(width) for cell, width in zip(row[1:], widths[1:])).rstrip() for row in rows]
    if widths[0] + len(_GAP) + max(map(len, numbers)) <= _WIDEST:
        return [f"{row[0]:<{widths[0]}}{_GAP}{line}" for row, line in zip(rows, numbers)]
    return [part for row, line in zip(rows, numbers) for part in (row[0], f"{_GAP}{line}") if part]


def rows_of_scores(
    scores: Numbers, steps: Numbers, to_target: Numbers | None = None, ranges: Mapping[str, Range] | None = None
) -> list[list[str]]:
    """The cells of ``table_of_scores``; the first row has the names of the columns."""
    statistics = {
        name: RunStatistics.of([float(one) for one in values], (ranges or {}).get(name))
        for name, values in scores.items()
    }
    reached = {name: values for name, values in (to_target or {}).items() if len(values)}
    mean_steps = {name: float(np.nan_to_num(np.mean(of_name), nan=np.inf)) for name, of_name in steps.items()}
    order = sorted(statistics, key=lambda name: (-statistics[name].mean, mean_steps[name]))
    rows = [["", "runs", "to target" if reached else "steps", "mean", "IQM", "95% interval", "P(best > this)"]]
    for name in order:
        one = statistics[name]
        interval = "-" if one.low is None else f"{one.low:.5g} to {one.high:.5g}"
        wins = probability_of_improvement([np.asarray(scores[order[0]])], [np.asarray(scores[name])])
        last = "" if name == order[0] else f"{wins:.2f}"
        length = "-" if math.isinf(mean_steps[name]) else f"{mean_steps[name]:,.0f}"
        if reached:
            length = _steps_to_target(reached.get(name, ()), one.runs)
        measures = [f"{one.mean:.5g}", f"{one.interquartile_mean:.5g}", interval, last]
        rows.append([name, str(one.runs), length, *measures])
    return rows


def _steps_to_target(steps: Sequence[float] | np.ndarray, runs: int) -> str:
    """The mean number of steps to the target, and the number of runs that reached it, if not all of them did."""
    if not len(steps):
        return "-"
    return f"{np.mean(steps):,.0f}" + (f" ({len(steps)} of {runs})" if len(steps) < runs else "")
