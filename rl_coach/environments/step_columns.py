"""Answers of several copies of an environment as columns, with one row for each copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from rl_coach.core_types import EnvResponse, StateType


@dataclass
class StepColumns:
    """Answers of all N copies to one action each. The arrays belong to the caller: no later step writes into them.

    :ivar states: the states after the actions, [N, ...] each. The row of an episode that ended is its last state, never
        the first state of the next episode
    :ivar rewards: [N] float64
    :ivar terminated: [N] bool, the episode ended in the environment itself
    :ivar truncated: [N] bool, a limit on the length ended the episode, and the episode did not terminate
    :ivar infos: an array [N] for each key of the infos, as a masked array if some copies do not have the key
    :ivar goals: [N, ...], the current goals; None for environments without goals
    """

    states: dict[str, np.ndarray]
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    infos: Mapping[str, np.ndarray]
    goals: np.ndarray | None

    @classmethod
    def of(cls, responses: Sequence[EnvResponse], states: dict[str, np.ndarray] | None = None) -> StepColumns:
        """The columns of single answers. :param states: the states of the answers as columns; None stacks the states"""
        has_goals = responses[0].goal is not None
        terminated = np.array([response.terminated for response in responses], np.bool_)
        return cls(
            stack_states([response.next_state for response in responses]) if states is None else states,
            np.array([response.reward for response in responses], np.float64),
            terminated,
            np.array([response.game_over for response in responses], np.bool_) & ~terminated,
            InfoColumns.of([response.info for response in responses]),
            np.array([response.goal for response in responses]) if has_goals else None,
        )

    def responses(self) -> list[EnvResponse]:
        """The single answers. Their arrays are rows of the columns."""
        states = [dict(zip(self.states, row)) for row in zip(*self.states.values())]
        ends = self.terminated | self.truncated
        goals = [None] * len(states) if self.goals is None else list(self.goals)
        infos = info_rows(self.infos, len(states))
        columns = (states, self.rewards.tolist(), ends.tolist(), infos, goals, self.terminated.tolist())
        return [EnvResponse(*row) for row in zip(*columns)]


def stack_states(states: Sequence[StateType]) -> dict[str, np.ndarray]:
    """[N, ...] the columns of N states."""
    return {name: np.array([state[name] for state in states]) for name in states[0]}


class InfoColumns(Mapping[str, np.ndarray]):
    """Columns of single infos. A column is made at its first use, because few columns are used.

    :param rows: the infos
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]]):
        self._rows = rows
        self._names = dict.fromkeys(name for row in rows for name in row)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, np.ndarray]:
        """The columns of the infos; an empty dict if all infos are empty."""
        return cls(rows) if any(rows) else {}

    def __getitem__(self, name: str) -> np.ndarray:
        present = [name in row for row in self._rows]
        if True not in present:
            raise KeyError(name)
        example = self._rows[present.index(True)][name]
        return masked_where_absent(_array_of([row.get(name, example) for row in self._rows]), np.array(present))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def masked_where_absent(column: np.ndarray, present: np.ndarray) -> np.ndarray:
    """A column, masked in the rows that have no value.

    :param column: [N, ...]
    :param present: [N] bool
    :return: the column itself if all rows have one; otherwise a masked array
    """
    if present.all():
        return column
    absent = ~present.reshape(-1, *(1 for _ in column.shape[1:]))
    return np.ma.MaskedArray(column, np.broadcast_to(absent, column.shape))


def _array_of(values: list[Any]) -> np.ndarray:
    """Values as an array: [N, ...] if they are numbers of one shape, otherwise [N] with the values as objects."""
    are_numbers = all(isinstance(value, (int, float, np.generic, np.ndarray)) for value in values)
    if are_numbers and len({np.shape(value) for value in values}) == 1:
        column = np.asarray(values)
        if column.dtype.kind in "biuf":
            return column
    objects = np.empty(len(values), object)
    for index, value in enumerate(values):
        objects[index] = value
    return objects


def info_rows(columns: Mapping[str, np.ndarray], count: int) -> list[dict[str, Any]]:
    """The info of each copy. :param count: N"""
    rows: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, column in columns.items():
        indices: Any = range(count)
        if isinstance(column, np.ma.MaskedArray):
            indices = np.flatnonzero(~np.ma.getmaskarray(column).reshape(count, -1).all(axis=1))
        values = np.ma.getdata(column)
        for index in indices:
            rows[index][name] = values[index]
    return rows
