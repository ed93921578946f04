"""Sequences of steps for recurrent networks: cut out of what a memory holds, with the state that acted."""

from __future__ import annotations

from typing import Iterable

import numpy as np

from rl_coach.core_types import Batch
from rl_coach.utils import CoachError

STORED_STATE = "recurrent_state_"
"""Beginning of the names of a transition's info that hold the recurrent state before its action."""


def stored_state(name: str) -> str:
    """The key of a transition's info that holds a part of the recurrent state before its action."""
    return f"{STORED_STATE}{name}"


def stored_states(batch: Batch, names: Iterable[str]) -> dict[str, np.ndarray]:
    """The recurrent state before each row's action, [B, size] for each of its parts.

    :raises CoachError: a transition has none
    """
    found = {}
    for name in names:
        column = batch.info_columns.get(stored_state(name))
        if column is None or np.ma.is_masked(column):
            raise CoachError(
                "the memory holds transitions without the recurrent state that acted, such as recorded ones: "
                "set middleware_parameters to FCMiddlewareParameters to learn from them"
            )
        found[name] = np.ma.getdata(column)
    return found


def rows_of(sequences: np.ndarray, length: int) -> np.ndarray:
    """[K, S * L], the rows of each update's sequences [K, S], of which -1 is none."""
    rows = sequences[..., None] * np.int32(length) + np.arange(length, dtype=np.int32)
    return np.where(sequences[..., None] < 0, np.int32(-1), rows).reshape(len(sequences), -1)


class Sequences:
    """The rows of whole episodes cut into sequences of one length, which begin anew with each episode.

    The last sequence of an episode may be shorter; its last row fills it up, with a weight of 0.

    :param ends: [E] the last row of each episode; the episodes lie one after the other
    :param length: L, the rows of a sequence

    :ivar starts: [S] the first row of each sequence
    """

    def __init__(self, ends: np.ndarray, length: int):
        firsts = np.concatenate([[0], ends[:-1] + 1])
        each = [np.arange(first, end + 1, length) for first, end in zip(firsts, ends)]
        last = np.repeat(ends, [len(starts) for starts in each])[:, None]
        self.starts = np.concatenate(each)
        rows = self.starts[:, None] + np.arange(length)
        self._is_present = rows <= last
        self._rows = np.minimum(rows, last)

    def cut(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """[S, L, ...] each, of columns [N, ...]."""
        return {name: column[self._rows] for name, column in columns.items()}

    def joined(self, column: np.ndarray) -> np.ndarray:
        """[N, ...], of a column [S, L, ...]."""
        return column[self._is_present]

    def learning_columns(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """[S * L, ...] each, sequence after sequence, with weights of 0 where a sequence is filled up."""
        flat = {name: column[self._rows.ravel()] for name, column in columns.items()}
        return {**flat, "weights": flat["weights"] * self._is_present.ravel()}
