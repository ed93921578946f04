"""Passes over recorded episodes in contexts of several steps."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.core.batches import DataSetPass
from rl_coach.core_types import Batch
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay


class ContextReplay(DataSetPass):
    """Passes in which each step of an episode begins a context once. A row of ``DataSetPass`` is a context
    here: K rows of the batch with the steps from that step on. Copies of the last step fill up a context that the end
    of the episode cuts. There are two info columns:

    - ``timestep`` [B * K], the number of the step in its episode, from 0 on
    - ``is_step`` [B * K], 0 for the copies and 1 for all others

    :param memory: keeps complete episodes in order
    :param length: K
    """

    def __init__(self, memory: EpisodicExperienceReplay, length: int):
        super().__init__(memory)
        self._memory, self._length = memory, length
        self._rows = self._contexts

    def _contexts(self, positions: np.ndarray) -> Batch:
        ends = np.cumsum(self._memory.episode_lengths())
        # the first end after a step is the end of its episode
        episodes = ends.searchsorted(positions, "right")
        steps, last = positions[:, None] + np.arange(self._length), ends[episodes][:, None] - 1
        rows = np.minimum(steps, last)
        batch = self._memory.transitions_at(rows.ravel())
        begins = np.concatenate([[0], ends])[episodes][:, None]
        batch.info_columns["timestep"] = (rows - begins).ravel()
        batch.info_columns["is_step"] = (steps <= last).astype(np.float32).ravel()
        return batch
