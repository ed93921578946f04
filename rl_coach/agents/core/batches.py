"""Sources of batches: they give the transitions that an agent's updates learn from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Sequence

import numpy as np

from rl_coach.architectures.update import Stages, UpdateRule
from rl_coach.core_types import Batch
from rl_coach.memories.memory import Memory
from rl_coach.utils import CoachError

_SOURCE = "batch_source"


class BatchSource:
    """Base class of the sources of batches. A source may also change the columns of a batch and the update rule that
    reads them, for example from single steps to sequences.

    :ivar gives_many_at_once: True if the batches of several updates can be drawn before the first update
    :ivar gives_sequences: True if the rows are whole sequences, so that a batch cannot be padded row by row
    :ivar wants_errors: True if the next batch depends on the errors of the networks, as with prioritized replay
    :ivar wants_values: True if the next batch depends on the values of the update rule
    """

    gives_many_at_once: bool = True
    gives_sequences: bool = False
    wants_errors: bool = False
    wants_values: bool = False

    @property
    def has_rows(self) -> bool:
        """True if there is at least one row to draw."""
        return True

    @property
    def epoch(self) -> int | None:
        """The number of complete passes over a data set; None for a source that makes no passes."""
        return None

    def sample(self, updates: int, batch_size: int) -> Batch:
        """Draw the transitions of the next updates: [updates * batch_size], one update after the other."""
        raise NotImplementedError(f"{type(self).__name__} must define sample")

    def columns(self, batch: Batch, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns of a batch for the learner.

        :param batch: a batch from ``sample``
        :param columns: the columns that the algorithm made from this batch
        """
        return columns

    def rule(self, rule: UpdateRule) -> UpdateRule:
        """The algorithm's rule, changed to read the result of ``columns``."""
        return rule

    def stages(self, stages: Stages) -> Stages:
        """The stages of the algorithm's update, with their rules changed by ``rule``."""
        return tuple(replace(stage, rule=self.rule(stage.rule)) for stage in stages)

    def take_errors(self, batch: Batch, errors: np.ndarray) -> None:
        """Receive the errors of the networks on a batch. Only a source that ``wants_errors`` receives them.

        :param batch: a batch from ``sample``
        :param errors: [len(batch)] the absolute errors
        """

    def take_values(self, batch: Batch, values: dict[str, np.ndarray]) -> None:
        """Receive the values that the update rule returned for a batch. Only a source that ``wants_values`` receives
        them.

        :param batch: a batch from ``sample``, for K updates
        :param values: [K, n, ...] by name; see ``Update``
        """

    def seed(self, seed: Any) -> None:
        """Restart the source's own random stream, if it has one, from an int or a ``SeedSequence``."""

    def get_state(self) -> dict[str, Any]:
        """The state that a checkpoint needs to continue exactly, as plain data. It does not include the memory, and may
        be empty."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that ``get_state`` returned."""


class MemoryBatches(BatchSource):
    """Batches that a memory samples."""

    def __init__(self, memory: Memory):
        self._memory = memory
        self.gives_many_at_once = memory.draws_many_batches
        self.wants_errors = memory.has_priorities

    @property
    def has_rows(self) -> bool:
        return self._memory.length() > 0

    def sample(self, updates: int, batch_size: int) -> Batch:
        sampled = self._memory.sample(updates * batch_size)
        # a user's memory may return a list of transitions
        return sampled if isinstance(sampled, Batch) else Batch(sampled)

    def take_errors(self, batch: Batch, errors: np.ndarray) -> None:
        """Update the priorities of the transitions. Ignore a user's batch that did not come from the memory."""
        if "idx" in batch.info_columns:
            self._memory.update_priorities(batch.info("idx"), errors)


class DataSetPass(BatchSource):
    """Passes over a data set in random order. An epoch has each row exactly once. Each epoch has a new order.

    All batches have the same size. If an epoch ends within a batch, the first rows of the next epoch fill the batch, so
    no row is lost or repeated.

    :param data: a memory, or columns. If a memory is split into training and evaluation rows, only the training rows
        are used. Rows that are stored during an epoch belong to the next epoch
    """

    def __init__(self, data: Memory | Batch):
        self._data = data
        self._rows: Callable[[np.ndarray], Batch] = (
            data.transitions_at if isinstance(data, Memory) else data.__getitem__
        )
        self._epoch = 0
        self._order = np.arange(0)
        self._position = 0
        self.seed(None)

    @property
    def has_rows(self) -> bool:
        return self._num_rows() > 0

    def _num_rows(self) -> int:
        return self._data.num_training_transitions() if isinstance(self._data, Memory) else len(self._data)

    @property
    def epoch(self) -> int:
        """The number of complete passes. The last row of a pass completes it."""
        return self._epoch

    def sample(self, updates: int, batch_size: int) -> Batch:
        """The next rows.

        :raises CoachError: if the data set is empty, or has fewer rows than at the beginning of the epoch
        """
        missing, taken = updates * batch_size, []
        while missing:
            if self._position == len(self._order):
                self._begin()
            elif (rows := self._num_rows()) < len(self._order):
                raise CoachError(
                    f"the data set had {len(self._order)} rows when the epoch began, and now has {rows}: "
                    f"do not remove rows during an epoch"
                )
            taken.append(self._order[self._position : self._position + missing])
            self._position += len(taken[-1])
            self._epoch += self._position == len(self._order)
            missing -= len(taken[-1])
        return self._rows(np.concatenate(taken))

    def updates_left_in_epoch(self, batch_size: int) -> int:
        """The number of updates that complete the present epoch, at least 1. The last of them may contain the first
        rows of the next epoch."""
        left = len(self._order) - self._position or self._num_rows()
        return max(1, -(-left // batch_size))

    def _begin(self) -> None:
        rows = self._num_rows()
        if not rows:
            raise CoachError("the data set has no rows to learn from")
        self._stream_before = self._rng.bit_generator.state
        self._order, self._position = self._rng.permutation(rows), 0

    def seed(self, seed: Any) -> None:
        """Restart the random stream of the orders. The order of an epoch in progress does not change."""
        self._rng = np.random.default_rng(seed)
        self._stream_before = self._rng.bit_generator.state

    def get_state(self) -> dict[str, Any]:
        # the order may have millions of rows, so the checkpoint holds the random stream that drew it
        return {
            "epoch": self._epoch,
            "position": self._position,
            "rows": len(self._order),
            "stream": self._stream_before,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = self._stream_before = state["stream"]
        # the same draw as in _begin, from the same stream: it gives the order of the epoch in progress again
        self._order = self._rng.permutation(state["rows"]) if state["rows"] else np.arange(0)
        self._epoch, self._position = state["epoch"], state["position"]


class MixedBatches(BatchSource):
    """Batches with a share of rows from each of several sources, such as a quarter of demonstrations.

    A batch has the rows of the first source first. Shares are rounded to whole rows, to the same numbers in each batch.
    Each source receives the errors of its rows. If only some sources have an info column, the rows of the other sources
    contain NaN, 0 or None there, and 1 for the importance ``weight``. ``epoch`` counts the epochs of the first source.

    :param sources: pairs of a source and its share; the shares add up to 1
    :raises CoachError: if the shares do not add up to 1, or a share is not positive
    """

    def __init__(self, sources: Sequence[tuple[BatchSource, float]]):
        self._sources = [source for source, _ in sources]
        self._shares = [share for _, share in sources]
        if not sources or min(self._shares) <= 0 or not np.isclose(sum(self._shares), 1):
            raise CoachError(f"the shares of a mixture must be positive and add up to 1, not {self._shares}")
        self.gives_many_at_once = all(source.gives_many_at_once for source in self._sources)
        self.wants_errors = any(source.wants_errors for source in self._sources)
        if any(source.wants_values for source in self._sources):
            raise CoachError(
                "a source that wants the values of the update rule cannot be part of a mixture: use it alone"
            )

    @property
    def has_rows(self) -> bool:
        """True if each source has rows."""
        return all(source.has_rows for source in self._sources)

    @property
    def epoch(self) -> int | None:
        return self._sources[0].epoch

    def sample(self, updates: int, batch_size: int) -> Batch:
        """Draw from each source.

        :raises CoachError: if a source's share is less than one row, or the sources have different observations
        """
        # the ends are rounded and not the shares, so that the counts always add up to the batch size
        ends = np.rint(np.cumsum(self._shares) * batch_size).astype(int)
        counts = np.diff(ends, prepend=0)
        if not counts.all():
            raise CoachError(f"batch_size {batch_size} is too small: the shares {self._shares} give a source no row")
        parts = [source.sample(updates, int(count)) for source, count in zip(self._sources, counts)]
        # sort the rows from source by source to update by update
        first = np.cumsum([0, *counts * updates])
        rows = [
            first[number] + np.arange(count * updates).reshape(updates, count) for number, count in enumerate(counts)
        ]
        return _joined(parts)[np.concatenate(rows, axis=1).ravel()]

    def rule(self, rule: UpdateRule) -> UpdateRule:
        """The rule, unchanged.

        :raises CoachError: if a source changes the rule, for example a source of sequences
        """
        if any(source.rule(rule) is not rule for source in self._sources):
            raise CoachError(
                "a mixture takes sources of single transitions, not of sequences: remove the source of sequences"
            )
        return rule

    def take_errors(self, batch: Batch, errors: np.ndarray) -> None:
        """Give each source the errors of its rows. Ignore a user's batch that did not come from ``sample``."""
        if _SOURCE not in batch.info_columns:
            return
        numbers = batch.info(_SOURCE)
        for number, source in enumerate(self._sources):
            if source.wants_errors:
                own = np.flatnonzero(numbers == number)
                source.take_errors(batch[own], errors[own])

    def seed(self, seed: Any) -> None:
        seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        # With one seed for all, sources of equal size would draw the same row numbers.
        for source, child in zip(self._sources, seeds.spawn(len(self._sources))):
            source.seed(child)

    def get_state(self) -> dict[str, Any]:
        return {"sources": [source.get_state() for source in self._sources]}

    def set_state(self, state: dict[str, Any]) -> None:
        for source, own in zip(self._sources, state["sources"]):
            source.set_state(own)


def _joined(parts: Sequence[Batch]) -> Batch:
    """A batch of all rows, part by part. The info column ``batch_source`` has the number of each row's part."""
    if any(part.state_columns.keys() != parts[0].state_columns.keys() for part in parts):
        found = [sorted(part.state_columns) for part in parts]
        raise CoachError(f"the sources of a mixture have different observations: {found}")
    if any(_SOURCE in part.info_columns for part in parts):
        raise CoachError("a mixture cannot contain another mixture: give all sources and their shares to one mixture")

    batch = Batch.joined(parts)
    batch.info_columns[_SOURCE] = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return batch
