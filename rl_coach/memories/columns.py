"""Columns of a ``TransitionStore``. A column is an array with one quantity of all transitions, such as the rewards.

The store decides which rows are written and read. A column does not know the order of the transitions.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Protocol

import numpy as np

from rl_coach.utilities import plain_data
from rl_coach.utils import CoachError

LARGE_OBSERVATION = 1024
"""Size in bytes from which on an observation is stored as a frame. A frame is stored only once, although it is the next
state of one step and the state of the following step."""

# Each remembered frame stays in memory, so their number is limited by their size.
_REMEMBERED_BYTES = 4 << 20
_NUMERIC_KINDS = "biufc"


def allocate(capacity: int, shape: tuple[int, ...], dtype: np.dtype, name: str) -> np.ndarray:
    """Make an array [capacity, *shape] of zeros. The system allocates memory for a row only when the row is written.

    :raises CoachError: if the system cannot provide so much memory
    """
    try:
        # zeros() and not empty(): the system then allocates a page of memory only when it is written, so an empty large
        # replay memory uses almost no memory.
        return np.zeros((capacity, *shape), dtype=dtype)
    except MemoryError:
        gigabytes = capacity * int(np.prod(shape)) * dtype.itemsize / 1e9
        raise CoachError(
            f"the memory's '{name}' needs {gigabytes:.1f} GB for {capacity} rows, more than this machine can provide; "
            'make the memory smaller, for example with -cp "agent_params.memory.max_size='
            '(MemoryGranularity.Transitions, 10000)"'
        ) from None


def moved(values: np.ndarray, sources: np.ndarray, targets: np.ndarray, capacity: int | None, name: str) -> np.ndarray:
    """Copy rows of an array to other rows, after all have been read. Return the array: a new one with the given
    capacity, or the same one if the capacity is None.
    """
    kept = values[sources]
    if capacity is not None:
        values = allocate(capacity, values.shape[1:], values.dtype, name)
    values[targets] = kept
    return values


def as_numeric_array(value: Any) -> np.ndarray | None:
    """Convert ``value`` to an array of numbers. Return None for a text, None, a ragged or empty list, or an object."""
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array if array.dtype.kind in _NUMERIC_KINDS and array.size else None


class ArrayColumn:
    """A column of values with one shape. The first value sets dtype and shape.

    If the dtype cannot represent a later value exactly, for example a float among integers, the column gets a wider
    dtype. Values that are not numbers are stored as objects.

    :param name: the name of the column, for messages
    :param capacity: the number of rows
    :param example: the first value
    :param may_vary: True if a value of another shape turns the column into a column of objects. False if such a value
        raises an error
    """

    def __init__(self, name: str, capacity: int, example: Any, may_vary: bool = False, dtype: Any = None):
        array = as_numeric_array(example)
        self.name = name
        self.may_vary = may_vary
        self._set_values(
            allocate(capacity, (), np.dtype(object), name)
            if array is None
            else allocate(capacity, array.shape, np.dtype(dtype or array.dtype), name)
        )

    def _set_values(self, values: np.ndarray) -> None:
        self.values = values
        self.dtype = values.dtype
        self.shape = values.shape[1:]
        # Types of numbers that fit the dtype: ``put`` need not check them again.
        self._scalar_types: set[type] = set()

    def is_for(self, example: Any, capacity: int) -> bool:
        """True if this column has the shape, dtype and capacity of a new column for ``example``."""
        array = as_numeric_array(example)
        return array is not None and self.values.shape == (capacity, *array.shape) and self.dtype == array.dtype

    @property
    def missing(self) -> Any:
        """The placeholder for a row without a value: NaN, zero or None, depending on the dtype."""
        return np.nan if self.dtype.kind in "fc" else None if self.dtype.kind == "O" else 0

    def put(self, row: int, value: Any) -> None:
        """Write a copy of one value."""
        # The common cases first: NumPy's checks take more time than copying a small value.
        if type(value) is np.ndarray:
            if value.dtype is self.dtype and value.shape == self.shape:
                self.values[row] = value
                return
        elif type(value) in self._scalar_types:
            self.values[row] = value
            return
        self._put_unusual(row, value)

    def _put_unusual(self, row: int, value: Any) -> None:
        if self.dtype.kind == "O":
            self.values[row] = value.copy() if isinstance(value, np.ndarray) else value
            return
        array = as_numeric_array(value)
        if array is None or array.shape != self.shape:
            if not self.may_vary:
                found = value if array is None else f"shape {array.shape}"
                raise CoachError(
                    f"the memory's '{self.name}' holds values of shape {self.shape}, but this value is {found}"
                )
            self.become_objects()
            self._put_unusual(row, value)
            return
        self._widen_for(array.dtype)
        self.values[row] = array
        if not isinstance(value, (np.ndarray, list, tuple)):
            self._scalar_types.add(type(value))

    def become_objects(self) -> None:
        """Turn the column into a column of objects."""
        objects = np.empty(len(self.values), dtype=object)
        objects[:] = list(self.values) if self.shape else self.values.tolist()
        self._set_values(objects)

    def check(self, values: Any) -> None:
        """Check values [B, ...]. :raises CoachError: if they have another shape, or do not fit the dtype"""
        if self.may_vary or self.dtype.kind == "O":
            return
        array = as_numeric_array(values)
        if array is None or array.shape[1:] != self.shape or not self._takes(array):
            found = "no numbers" if array is None else f"{array.dtype}{list(array.shape[1:])}"
            raise CoachError(
                f"the memory's '{self.name}' holds {self.dtype}{list(self.shape)}, but this chunk has {found}"
            )

    def _takes(self, array: np.ndarray) -> bool:
        """True if values can be cast to the column's dtype. Floats may be rounded; integers must be in the range."""
        if np.can_cast(array.dtype, self.dtype, "safe"):
            return True
        if array.dtype.kind in "iu" and self.dtype.kind in "iu":
            limits = np.iinfo(self.dtype)
            return bool(limits.min <= array.min() and array.max() <= limits.max)
        return np.can_cast(array.dtype, self.dtype, "same_kind")

    def _widen_for(self, dtype: np.dtype) -> None:
        if not np.can_cast(dtype, self.dtype, "safe"):
            self._set_values(self.values.astype(np.result_type(dtype, self.dtype)))

    def put_missing(self, rows: Any) -> None:
        """Write the placeholder ``missing`` to rows."""
        self.values[rows] = self.missing

    def put_many(self, rows: np.ndarray, values: Any) -> None:
        """Write values [B, ...] to B rows. Floats are rounded to the column's precision, so values with a higher
        precision do not widen the column.
        """
        array = as_numeric_array(values)
        if array is None or self.dtype.kind == "O" or array.shape[1:] != self.shape:
            for row, value in zip(rows, values):
                self.put(int(row), value)
            return
        if not self._takes(array):
            self._widen_for(array.dtype)
        self.values[rows] = array

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return copies of rows, [B, ...]."""
        return self.values.take(rows, 0)

    def move(self, sources: np.ndarray, targets: np.ndarray, capacity: int | None = None) -> None:
        """Copy rows to other rows; see ``moved``."""
        values = moved(self.values, sources, targets, capacity, self.name)
        if values is not self.values:
            self._set_values(values)


def plain_column(values: np.ndarray, name: str) -> Any:
    """Convert the values of a column to plain data: numbers stay an array, objects become a list.

    :raises CoachError: if an object cannot be saved; the message contains ``name``
    """
    if values.dtype != object:
        return values
    try:
        return plain_data.flatten(list(values))
    except plain_data.UnsavableError as error:
        raise CoachError(f"'{name}' in the memory: {error}") from None


def restored_column(plain: Any) -> np.ndarray:
    """Restore the values of a column from the plain data of ``plain_column``."""
    if isinstance(plain, np.ndarray):
        return plain
    # A list of texts is format 1, in files of older versions.
    objects = plain_data.restore(plain) if isinstance(plain, dict) else list(map(_object_of_format_1, plain))
    # Filled afterwards, because np.array would join objects of equal shapes to one array.
    values = np.empty(len(objects), dtype=object)
    values[:] = objects
    return values


def _object_of_format_1(text: str) -> Any:
    def array_or_dict(part: dict[str, Any]) -> Any:
        if "__array__" not in part:
            return part
        return np.asarray(part["__array__"], dtype=np.dtype(part["dtype"])).reshape(part["shape"])

    return json.loads(text, object_hook=array_or_dict)


class FrameStacks:
    """B observations that share frames: observation b is the stack of ``frames[indices[b]]``. Each frame is stored
    once.

    Chunks and files contain observations in this form. ``np.asarray`` returns the stacked observations.

    :param frames: [F, ...]
    :param indices: [B, K], the frames of each observation, oldest first; [B, 1] if an observation is one frame
    :param axis: the axis of the K frames in an observation; None if an observation is the frame itself
    """

    def __init__(self, frames: np.ndarray, indices: np.ndarray, axis: int | None):
        self.frames = frames
        self.indices = indices
        self.axis = axis

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape of one stacked observation."""
        shape = list(self.frames.shape[1:])
        if self.axis is not None:
            shape.insert(self.axis if self.axis >= 0 else len(shape) + 1 + self.axis, self.indices.shape[1])
        return tuple(shape)

    def __getitem__(self, rows: Any) -> FrameStacks:
        """The observations of a slice or an array of rows, with the same frames."""
        return FrameStacks(self.frames, self.indices[rows], self.axis)

    def observations(self, frames: list[np.ndarray]) -> list[Any]:
        """The B observations as objects that refer to the arrays in ``frames``, a list of ``self.frames``."""
        if self.axis is None:
            return [frames[index] for index in self.indices[:, 0]]
        return [_Stack([frames[index] for index in row], self.axis) for row in self.indices]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.axis is None:
            array = self.frames[self.indices[:, 0]]
        else:
            frame_axis = self.axis if self.axis < 0 else self.axis + 1
            array = np.ascontiguousarray(np.moveaxis(self.frames[self.indices], 1, frame_axis))
        return array if dtype is None else array.astype(dtype, copy=False)


class RowOwner(Protocol):
    """The part of a ``TransitionStore`` that a ring of frames uses."""

    first_serial: int
    length: int
    grows: bool

    def drop_oldest(self) -> None:
        """Remove the oldest transition, and possibly more."""


class VectorObservations:
    """The columns of one observation: one for the states, and one for the next states."""

    column_class: type[ArrayColumn] = ArrayColumn

    def __init__(self, name: str, capacity: int, example: Any):
        self.states = self.column_class(name, capacity, example)
        self.next_states = self.column_class(name, capacity, example)

    def put(self, row: int, serial: int, state: Any, next_state: Any) -> None:
        """Write copies of the two observations of one transition."""
        self.states.put(row, state)
        self.next_states.put(row, next_state)

    def put_many(self, rows: np.ndarray, serials: np.ndarray, states: Any, next_states: Any) -> None:
        """Write observations [B, ...] to B rows."""
        self.states.put_many(rows, np.asarray(states))
        self.next_states.put_many(rows, np.asarray(next_states))

    def check(self, values: Any) -> None:
        """Check observations [B, ...]. :raises CoachError: if they do not have the column's shape and dtype"""
        self.states.check(np.asarray(values))

    def take(self, rows: np.ndarray, contiguous: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return copies of the observations before and after the step, each [B, ...]."""
        # Not ``self.states.take``, because a sample should call few functions.
        return self.states.values.take(rows, 0), self.next_states.values.take(rows, 0)

    def chunk(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rows in the form that ``put_many`` accepts."""
        return self.take(rows)

    def replace(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Overwrite the states and the next states of rows."""
        self.states.put_many(rows, values)
        self.next_states.put_many(rows, values)

    def move(self, sources: np.ndarray, targets: np.ndarray, serials: np.ndarray, capacity: int | None = None) -> None:
        """Copy rows to other rows."""
        self.states.move(sources, targets, capacity)
        self.next_states.move(sources, targets, capacity)

    def intern_frames(self, observation: Any) -> None:
        """Do nothing, because these rows share no frames."""

    def clear(self) -> None:
        """Do nothing: new values overwrite the old values."""

    def get_state(self, rows: np.ndarray) -> dict[str, Any]:
        """Return the contents of rows as plain data."""
        return {
            "states": plain_column(self.states.take(rows), self.states.name),
            "next_states": plain_column(self.next_states.take(rows), self.next_states.name),
        }

    def set_state(self, rows: np.ndarray, serials: np.ndarray, state: dict[str, Any]) -> None:
        """Write the result of ``get_state`` to rows."""
        self.put_many(rows, serials, restored_column(state["states"]), restored_column(state["next_states"]))


class OneHotColumn(ArrayColumn):
    """A column of vectors of zeros and ones, each with the same small number K of ones. Only the positions of the ones
    are stored. The first vector of another form turns the column into a column of whole vectors.

    :param example: the first vector [D]
    :ivar length: D; None for a column of whole vectors
    """

    def __init__(self, name: str, capacity: int, example: Any):
        super().__init__(name, capacity, np.flatnonzero(example).astype(np.int32))
        self.length: int | None = len(example)

    def put(self, row: int, value: Any) -> None:
        self.put_many(np.array([row]), np.asarray(value)[None])

    def put_many(self, rows: np.ndarray, values: Any) -> None:
        vectors = np.asarray(values)
        self.check(vectors)
        if self.length is not None and (places := self._places(vectors)) is not None:
            self.values[rows] = places + 1  # plus 1, because 0 marks a row that was never written
            return
        self._become_vectors()
        super().put_many(rows, vectors)

    def check(self, values: Any) -> None:
        if self.length is None:
            super().check(values)
        elif np.shape(values)[1:] != (self.length,) or np.asarray(values).dtype.kind not in "biuf":
            found = f"{np.asarray(values).dtype}{list(np.shape(values)[1:])}"
            raise CoachError(f"the memory's '{self.name}' holds float32[{self.length}], but this chunk has {found}")

    def take(self, rows: np.ndarray) -> np.ndarray:
        taken = super().take(rows)
        return taken if self.length is None else one_hot_rows(taken - 1, self.length)

    def _places(self, vectors: np.ndarray) -> np.ndarray | None:
        ones, count = vectors == 1, self.shape[0]
        if np.count_nonzero(vectors) != count * len(vectors) or not (ones.sum(axis=1) == count).all():
            return None
        return np.nonzero(ones)[1].reshape(-1, count).astype(np.int32)

    def _become_vectors(self) -> None:
        if self.length is not None:
            vectors = allocate(len(self.values), (self.length,), np.dtype(np.float32), self.name)
            for row in np.flatnonzero(self.values[:, 0]):
                vectors[row, self.values[row] - 1] = 1
            self.length = None
            self._set_values(vectors)


def one_hot_rows(places: np.ndarray, length: int) -> np.ndarray:
    """[B, length] float32, ones at the positions ``places`` [B, K], zeros elsewhere."""
    vectors = np.zeros((len(places), length), np.float32)
    np.put_along_axis(vectors, places, 1, axis=1)
    return vectors


class OneHotObservations(VectorObservations):
    """The columns of a large ``Discrete`` or ``MultiDiscrete`` observation. Networks get a vector of zeros and ones;
    the memory stores only the positions of the ones. Other vectors with few ones are stored in the same way.
    """

    column_class = OneHotColumn
    states: OneHotColumn
    next_states: OneHotColumn

    def take(self, rows: np.ndarray, contiguous: bool = True) -> tuple[np.ndarray, np.ndarray]:
        return self.states.take(rows), self.next_states.take(rows)

    @staticmethod
    def fit(example: np.ndarray) -> bool:
        """True for a float32 vector of zeros and few ones, if the positions of the ones need much less memory."""
        count = np.count_nonzero(example) if example.ndim == 1 and example.dtype == np.float32 else 0
        # A position has 4 bytes, as each number of the vector: the positions need at most 1/64 of the memory.
        return bool(0 < count <= example.size // 64 and np.count_nonzero(example == 1) == count)

    def get_state(self, rows: np.ndarray) -> dict[str, Any]:
        if self.states.length is None or self.next_states.length is None:
            # as frames, because a restored column may be a column of frames
            count = len(rows)
            frames = np.concatenate(self.take(rows))
            indices = np.stack([np.arange(count), np.arange(count) + count], axis=1).astype(np.int32)
            return {"frames": frames, "indices": indices, "axis": None}
        places = {"ones": self.states.values[rows] - 1, "next_ones": self.next_states.values[rows] - 1}
        return {**places, "length": self.states.length}

    def set_state(self, rows: np.ndarray, serials: np.ndarray, state: dict[str, Any]) -> None:
        if "ones" in state:
            self.states.values[rows], self.next_states.values[rows] = state["ones"] + 1, state["next_ones"] + 1
        elif "frames" in state:
            # Written by older versions, and by ``get_state`` for a column of whole vectors.
            before, after = state["indices"].T
            self.put_many(rows, serials, state["frames"][before], state["frames"][after])
        else:
            super().set_state(rows, serials, state)


class FrameObservations:
    """The columns of one image observation. Each frame is stored only once, in a ring of frames.

    A transition stores the positions of its frames in the ring: K for the state and K for the next state. Frames are
    compared by identity: the same Python object is stored once. So ``LazyStack`` observations share their frames. (Any
    object with an ``axis`` and a ``history`` of frames, oldest first, is treated as a ``LazyStack``.) A plain image is
    shared if it was the next state of an earlier step.

    The ring has space for one frame per transition and 2 % more. Short episodes need more frames: the oldest
    transitions are then removed early.

    :param example: the first observation
    """

    def __init__(self, name: str, capacity: int, example: Any, owner: RowOwner):
        self.name = name
        self.owner = owner
        self.axis, frames = _frames_of(example)
        self.depth = len(frames)
        self.frame_shape, self.frame_dtype = frames[0].shape, frames[0].dtype
        self.indices = allocate(capacity, (2 * self.depth,), np.dtype(np.int32), name)
        self.size = self._ring_size(capacity)
        self.frames = allocate(self.size, self.frame_shape, self.frame_dtype, name)
        self.next_frame = 0
        self._last_user = np.zeros(self.size, dtype=np.int64)
        self._known: dict[int, tuple[Any, int]] = {}
        self._most_known = int(np.clip(_REMEMBERED_BYTES // max(1, frames[0].nbytes), 64, 1024))

    def _ring_size(self, capacity: int) -> int:
        # An episode of T steps has T + 1 frames, so 2 % more are enough for episodes of 50 steps.
        return capacity + capacity // 50 + 64 + 2 * self.depth

    def put(self, row: int, serial: int, state: Any, next_state: Any) -> None:
        """Write the observations of one transition. Only new frames are copied."""
        if self.axis is None:
            before = self._state_frame(state, serial)
            numbers = [before, before if next_state is state else self._next_state_frame(next_state, serial)]
        else:
            numbers = self._stack_frames(state, serial) + self._stack_frames(next_state, serial)
        # Numbers are converted to slots only now, because adding a frame may have changed the size of the ring.
        size = self.size
        self.indices[row] = [number % size for number in numbers]

    def _stack_frames(self, stack: Any, serial: int) -> list[int]:
        """Store the frames of a stack. Return their numbers, counted from the first frame that was ever stored."""
        history, store = getattr(stack, "history", None), self._frame
        if history is None:
            history, store = np.moveaxis(np.asarray(stack), self.axis or 0, 0), self._add
        if len(history) != self.depth:
            raise CoachError(f"'{self.name}': the memory stores stacks of {self.depth} frames, not of {len(history)}")
        return [store(frame, serial) for frame in history]

    def _frame(self, frame: np.ndarray, serial: int) -> int:
        # Slots are overwritten in the order of the numbers, so the number shows whether the frame is still stored.
        known = self._known.get(id(frame))
        if known is not None and known[1] >= self.next_frame - self.size:
            number = known[1]
            self._last_user[number % self.size] = serial
            return number
        number = self._add(frame, serial)
        self._remember(frame)
        return number

    def _state_frame(self, image: np.ndarray, serial: int) -> int:
        # Each image is used only once, because an environment may write its next observation into the same array.
        known = self._known.pop(id(image), None)
        if known is None or known[1] < self.next_frame - self.size:
            return self._add(image, serial)
        self._last_user[known[1] % self.size] = serial
        return known[1]

    def _next_state_frame(self, image: np.ndarray, serial: int) -> int:
        number = self._add(image, serial)
        # Removed first, so that this frame becomes the newest entry of the dict: the first entry is forgotten first.
        self._known.pop(id(image), None)
        self._remember(image)
        return number

    def _remember(self, frame: np.ndarray) -> None:
        # A reference to the frame is kept, so that Python does not give its id to another array.
        self._known[id(frame)] = (frame, self.next_frame - 1)
        if len(self._known) > self._most_known:
            del self._known[next(iter(self._known))]

    def _add(self, frame: Any, serial: int) -> int:
        frame = np.asarray(frame)
        if frame.shape != self.frame_shape or frame.dtype != self.frame_dtype:
            raise CoachError(
                f"the memory's '{self.name}' holds frames of {self.frame_dtype}{list(self.frame_shape)}, "
                f"but this frame is {frame.dtype}{list(frame.shape)}"
            )
        # A slot is free if the last transition that uses its frame has been removed.
        slot = self.next_frame % self.size
        if self.next_frame >= self.size and self._last_user[slot] >= self.owner.first_serial:
            slot = int(self._free_slots(1)[0])
        self.frames[slot] = frame
        self._last_user[slot] = serial
        self.next_frame += 1
        return self.next_frame - 1

    def _free_slots(self, count: int) -> np.ndarray:
        """Free the next ``count`` slots: the ring grows, or transitions that use the slots are removed."""
        if self.owner.grows and self._are_used(count):
            self._resize_ring(max(2 * self.size, self.size + 2 * count))
        while self.owner.length and self._are_used(count):
            self.owner.drop_oldest()
        return (self.next_frame + np.arange(count)) % self.size

    def _are_used(self, count: int) -> bool:
        # Slots that were never written are free.
        first = max(self.next_frame, self.size)
        slots = np.arange(first, self.next_frame + count) % self.size
        if not self.owner.length or not len(slots):
            return False
        return bool(self._last_user[slots].max() >= self.owner.first_serial)

    def _resize_ring(self, size: int) -> None:
        kept = np.arange(max(0, self.next_frame - self.size), self.next_frame)
        frames = allocate(size, self.frame_shape, self.frame_dtype, self.name)
        last_user = np.zeros(size, dtype=np.int64)
        frames[kept % size] = self.frames[kept % self.size]
        last_user[kept % size] = self._last_user[kept % self.size]
        # Slots depend on the size of the ring: convert them to the frames' numbers, then to slots of the new ring.
        newest = self.next_frame - 1
        self.indices = ((newest - (newest - self.indices) % self.size) % size).astype(np.int32)
        self.frames, self._last_user, self.size = frames, last_user, size

    def put_many(self, rows: np.ndarray, serials: np.ndarray, states: Any, next_states: Any) -> None:
        """Write B observations: ``FrameStacks``, or arrays [B, ...], in which equal frames are found by their
        content.
        """
        frames, indices = self._shared_frames(states, next_states)
        used, positions = np.unique(indices, return_inverse=True)
        slots = self._free_slots(len(used))
        # Usually all frames of a chunk are used; then no copy is needed to select them.
        self._write_frames(slots, frames if len(used) == len(frames) else frames[used])
        self.next_frame += len(used)
        self.indices[rows] = slots[positions.reshape(indices.shape)]
        self._mark_users(rows, serials)

    def _write_frames(self, slots: np.ndarray, frames: np.ndarray) -> None:
        """Write frames to consecutive slots."""
        # A slice is faster than an array of indices, but is impossible if the slots continue at the ring's beginning.
        first, count = int(slots[0]), len(slots)
        if first + count <= self.size:
            self.frames[first : first + count] = frames
        else:
            self.frames[slots] = frames

    def check(self, values: Any) -> None:
        """Check ``FrameStacks`` or an array. :raises CoachError: if they do not fit the column"""
        if not isinstance(values, FrameStacks):
            self._split(np.asarray(values))
            return
        frames, indices = values.frames, values.indices
        is_same = (frames.dtype, frames.shape[1:], values.axis) == (self.frame_dtype, self.frame_shape, self.axis)
        if not is_same or indices.shape[1:] != (self.depth,):
            raise CoachError(
                f"the memory's '{self.name}' holds stacks of {self.depth} frames of "
                f"{self.frame_dtype}{list(self.frame_shape)}, but this chunk has {indices.shape[1:]} of "
                f"{frames.dtype}{list(frames.shape[1:])}"
            )
        if indices.size and not 0 <= indices.min() <= indices.max() < len(frames):
            raise CoachError(f"the chunk's '{self.name}' refers to more than its {len(frames)} frames")

    def frames_needed(self, states: Any) -> int:
        """The largest number of frames that ``put_many`` may add."""
        at_most = 2 * self.depth * len(states)
        return min(at_most, len(states.frames)) if isinstance(states, FrameStacks) else at_most

    def _shared_frames(self, states: Any, next_states: Any) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(states, FrameStacks) and states.frames is getattr(next_states, "frames", None):
            return states.frames, np.concatenate([states.indices, next_states.indices], axis=1)
        found: dict[bytes, int] = {}
        frames: list[np.ndarray] = []
        columns = [self._indices_by_content(np.asarray(stacks), found, frames) for stacks in (states, next_states)]
        return np.asarray(frames), np.concatenate(columns, axis=1)

    def _indices_by_content(self, stacks: np.ndarray, found: dict[bytes, int], frames: list[np.ndarray]) -> np.ndarray:
        split = self._split(stacks)
        indices = np.empty(split.shape[:2], dtype=np.int64)
        for position in np.ndindex(indices.shape):
            frame = split[position]
            index = found.setdefault(frame.tobytes(), len(frames))
            if index == len(frames):
                frames.append(frame)
            indices[position] = index
        return indices

    def _split(self, stacks: np.ndarray) -> np.ndarray:
        """Divide stacks [B, ...] into frames [B, K, ...]."""
        axis = None if self.axis is None else self.axis if self.axis < 0 else self.axis + 1
        if axis is None:
            split = stacks[:, None]
        else:
            split = np.moveaxis(stacks, axis, 1) if stacks.ndim == len(self.frame_shape) + 2 else stacks
        if split.shape[1:] != (self.depth, *self.frame_shape) or split.dtype != self.frame_dtype:
            raise CoachError(
                f"the memory's '{self.name}' holds {self.depth} frames of {self.frame_dtype}{list(self.frame_shape)}, "
                f"but this chunk has {stacks.dtype}{list(stacks.shape[1:])}"
            )
        return split

    def _mark_users(self, rows: np.ndarray, serials: np.ndarray) -> None:
        # If several rows use a frame, NumPy keeps the last assignment, which belongs to the newest row.
        self._last_user[self.indices[rows].ravel()] = np.repeat(serials, 2 * self.depth)

    def take(self, rows: np.ndarray, contiguous: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return copies of the observations before and after the step, each [B, ...].

        :param contiguous: True for contiguous arrays. False for arrays that are transposed views of [B, K, ...], which
            is faster
        """
        indices = self.indices.take(rows, 0)
        if self.axis is None:
            return self.frames.take(indices[:, 0], 0), self.frames.take(indices[:, 1], 0)
        before, after = indices[:, : self.depth], indices[:, self.depth :]
        axis = self.axis % (len(self.frame_shape) + 1) + 1
        if axis == 1 or not contiguous:
            return tuple(np.moveaxis(self.frames.take(i, 0), 1, axis) for i in (before, after))  # type: ignore
        size = self.depth * self.frame_dtype.itemsize
        fits = size in (2, 4, 8) and axis == len(self.frame_shape) + 1 and sys.byteorder == "little"
        word = np.dtype(f"u{size}") if fits and np.array_equal(before[:, 1:], after[:, :-1]) else None
        # Most next states have the frames of the state without the oldest, and one new frame. The K values of a pixel
        # form one integer: shifting this integer gives the next state without copying K - 1 frames again.
        states = self._interleaved(before, axis)
        if word is None:
            return states, self._interleaved(after, axis)
        return states, self._shifted(states, after[:, -1], word)

    def _interleaved(self, indices: np.ndarray, axis: int) -> np.ndarray:
        # Whole frames are copied first, which is fast. Then the values of the frames are interleaved.
        planes = self.frames.take(indices.T, 0)
        shape = list(planes.shape[1:])
        shape.insert(axis, self.depth)
        stacks = np.empty(shape, dtype=self.frame_dtype)
        for plane, target in zip(planes, np.moveaxis(stacks, axis, 0)):
            target[...] = plane
        return stacks

    def _shifted(self, states: np.ndarray, newest: np.ndarray, word: np.dtype) -> np.ndarray:
        # In little-endian order the oldest value has the lowest bits, so a shift to the right removes it.
        shifted = np.right_shift(states.view(word), 8 * self.frame_dtype.itemsize)
        next_states = shifted.view(self.frame_dtype)
        next_states[..., -1] = self.frames.take(newest, 0)
        return next_states

    def chunk(self, rows: np.ndarray) -> tuple[FrameStacks, FrameStacks]:
        """Return rows in the form that ``put_many`` accepts. Each frame is contained once."""
        state = self.get_state(rows)
        before, after = state["indices"][:, : self.depth], state["indices"][:, self.depth :]
        return FrameStacks(state["frames"], before, self.axis), FrameStacks(state["frames"], after, self.axis)

    def by_reference(self, rows: np.ndarray) -> tuple[list[Any], list[Any]]:
        """Return the observations before and after the step. Observations share the arrays of common frames."""
        before, after = self.chunk(rows)
        frames = list(before.frames)
        return before.observations(frames), after.observations(frames)

    def replace(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Refuse to overwrite frames. :raises CoachError: always, because other rows use the same frames"""
        raise CoachError(
            f"the memory's '{self.name}' holds frames, and a goal cannot replace frames: use a smaller goal"
        )

    def move(self, sources: np.ndarray, targets: np.ndarray, serials: np.ndarray, capacity: int | None = None) -> None:
        """Copy rows to other rows. The frames are not moved."""
        self.indices = moved(self.indices, sources, targets, capacity, self.name)
        self._mark_users(targets, serials)

    def intern_frames(self, observation: Any) -> None:
        """Find an observation's frames among the newest frames by content, so that they are not stored again."""
        _, frames = _frames_of(observation)
        oldest = max(0, self.next_frame - self.size)
        serial = self.next_frame - 1
        # The newest first, because the search continues backwards in the ring.
        for frame in reversed(frames):
            # Only the newest frames can belong to the next observation; searching the whole ring would be slow.
            if id(frame) in self._known:
                continue
            while serial >= oldest and not np.array_equal(self.frames[serial % self.size], frame):
                serial -= 1
                if self.next_frame - serial > 2 * self.depth:
                    return
            if serial < oldest:
                return
            self._known[id(frame)] = (frame, serial)
            serial -= 1

    def clear(self) -> None:
        """Remove all rows. The ring starts again at its beginning, so that a few new rows use little memory."""
        self.next_frame = 0
        self._known.clear()

    def get_state(self, rows: np.ndarray) -> dict[str, Any]:
        """Return rows as plain data: the frames from the oldest used one on, and their positions in each row."""
        newest = self.next_frame - 1
        # 64 bits, because the numbers of frames exceed 32 bits in a long run.
        serials = newest - (newest - self.indices[rows].astype(np.int64)) % self.size
        oldest = int(serials.min()) if len(serials) else self.next_frame
        return {
            "frames": self.frames[np.arange(oldest, self.next_frame) % self.size],
            "indices": (serials - oldest).astype(np.int32),
            "axis": self.axis,
        }

    def set_state(self, rows: np.ndarray, serials: np.ndarray, state: dict[str, Any]) -> None:
        """Write the result of ``get_state`` to rows. The ring must be empty."""
        frames = state["frames"]
        if len(frames) > self.size:
            self._resize_ring(len(frames) + self.depth)
        self.frames[: len(frames)] = frames
        self.next_frame = len(frames)
        self.indices[rows] = state["indices"]
        self._mark_users(rows, serials)


def observations_for(name: str, capacity: int, example: Any, owner: RowOwner) -> VectorObservations | FrameObservations:
    """Make the columns for an observation: ``OneHotObservations`` for large vectors with few ones,
    ``FrameObservations`` for stacks and other large arrays, ``VectorObservations`` for all others.
    """
    if isinstance(example, FrameStacks):
        first = [example.frames[index] for index in example.indices[0]]
        example = first[0] if example.axis is None else _Stack(first, example.axis)
    elif hasattr(example, "history") and not _is_plain_stack(example):
        # A user's stack may compute more than a stack from its frames, so the frames alone could not replace it.
        example = np.asarray(example)
    if hasattr(example, "history"):
        return FrameObservations(name, capacity, example, owner)
    array = as_numeric_array(example)
    if array is None or array.nbytes < LARGE_OBSERVATION:
        return VectorObservations(name, capacity, example)
    if OneHotObservations.fit(array):
        return OneHotObservations(name, capacity, array)
    return FrameObservations(name, capacity, array, owner)


class _Stack:
    """A stack of references to frames, with the attributes of a ``LazyStack``."""

    def __init__(self, history: list[np.ndarray], axis: int):
        self.history = history
        self.axis = axis

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        stacked = np.stack(self.history, axis=self.axis)
        return stacked if dtype is None else stacked.astype(dtype, copy=False)


def _is_plain_stack(lazy: Any) -> bool:
    frames = [np.asarray(frame) for frame in lazy.history]
    return np.array_equal(np.asarray(lazy), np.stack(frames, axis=lazy.axis))


def _frames_of(observation: Any) -> tuple[int | None, list[np.ndarray]]:
    if hasattr(observation, "history"):
        return observation.axis, [np.asarray(frame) for frame in observation.history]
    return None, [np.asarray(observation)]


def uniform_rows(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    """[size], random row numbers below ``count``, drawn uniformly with replacement."""
    # This takes a third of the time of Generator.integers. Its bias is below 1e-9 for a billion rows.
    return (rng.random(size) * count).astype(np.int64)
