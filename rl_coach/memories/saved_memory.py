"""A reader of saved memories (``.npz``). It checks all columns before it uses them."""

from __future__ import annotations

import os
from typing import Any, Iterator

import numpy as np

from rl_coach.memories.memory import are_lengths
from rl_coach.memories.transition_store import TransitionStore
from rl_coach.spaces import check_size
from rl_coach.utilities.files import read_data
from rl_coach.utilities.plain_data import DAMAGE
from rl_coach.utilities.sound_values import NUMBERS, is_count
from rl_coach.utils import CoachError

_KIND = "a memory that Coach saved"
_OPTIONAL = {"returns": "f", "has_return": "b", "n_steps": "iu"}
_KINDS_OF_COLUMNS = {"reward": "iuf", "game_over": "b", "terminated": "b", **_OPTIONAL}


def read_saved(path: str | os.PathLike) -> tuple[TransitionStore, np.ndarray | None]:
    """Read the transitions of a file that a memory's ``save`` has written, and the lengths [E] of the episodes. The
    lengths are None if the file has none.

    :raises CoachError: if the file cannot be read, is damaged, or is not a saved memory
    """
    content = read_data(path, _KIND)
    try:
        for fault in _faults(content):
            raise CoachError(f"'{path}' is not {_KIND}, or it is damaged: {fault}")
        store = TransitionStore(capacity=None)
        store.set_state(content["store"])
        lengths = content.get("episode_lengths")
        # read one row now, so that columns that do not fit together cause an error here and not later
        store.batch_at(np.arange(min(store.length, 1)))
    except CoachError:
        # this is a ValueError too, but its message is already complete
        raise
    except (*DAMAGE, MemoryError) as error:
        raise CoachError(f"'{path}' is not {_KIND}, or it is damaged: {type(error).__name__} {error}") from None
    return store, lengths


def _faults(content: Any) -> Iterator[str]:
    """Yield the faults in the content of a file. After the first fault, later checks may raise other errors."""
    store = content.get("store") if isinstance(content, dict) else None
    if not isinstance(store, dict):
        yield "it has no 'store'"
        return
    counts = {name: store.get(name) for name in ("capacity", "first_serial", "length")}
    for name, count in counts.items():
        if not is_count(count):
            yield f"'{name}' is not a count"
    length = store["length"]
    if length > store["capacity"]:
        yield "'length' is larger than 'capacity'"
    lengths = content.get("episode_lengths")
    if lengths is not None and not are_lengths(lengths, length):
        yield f"'episode_lengths' does not fit {length} transitions"
    if length:
        yield from _faults_of_columns(store, length)


def _faults_of_columns(store: dict[str, Any], count: int) -> Iterator[str]:
    observations, info = store.get("observations"), store.get("info")
    if not isinstance(observations, dict) or not observations or not isinstance(info, dict):
        yield "it has no 'observations', or no 'info'"
        return
    for name, one in observations.items():
        is_dict = isinstance(one, dict)
        if is_dict and "frames" in one:
            yield from _faults_of_frames(name, one, count)
        elif is_dict and "ones" in one:
            yield from _faults_of_ones(name, one, count)
        elif not is_dict or not all(_is_stored(one.get(part), count) for part in ("states", "next_states")):
            yield f"the observation '{name}' does not have {count} rows of numbers"
        elif np.shape(one["states"]) != np.shape(one["next_states"]):
            yield f"the observation '{name}' has states and next states of different shapes"
    if "returns" not in store:
        yield "it has no 'returns'"
    if not _is_stored(store.get("action"), count):
        yield f"'action' does not have {count} values"
    for name, kinds in _KINDS_OF_COLUMNS.items():
        column: Any = store.get(name)
        if column is None and name in _OPTIONAL:
            continue
        if not _is_column(column, count) or column.dtype.kind not in kinds or (column.ndim != 1 and name != "reward"):
            yield f"'{name}' does not have {count} numbers"
    for name, one in info.items():
        is_known = isinstance(one, dict) and "values" in one and "present" in one
        present = one["present"] if is_known else None
        if not is_known or not (present is None or (_is_column(present, count) and present.dtype.kind == "b")):
            yield f"the info '{name}' does not have {count} transitions"
        elif isinstance(one["values"], np.ndarray) and not _is_column(one["values"], count):
            yield f"the info '{name}' does not have {count} values"


def _faults_of_frames(name: str, one: dict[str, Any], count: int) -> Iterator[str]:
    frames: Any = one["frames"]
    indices: Any = one.get("indices")
    axis: Any = one.get("axis")
    is_ring = _is_numeric(frames) and frames.ndim > 1 and len(frames)
    is_table = _is_column(indices, count) and indices.ndim == 2 and indices.shape[1] % 2 == 0 and indices.shape[1]
    if not is_ring or not is_table or indices.dtype.kind not in "iu":
        yield f"the observation '{name}' has no frames"
    elif indices.min() < 0 or indices.max() >= len(frames):
        yield f"the observation '{name}' refers to missing frames"
    elif not (axis is None or (type(axis) is int and -frames.ndim <= axis < frames.ndim)):
        yield f"the observation '{name}' is stacked along an axis that does not exist"
    elif axis is None and indices.shape[1] != 2:
        yield f"the observation '{name}' has several frames, but no axis for them"


def _faults_of_ones(name: str, one: dict[str, Any], count: int) -> Iterator[str]:
    places: tuple[Any, Any] = (one["ones"], one.get("next_ones"))
    length: Any = one.get("length")
    if not all(_is_column(part, count) and part.ndim == 2 and part.dtype.kind in "iu" for part in places):
        yield f"the observation '{name}' does not have {count} rows of positions"
    elif places[0].shape != places[1].shape or not is_count(length):
        yield f"the observation '{name}' has states and next states of different shapes"
    elif any(part.min() < 0 or part.max() >= length for part in places):
        yield f"the observation '{name}' has ones beyond its {length} numbers"
    else:
        # a small file could name a huge length, and the restored vectors would fill the machine's memory
        check_size((length,))


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0 and value.dtype.kind in NUMBERS


def _is_column(value: Any, count: int) -> bool:
    return _is_numeric(value) and len(value) == count and value.size > 0


def _is_stored(value: Any, count: int) -> bool:
    """True for rows of numbers, and for objects of ``plain_column``, which are checked when they are restored."""
    return isinstance(value, (dict, list)) or _is_column(value, count)
