"""Reading and writing of data sets: CSV in Coach's layout, saved memories, pickles of Coach 1, and Minari's data
sets.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any, Callable

import numpy as np

from rl_coach.core_types import CsvDataset, PickledReplayBuffer
from rl_coach.installation import install_command
from rl_coach.memories.coach_pickles import read_pickled_episodes
from rl_coach.memories.csv_episodes import read_csv, write_csv
from rl_coach.memories.data_set import DataSet
from rl_coach.memories.saved_memory import read_saved
from rl_coach.utilities.plain_data import DAMAGE
from rl_coach.utilities.sound_values import NUMBERS
from rl_coach.utils import CoachError

MINARI = "minari:"
_LARGEST_NUMBER = 8  # bytes
_PICKLES = (".p", ".pkl", ".pickle")
_FORMS = f"FILE.csv, FILE.npz (a saved memory), FILE.p (Coach's pickle) or {MINARI}ID"


def _minari_files() -> Any:
    try:
        from rl_coach.memories import minari_files
    except ModuleNotFoundError as error:
        if error.name not in ("minari", "h5py"):
            raise
        raise CoachError(f"data sets of Minari need '{error.name}': {install_command('minari')}") from error
    return minari_files


def read(place: str | os.PathLike) -> DataSet:
    """Read a data set.

    :param place: a CSV file in Coach's layout, a file that a memory's ``save`` has written (``.npz``), a replay buffer
        that Coach 1 pickled (``.p``, ``.pkl``, ``.pickle``), or ``minari:ID`` for a data set in Minari's directory
    :raises CoachError: if the data set does not exist, has another format, or has no steps
    """
    text = os.fspath(place)
    if text.startswith(MINARI):
        return _checked(_minari_files().read(text.removeprefix(MINARI)), text)
    suffix = pathlib.Path(text).suffix.lower()
    readers: dict[str, Callable[[str], DataSet]] = {
        ".csv": _read_csv, ".npz": _read_memory, **dict.fromkeys(_PICKLES, _read_pickle)
    }  # fmt: skip
    if suffix not in readers:
        raise CoachError(f"'{text}' is not a data set that can be read: use {_FORMS}")
    return _checked(readers[suffix](text), text)


def _checked(data_set: DataSet, place: str) -> DataSet:
    """Return the data set, if all columns consist of numbers that are finite in float32. (An agent checks the values
    against its spaces when it loads the data set.)
    """
    columns = data_set.columns
    named = {**{f"state '{name}'": column for name, column in columns.state_columns.items()},
             **{f"next state '{name}'": column for name, column in columns.next_state_columns.items()},
             "action": columns.action_column, "reward": columns.reward_column}  # fmt: skip
    for name, column in named.items():
        array = np.asarray(column)
        is_number = array.dtype.kind in NUMBERS and array.dtype.itemsize <= _LARGEST_NUMBER
        if not is_number or not array.size or (name == "reward" and array.ndim != 1):
            raise CoachError(
                f"'{place}': the {name} of a step is {array.dtype} of the shape {array.shape[1:]}; use numbers, "
                f"at least one in each step, and exactly one for the reward"
            )
        # agents compute in float32, in which numbers above this limit are infinite
        if array.dtype.kind == "f" and not (is_finite := np.abs(array) <= np.finfo(np.float32).max).all():
            row = int(np.argmin(is_finite.reshape(len(array), -1).all(axis=1)))
            raise CoachError(f"'{place}': the {name} of step {row} is not finite as float32")
    return data_set


def named(place: Any) -> Any:
    """Add the format to a path of recorded data: ``CsvDataset`` for ``.csv``, ``PickledReplayBuffer`` for pickles of
    Coach 1.

    :return: the path with its format; ``place`` itself if it is not a path or has another ending
    """
    if not isinstance(place, (str, os.PathLike)) or str(place).startswith(MINARI):
        return place
    suffix = pathlib.Path(place).suffix.lower()
    if suffix == ".csv":
        return CsvDataset(os.fspath(place))
    return PickledReplayBuffer(os.fspath(place)) if suffix in _PICKLES else place


def require_new(place: str | os.PathLike) -> None:
    """Check that a new data set with this name can be written.

    :raises CoachError: if the format cannot be written, or a data set with this name exists
    """
    text = os.fspath(place)
    if text.startswith(MINARI):
        _minari_files().require_new(text.removeprefix(MINARI))
    elif not text.lower().endswith(".csv"):
        raise CoachError(f"'{text}' is not a data set that can be written: use FILE.csv or {MINARI}ID")
    elif os.path.exists(text):
        raise CoachError(f"'{text}' exists already: choose another name")


def write(data_set: DataSet, place: str | os.PathLike) -> None:
    """Write a data set as CSV in Coach's layout, or in Minari's format (``minari:ID``).

    :raises CoachError: if the data set exists already, cannot be written, or has values that the format does not
        support
    """
    require_new(place)
    text = os.fspath(place)
    if text.startswith(MINARI):
        _minari_files().write(data_set, text.removeprefix(MINARI))
    else:
        write_csv(text, data_set.columns, data_set.episode_lengths, data_set.is_raw)


def _read_csv(path: str) -> DataSet:
    columns, lengths, is_raw = read_csv(CsvDataset(path))
    if not len(columns):
        raise CoachError(f"'{path}' has no step that has a next state")
    return DataSet(columns, lengths, is_raw)


def _read_pickle(path: str) -> DataSet:
    episodes = read_pickled_episodes(path)
    if not any(episodes):
        raise CoachError(f"'{path}' has no steps")
    try:
        # not raw, because Coach 1 stored transitions after the agent's filters
        return DataSet.of_episodes([episode for episode in episodes if episode], False)
    except (*DAMAGE, MemoryError) as error:
        raise CoachError(f"'{path}' has steps of different forms: {type(error).__name__} {error}") from None


def _read_memory(path: str) -> DataSet:
    store, lengths = read_saved(path)
    columns: Any = store.batch_at(np.arange(store.length))
    if not store.length:
        raise CoachError(f"'{path}' has no steps")
    if columns.n_step_column is not None:
        raise CoachError(f"'{path}' has rewards that are sums over several steps: record the steps with n_step = 1")
    if lengths is None:
        # the last row is an end too: the agent may have saved its memory within an episode
        ends = np.flatnonzero(np.append(columns.game_over_column[:-1], True)) + 1
        lengths = np.diff(ends, prepend=0)
    if not len(lengths):
        raise CoachError(f"'{path}' has no complete episode")
    return DataSet(columns[: int(np.sum(lengths))], np.asarray(lengths), is_raw=False)
