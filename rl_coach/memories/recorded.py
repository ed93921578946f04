"""Recorded experience from elsewhere: CSV files, and the pickles that Coach wrote."""

from __future__ import annotations

import ast
import codecs
import collections
import copyreg
import csv
import itertools
import os
import pickle
import re
from typing import Any

import numpy as np

from rl_coach.core_types import Batch, CsvDataset, Episode, Transition
from rl_coach.utils import CoachError

_REQUIRED = ("episode_id", "reward")
_PROBABILITIES = "all_action_probabilities"
_FEATURE, _NEXT, _ACTION = "state_feature_", "next_", "action_"
_Row = collections.namedtuple("_Row", ["state", "action", "reward", "probabilities", "next_state", "terminated"])


def read_csv_episodes(dataset: CsvDataset) -> tuple[list[Episode], bool]:
    """The episodes of a CSV file in Coach's layout.

    A row is a step: ``episode_id``, ``action`` (a number; ``action_0``, ``action_1``, … for a vector), ``reward`` and
    the state's elements ``state_feature_0``, ``state_feature_1``, … in the order of the header. The elements of a
    further observation are ``state_NAME_0``, …

    The state of an episode's last row is the last transition's next state, so that an episode of n rows has n - 1
    transitions and one of a single row none. Where there are columns of the next state (``next_state_feature_0``, …)
    each row is a transition. The episode's end terminated it, unless a column ``terminated`` says 0 of the last
    transition's row.

    Two more columns may be there: ``all_action_probabilities`` (a list such as ``[0.5, 0.5]``), and ``is_raw``, which
    is 0 where the values have passed an agent's filters. Other columns (``episode_name``, ``transition_number``) are
    not read.

    :return: the episodes, and whether their values are raw
    :raises CoachError: no such file, a column missing, or a cell that is not what it should be
    """
    with _opened(dataset.filepath) as file:
        reader = csv.DictReader(file)
        layout = _Layout(list(reader.fieldnames or []), dataset.filepath)
        rows_by_episode: dict[str, list[_Row]] = {}
        marks = set()
        for row in reader:
            place = f"'{dataset.filepath}', line {reader.line_num}"
            rows_by_episode.setdefault(row["episode_id"], []).append(layout.parse(row, place))
            marks.add(row.get("is_raw", "1"))
    if not marks <= {"0"} and not marks <= {"1"}:
        raise CoachError(f"'{dataset.filepath}': is_raw is 0 in all rows or 1 in all rows, not {', '.join(marks)}")
    episodes = [
        _episode(rows, dataset.is_episodic) for rows in rows_by_episode.values() if len(rows) > 1 or layout.has_next
    ]
    return episodes, marks != {"0"}


def _opened(path: str) -> Any:
    try:
        return open(path, newline="", encoding="utf-8")
    except OSError as error:
        raise CoachError(f"cannot read '{path}': {error.strerror}") from None


class _Layout:
    """The places of a step's values among the columns of a CSV file.

    :raises CoachError: one is missing
    """

    def __init__(self, header: list[str], path: str):
        self._states = _features(header, "state_")
        self._next_states = _features(header, f"{_NEXT}state_")
        self._actions = [name for name in header if re.fullmatch(rf"{_ACTION}\d+", name)]
        self._has_terminated, self._has_probabilities = "terminated" in header, _PROBABILITIES in header
        self.has_next = bool(self._next_states)
        missing = [name for name in _REQUIRED if name not in header]
        missing += [] if self._actions or "action" in header else ["action"]
        missing += [] if self._states else [f"{_FEATURE}0"]
        if self.has_next and (lost := next((name for name in self._states if name not in self._next_states), None)):
            missing.append(_NEXT + self._states[lost][0])
        if missing:
            raise CoachError(f"'{path}' has no column {', '.join(repr(name) for name in missing)}")

    def parse(self, row: dict[str, str], place: str) -> _Row:
        try:
            return _Row(
                state=_state(row, self._states),
                action=np.array([float(row[name]) for name in self._actions]) if self._actions else _index(row),
                reward=float(row["reward"]),
                probabilities=_probabilities(row[_PROBABILITIES]) if self._has_probabilities else None,
                next_state=_state(row, self._next_states) if self.has_next else None,
                terminated=bool(float(row["terminated"])) if self._has_terminated else None,
            )
        except (ValueError, TypeError, SyntaxError) as error:
            raise CoachError(f"{place}: {error}") from None


def _features(header: list[str], prefix: str) -> dict[str, list[str]]:
    """The columns of each observation, by its name."""
    found: dict[str, list[str]] = {}
    for column in header:
        if match := re.fullmatch(rf"{prefix}(.+)_\d+", column):
            name = "observation" if match[1] == "feature" else match[1]
            found.setdefault(name, []).append(column)
    return found


def _state(row: dict[str, str], features: dict[str, list[str]]) -> dict[str, np.ndarray]:
    return {name: np.array([float(row[column]) for column in columns]) for name, columns in features.items()}


def _index(row: dict[str, str]) -> int:
    return int(float(row["action"]))


def _probabilities(cell: str) -> np.ndarray:
    return np.asarray(ast.literal_eval(cell), dtype=np.float64)


def _episode(rows: list[_Row], is_episodic: bool) -> Episode:
    if rows[0].next_state is None:
        rows = [row._replace(next_state=following.state) for row, following in itertools.pairwise(rows)]
    episode = Episode()
    for row in rows:
        is_last = is_episodic and row is rows[-1]
        episode.insert(
            Transition(
                state=row.state,
                action=row.action,
                reward=row.reward,
                next_state=row.next_state,
                game_over=is_last,
                info={} if row.probabilities is None else {_PROBABILITIES: row.probabilities},
                terminated=is_last if row.terminated is None else row.terminated,
            )
        )
    return episode


def write_csv(path: str, columns: Batch, episode_lengths: np.ndarray, is_raw: bool) -> None:
    """Write episodes in the layout that ``read_csv_episodes`` reads.

    :param columns: their steps, one episode after the other
    :param episode_lengths: [E]
    :param is_raw: their values are those of the environment
    :raises CoachError: a value is no number and no vector, or the file exists or cannot be written
    """
    parts: dict[str, np.ndarray] = {"episode_id": np.repeat(np.arange(len(episode_lengths)), episode_lengths)}
    actions = columns.action_column
    parts |= {"action": actions} if actions.ndim == 1 else _cells("action", actions, path)
    parts["reward"] = columns.reward_column
    for prefix, states in (("", columns.state_columns), (_NEXT, columns.next_state_columns)):
        for name, column in states.items():
            own = "feature" if name == "observation" else name
            parts |= _cells(f"{prefix}state_{own}", column, path)
    parts["terminated"] = columns.terminated_column.astype(int)
    parts["is_raw"] = np.full(len(columns), int(is_raw))
    if _PROBABILITIES in columns.info_columns:
        parts[_PROBABILITIES] = np.asarray([str(row) for row in columns.info(_PROBABILITIES).tolist()])
    try:
        with open(path, "x", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(parts)
            writer.writerows(zip(*(column.tolist() for column in parts.values())))
    except OSError as error:
        raise CoachError(f"cannot write '{path}': {error.strerror}") from None


def _cells(name: str, column: np.ndarray, path: str) -> dict[str, np.ndarray]:
    if column.ndim != 2:
        shape = " x ".join(map(str, column.shape[1:]))
        raise CoachError(
            f"'{path}': a CSV file holds vectors, and '{name}' is {shape or 'a number'}: write to minari:ID"
        )
    return {f"{name}_{index}": column[:, index] for index in range(column.shape[1])}


class _PickledObject:
    """Attributes of one of Coach's objects as a pickle gives them, and nothing that acts."""


class _PickledTransition(_PickledObject):
    pass


class _PickledEpisode(_PickledObject):
    pass


class _PickledStack(_PickledObject):
    pass


_COACH_CLASSES = {
    ("rl_coach.core_types", "Transition"): _PickledTransition,
    ("rl_coach.core_types", "Episode"): _PickledEpisode,
    ("rl_coach.filters.observation.observation_stacking_filter", "LazyStack"): _PickledStack,
}
_DATA_CLASSES = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("collections", "deque"): collections.deque,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("builtins", "object"): object,
    ("__builtin__", "object"): object,
    ("copyreg", "_reconstructor"): copyreg._reconstructor,  # type: ignore[attr-defined]
    ("copy_reg", "_reconstructor"): copyreg._reconstructor,  # type: ignore[attr-defined]
    ("_codecs", "encode"): codecs.encode,
}
_NUMPY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric")
_NUMPY_FUNCTIONS = ("_reconstruct", "scalar", "_frombuffer")


class _DataUnpickler(pickle.Unpickler):
    """Reads numbers, arrays, containers and Coach's transitions, and calls nothing else that a pickle may name."""

    def find_class(self, module: str, name: str) -> Any:
        known = _COACH_CLASSES.get((module, name)) or _DATA_CLASSES.get((module, name))
        if known is not None:
            return known
        if module in _NUMPY_MODULES and name in _NUMPY_FUNCTIONS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it contains {module}.{name}, which is not a part of a recorded transition")


def read_pickled_transitions(file_path: str | os.PathLike) -> list[Transition]:
    """The transitions of a file that Coach's ``ExperienceReplay.save`` pickled.

    A pickle may name any function for the reader to call. This reader accepts only arrays, numbers, containers and
    the attributes of Coach's transitions; a file that names anything else is refused.

    :raises CoachError: no such file, or it contains something else
    """
    return [transition for item in _read_pickle(file_path) for transition in _transitions_of(item, file_path)]


def read_pickled_episodes(file_path: str | os.PathLike) -> list[list[Transition]]:
    """The episodes of a file that Coach's ``EpisodicExperienceReplay.save`` pickled; read as transitions are.

    A list of transitions is cut into episodes where ``game_over`` is true.
    """
    items = _read_pickle(file_path)
    if items and isinstance(items[0], _PickledTransition):
        return _cut_into_episodes(read_pickled_transitions(file_path))
    return [_transitions_of(item, file_path) for item in items]


def _cut_into_episodes(transitions: list[Transition]) -> list[list[Transition]]:
    episodes: list[list[Transition]] = [[]]
    for transition in transitions:
        episodes[-1].append(transition)
        if transition.game_over:
            episodes.append([])
    return [episode for episode in episodes if episode]


def _read_pickle(file_path: str | os.PathLike) -> list:
    try:
        with open(file_path, "rb") as file:
            content = _DataUnpickler(file).load()
    except OSError as error:
        raise CoachError(f"cannot read '{file_path}': {error.strerror}") from None
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, TypeError, ValueError) as error:
        raise CoachError(f"'{file_path}' is not a replay buffer that Coach pickled: {error}") from None
    if not isinstance(content, (list, collections.deque)):
        raise CoachError(f"'{file_path}' contains a {type(content).__name__}, not a list of transitions or episodes")
    return list(content)


def _transitions_of(item: Any, file_path: Any) -> list[Transition]:
    if isinstance(item, _PickledTransition):
        return [_transition_of(vars(item), file_path)]
    if isinstance(item, _PickledEpisode):
        return [part for inner in vars(item).get("transitions", []) for part in _transitions_of(inner, file_path)]
    raise CoachError(f"'{file_path}' contains a {type(item).__name__} instead of a transition or an episode")


def _transition_of(attributes: dict[str, Any], file_path: Any) -> Transition:
    def attribute(name: str) -> Any:
        return attributes[name] if name in attributes else attributes[f"_{name}"]

    try:
        transition = Transition(
            state=_state_of(attribute("state")),
            action=attribute("action"),
            reward=attribute("reward"),
            next_state=_state_of(attribute("next_state")),
            game_over=attribute("game_over"),
            info=attributes.get("info"),
        )
    except (KeyError, AttributeError) as error:
        raise CoachError(f"'{file_path}' contains a transition without {error}") from None
    transition._n_step_discounted_rewards = attributes.get("_n_step_discounted_rewards")
    return transition


def _state_of(state: dict[str, Any]) -> dict[str, Any]:
    return {name: _stacked(value) if isinstance(value, _PickledStack) else value for name, value in state.items()}


def _stacked(stack: _PickledStack) -> np.ndarray:
    attributes = vars(stack)
    axis = attributes["axis"] if "axis" in attributes else attributes.get("_axis", -1)
    return np.stack(list(attributes["history"]), axis=axis)
