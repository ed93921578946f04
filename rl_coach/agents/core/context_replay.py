"""Sources of contexts: steps of recorded episodes that follow each other."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.core.batches import BatchSource, DataSetPass
from rl_coach.core_types import Batch
from rl_coach.memories.columns import uniform_rows
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay


def contexts(memory: EpisodicExperienceReplay, firsts: np.ndarray, length: int) -> Batch:
    """B contexts of K steps as B * K rows. Copies of the last step fill up a context that the end of the episode cuts.
    There are two info columns:

    - ``timestep`` [B * K], the number of the step in its episode, from 0 on
    - ``is_step`` [B * K], 0 for the copies and 1 for all others

    :param memory: keeps complete episodes in order
    :param firsts: [B], the positions of the first steps
    :param length: K
    """
    ends = np.cumsum(memory.episode_lengths())
    # the first end after a step is the end of its episode
    episodes = ends.searchsorted(firsts, "right")
    steps, last = firsts[:, None] + np.arange(length), ends[episodes][:, None] - 1
    rows = np.minimum(steps, last)
    batch = memory.transitions_at(rows.ravel())
    begins = np.concatenate([[0], ends])[episodes][:, None]
    batch.info_columns["timestep"] = (rows - begins).ravel()
    batch.info_columns["is_step"] = (steps <= last).astype(np.float32).ravel()
    return batch


class ContextReplay(BatchSource):
    """Contexts from the complete episodes of a memory. Each step is equally likely to be the first one.

    :param memory: keeps complete episodes in order
    :param length: K, the steps of a context
    """

    def __init__(self, memory: EpisodicExperienceReplay, length: int):
        self._memory, self._length = memory, length

    @property
    def has_rows(self) -> bool:
        return self._memory.num_complete_episodes() > 0

    def sample(self, updates: int, batch_size: int) -> Batch:
        count = self._memory.num_transitions_in_complete_episodes()
        return contexts(self._memory, uniform_rows(self._memory.rng, count, updates * batch_size), self._length)


class ContextPass(DataSetPass):
    """Passes over a memory in which each step is the first one of a context once. See ``ContextReplay``."""

    def __init__(self, memory: EpisodicExperienceReplay, length: int):
        super().__init__(memory)
        self._rows = lambda firsts: contexts(memory, firsts, length)
