"""Sources of batches: where an agent's updates get what they learn from."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from rl_coach.architectures.update import UpdateRule
from rl_coach.core_types import Batch
from rl_coach.memories.memory import Memory
from rl_coach.utils import CoachError

_SOURCE = "batch_source"


class BatchSource:
    """Base of all sources. It gives batches, and may arrange their columns for a rule in a form of its own.

    :ivar gives_many_at_once: True if the batches of several updates can be drawn before the first of them is made
    :ivar wants_errors: True if what is drawn next depends on the errors of the networks
    """

    gives_many_at_once: bool = True
    wants_errors: bool = False

    @property
    def has_rows(self) -> bool:
        """True if there is anything to draw."""
        return True

    @property
    def epoch(self) -> int | None:
        """The number of complete passes over a data set; None for a source that makes no passes."""
        return None

    def sample(self, updates: int, batch_size: int) -> Batch:
        """Draw the transitions of the next updates, one update after the other."""
        raise NotImplementedError(f"{type(self).__name__} gives no batches")

    def columns(self, batch: Batch, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns for the learner.

        :param batch: what ``sample`` returned
        :param columns: those that the algorithm made of it
        """
        return columns

    def rule(self, rule: UpdateRule) -> UpdateRule:
        """An algorithm's rule, changed to take what ``columns`` returns."""
        return rule

    def take_errors(self, batch: Batch, errors: np.ndarray) -> None:
        """Take the errors of the networks, if the source ``wants_errors``.

        :param batch: what ``sample`` returned
        :param errors: [len(batch)] the absolute errors
        """

    def seed(self, seed: Any) -> None:
        """Restart the source's own random stream, if it has one, from an int or a ``SeedSequence``."""

    def get_state(self) -> dict[str, Any]:
        """State that an exact continuation needs besides the memory, as plain data; empty if there is none."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from ``get_state``."""


class MemoryBatches(BatchSource):
    """Batches from a memory, as it samples them.

    :param memory: an agent's memory
    """

    def __init__(self, memory: Memory):
        self._memory = memory
        self.gives_many_at_once = memory.draws_many_batches
        self.wants_errors = memory.has_priorities

    @property
    def has_rows(self) -> bool:
        return self._memory.length() > 0

    def sample(self, updates: int, batch_size: int) -> Batch:
        sampled = self._memory.sample(updates * batch_size)
        return sampled if isinstance(sampled, Batch) else Batch(sampled)  # a user's memory may give transitions

    def take_errors(self, batch: Batch, errors: np.ndarray) -> None:
        """Change the transitions' priorities, if the batch is of the memory: a user may have given one."""
        if "idx" in batch.info_columns:
            self._memory.update_priorities(batch.info("idx"), errors)


class DataSetPass(BatchSource):
    """Passes over a data set in random order. One epoch has each row exactly once, and a new order.

    All batches have the same size. Where an epoch ends within a batch, the batch goes on with the first rows of the
    next epoch, so no row is left out and none is repeated.

    :param data: a memory, or columns. Of a memory that is split into training and evaluation, only the training rows.
        What is stored during an epoch is part of the next one
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

        :raises CoachError: there are none, or fewer than when the epoch began
        """
        missing, taken = updates * batch_size, []
        while missing:
            if self._position == len(self._order):
                self._begin()
            elif (rows := self._num_rows()) < len(self._order):
                raise CoachError(f"the data set had {len(self._order)} rows when the epoch began, and now has {rows}")
            taken.append(self._order[self._position : self._position + missing])
            self._position += len(taken[-1])
            self._epoch += self._position == len(self._order)
            missing -= len(taken[-1])
        return self._rows(np.concatenate(taken))

    def updates_left_in_epoch(self, batch_size: int) -> int:
        """The number of updates up to the one that completes the present epoch, that one included; at least 1."""
        left = len(self._order) - self._position or self._num_rows()
        return max(1, -(-left // batch_size))

    def _begin(self) -> None:
        rows = self._num_rows()
        if not rows:
            raise CoachError("the data set has no rows to learn from")
        self._stream_before = self._rng.bit_generator.state
        self._order, self._position = self._rng.permutation(rows), 0

    def seed(self, seed: Any) -> None:
        """Restart the random stream of the orders; the order of an epoch in progress stays."""
        self._rng = np.random.default_rng(seed)
        self._stream_before = self._rng.bit_generator.state

    def get_state(self) -> dict[str, Any]:
        # the order itself may have millions of rows: the stream from which it was drawn gives it again
        return {
            "epoch": self._epoch,
            "position": self._position,
            "rows": len(self._order),
            "stream": self._stream_before,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = self._stream_before = state["stream"]
        self._order = self._rng.permutation(state["rows"]) if state["rows"] else np.arange(0)
        self._epoch, self._position = state["epoch"], state["position"]


class MixedBatches(BatchSource):
    """Batches with a share of rows from each of several sources, such as a quarter of demonstrations.

    A batch has the rows of the first source first. Shares are rounded to whole rows, to the same numbers in each batch.
    Errors go back to the source that a row comes from. If only some sources have an info column, the rows of the others
    are without a value there (NaN, 0 or None); their importance ``weight`` is 1. The epoch is that of the first source.

    :param sources: pairs of a source and its share; the shares add up to 1
    :raises CoachError: they do not, or one is not positive
    """

    def __init__(self, sources: Sequence[tuple[BatchSource, float]]):
        self._sources = [source for source, _ in sources]
        self._shares = [share for _, share in sources]
        if not sources or min(self._shares) <= 0 or not np.isclose(sum(self._shares), 1):
            raise CoachError(f"the shares of a mixture must be positive and add up to 1, not {self._shares}")
        self.gives_many_at_once = all(source.gives_many_at_once for source in self._sources)
        self.wants_errors = any(source.wants_errors for source in self._sources)

    @property
    def has_rows(self) -> bool:
        """True if each source has rows."""
        return all(source.has_rows for source in self._sources)

    @property
    def epoch(self) -> int | None:
        return self._sources[0].epoch

    def sample(self, updates: int, batch_size: int) -> Batch:
        """Draw from each source.

        :raises CoachError: a share is less than a row, or the sources have different observations
        """
        ends = np.rint(np.cumsum(self._shares) * batch_size).astype(int)
        counts = np.diff(ends, prepend=0)
        if not counts.all():
            raise CoachError(f"a share of {self._shares} is less than one row of a batch of {batch_size}")
        parts = [source.sample(updates, int(count)) for source, count in zip(self._sources, counts)]
        # rows come source by source, and are to come update by update
        first = np.cumsum([0, *counts * updates])
        rows = [
            first[number] + np.arange(count * updates).reshape(updates, count) for number, count in enumerate(counts)
        ]
        return _joined(parts)[np.concatenate(rows, axis=1).ravel()]

    def rule(self, rule: UpdateRule) -> UpdateRule:
        """The rule itself.

        :raises CoachError: a source has rows of a form of its own, such as sequences
        """
        if any(source.rule(rule) is not rule for source in self._sources):
            raise CoachError("a mixture takes sources of single transitions, not of sequences")
        return rule

    def take_errors(self, batch: Batch, errors: np.ndarray) -> None:
        """Give each source the errors of its own rows; none to a batch that a user has given."""
        if _SOURCE not in batch.info_columns:
            return
        numbers = batch.info(_SOURCE)
        for number, source in enumerate(self._sources):
            if source.wants_errors:
                own = np.flatnonzero(numbers == number)
                source.take_errors(batch[own], errors[own])

    def seed(self, seed: Any) -> None:
        seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        for source, child in zip(self._sources, seeds.spawn(len(self._sources))):
            source.seed(child)

    def get_state(self) -> dict[str, Any]:
        return {"sources": [source.get_state() for source in self._sources]}

    def set_state(self, state: dict[str, Any]) -> None:
        for source, own in zip(self._sources, state["sources"]):
            source.set_state(own)


def _joined(parts: Sequence[Batch]) -> Batch:
    """A batch of all rows, with the number of the part that each comes from in info column ``batch_source``."""
    if any(part.state_columns.keys() != parts[0].state_columns.keys() for part in parts):
        found = [sorted(part.state_columns) for part in parts]
        raise CoachError(f"the sources of a mixture have different observations: {found}")
    if any(_SOURCE in part.info_columns for part in parts):
        raise CoachError("a mixture cannot contain another mixture: give all sources and their shares to one")

    batch = Batch.joined(parts)
    batch.info_columns[_SOURCE] = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return batch
