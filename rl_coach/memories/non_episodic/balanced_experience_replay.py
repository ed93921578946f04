"""A replay memory that samples the same number of transitions of each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.core_types import Batch, Transition
from rl_coach.memories.columns import FrameObservations, uniform_rows
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay, ExperienceReplayParameters
from rl_coach.utilities.requirements import whole
from rl_coach.utils import CoachError


class BalancedExperienceReplayParameters(ExperienceReplayParameters):
    """Parameters of balanced replay.

    :ivar num_classes: number of classes, at least 2
    :ivar state_key_with_the_class_index: name of the observation that contains the transition's class, a number from 0
        to ``num_classes - 1``
    """

    constraints = {"num_classes": whole(2)}
    path = "rl_coach.memories.non_episodic.balanced_experience_replay:BalancedExperienceReplay"

    def __init__(self) -> None:
        super().__init__()
        self.allow_duplicates_in_batch_sampling = False
        self.num_classes = 0
        self.state_key_with_the_class_index: Any = "class"


class _SerialQueue:
    """A queue of serial numbers (first in, first out) with access by position."""

    def __init__(self) -> None:
        # Serial numbers never change. Positions change when the oldest transition is removed.
        self._serials = np.empty(64, dtype=np.int64)
        self._start = 0
        self._end = 0

    def __len__(self) -> int:
        return self._end - self._start

    def extend(self, serials: np.ndarray) -> None:
        count = len(serials)
        if self._end + count > len(self._serials):
            kept = self._serials[self._start : self._end]
            self._serials = np.empty(2 * (len(kept) + count) + 64, dtype=np.int64)
            self._serials[: len(kept)] = kept
            self._start, self._end = 0, len(kept)
        self._serials[self._end : self._end + count] = serials
        self._end += count

    def drop(self, serial: int) -> None:
        """Remove a serial number if it is the first in the queue."""
        if len(self) and self._serials[self._start] == serial:
            self._start += 1

    def take(self, positions: np.ndarray) -> np.ndarray:
        return self._serials.take(positions + self._start)


class BalancedExperienceReplay(ExperienceReplay):
    """A memory of transitions of several classes. Each class is sampled equally often, even if it has few transitions.

    :param max_size: ``(MemoryGranularity.Transitions, number)`` for all classes together. A full memory removes its
        oldest transitions. The other parameters are the same as in ``BalancedExperienceReplayParameters``
    """

    def __init__(
        self,
        max_size: tuple[MemoryGranularity, int],
        allow_duplicates_in_batch_sampling: bool = True,
        num_classes: int = 0,
        state_key_with_the_class_index: Any = "class",
    ):
        super().__init__(max_size, allow_duplicates_in_batch_sampling)
        if num_classes < 2:
            raise CoachError(f"a balanced replay needs memory.num_classes of at least 2, not {num_classes}")
        self.num_classes = num_classes
        self.state_key_with_the_class_index = state_key_with_the_class_index
        self.needed_observations = (state_key_with_the_class_index,)
        self._queues = [_SerialQueue() for _ in range(num_classes)]

    def store(self, transition: Transition, lock: bool = True) -> None:
        """Store one transition.

        :raises CoachError: if the state has no class, or a class that is not one number or does not exist
        """
        class_index = self._class_of(transition.state or {})
        super().store(transition)
        self._queues[class_index].extend(np.array([self._store.first_serial + self._store.length - 1]))

    def _class_of(self, state: dict[str, Any]) -> int:
        key = self.state_key_with_the_class_index
        if key not in state:
            raise CoachError(f"the state has no '{key}' with the transition's class; it has {list(state)}")
        value = np.asarray(state[key])
        if value.size != 1 or value.dtype.kind not in "biuf":
            raise CoachError(
                f"'{key}' is {value.dtype}{list(value.shape)}, but a class is one number: set "
                f"memory.state_key_with_the_class_index to another observation"
            )
        return self._check_class(value.item())

    def _check_class(self, class_index: int) -> int:
        if not 0 <= class_index < self.num_classes:
            raise CoachError(f"class {class_index} does not exist: memory.num_classes is {self.num_classes}")
        return int(class_index)

    def check_columns(self, chunk: Batch, episode_lengths: np.ndarray | None = None) -> None:
        super().check_columns(chunk, episode_lengths)
        key = self.state_key_with_the_class_index
        if len(chunk):
            self._class_of({name: column[:1] for name, column in chunk.state_columns.items()})
        for class_index in np.unique(np.asarray(chunk.state_columns[key])):
            self._check_class(class_index.item())

    def _extend(self, chunk: Batch, episode_lengths: np.ndarray | None) -> None:
        store = self._store
        first_new = store.first_serial + store.length
        super()._extend(chunk, episode_lengths)
        # If the chunk is large, the memory may have removed its first transitions already.
        self._queue_from(max(first_new, store.first_serial))

    def _classes(self) -> np.ndarray:
        column = self._store.observations[self.state_key_with_the_class_index]
        # A class is a single number, which is too small to be stored as a frame.
        assert not isinstance(column, FrameObservations)
        return column.states.values

    def _drop_oldest(self, count: int) -> None:
        # The transitions of a chunk are added to the queues after they are stored, so they may not be in a queue yet.
        self._queues[int(self._classes()[self._store.rows(0)].item())].drop(self._store.first_serial)
        self._store.drop_first(1)

    def _rebuild_queues(self) -> None:
        self._queues = [_SerialQueue() for _ in range(self.num_classes)]
        self._queue_from(self._store.first_serial)

    def _queue_from(self, serial: int) -> None:
        """Add all transitions from a serial number on to the queues of their classes."""
        store = self._store
        serials = np.arange(serial, store.first_serial + store.length)
        if not len(serials):
            return
        classes = self._classes()[serials % store.capacity].ravel().astype(np.int64)
        for class_index in np.unique(classes):
            self._queues[class_index].extend(serials[classes == class_index])

    @property
    def draws_many_batches(self) -> bool:
        """False, because a sample contains one class after the other, so a part of a sample is not balanced."""
        return False

    def sample(self, size: int) -> Batch:
        """Sample ``size`` transitions: ``size // num_classes`` of each class, and the remainder from random classes.

        :raises CoachError: if a class has no transitions or, if duplicates are not allowed, too few
        """
        counts = np.full(self.num_classes, size // self.num_classes)
        counts[self.rng.permutation(self.num_classes)[: size % self.num_classes]] += 1
        serials = [self._draw_of_class(index, int(count)) for index, count in enumerate(counts) if count]
        return self._store.batch(np.concatenate(serials) % self._store.capacity)

    def _draw_of_class(self, class_index: int, count: int) -> np.ndarray:
        queue = self._queues[class_index]
        if len(queue) == 0 or (count > len(queue) and not self.allow_duplicates):
            raise CoachError(f"cannot sample {count} transitions of class {class_index}; only {len(queue)} are stored")
        if self.allow_duplicates:
            return queue.take(uniform_rows(self.rng, len(queue), count))
        return queue.take(self.rng.choice(len(queue), count, replace=False))

    def _remove(self, position: int) -> None:
        super()._remove(position)
        # Later transitions have other serial numbers after a removal.
        self._rebuild_queues()

    def clean(self, lock: bool = True) -> None:
        super().clean()
        self._rebuild_queues()

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._rebuild_queues()
