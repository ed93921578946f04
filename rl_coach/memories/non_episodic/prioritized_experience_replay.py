"""Prioritized experience replay (Schaul et al. 2016), proportional variant."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from rl_coach.core_types import Batch, Transition
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay, ExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule, Schedule
from rl_coach.utilities.requirements import number, schedule
from rl_coach.utils import CoachError


class PrioritizedExperienceReplayParameters(ExperienceReplayParameters):
    """Parameters of prioritized replay.

    :ivar alpha: exponent of the priorities: 0 samples uniformly, 1 in proportion to the errors
    :ivar beta: correction of the bias of prioritized sampling: 0 is no correction, 1 the full correction. The
        value is a ``Schedule``. It advances by one with each call of ``sample``
    :ivar epsilon: number added to the errors. If it is above 0, transitions with the error 0 are sampled too
    """

    constraints = {"alpha": number(0), "beta": schedule(number(0)), "epsilon": number(0)}
    path = "rl_coach.memories.non_episodic.prioritized_experience_replay:PrioritizedExperienceReplay"

    def __init__(self) -> None:
        super().__init__()
        self.alpha = 0.6
        self.beta: Schedule = ConstantSchedule(0.4)
        self.epsilon = 1e-6


_JUST_BELOW_ONE = 1 - 2**-52


class SegmentTree:
    """A tree of values for fast sums, minima or maxima.

    Each level contains the totals of blocks of 32 values of the level below. The top level is short enough to compute
    its total directly. A million values need three levels; a binary tree would need twenty. Each level needs a few
    array operations for a whole batch. A total is always computed from its whole block, so rounding errors do not
    accumulate. After changes, totals are only updated when they are needed.

    :param size: number of values
    :param operation: the operation of the totals: sum, minimum or maximum
    """

    class Operation(Enum):
        """The operation of the totals."""

        SUM = "sum"
        MIN = "min"
        MAX = "max"

        @property
        def ufunc(self) -> np.ufunc:
            """The operation as a NumPy function of two values."""
            return {"sum": np.add, "min": np.minimum, "max": np.maximum}[self.value]

        @property
        def identity(self) -> float:
            """The value that does not change a total. Unused leaves have this value."""
            return {"sum": 0.0, "min": np.inf, "max": -np.inf}[self.value]

    _BLOCK = 32

    def __init__(self, size: int, operation: Operation):
        if size < 1:
            raise ValueError(f"a SegmentTree needs a size of at least 1, not {size}")
        self.size = size
        self.operation = operation
        self._is_sum = operation is self.Operation.SUM
        self._reduce = operation.ufunc.reduce
        # The top level of a minimum or maximum may be longer: NumPy compares several values at a time, but adds the
        # values of a running sum one after the other.
        self._longest_top = 4096 if self._is_sum else 8192
        self.clear()

    def clear(self) -> None:
        """Set all values to the identity."""
        self._levels = [self._empty_level(self.size)]
        while len(self._levels[-1]) > self._longest_top:
            self._levels.append(self._empty_level(len(self._levels[-1]) // self._BLOCK))
        self._blocks = [level.reshape(-1, self._BLOCK) for level in self._levels[:-1]]
        # The running sums within each block, for searching in sample().
        self._running = [np.zeros_like(blocks) for blocks in self._blocks] if self._is_sum else []
        self._data: dict[int, Any] = {}
        self._next_leaf = 0
        self._forget_changes()
        self._update_top()

    def _empty_level(self, size: int) -> np.ndarray:
        return np.full(-(-size // self._BLOCK) * self._BLOCK, self.operation.identity)

    def _forget_changes(self) -> None:
        self._changed_leaves: list[int] = []
        self._changed_blocks: list[np.ndarray] = []
        self._num_changes = 0

    @property
    def values(self) -> np.ndarray:
        """The values [size]."""
        return self._levels[0][: self.size]

    def __str__(self) -> str:
        """The totals of a binary tree of the values as text, one line for each level, the root first."""
        leaves = 1 << (self.size - 1).bit_length()
        level = np.full(leaves, self.operation.identity)
        level[: self.size] = self.values
        lines = [str(level)]
        while len(level) > 1:
            level = self.operation.ufunc(level[::2], level[1::2])
            lines.append(str(level))
        return "\n".join(reversed(lines)) + "\n"

    def add(self, val: float, data: Any = None) -> None:
        """Write a value and its data to the next leaf. After the last leaf, the first leaf is next."""
        leaf = self._next_leaf
        self.update(leaf, val)
        self._data[leaf] = data
        self._next_leaf = (leaf + 1) % self.size

    def update(self, leaf_idx: int | np.ndarray, new_val: float | np.ndarray) -> None:
        """Change the value of one leaf or of several leaves. If a leaf occurs twice, the last value is used."""
        self._levels[0][leaf_idx] = new_val
        # After many changes, all totals are computed again, so the single changes need not be recorded.
        if self._is_mostly_changed():
            return
        if isinstance(leaf_idx, np.ndarray):
            self._num_changes += len(leaf_idx)
            self._changed_blocks.append(leaf_idx // self._BLOCK)
        else:
            self._num_changes += 1
            self._changed_leaves.append(leaf_idx)

    def _is_mostly_changed(self) -> bool:
        return self._num_changes * self._BLOCK > self.size

    def total_value(self) -> float:
        """The sum, minimum or maximum of all values."""
        self._pass_upwards()
        return self._total

    def _pass_upwards(self) -> None:
        if not self._num_changes:
            return
        changed = None if self._is_mostly_changed() else self._all_changed_blocks()
        for level in range(len(self._blocks)):
            self._update_totals(level, np.arange(len(self._blocks[level])) if changed is None else changed)
            changed = None if changed is None else changed // self._BLOCK
        self._update_top()
        self._forget_changes()

    def _all_changed_blocks(self) -> np.ndarray:
        if self._changed_leaves:
            self._changed_blocks.append(np.array(self._changed_leaves) // self._BLOCK)
        return self._changed_blocks[0] if len(self._changed_blocks) == 1 else np.concatenate(self._changed_blocks)

    def _update_totals(self, level: int, changed: np.ndarray) -> None:
        values = self._blocks[level].take(changed, 0)
        if self._is_sum:
            running = self._running[level][changed] = np.add.accumulate(values, 1)
            self._levels[level + 1][changed] = running[:, -1]
        else:
            self._levels[level + 1][changed] = self._reduce(values, 1)

    def _update_top(self) -> None:
        if self._is_sum:
            self._top_running = np.add.accumulate(self._levels[-1])
            self._total = float(self._top_running[-1])
        else:
            self._total = float(self._reduce(self._levels[-1]))

    def sample(self, fractions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find the leaves at which the running sum first exceeds a fraction of the total. Only for SUM trees.

        :param fractions: [B], each from 0 to 1
        :return: the leaves [B] and their values [B]
        :raises ValueError: if all values are zero
        """
        self._pass_upwards()
        if not self._total > 0:
            raise ValueError("all values are zero")
        # Below the total, so that a fraction of 1 finds the last value.
        rests = fractions * (self._total * _JUST_BELOW_ONE)
        leaves = self._top_running.searchsorted(rests, "right")
        values = self._levels[-1].take(leaves)
        rests += values
        rests -= self._top_running.take(leaves)
        return self._descend(leaves, rests, values)

    def _descend(self, leaves: np.ndarray, rests: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        for level in range(len(self._blocks) - 1, -1, -1):
            ends = self._running[level].take(leaves, 0)
            leaves = leaves * self._BLOCK
            leaves += (ends > rests[:, None]).argmax(1)
            values = self._levels[level].take(leaves)
            if level:
                rests += values
                rests -= self._running[level].take(leaves)
        if np.count_nonzero(values) < len(values):
            # In about one of 1e16 cases, rounding leads to an unused leaf after the last value of a block.
            empty = values == 0
            leaves[empty], values[empty] = self._levels[0].argmax(), self._levels[0].max()
        return leaves, values

    def get_element_by_partial_sum(self, val: float) -> tuple[int, float, Any]:
        """The leaf at which the running sum first exceeds ``val``, its value, and its data from ``add``."""
        leaves, values = self.sample(np.asarray([val]) / self.total_value())
        leaf = int(leaves[0])
        return leaf, float(values[0]), self._data.get(leaf)


class SmallestValue:
    """Finds the smallest of many values. A few values change at a time.

    The object stores the smallest value, and how many places have this value. It searches all values only when no place
    has the smallest value any more. This is rare, because large priorities change most often. A tree would need no
    search, but would take half of the time of an update.

    :param size: number of values
    """

    def __init__(self, size: int):
        self._values = np.empty(size)
        self.clear()

    def clear(self) -> None:
        """Remove all values: set them to infinity."""
        self._values.fill(np.inf)
        self._smallest = np.inf
        self._holders = len(self._values)  # at least this number of places have the smallest value

    def update(self, places: int | np.ndarray, values: float | np.ndarray) -> None:
        """Change one or several values; infinity means no value. If a place occurs twice, the last value is used."""
        before = self._values[places]
        self._values[places] = values
        if isinstance(places, np.ndarray):
            if not places.size:
                return
            smallest = np.minimum.reduce(values) if isinstance(values, np.ndarray) else values
            if smallest < self._smallest:
                smallest = self._values.take(places).min()  # read again, because a place may occur twice
            lost = np.count_nonzero(before == self._smallest)
        else:
            smallest, lost = values, before == self._smallest
        if smallest < self._smallest:
            self._smallest, self._holders = smallest, 1
        else:
            self._holders -= int(lost)

    def value(self) -> float:
        """The smallest value; infinity if there are no values."""
        if self._holders <= 0:
            self._smallest = self._values.min()
            self._holders = int(np.count_nonzero(self._values == self._smallest))
        return float(self._smallest)


class PrioritizedExperienceReplay(ExperienceReplay):
    """A memory that samples transitions in proportion to (|error| + epsilon) ** alpha.

    A new transition gets the highest priority so far, so it is likely to be sampled at least once. If its error is
    known, ``set_first_priorities`` sets the priority instead. A batch has two info columns. ``idx`` is the argument for
    ``update_priorities``. ``weight`` is the importance-sampling weight (N P(i)) ** -beta, divided by the largest weight
    in the memory.

    :param max_size: ``(MemoryGranularity.Transitions, number)``; a full memory removes its oldest transitions. The
        other parameters are the same as in ``PrioritizedExperienceReplayParameters``
    :param beta: a ``Schedule``; None is ``ConstantSchedule(0.4)``
    """

    has_priorities = True
    takes_first_priorities = True

    def __init__(
        self,
        max_size: tuple[MemoryGranularity, int],
        alpha: float = 0.6,
        beta: Schedule | None = None,
        epsilon: float = 1e-6,
        allow_duplicates_in_batch_sampling: bool = True,
    ):
        super().__init__(max_size, allow_duplicates_in_batch_sampling)
        self.alpha = alpha
        self.beta = ConstantSchedule(0.4) if beta is None else beta
        self.epsilon = epsilon
        self.maximal_priority = 1.0
        self._sums = SegmentTree(self._store.capacity, SegmentTree.Operation.SUM)
        self._minimum = SmallestValue(self._store.capacity)
        self._segments = np.arange(0)

    def _drop_oldest(self, count: int) -> None:
        row = self._store.rows(0)
        self._sums.update(row, 0.0)
        self._minimum.update(row, np.inf)
        self._store.drop_first(1)

    def store(self, transition: Transition, lock: bool = True) -> None:
        super().store(transition)
        # The error of the transition is unknown: with the largest priority it is sampled soon (Schaul et al. 2016).
        self._set_priorities(self._store.rows(self._store.length - 1), self.maximal_priority)

    def _extend(self, chunk: Batch, episode_lengths: np.ndarray | None) -> None:
        super()._extend(chunk, episode_lengths)
        newest = np.arange(max(0, self._store.length - len(chunk)), self._store.length)
        self._set_priorities(self._store.rows(newest), self.maximal_priority)

    def _set_priorities(self, rows: int | np.ndarray, priorities: float | np.ndarray) -> None:
        weighted = priorities**self.alpha
        self._sums.update(rows, weighted)
        # A transition with priority zero is never sampled, so the largest weight must not depend on it.
        self._minimum.update(rows, weighted if self.epsilon > 0 else np.where(weighted == 0, np.inf, weighted))

    def update_priorities(self, indices: np.ndarray, error_values: np.ndarray) -> None:
        """Set priorities from errors. If an index occurs twice, the last error is used.

        :param indices: [B], ``info('idx')`` of a sampled batch
        :param error_values: [B], zero or more
        :raises CoachError: if the numbers of errors and indices differ, or an error is negative or NaN
        """
        rows, errors = np.asarray(indices, dtype=np.int64), np.asarray(error_values, dtype=np.float64)
        if rows.shape != errors.shape:
            raise CoachError(f"update_priorities got {rows.size} indices, but {errors.size} errors")
        if rows.size and not np.minimum.reduce(errors) >= 0:
            raise CoachError("update_priorities got an error that is negative or NaN: errors must be at least 0")
        if not rows.size:
            return
        priorities = errors + self.epsilon
        self.maximal_priority = max(self.maximal_priority, float(np.maximum.reduce(priorities)))
        self._set_priorities(rows, priorities)

    def set_first_priorities(self, error_values: np.ndarray) -> None:
        """Set the priorities of the N newest transitions from their errors. Without this call, they have the highest
        priority.

        :param error_values: [N], zero or more, oldest transition first. If the memory has fewer transitions, the first
            errors are ignored, because their transitions were removed
        :raises CoachError: if an error is negative or NaN
        """
        length = self._store.length
        newest = np.arange(max(0, length - len(error_values)), length)
        self.update_priorities(self._store.rows(newest), error_values[len(error_values) - len(newest) :])

    def sample(self, size: int) -> Batch:
        """Sample ``size`` transitions. The sum of priorities is divided into ``size`` equal segments, and one
        transition is drawn from each.

        :raises CoachError: if the memory is empty, all priorities are zero, or duplicates are not allowed and fewer
            than ``size`` transitions are stored
        """
        if self._store.length == 0 or (size > self._store.length and not self.allow_duplicates):
            self._refuse_sampling(size)
        try:
            rows, values = self._draw_by_priority(size)
        except CoachError:
            # This is a ValueError too, but its message is already complete.
            raise
        except ValueError:
            raise CoachError("all priorities are zero; set memory.epsilon above 0") from None
        # N and the sum of priorities cancel out, because they also occur in the largest weight.
        weights = (values / self._minimum.value()) ** -self.beta.current_value
        self.beta.step()
        return self._store.batch(rows, {"idx": rows, "weight": weights.astype(np.float32)})

    def _draw_by_priority(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        # Kept, because nearly all samples have the same size.
        if len(self._segments) != size:
            self._segments = np.arange(size)
        rows, values = self._sums.sample((self.rng.random(size) + self._segments) / size)
        if not self.allow_duplicates:
            rows = self._replace_duplicates(rows)
            values = self._sums.values[rows]
        return rows, values

    def _replace_duplicates(self, rows: np.ndarray) -> np.ndarray:
        """Replace repeated rows with other rows, drawn in proportion to their priorities."""
        kept = np.unique(rows)
        values: dict[int, float] = {}
        while len(kept) < len(rows):
            values.update((int(row), float(self._sums.values[row])) for row in kept if int(row) not in values)
            self._sums.update(kept, 0.0)
            if self._sums.total_value() == 0:
                break
            more, _ = self._sums.sample(self.rng.random(len(rows) - len(kept)))
            kept = np.union1d(kept, more)
        # Restore the values of drawn rows, which were set to 0 to draw other rows.
        for row, value in values.items():
            self._sums.update(row, value)
        if len(kept) < len(rows):
            raise CoachError(f"cannot sample {len(rows)} transitions: only {len(kept)} have a priority above zero")
        return kept

    def _remove(self, position: int) -> None:
        # Read before the removal, which moves the rows.
        rows = self._store.all_rows()
        values = np.delete(self._sums.values[rows], position)
        super()._remove(position)
        self._rebuild_priorities(values)

    def _rebuild_priorities(self, values: np.ndarray) -> None:
        self._sums.clear()
        self._minimum.clear()
        rows = self._store.all_rows()
        self._sums.update(rows, values)
        self._minimum.update(rows, np.where(values == 0, np.inf, values))

    def clean(self, lock: bool = True) -> None:
        super().clean()
        self._sums.clear()
        self._minimum.clear()
        self.maximal_priority = 1.0

    def get_state(self) -> dict[str, Any]:
        return {
            **super().get_state(),
            "priorities": self._sums.values[self._store.all_rows()],
            "maximal_priority": self.maximal_priority,
            "beta": self.beta.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._rebuild_priorities(state["priorities"])
        self.maximal_priority = state["maximal_priority"]
        self.beta.set_state(state["beta"])
