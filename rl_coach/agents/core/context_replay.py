"""Sources of contexts: steps of recorded episodes that follow each other."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.core.batches import DataSetPass, StepsOfEpisodes
from rl_coach.core_types import Batch
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
    begins, last = (positions[:, None] for positions in memory.episodes_around(firsts))
    steps = firsts[:, None] + np.arange(length)
    rows = np.minimum(steps, last)
    batch = memory.transitions_at(rows.ravel())
    batch.info_columns["timestep"] = (rows - begins).ravel()
    batch.info_columns["is_step"] = (steps <= last).astype(np.float32).ravel()
    return batch


class ContextReplay(StepsOfEpisodes):
    """Contexts from the complete episodes of a memory. Each step is equally likely to be the first step of a context.

    :param memory: keeps complete episodes in order
    :param length: K, the steps of a context
    """

    def __init__(self, memory: EpisodicExperienceReplay, length: int):
        super().__init__(memory)
        self._length = length

    def sample(self, updates: int, batch_size: int) -> Batch:
        return contexts(self._memory, self._drawn(updates * batch_size), self._length)


class ContextPass(DataSetPass):
    """Passes over a memory. Each step begins one context of a pass. See ``ContextReplay``."""

    def __init__(self, memory: EpisodicExperienceReplay, length: int):
        super().__init__(memory)
        self._rows = lambda firsts: contexts(memory, firsts, length)
