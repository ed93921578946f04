"""Sources of batches: where an agent's updates get what they learn from."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rl_coach.architectures.update import UpdateRule
from rl_coach.core_types import Batch
from rl_coach.memories.memory import Memory


class BatchSource(Protocol):
    """Gives batches, and may lay out what is in them for a rule in a form of its own."""

    gives_many_at_once: bool
    """True if the batches of several updates can be drawn before the first of these updates is made."""
    wants_errors: bool
    """True if what is drawn next depends on how far off the networks were."""

    def sample(self, updates: int, batch_size: int) -> Batch:
        """The transitions of the next updates, one update after the other."""

    def columns(self, batch: Batch, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns for the learner.

        :param batch: what ``sample`` gave
        :param columns: those that the algorithm made of it
        """

    def rule(self, rule: UpdateRule) -> UpdateRule:
        """An algorithm's rule, for columns that ``columns`` gives."""

    def take_errors(self, batch: Batch, errors: np.ndarray) -> None:
        """Learn how far off the networks were.

        :param batch: what ``sample`` gave
        :param errors: [len(batch)] the absolute errors
        """


class MemoryBatches:
    """Batches out of a memory, as it samples them.

    :param memory: an agent's memory
    """

    def __init__(self, memory: Memory):
        self._memory = memory
        self.gives_many_at_once = memory.draws_many_batches
        self.wants_errors = memory.has_priorities

    def sample(self, updates: int, batch_size: int) -> Batch:
        """See ``BatchSource``."""
        return self._memory.sample(updates * batch_size)

    def columns(self, batch: Batch, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See ``BatchSource``."""
        return columns

    def rule(self, rule: UpdateRule) -> UpdateRule:
        """See ``BatchSource``."""
        return rule

    def take_errors(self, batch: Batch, errors: np.ndarray) -> None:
        """Change the transitions' priorities."""
        self._memory.update_priorities(batch.info("idx"), errors)
