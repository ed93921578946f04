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
from typing import Any, Iterator

import numpy as np

from rl_coach.core_types import CsvDataset, Episode, Transition
from rl_coach.utils import CoachError

_REQUIRED = ("action", "all_action_probabilities", "episode_id", "reward")
_STATE_PREFIX = "state_feature"


def read_csv_episodes(dataset: CsvDataset, input_filter: Any) -> Iterator[Episode]:
    """The episodes of a CSV file in Coach's layout.

    A row is a step: ``episode_id``, ``action`` (a number), ``reward``, ``all_action_probabilities`` (a list such as
    ``[0.5, 0.5]``) and the state's elements ``state_feature_0``, ``state_feature_1``, … in the order of the header;
    other columns (``episode_name``, ``transition_number``) are not read. The state of an episode's last row is
    the last transition's next state, so that an episode of n rows has n - 1 transitions and one of a single row none.

    :param input_filter: applied to each episode's transitions, after a reset; None for none
    :raises CoachError: no such file, a column missing, or a cell that is not what it should be
    """
    with _opened(dataset.filepath) as file:
        reader = csv.DictReader(file)
        header = reader.fieldnames or []
        features = [name for name in header if name.startswith(_STATE_PREFIX)]
        missing = [name for name in _REQUIRED if name not in header] + ([] if features else [f"{_STATE_PREFIX}_0"])
        if missing:
            raise CoachError(f"'{dataset.filepath}' has no column {', '.join(repr(name) for name in missing)}")
        rows_by_episode: dict[str, list[_Row]] = {}
        for row in reader:
            parsed = _parse(row, features, f"'{dataset.filepath}', line {reader.line_num}")
            rows_by_episode.setdefault(row["episode_id"], []).append(parsed)
    for rows in rows_by_episode.values():
        if len(rows) > 1:
            yield _episode(rows, dataset.is_episodic, input_filter)


_Row = collections.namedtuple("_Row", ["state", "action", "reward", "probabilities"])


def _opened(path: str) -> Any:
    try:
        return open(path, newline="", encoding="utf-8")
    except OSError as error:
        raise CoachError(f"cannot read '{path}': {error.strerror}") from None


def _parse(row: dict[str, str], features: list[str], place: str) -> _Row:
    try:
        return _Row(
            state=np.array([float(row[name]) for name in features]),
            action=int(float(row["action"])),
            reward=float(row["reward"]),
            probabilities=np.asarray(ast.literal_eval(row["all_action_probabilities"]), dtype=np.float64),
        )
    except (ValueError, TypeError, SyntaxError) as error:
        raise CoachError(f"{place}: {error}") from None


def _episode(rows: list[_Row], is_episodic: bool, input_filter: Any) -> Episode:
    transitions = [
        Transition(
            state={"observation": row.state},
            action=row.action,
            reward=row.reward,
            next_state={"observation": following.state},
            game_over=False,
            info={"all_action_probabilities": row.probabilities},
        )
        for row, following in itertools.pairwise(rows)
    ]
    if input_filter is not None:
        input_filter.reset()
        transitions = input_filter.filter(transitions, deep_copy=False)
    if is_episodic:
        transitions[-1].game_over = transitions[-1].terminated = True
    episode = Episode()
    for transition in transitions:
        episode.insert(transition)
    return episode


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
