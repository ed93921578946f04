"""Reads the files of runs: signal CSVs, the JSON next to them, and the state of the run.

    >>> experiments = load("experiments/CartPole_DQN")
    >>> experiments.runs[["seed", "state", "best_evaluation_reward"]]
    >>> experiments.signals.groupby("run")["Training Reward"].max()

A run is one agent of one experiment. Each of its workers writes a signal CSV; together they are one run. Files are only
read, never locked. They may grow while they are read: a row counts when its line has ended.
"""

from __future__ import annotations

import csv
import datetime
import itertools
import os
import pathlib
import re
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Sequence, TypeGuard

import numpy as np
import pandas as pd

from rl_coach.runs.documents import read_document, settings_for
from rl_coach.runs.plot import Line, SignalPlot, line
from rl_coach.runs.record import DATE
from rl_coach.runs.run_group import is_group
from rl_coach.runs.signal_file import (
    EPISODE,
    TOTAL_STEPS,
    TRAINING_ITERATION,
    WALL_CLOCK,
    WALL_CLOCK_MINUTES,
    SignalFile,
    column_names,
    read_header,
    whole_lines,
)
from rl_coach.runs.status import STATUS_FILE, is_evaluation, part_of, read_status, state_of
from rl_coach.runs.workers import RunSignals
from rl_coach.utils import CoachError, did_you_mean

if TYPE_CHECKING:
    import pyarrow

TRAINING_REWARD = "Training Reward"
EVALUATION_REWARD = "Evaluation Reward"

COPIED_AFTER_SECONDS = 3600.0
"""A CSV is treated as a copy if it is this many seconds newer than its last row."""
VIDEO_DIRECTORIES = ("gifs", "videos")
_DIRECTORIES_WITHOUT_RUNS = {*VIDEO_DIRECTORIES, "checkpoint", "checkpoints", "policy", "tensorboard", "onnx"}
_FILE_NAME = re.compile(r"^(?:worker_(?P<worker>\d+)\.)?(?P<source>.*?)(?:_(?P<index>\d+))?$")
_BYTES_OF_END = 1 << 14
_EPISODE_FILE = re.compile(r"^episode_(\d+)\.csv$")


def find_signal_files(root: str | os.PathLike[str], with_begun: bool = False) -> Iterator[os.DirEntry[str]]:
    """Every signal CSV below ``root``, in the order of directories; links to directories are not followed.

    Folders for videos, checkpoints and in-episode signals are skipped.

    :param with_begun: also yield the ``status.json`` of each run that has no CSV yet
    """
    try:
        entries = sorted(os.scandir(os.fspath(root)), key=lambda entry: entry.name)
    except OSError:
        return
    below, csvs, status = [], [], []
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            below.append(entry)
        elif entry.name.endswith(".csv") and not _EPISODE_FILE.match(entry.name):
            csvs.append(entry)
        elif entry.name == STATUS_FILE and with_begun:
            status.append(entry)
    yield from csvs or status
    for directory in below:
        has_no_runs = directory.name in _DIRECTORIES_WITHOUT_RUNS or directory.name.endswith(".episodes")
        if not directory.name.startswith(".") and not has_no_runs:
            yield from find_signal_files(directory.path, with_begun)


def episode_files(signal_file: str | os.PathLike) -> dict[int, pathlib.Path]:
    """The in-episode CSVs of a run by episode number, in ascending order.

    They are in ``<name>.episodes`` next to the run's CSV; older releases omitted the ending.
    """
    path = pathlib.Path(signal_file)
    stem = path.with_suffix("")
    found: dict[int, pathlib.Path] = {}
    name = re.sub(r"_\d+$", "", stem.name)
    for folder in (stem.with_name(name), stem.with_name(f"{name}.episodes")):
        if folder.is_dir():
            for file in folder.iterdir():
                if match := _EPISODE_FILE.match(file.name):
                    found[int(match.group(1))] = file
    return dict(sorted(found.items()))


def videos(signal_file: str | os.PathLike) -> list[pathlib.Path]:
    """The GIFs and videos of the experiment that a run belongs to, newest first."""
    directory = pathlib.Path(signal_file).parent
    found = [
        file
        for name in VIDEO_DIRECTORIES
        if (directory / name).is_dir()
        for file in (directory / name).iterdir()
        if file.suffix in (".gif", ".mp4", ".webm") and not file.name.startswith(".")  # a video in progress
    ]
    return sorted(found, key=lambda file: (file.stat().st_mtime, file.name), reverse=True)


@dataclass(frozen=True)
class RunDescription:
    """Description of a run, or of one of its workers, from the names of the files and the JSON next to the CSV.

    :param id: the CSV's path below the root, without ``.csv``; only the directory if it contains no other run
    :param experiment: the experiment's name
    :param worker: number of the worker; None if the file does not say, and for a run with several workers
    :param source: graph, level and agent, as in the file's name
    :param start: seconds since the epoch
    :param counts_minutes: True if its ``Wall-Clock Time`` is in minutes; older releases wrote seconds
    :param framework: the framework of the run's networks, by its name for ``-f``
    :param settings: the settings of its command line (``-cp``)
    :param evaluates_only: True if the run did not train
    :param parameters: every setting by its dotted name
    """

    id: str
    path: pathlib.Path
    experiment: str
    worker: int | None = None
    source: str = ""
    preset: str = ""
    agent: str = ""
    environment: str = ""
    seed: int | None = None
    start: float | None = None
    counts_minutes: bool = False
    framework: str = ""
    settings: str = ""
    evaluates_only: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def plays_with_others(self) -> bool:
        """True for an agent of several players, which counts its own steps and rewards."""
        return "agent_of" in self.parameters


def describe(path: str | os.PathLike, root: str | os.PathLike, run_id: str) -> RunDescription:
    """Read the description of the run or worker that wrote the CSV at ``path``."""
    path = pathlib.Path(path)
    match = _FILE_NAME.match(path.stem)
    directory = path.parent
    timestamp = parse_timestamp(directory.name)
    is_named_by_parent = timestamp is not None or is_group(directory.parent)
    experiment_directory = directory.parent if is_named_by_parent else directory
    below = os.path.relpath(experiment_directory, root)
    document = read_document(path)
    record = part_of(document, "run")
    parameters = flatten(settings_for(path, document))
    experiment = experiment_directory.resolve().name if below.startswith(".") else below
    # 0 also means a run that only evaluates, until it is stopped
    evaluate_only = parameters.get("task.evaluate_only")
    return RunDescription(
        id=run_id,
        path=path,
        experiment=experiment,
        worker=worker_of(path),
        source=match.group("source") if match else path.stem,
        preset=_preset(record, parameters) or (pathlib.PurePath(experiment).name if timestamp is not None else ""),
        agent=_agent(parameters),
        environment=_first(parameters, *_LEVEL_NAMES),
        seed=_seed(parameters),
        start=_start(record, timestamp, parameters),
        counts_minutes=bool(record),
        framework=_first(parameters, "task.framework_type").rpartition(".")[2],
        settings=_flag(record, "-cp", "--custom_parameter"),
        evaluates_only=evaluate_only is not None and evaluate_only is not False,
        parameters={**parameters, **flatten(record, "run.")},
    )


def describe_run(workers: Sequence[RunDescription]) -> RunDescription:
    """Describe the run of these workers, with the settings of the first."""
    if len(workers) == 1:
        return workers[0]
    starts = [worker.start for worker in workers if worker.start is not None]
    return replace(
        workers[0],
        worker=None,
        start=min(starts, default=None),
        evaluates_only=all(worker.evaluates_only for worker in workers),
    )


_LEVEL_NAMES = (
    "environment.level",
    "environment.level.selected_level",
    "env_params.level",
    "env_params.level.selected_level",
    "environment",
    "level",
)


def _first(parameters: Mapping[str, Any], *names: str) -> str:
    """The first of these parameters that is a word or a whole number."""
    for name in names:
        value = parameters.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return str(value)
    return ""


def _preset(record: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """The preset's name, without folder, ending and variable."""
    asked = _flag(record, "-p", "--preset")
    if not asked or parameters.get("task.preset"):
        return _first(parameters, "task.preset", "preset", "preset_name")
    path, _, variable = asked.rpartition(":")
    path = path if path and variable.isidentifier() else asked
    name = re.split(r"[/\\]", path)[-1]
    return name.removesuffix(".py") if name.endswith(".py") else name.rpartition(".")[2]


def _flag(record: Mapping[str, Any], *names: str) -> str:
    """Value of a flag on the recorded command line; empty if it was not given."""
    words = record.get("command_line")
    if not isinstance(words, list):
        return ""
    for word, following in itertools.pairwise([*map(str, words), ""]):
        flag, equals, value = word.partition("=")
        if flag in names:
            return value if equals else following
    return ""


def _agent(parameters: Mapping[str, Any]) -> str:
    named = _first(parameters, "agent.__class__", "agent_params.__class__", "agent", "agent_params.path")
    return re.sub(r"(Agent)?(Parameters)?$", "", named.rpartition(":")[2].rpartition(".")[2])


def _seed(parameters: Mapping[str, Any]) -> int | None:
    text = _first(parameters, "seed", "task.seed", "task_parameters.seed")
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _start(record: Mapping[str, Any], timestamp: float | None, parameters: Mapping[str, Any]) -> float | None:
    value = record.get("start_time")
    if isinstance(value, str):
        try:
            return datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
        except ValueError:
            return timestamp
    if timestamp is None and (created := _number(str(parameters.get("graph.graph_creation_time", "")))) > 0:
        return created if np.isfinite(created) else None
    return timestamp


def parse_timestamp(name: str) -> float | None:
    """The start time in the name of a directory (see ``DATE``), in seconds since the epoch; None for other names."""
    match = DATE.fullmatch(name)
    try:
        return datetime.datetime.strptime(match[1], "%d_%m_%Y-%H_%M").timestamp() if match else None
    except (ValueError, OverflowError, OSError):
        return None


def flatten(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one level of dotted names; lists of plain values stay lists."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            flat.update(flatten(value, f"{name}."))
        elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
            flat.update(flatten({str(index): item for index, item in enumerate(value)}, f"{name}."))
        else:
            flat[name] = value
    return flat


def wall_clock_minutes(names: Iterable[str], column: Callable[[str], np.ndarray], counts_minutes: bool) -> np.ndarray:
    """Minutes since the start, from the wall-clock column of the CSV; empty without such a column.

    :param column: returns a column's float64 values [rows] by its name
    :param counts_minutes: a column without a unit in its name is in minutes; False for seconds
    """
    present = set(names)
    if WALL_CLOCK_MINUTES in present:
        return column(WALL_CLOCK_MINUTES)
    if WALL_CLOCK not in present:
        return np.empty(0)
    return column(WALL_CLOCK) / (1.0 if counts_minutes else 60.0)


@dataclass
class Summary:
    """State of a run; unknown values are NaN.

    :param steps: environment steps so far
    :param minutes: wall-clock time so far
    :param steps_to_target: environment steps until an evaluation reached the target and ended training
    :param complete: the whole file was read; otherwise the best evaluation reward is not certain
    """

    steps: float = float("nan")
    minutes: float = float("nan")
    last_evaluation_reward: float = float("nan")
    best_evaluation_reward: float = float("nan")
    steps_to_target: float = float("nan")
    complete: bool = False

    @property
    def steps_per_second(self) -> float:
        """Environment steps per second over the whole run."""
        return self.steps / (self.minutes * 60.0) if self.minutes > 0 else float("nan")

    def add(self, table: pyarrow.Table, counts_minutes: bool) -> None:
        """Add newer rows. :param counts_minutes: as in ``RunDescription``"""
        names = table.column_names

        def column(name: str) -> np.ndarray:
            values = table.column(name).to_numpy() if name in names else np.empty(0)
            return values[np.isfinite(values)]

        steps, minutes = column(TOTAL_STEPS), wall_clock_minutes(names, column, counts_minutes)
        rewards = column(EVALUATION_REWARD)
        self.steps = float(steps[-1]) if steps.size else self.steps
        self.minutes = float(minutes[-1]) if minutes.size else self.minutes
        if rewards.size:
            self.last_evaluation_reward = float(rewards[-1])
            self.best_evaluation_reward = float(np.fmax(self.best_evaluation_reward, rewards.max()))

    def as_printed(self, status: Mapping[str, Any]) -> Summary:
        """The summary with the figures that the run prints; figures that its status does not have are from the CSV. The
        CSVs of agents that play together count each agent's own steps and rewards."""
        progress, evaluation = part_of(status, "progress"), part_of(status, "evaluation")
        figures = {
            "steps": progress.get("steps"),
            "minutes": progress.get("seconds"),
            "last_evaluation_reward": evaluation.get("mean", progress.get("last_evaluation")),
            "best_evaluation_reward": evaluation.get("mean", progress.get("best_evaluation")),
            "steps_to_target": progress.get("steps_to_target"),
        }
        known = {name: float(value) for name, value in figures.items() if _is_finite(value)}
        if "minutes" in known:
            known["minutes"] /= 60
        return replace(self, **known, complete=self.complete or "best_evaluation_reward" in known)

    @classmethod
    def of_workers(cls, workers: Sequence[Summary], trains: Sequence[bool]) -> Summary:
        """State of the run of these workers: the sum of training steps, the mean last evaluation, the best evaluation.

        :param trains: for each worker True if it trains; a worker that only evaluates adds no steps
        """
        if len(workers) == 1:
            return workers[0]
        steps = [one.steps for one, is_training in zip(workers, trains) if is_training or not any(trains)]
        return cls(
            steps=_over_known(np.sum, steps),
            minutes=_over_known(np.max, [one.minutes for one in workers]),
            last_evaluation_reward=_over_known(np.mean, [one.last_evaluation_reward for one in workers]),
            best_evaluation_reward=_over_known(np.max, [one.best_evaluation_reward for one in workers]),
            complete=all(one.complete for one in workers),
        )


def reward_range(status: Mapping[str, Any]) -> tuple[float, float] | None:
    """The smallest and the largest total reward of an episode in the status of a run; None if they are unknown."""
    found = part_of(status, "progress").get("reward_range")
    if not isinstance(found, list) or len(found) != 2 or not all(map(_is_finite, found)):
        return None
    return float(found[0]), float(found[1])


def _is_finite(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")


def _over_known(statistic: Callable[[np.ndarray], Any], values: Sequence[float]) -> float:
    """A statistic of the known values; NaN if no value is known."""
    known = np.array([value for value in values if np.isfinite(value)])
    return float(statistic(known)) if known.size else float("nan")


def read_end(path: str | os.PathLike, counts_minutes: bool) -> tuple[list[str], Summary]:
    """The names of a CSV's columns, and the run's state from its last rows. Only the file's header and end are read.

    :raises OSError: if the file is gone or cannot be read
    """
    with open(path, "rb") as file:
        header = read_header(file)
        size = os.fstat(file.fileno()).st_size
        most_bytes = max(_BYTES_OF_END, 2 * len(header))
        start = max(len(header), size - most_bytes)
        file.seek(start)
        data = file.read(most_bytes) if header else b""
    if start > len(header):
        data = data[data.find(b"\n") + 1 :]
    names = column_names(header)
    lines = whole_lines(data).decode("utf-8", "replace").replace("\0", "").splitlines()
    found = _newest_values(lines, names)
    minutes = wall_clock_minutes(found, lambda name: np.array([found[name]]), counts_minutes)
    summary = Summary(
        steps=found.get(TOTAL_STEPS, float("nan")),
        minutes=float(minutes[0]) if minutes.size else float("nan"),
        last_evaluation_reward=found.get(EVALUATION_REWARD, float("nan")),
    )
    return names, summary


def _newest_values(lines: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """The last finite value of each column that a summary needs."""
    wanted = (TOTAL_STEPS, EVALUATION_REWARD, WALL_CLOCK, WALL_CLOCK_MINUTES)
    missing = {name: place for place, name in enumerate(names) if name in wanted}
    found: dict[str, float] = {}
    for cells in csv.reader(reversed(lines)):
        if not missing:
            break
        for name, place in list(missing.items()):
            value = _number(cells[place]) if len(cells) == len(names) else float("nan")
            if np.isfinite(value):
                found[name] = value
                del missing[name]
    return found


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def last_growth(description: RunDescription, summary: Summary, modified: float) -> float:
    """Time of a run's last write, in seconds since the epoch. It is the time of the CSV's last change, except if the
    CSV is a copy. The file of a copy is much newer than its last row; the result is then the time of the last row."""
    if description.start is None or not np.isfinite(summary.minutes):
        return modified
    ended = description.start + 60.0 * summary.minutes
    return ended if modified - ended > COPIED_AFTER_SECONDS else modified


def run_ids(root: str | os.PathLike, paths: Sequence[str]) -> list[str]:
    """The short, unique id of each CSV's run: its directory below ``root``, or a file's path if it has several runs.

    The CSVs of a run's workers have the same id, from the first worker's file.
    """
    runs = [_run_of(path) for path in paths]
    first_files: dict[tuple[str, str], str] = {}
    for run, path in sorted(zip(runs, paths), key=lambda found: (worker_of(found[1]) or 0, found[1])):
        first_files.setdefault(run, path)
    count = Counter(directory for directory, _ in first_files)
    ids = []
    for directory, name in runs:
        below = os.path.relpath(directory, root)
        alone = count[directory] == 1 and below != "."
        file = os.path.relpath(first_files[directory, name], root)[: -len(".csv")]
        ids.append(pathlib.PurePath(below if alone else file).as_posix())
    return ids


def _run_of(path: str) -> tuple[str, str]:
    """Directory of a CSV, and its name without the number of the worker."""
    directory, name = os.path.split(path)
    return directory, re.sub(r"^worker_\d+\.", "worker.", name)


def worker_of(path: str | os.PathLike) -> int | None:
    """The number of the worker that wrote a CSV; None if the CSV's name has no number."""
    match = _FILE_NAME.match(pathlib.PurePath(path).stem)
    return int(match["worker"]) if match and match["worker"] else None


@dataclass(frozen=True)
class Experiments:
    """Runs as data frames.

    :param runs: a row for each run, by its id: experiment, preset, agent, environment, seed, workers (the number of
        workers), framework, kind (``training`` or ``evaluation``), state, steps, steps_per_second,
        last_evaluation_reward, best_evaluation_reward, steps_to_target, start, minutes, path (of its first worker's
        CSV), plays_with_others. The numbers are the ones that the run prints. For an agent that plays with others,
        steps and rewards are its own
    :param signals: a row for each row of each CSV: ``run``, ``worker``, then every signal of any run; NaN if a run does
        not have the signal. The rows of several workers are sorted by time, and their counts are sums over the run
    :param parameters: a row for each run, a column for each setting by its dotted name
    :param descriptions: the descriptions of the runs by their ids. Their parameters have the types of the settings
    """

    runs: pd.DataFrame
    signals: pd.DataFrame
    parameters: pd.DataFrame
    descriptions: Mapping[str, RunDescription]

    def tidy(self, *names: str) -> pd.DataFrame:
        """A row for each value of the given signals, or of all. The columns are run, episode, iteration, steps,
        minutes, signal and value. NaN is left out."""
        times = {EPISODE: "episode", TRAINING_ITERATION: "iteration", TOTAL_STEPS: "steps", "minutes": "minutes"}
        wide = self.signals.drop(columns="worker").rename(columns=times)
        keys = ["run", *(name for name in times.values() if name in wide)]
        unknown = [name for name in names if name not in wide]
        if unknown:
            raise CoachError(f"no signal '{unknown[0]}'; the signals are: {', '.join(wide.columns.difference(keys))}")
        wanted = list(names) or [name for name in wide.columns if name not in keys]
        long = wide.melt(id_vars=keys, value_vars=wanted, var_name="signal", value_name="value")
        return long.dropna(subset="value").reset_index(drop=True)

    def plot(self, signal: str = EVALUATION_REWARD) -> SignalPlot:
        """A plot of a signal of every run over environment steps.

        :raises CoachError: if no run has the signal
        """
        if signal not in self.signals:
            raise CoachError(f"no signal '{signal}'{did_you_mean(signal, self.signals.columns)}")
        return SignalPlot([_signal_line(self.signals, str(run), signal, str(run)) for run in self.runs.index])

    def _repr_html_(self) -> str:
        return (
            f"{self.runs.to_html(max_rows=20)}{self.plot()._repr_svg_() if EVALUATION_REWARD in self.signals else ''}"
        )


def rewards_of(experiments: Experiments, run: str) -> SignalPlot:
    """The rewards of one run's episodes in training and in evaluations."""
    wanted = [signal for signal in (TRAINING_REWARD, EVALUATION_REWARD) if signal in experiments.signals]
    return SignalPlot([_signal_line(experiments.signals, run, signal, signal) for signal in wanted])


def _signal_line(signals: pd.DataFrame, run: str, signal: str, label: str) -> Line:
    rows = signals[signals["run"] == run]
    return line(label, rows[TOTAL_STEPS].to_numpy(np.float64), rows[signal].to_numpy(np.float64))


def load(path: str | os.PathLike | Sequence[str | os.PathLike] = "experiments") -> Experiments:
    """Read the runs of a directory or a CSV, or of several directories and CSVs.

    :raises CoachError: if a path does not exist, or there is no signal CSV below the paths
    """
    given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    files = list(dict.fromkeys(file for one in given for file in _signal_files(one)))
    if not files:
        raise CoachError(f"no signal CSV below {', '.join(repr(str(one)) for one in given)}")
    root = os.path.commonpath([os.path.abspath(one if os.path.isdir(one) else os.path.dirname(one)) for one in given])
    files.sort(key=lambda file: worker_of(file) or 0)
    workers: dict[str, list[str]] = {}
    for file, run_id in zip(files, run_ids(root, files)):
        workers.setdefault(run_id, []).append(file)
    runs, signals, described = [], [], {}
    for run_id, paths in workers.items():
        signal_files = [SignalFile(file) for file in paths]
        for signal_file in signal_files:
            signal_file.refresh()
        descriptions = [describe(file, root, run_id) for file in paths]
        described[run_id] = describe_run(descriptions)
        runs.append(_run_row(described[run_id], descriptions, signal_files))
        signals.append(_signal_frame(descriptions, signal_files))
    parameters = {run_id: dict(one.parameters) for run_id, one in described.items()}
    return Experiments(
        pd.DataFrame(runs).set_index("run"),
        pd.concat(signals, ignore_index=True),
        pd.DataFrame.from_dict(parameters, orient="index").rename_axis("run"),
        described,
    )


def _signal_files(path: str | os.PathLike) -> list[str]:
    if os.path.isdir(path):
        return [os.path.abspath(entry.path) for entry in find_signal_files(path)]
    if os.path.isfile(path):
        return [os.path.abspath(path)]
    raise CoachError(f"no file or directory '{os.fspath(path)}'")


def _run_row(
    description: RunDescription, workers: Sequence[RunDescription], files: Sequence[SignalFile]
) -> dict[str, Any]:
    summary = Summary.of_workers(
        [_summary_of(worker, file) for worker, file in zip(workers, files)],
        [not worker.evaluates_only for worker in workers],
    )
    start, status = description.start, read_status(description.path.parent)
    modified = description.path.stat().st_mtime
    written = modified if status else last_growth(description, summary, modified)
    if not description.plays_with_others:
        summary = summary.as_printed(status)
    return {
        "run": description.id,
        "experiment": description.experiment,
        "preset": description.preset,
        "agent": description.agent,
        "environment": description.environment,
        "seed": description.seed,
        "workers": len(workers),
        "framework": description.framework,
        "kind": "evaluation" if description.evaluates_only or is_evaluation(status) else "training",
        "state": state_of(status, written, time.time()),
        "steps": summary.steps,
        "steps_per_second": summary.steps_per_second,
        "last_evaluation_reward": summary.last_evaluation_reward,
        "best_evaluation_reward": summary.best_evaluation_reward,
        "steps_to_target": summary.steps_to_target,
        "start": pd.Timestamp(start, unit="s") if start is not None else pd.NaT,
        "minutes": summary.minutes,
        "path": str(description.path),
        "plays_with_others": description.plays_with_others,
    }


def _summary_of(worker: RunDescription, file: SignalFile) -> Summary:
    summary = Summary()
    if file.table is not None:
        summary.add(file.table, worker.counts_minutes)
    return summary


def _signal_frame(workers: Sequence[RunDescription], files: Sequence[SignalFile]) -> pd.DataFrame:
    signals = RunSignals(files, [not worker.evaluates_only for worker in workers])
    frame = pd.DataFrame({name: signals.column(name) for name in signals.names})
    minutes = wall_clock_minutes(signals.names, signals.column, workers[0].counts_minutes)
    if minutes.size:
        frame["minutes"] = minutes
    numbers = [workers[place].worker for place in signals.workers()]
    frame.insert(0, "worker", pd.array(numbers, dtype="Int64"))
    frame.insert(0, "run", workers[0].id)
    return frame
