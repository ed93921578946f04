"""Sequences of steps for recurrent networks. They start from the recurrent state that was stored while acting."""

from __future__ import annotations

from typing import Any, Iterable

import numpy as np

from rl_coach.core_types import Batch
from rl_coach.utils import CoachError

STORED_STATE = "recurrent_state_"
"""Prefix of the info keys that hold the recurrent state before a transition's action."""


def stored_state(name: str) -> str:
    """The info key of a part of the recurrent state before a transition's action."""
    return f"{STORED_STATE}{name}"


def stored_states(batch: Batch, names: Iterable[str]) -> dict[str, np.ndarray]:
    """The recurrent state before each row's action, [B, size] for each of its parts.

    :raises CoachError: if a transition has no stored state
    """
    found = {}
    for name in names:
        column = batch.info_columns.get(stored_state(name))
        if column is None or np.ma.is_masked(column):
            raise CoachError(
                "some transitions in the memory, such as recorded ones, have no recurrent state of the network: to "
                "learn from them, set middleware_parameters to FCMiddlewareParameters()"
            )
        found[name] = np.ma.getdata(column)
    return found


def rows_of(sequences: np.ndarray, length: int) -> np.ndarray:
    """[K, S * L], the rows of the sequences of each update.

    :param sequences: [K, S], the numbers of the sequences; -1 pads an update and gives rows of -1
    :param length: L, the rows of a sequence
    """
    # 32 bits: compiled steps are made for rows of this type
    rows = sequences[..., None] * np.int32(length) + np.arange(length, dtype=np.int32)
    return np.where(sequences[..., None] < 0, np.int32(-1), rows).reshape(len(sequences), -1)


def sequence_places(ops: Any, is_last: Any, length: int) -> tuple[Any, Any]:
    """The places where episodes are cut into sequences. The episodes follow each other in the rows. Each episode begins
    a new sequence.

    :param ops: NumPy, or array operations with the names of ``keras.ops``
    :param is_last: [N] bool, True in the last row of each episode
    :param length: L, the rows of a sequence
    :return: [N] bool, True in the first row of each sequence; and [N] int, the index of the last row of each row's
        episode
    """
    rows, counted = ops.arange(len(is_last)), ops.where(is_last, 1, 0)
    episodes = ops.cumsum(counted) - counted
    # the array keeps N elements, because a compiled function needs fixed shapes: the last rows come first, then N
    ends = ops.sort(ops.where(is_last, rows, len(is_last)))
    before = ops.take(ends, ops.maximum(episodes - 1, 0), axis=0)
    firsts = ops.where(episodes > 0, before + 1, 0)
    return (rows - firsts) % length == 0, ops.take(ends, episodes, axis=0)


def sequence_rows(ops: Any, starts: Any, lasts: Any, length: int) -> tuple[Any, Any]:
    """[S, L], the rows of sequences; and [S, L] bool, False for padding. A shorter sequence is padded with the last row
    of its episode.

    :param ops: as for ``sequence_places``
    :param starts: [S], the first row of each sequence
    :param lasts: [S], the last row of its episode
    """
    rows, lasts = starts[:, None] + ops.arange(length), lasts[:, None]
    return ops.minimum(rows, lasts), rows <= lasts


class Sequences:
    """The rows of whole episodes, cut into sequences of one length. Each episode begins a new sequence.

    The last sequence of an episode may be shorter. It is padded with its last row, with a weight of 0.

    :param ends: [E] the last row of each episode; the episodes follow each other
    :param length: L, the rows of a sequence

    :ivar starts: [S] the first row of each sequence
    """

    def __init__(self, ends: np.ndarray, length: int):
        is_last = np.zeros(ends[-1] + 1, bool)
        is_last[ends] = True
        begins, lasts = sequence_places(np, is_last, length)
        self.starts = np.flatnonzero(begins)
        self._rows, self._is_present = sequence_rows(np, self.starts, lasts[begins], length)

    def cut(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Cut columns [N, ...] into sequences [S, L, ...]."""
        return {name: column[self._rows] for name, column in columns.items()}

    def joined(self, column: np.ndarray) -> np.ndarray:
        """Join a column of sequences [S, L, ...] to [N, ...]: the inverse of ``cut``."""
        return column[self._is_present]

    def learning_columns(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns as [S * L, ...], sequence after sequence. The padding has weights of 0."""
        flat = {name: column[self._rows.ravel()] for name, column in columns.items()}
        return {**flat, "weights": flat["weights"] * self._is_present.ravel()}
