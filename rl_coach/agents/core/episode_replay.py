"""Sources of steps from complete episodes: steps with later measurements, and contexts of steps that follow each
other."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.core.batches import BatchSource, DataSetPass
from rl_coach.agents.rules.future_measurements import steps_ahead
from rl_coach.core_types import Batch
from rl_coach.memories.columns import uniform_rows
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay


class StepsOfEpisodes(BatchSource):
    """Base class of the sources that draw steps of complete episodes. Each step is equally likely."""

    def __init__(self, memory: EpisodicExperienceReplay):
        self._memory = memory

    @property
    def has_rows(self) -> bool:
        return self._memory.num_complete_episodes() > 0

    def _drawn(self, count: int) -> np.ndarray:
        """[count], the positions of the steps."""
        # the memory's random stream, because checkpoints of the memory contain it
        return uniform_rows(self._memory.rng, self._memory.num_transitions_in_complete_episodes(), count)


class FutureReplay(StepsOfEpisodes):
    """A source of steps from complete episodes, drawn uniformly, with two info columns:

    - ``future_measurements`` [B, K, M], the change of each measurement after each of K offsets, divided by its scale
    - ``is_known`` [B, K], True if the episode does not end before the offset

    After the end of an episode, a measurement keeps its value of the last state.

    :param name: the name of the observation [M] with the measurements
    :param num_offsets: K
    :param scales: [M] the change of each measurement that gives a target of 1
    """

    def __init__(self, memory: EpisodicExperienceReplay, name: str, num_offsets: int, scales: np.ndarray):
        super().__init__(memory)
        self._name = name
        self._num_offsets = num_offsets
        self._scales = scales

    def sample(self, updates: int, batch_size: int) -> Batch:
        memory = self._memory
        steps = self._drawn(updates * batch_size)
        _, last_steps = memory.episodes_around(steps)
        ahead, is_known = steps_ahead(steps, last_steps, self._num_offsets)
        batch = memory.transitions_at(steps)
        future = memory.next_observations_at(self._name, ahead.ravel()).reshape(*ahead.shape, -1)
        changes = future - batch.state_columns[self._name][:, None]
        batch.info_columns["future_measurements"] = np.asarray(changes / self._scales, np.float32)
        batch.info_columns["is_known"] = is_known
        return batch


def contexts(memory: EpisodicExperienceReplay, firsts: np.ndarray, length: int) -> Batch:
    """B contexts of K steps as B * K rows. Copies of the last step fill up a context that the end of the episode cuts.
    There are two info columns:

    - ``timestep`` [B * K], the number of the step in its episode, from 0 on
    - ``is_step`` [B * K], 0 for the copies and 1 for all others

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
