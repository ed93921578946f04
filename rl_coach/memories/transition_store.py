"""A store of transitions in columns. All memories use this store."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.core_types import Batch, Transition
from rl_coach.memories.columns import (
    ArrayColumn,
    FrameObservations,
    FrameStacks,
    VectorObservations,
    moved,
    observations_for,
    one_hot_rows,
    plain_column,
    restored_column,
)
from rl_coach.utils import CoachError, did_you_mean

_FIRST_CAPACITY = 1024
_KINDS = {"game_over": "biu", "terminated": "biu", "n_step_discounted_rewards": "biuf", "n_steps": "iu"}


class InfoColumn:
    """The column of one key of the transitions' info. It also records which transitions have the key.

    :ivar default: value for new rows without the key; None for no value
    """

    def __init__(self, name: str, capacity: int, example: Any):
        # An environment may change the type and the shape of an info from step to step.
        self.column = ArrayColumn(f"info['{name}']", capacity, example, may_vary=True)
        self.present: np.ndarray | None = None
        self.default: Any = None

    def put_default(self, rows: Any) -> None:
        """Write the default to rows without the key."""
        if self.default is None:
            self.put_missing(rows)
            return
        self.column.values[rows] = self.default
        if self.present is not None:
            self.present[rows] = True

    def put_missing(self, rows: Any) -> None:
        """Mark rows as rows without the key."""
        if self.present is None:
            self.present = np.ones(len(self.column.values), dtype=bool)
        self.present[rows] = False
        self.column.put_missing(rows)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The values [B, ...] of rows. If there may be rows without the key, the array is masked in these rows."""
        values = self.column.take(rows)
        if self.present is None:
            return values
        absent = ~self.present[rows].reshape(-1, *(1 for _ in values.shape[1:]))
        return np.ma.MaskedArray(values, np.broadcast_to(absent, values.shape))

    def has(self, row: int) -> bool:
        """True if a row has the key."""
        return self.present is None or bool(self.present[row])

    def move(self, sources: np.ndarray, targets: np.ndarray, capacity: int | None = None) -> None:
        """Copy rows to other rows."""
        self.column.move(sources, targets, capacity)
        if self.present is not None:
            self.present = moved(self.present, sources, targets, capacity, self.column.name)


class TransitionStore:
    """Stores transitions in columns, oldest first. The rows of the columns form a ring: new transitions overwrite the
    oldest.

    A transition has three numbers. Its *position* counts from the oldest stored transition. Its *serial number* is the
    position plus ``first_serial``, and never changes. Its *row* in the columns is the serial number modulo the
    capacity. The operating system allocates memory when rows are written.

    :param capacity: largest number of transitions; None if the store grows as needed
    :param drop_oldest: a function that makes space. Its argument is the number of new transitions. It must remove at
        least the oldest transition with ``drop_first``. None to remove exactly as many transitions as needed
    """

    def __init__(self, capacity: int | None, drop_oldest: Callable[[int], None] | None = None):
        self.grows = capacity is None
        self.capacity = _FIRST_CAPACITY if capacity is None else capacity
        self.contiguous_frames = True
        self._drop_oldest = drop_oldest or self.drop_first
        self._reset()

    def _reset(self) -> None:
        self.first_serial = 0
        self.length = 0
        self.observations: dict[str, VectorObservations | FrameObservations] = {}
        self.info: dict[str, InfoColumn] = {}
        self.returns: np.ndarray | None = None  # None as long as no return is known
        # A separate column, because a known return may be NaN. The update that learns from it then reports the error.
        self._has_return = np.zeros(0, dtype=bool)  # True for rows with a known return
        self._forgotten_returns = np.zeros(0)
        self._forgotten_info: dict[str, InfoColumn] = {}
        self.n_steps: np.ndarray | None = None  # None as long as all transitions have one step

    def drop_oldest(self, count: int = 1) -> None:
        """Remove at least the oldest transition, to make space for ``count``. The caller repeats the call if needed."""
        self._drop_oldest(count)

    def drop_first(self, count: int) -> None:
        """Remove the ``count`` oldest transitions."""
        self.first_serial += count
        self.length -= count

    def drop_last(self, count: int) -> None:
        """Remove the ``count`` newest transitions."""
        self.length -= count

    def clear(self) -> None:
        """Remove all transitions. The next transition is stored in the first row."""
        self.first_serial = self.length = 0
        # Arrays are kept for later use: new arrays might be filled with zeros, which would occupy memory at once.
        if self.returns is not None:
            self._forgotten_returns = self.returns
        self._forgotten_info |= self.info
        self.returns = self.n_steps = None
        self.info = {}
        for column in self.observations.values():
            column.clear()

    def rows(self, positions: Any) -> Any:
        """Convert positions (an int or an array) to rows."""
        head = self.first_serial % self.capacity
        # Positions are rows until the first transition is removed; then each sample saves two operations.
        return (positions + head) % self.capacity if head else positions

    def all_rows(self) -> np.ndarray:
        """The rows of all transitions, oldest first."""
        return self.rows(np.arange(self.length))

    # Writing

    def append(self, transition: Transition) -> int:
        """Store a copy of one transition. If there is no space, the oldest transitions are removed.

        :return: the row of the transition
        :raises CoachError: if the observations have other names or shapes than the stored observations
        """
        # The first transition creates the columns, because shapes and dtypes are unknown before.
        if not self.observations:
            self._create_columns(transition.state or {}, transition.action, transition.reward)
        if self.length == self.capacity:
            self.make_room(1)
        serial = self.first_serial + self.length
        row = serial % self.capacity
        state, next_state = transition.state or {}, transition.next_state or {}
        if len(state) != len(self.observations):
            self._refuse_observations(state)
        try:
            for name, column in self.observations.items():
                column.put(row, serial, state[name], next_state[name])
        except KeyError:
            self._refuse_observations(next_state if state.keys() == self.observations.keys() else state)
        self.actions.put(row, transition.action)
        self.rewards.put(row, transition.reward)
        self.game_overs[row] = transition.game_over
        self.terminateds[row] = transition.terminated
        if transition.info or self.info:
            self._put_info(row, transition.info)
        value = transition._n_step_discounted_rewards
        if value is not None or self.returns is not None:
            self.put_returns(row, value)
        if transition.n_steps != 1 or self.n_steps is not None:
            self._put_n_steps(row, transition.n_steps)
        # The length is increased last, because the lines above may fail or remove old transitions.
        self.length += 1
        return row

    def _refuse_observations(self, state: dict[str, Any]) -> None:
        held = list(self.observations)
        odd = [name for name in state if name not in self.observations] or [n for n in held if n not in state]
        hint = did_you_mean(odd[0], held)
        raise CoachError(f"the memory holds the observations {held}, but this transition has {list(state)}{hint}")

    def _create_columns(self, state: dict[str, Any], action: Any, reward: Any) -> None:
        if not state:
            raise CoachError("a transition without a state cannot be stored")
        capacity = self.capacity
        self.actions = ArrayColumn("action", capacity, action)
        # Always float64: with the dtype of a first reward that is an integer, later rewards would be rounded.
        self.rewards = ArrayColumn("reward", capacity, reward, dtype=np.float64)
        self.game_overs = np.zeros(capacity, dtype=bool)
        self.terminateds = np.zeros(capacity, dtype=bool)
        self.observations = {name: observations_for(name, capacity, value, self) for name, value in state.items()}

    def make_room(self, count: int) -> None:
        """Make space for ``count`` transitions, or grow. :raises CoachError: if ``count`` exceeds the capacity"""
        if not self.grows and count > self.capacity:
            raise CoachError(f"{count} transitions at once do not fit into memory.max_size ({self.capacity})")
        if self.grows and self.length + count > self.capacity:
            # At least doubled, so that a growing store copies each row only a few times.
            self._grow(max(2 * self.capacity, self.length + count))
        while (excess := self.length + count - self.capacity) > 0:
            self.drop_oldest(excess)

    def _grow(self, capacity: int) -> None:
        sources = self.all_rows()
        serials = self.first_serial + np.arange(self.length)
        targets = serials % capacity
        self._move(sources, targets, serials, capacity)
        self.capacity = capacity

    def _move(self, sources: np.ndarray, targets: np.ndarray, serials: np.ndarray, capacity: int | None = None) -> None:
        for column in self.observations.values():
            column.move(sources, targets, serials, capacity)
        self.actions.move(sources, targets, capacity)
        self.rewards.move(sources, targets, capacity)
        for info in self.info.values():
            info.move(sources, targets, capacity)
        self.game_overs = moved(self.game_overs, sources, targets, capacity, "game_over")
        self.terminateds = moved(self.terminateds, sources, targets, capacity, "terminated")
        if self.returns is not None:
            self.returns = moved(self.returns, sources, targets, capacity, "returns")
            self._has_return = moved(self._has_return, sources, targets, capacity, "returns")
        if self.n_steps is not None:
            self.n_steps = moved(self.n_steps, sources, targets, capacity, "n_steps")

    def _put_info(self, row: int, info: dict[str, Any]) -> None:
        for name, value in info.items():
            column = self.info.get(name)
            if column is None:
                column = self._create_info(name, value)
            column.column.put(row, value)
            if column.present is not None:
                column.present[row] = True
        if len(info) != len(self.info):
            for name in self.info.keys() - info.keys():
                self.info[name].put_default(row)

    def _create_info(self, name: str, example: Any) -> InfoColumn:
        column = self._forgotten_info.pop(name, None)
        if column is None or not column.column.is_for(example, self.capacity):
            column = InfoColumn(name, self.capacity, example)
        column.present = column.default = None
        self.info[name] = column
        if self.length:
            column.put_missing(self.all_rows())
        return column

    def annotate(self, name: str, values: Any, default: Any = None) -> None:
        """Set one info value of all stored transitions. Old values are replaced.

        :param values: [length, ...], oldest first
        :param default: value for later transitions without the key; None for no value
        """
        values = np.asarray(values)
        if not values.ndim or len(values) != self.length or not self.length:
            found = len(values) if values.ndim else "no"
            raise CoachError(f"annotation '{name}' has {found} values, but the memory has {self.length} transitions")
        # Checkpoints can store Python's texts, but not NumPy's.
        if values.dtype.kind in "US":
            values = values.astype(object)
        if default is not None:
            values, default = _with_default(name, values, default)
        column = InfoColumn(name, self.capacity, values[0])
        column.column.put_many(self.all_rows(), values)
        column.default = default
        self.info[name] = column

    def replace_info(self, name: str, serials: np.ndarray, values: np.ndarray) -> None:
        """Replace one info value [N, ...] of the transitions with the serial numbers [N], except removed ones."""
        is_stored = (serials >= self.first_serial) & (serials < self.first_serial + self.length)
        self.info[name].column.put_many(serials[is_stored] % self.capacity, values[is_stored])

    def take_defaults(self, other: TransitionStore) -> None:
        """Copy the defaults of another store's annotations."""
        for name in self.info.keys() & other.info.keys():
            if (default := other.info[name].default) is not None:
                self.info[name].default = default

    def put_returns(self, rows: Any, values: Any) -> None:
        """Set the returns [B] of rows, masked where unknown; None if all are unknown."""
        if self.returns is None:
            self.returns = self._forgotten_returns
            if len(self.returns) != self.capacity:
                self.returns, self._has_return = np.zeros(self.capacity), np.zeros(self.capacity, dtype=bool)
            # An array from before ``clear`` still has old returns.
            self.returns[self.all_rows()], self._has_return[self.all_rows()] = np.nan, False
        are_known: Any = values is not None
        if isinstance(values, np.ma.MaskedArray):
            values, are_known = np.ma.getdata(values), ~np.ma.getmaskarray(values)
        self.returns[rows] = np.nan if values is None else values
        self._has_return[rows] = are_known

    def has_returns(self, rows: np.ndarray) -> bool:
        """True if the discounted returns of all these rows are known."""
        return self.returns is not None and bool(self._has_return.take(rows).all())

    def _returns_of(self, rows: np.ndarray) -> np.ndarray | None:
        """The returns of rows, [B], masked where a return is unknown; None if the store has no returns."""
        if self.returns is None:
            return None
        known = self._has_return[rows]
        return self.returns[rows] if known.all() else np.ma.MaskedArray(self.returns[rows], ~known)

    def _put_n_steps(self, rows: Any, values: Any) -> None:
        if self.n_steps is None:
            self.n_steps = np.ones(self.capacity, dtype=np.int32)
        self.n_steps[rows] = values

    def check(self, chunk: Batch) -> None:
        """Check that a chunk fits the stored columns, so that ``extend`` cannot fail half-way.

        :raises CoachError: if a column has missing rows, or another name, shape or kind of number than the stored
            column. If the store is empty, the rows are compared with the chunk's first row. The message names the
            column.
        """
        _check_rows(chunk)
        if not len(chunk):
            return
        # An empty store gets dtypes and shapes from the chunk's first row; the other rows must fit.
        if not self.observations:
            empty = TransitionStore(capacity=1)
            empty._create_from_chunk(chunk)
            empty.check(chunk)
            return
        for state in (chunk.state_columns, chunk.next_state_columns):
            if state.keys() != self.observations.keys():
                self._refuse_observations(state)
            for name, column in self.observations.items():
                column.check(state[name])
        self.actions.check(chunk.action_column)
        self.rewards.check(chunk.reward_column)

    def _create_from_chunk(self, chunk: Batch) -> None:
        first = {name: c[:1] if isinstance(c, FrameStacks) else c[0] for name, c in chunk.state_columns.items()}
        self._create_columns(first, chunk.action_column[0], chunk.reward_column[0])

    def extend(self, chunk: Batch) -> None:
        """Store the rows of a batch, in order. The result is the same as with ``append`` for each row, but this is much
        faster.

        Observations may be ``FrameStacks`` or arrays. In arrays, equal frames are found by their content. A masked
        entry of an info column (``numpy.ma``) means that this transition does not have the key.
        """
        if not self.grows and len(chunk) > self.capacity:
            # The last rows of the chunk would overwrite the others.
            chunk = chunk[len(chunk) - self.capacity :]
        if len(chunk) == 0:
            return
        if not self.observations:
            self._create_from_chunk(chunk)
        # All frames of a chunk must fit into the ring, otherwise they would overwrite each other.
        if self._exceeds_frames(chunk):
            half = len(chunk) // 2
            self.extend(chunk[:half])
            self.extend(chunk[half:])
            return
        self.make_room(len(chunk))
        positions = np.arange(self.length, self.length + len(chunk))
        self._put_chunk(positions + self.first_serial, chunk)
        self.length += len(chunk)

    def _exceeds_frames(self, chunk: Batch) -> bool:
        rings = {name: c for name, c in self.observations.items() if isinstance(c, FrameObservations)}
        return len(chunk) > 1 and any(
            ring.frames_needed(chunk.state_columns[name]) > ring.size
            for name, ring in rings.items()
            if name in chunk.state_columns
        )

    def _put_chunk(self, serials: np.ndarray, chunk: Batch) -> None:
        rows = serials % self.capacity
        for state in (chunk.state_columns, chunk.next_state_columns):
            if state.keys() != self.observations.keys():
                self._refuse_observations(state)
        for name, column in self.observations.items():
            column.put_many(rows, serials, chunk.state_columns[name], chunk.next_state_columns[name])
        self.actions.put_many(rows, chunk.action_column)
        self.rewards.put_many(rows, chunk.reward_column)
        self.game_overs[rows] = chunk.game_over_column
        self.terminateds[rows] = chunk.terminated_column
        self._put_info_chunk(rows, chunk.info_columns)
        if chunk.return_column is not None or self.returns is not None:
            self.put_returns(rows, chunk.return_column)
        if chunk.n_step_column is not None or self.n_steps is not None:
            self._put_n_steps(rows, 1 if chunk.n_step_column is None else chunk.n_step_column)

    def _put_info_chunk(self, rows: np.ndarray, info: dict[str, Any]) -> None:
        for name, values in info.items():
            given = np.ma.getdata(values) if isinstance(values, np.ndarray) else values
            # The data without the mask sets the dtype: a masked first value would be NaN, and the column would have
            # floats.
            column = self.info.get(name) or self._create_info(name, given[0])
            column.column.put_many(rows, given)
            if column.present is not None:
                column.present[rows] = True
            if isinstance(values, np.ma.MaskedArray):
                column.put_missing(rows[np.ma.getmaskarray(values).reshape(len(rows), -1).all(axis=1)])
        for name in self.info.keys() - info.keys():
            self.info[name].put_default(rows)

    def repeat(self, positions: np.ndarray) -> np.ndarray:
        """Store copies of transitions, after ``make_room``, and return their rows. Frames are shared."""
        sources = self.rows(positions)
        serials = self.first_serial + self.length + np.arange(len(positions))
        rows = serials % self.capacity
        self._move(sources, rows, serials)
        self.length += len(positions)
        return rows

    # Changing the order

    def remove(self, position: int) -> None:
        """Remove one transition. Unless it is the oldest transition, all columns are copied."""
        if position == 0:
            self.drop_first(1)
            return
        self.reorder(np.delete(np.arange(self.length), position))

    def reorder(self, positions: np.ndarray) -> None:
        """Keep only the transitions at ``positions``, in this order."""
        self.length, sources = len(positions), self.rows(positions)
        self._move(sources, self.all_rows(), self.first_serial + np.arange(self.length))

    # Reading

    def batch(self, rows: np.ndarray, info: dict[str, np.ndarray] | None = None) -> Batch:
        """Return the transitions in ``rows`` as new columns, with further info columns."""
        states, next_states = {}, {}
        for name, column in self.observations.items():
            states[name], next_states[name] = column.take(rows, self.contiguous_frames)
        columns = {name: column.column.take(rows) for name, column in self.info.items()} if self.info else {}
        if info is not None:
            columns.update(info)
        return Batch.from_columns(
            states,
            self.actions.values.take(rows, 0),
            self.rewards.values.take(rows, 0).astype(np.float32),
            self.game_overs.take(rows),
            next_states,
            self.terminateds.take(rows),
            self.returns.take(rows).astype(np.float32) if self.returns is not None and self.has_returns(rows) else None,
            None,
            columns,
            None if self.n_steps is None else self.n_steps.take(rows),
        )

    def batch_at(self, positions: np.ndarray) -> Batch:
        """Return the transitions at ``positions`` as new columns. An empty store returns an empty batch."""
        if not self.observations:
            empty = np.empty(0, dtype=np.float32)
            return Batch.from_columns({}, empty, empty, empty.astype(bool), {})
        return self.batch(self.rows(positions))

    def transitions_at(self, positions: np.ndarray) -> list[Transition]:
        """Return the transitions at ``positions`` as objects, with the contents that were stored."""
        rows = self.rows(positions)
        transitions = self.batch_at(positions).transitions
        for row, transition in zip(rows.tolist(), transitions):
            # The column has float64, and the rewards of a batch are float32.
            transition.reward = self.rewards.values[row]
            absent = [name for name, column in self.info.items() if not column.has(row)]
            for name in absent:
                del transition.info[name]
            if self.returns is not None:
                is_known = self._has_return[row]
                transition._n_step_discounted_rewards = float(self.returns[row]) if is_known else None
        return transitions

    def transitions(self) -> list[Transition]:
        """Return all transitions as objects. They share common frames, as in the output of a stacking filter."""
        rows = self.all_rows()
        transitions = self.transitions_at(np.arange(self.length))
        for name, column in self.observations.items() if self.length else ():
            if isinstance(column, FrameObservations):
                for transition, before, after in zip(transitions, *column.by_reference(rows)):
                    transition.state[name], transition.next_state[name] = before, after  # type: ignore[index]
        return transitions

    # Plain data

    def chunk(self) -> Batch:
        """Return all transitions as one chunk for ``extend``. Each frame is contained once."""
        if not self.length:
            return self.batch_at(np.arange(0))
        rows = self.all_rows()
        states: dict[str, Any] = {}
        next_states: dict[str, Any] = {}
        for name, column in self.observations.items():
            states[name], next_states[name] = column.chunk(rows)
        return Batch.from_columns(
            states,
            self.actions.take(rows),
            self.rewards.take(rows),
            self.game_overs[rows],
            next_states,
            self.terminateds[rows],
            self._returns_of(rows),
            None,
            {name: column.take(rows) for name, column in self.info.items()},
            None if self.n_steps is None else self.n_steps[rows],
        )

    def intern_frames(self, state: dict[str, Any]) -> None:
        """Find the stored frames of a state after the newest transition, so that they are not stored again."""
        for name, column in self.observations.items() if self.length else ():
            if name in state:
                column.intern_frames(state[name])

    def get_state(self) -> dict[str, Any]:
        """Return all transitions and their positions in the ring, as plain data."""
        rows = self.all_rows()
        state: dict[str, Any] = {"capacity": self.capacity, "first_serial": self.first_serial, "length": self.length}
        if self.length:
            state["observations"] = {name: column.get_state(rows) for name, column in self.observations.items()}
            state["action"] = plain_column(self.actions.take(rows), "action")
            state["reward"] = self.rewards.take(rows)
            state["game_over"] = self.game_overs[rows]
            state["terminated"] = self.terminateds[rows]
            state["returns"] = None if self.returns is None else self.returns[rows]
            state["has_return"] = None if self.returns is None else self._has_return[rows]
            state["n_steps"] = None if self.n_steps is None else self.n_steps[rows]
            state["info"] = {name: _info_state(column, rows, name) for name, column in self.info.items()}
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the same rows from ``get_state``. :raises CoachError: if the store has another capacity"""
        if not self.grows and state["capacity"] != self.capacity:
            raise CoachError(
                f"the saved memory has a capacity of {state['capacity']} transitions, this memory has {self.capacity}; "
                "use the same memory.max_size"
            )
        self._reset()
        self.capacity, self.first_serial = state["capacity"], state["first_serial"]
        if "observations" in state:
            self._create_from_state(state)
        self.length = state["length"]

    def _create_from_state(self, state: dict[str, Any]) -> None:
        observations = {name: _observations_example(s) for name, s in state["observations"].items()}
        action, reward = restored_column(state["action"]), state["reward"]
        self._create_columns(observations, action[0], reward[0])
        serials = self.first_serial + np.arange(state["length"])
        rows = serials % self.capacity
        for name, column in self.observations.items():
            column.set_state(rows, serials, state["observations"][name])
        self.actions.put_many(rows, action)
        self.rewards.put_many(rows, reward)
        self.game_overs[rows] = state["game_over"]
        self.terminateds[rows] = state["terminated"]
        if state["returns"] is not None:
            # Old checkpoints have no column 'has_return'; unknown returns are NaN there.
            known = state["has_return"] if "has_return" in state else ~np.isnan(state["returns"])
            self.put_returns(rows, np.ma.MaskedArray(state["returns"], ~known))
        if state.get("n_steps") is not None:
            self._put_n_steps(rows, state["n_steps"])
        for name, column in state["info"].items():
            self._set_info_state(name, rows, column)

    def _set_info_state(self, name: str, rows: np.ndarray, state: dict[str, Any]) -> None:
        values = restored_column(state["values"])
        column = self.info[name] = InfoColumn(name, self.capacity, values[0])
        # The first value may be a number although later values are objects.
        if values.dtype == object:
            column.column.become_objects()
        column.column.put_many(rows, values)
        if state["present"] is not None:
            column.present = np.ones(self.capacity, dtype=bool)
            column.present[rows] = state["present"]
        if "default" in state:
            column.default = restored_column(state["default"])[0]


def _check_rows(chunk: Batch) -> None:
    columns = {
        **{f"state['{name}']": column for name, column in chunk.state_columns.items()},
        **{f"next_state['{name}']": column for name, column in chunk.next_state_columns.items()},
        **{f"info['{name}']": column for name, column in chunk.info_columns.items()},
        "action": chunk.action_column,
        "game_over": chunk.game_over_column,
        "terminated": chunk.terminated_column,
        "n_step_discounted_rewards": chunk.return_column,
        "n_steps": chunk.n_step_column,
    }
    for name, column in columns.items():
        # ``FrameStacks`` have a row for each transition only in ``indices``.
        if column is not None and (not np.ndim(getattr(column, "indices", column)) or len(column) != len(chunk)):
            rows = len(column) if np.ndim(getattr(column, "indices", column)) else "no"
            raise CoachError(f"the chunk's '{name}' has {rows} rows, but there are {len(chunk)} rewards")
    for name in ("game_over", "terminated", "n_step_discounted_rewards", "n_steps"):
        column = columns[name]
        if column is not None and (column.ndim != 1 or column.dtype.kind not in _KINDS[name]):
            raise CoachError(f"the chunk's '{name}' is of {column.dtype}{list(column.shape)}, not a column of numbers")


def _info_state(info: InfoColumn, rows: np.ndarray, name: str) -> dict[str, Any]:
    present = None if info.present is None else info.present[rows]
    state = {"values": plain_column(info.column.take(rows), f"info['{name}']"), "present": present}
    if info.default is not None:
        state["default"] = plain_column(_one_row(info.default), f"info['{name}']")
    return state


def _one_row(value: Any) -> np.ndarray:
    row = np.asarray(value)[None]
    return row if row.dtype.kind in "biufc" else np.array([value], dtype=object)


def _with_default(name: str, values: np.ndarray, default: Any) -> tuple[np.ndarray, Any]:
    """Convert annotations and their default to a dtype that can represent both."""
    default = np.asarray(default)
    if values.dtype.kind not in "biufc":
        return values, default.item() if not default.ndim else default
    if default.dtype.kind not in "biufc" or default.shape != values.shape[1:]:
        raise CoachError(
            f"the default of annotation '{name}' is {default.tolist()}: it must have the shape and type of the values"
        )
    dtype = np.result_type(values.dtype, default.dtype)
    return values.astype(dtype), default.astype(dtype)


def _observations_example(state: dict[str, Any]) -> Any:
    if "frames" in state:
        depth = state["indices"].shape[1] // 2
        return FrameStacks(state["frames"], state["indices"][:, :depth], state["axis"])
    if "ones" in state:
        return one_hot_rows(state["ones"][:1], state["length"])[0]
    return restored_column(state["states"])[0]
