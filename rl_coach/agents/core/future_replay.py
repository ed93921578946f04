"""Replay of single steps together with later measurements of their episodes."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.core.batches import StepsOfEpisodes
from rl_coach.agents.rules.future_measurements import steps_ahead
from rl_coach.core_types import Batch
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay


class FutureReplay(StepsOfEpisodes):
    """A source of steps from complete episodes, drawn uniformly, with two info columns:

    - ``future_measurements`` [B, K, M], the change of each measurement after each of K offsets, divided by its scale
    - ``is_known`` [B, K], True if the episode does not end before the offset

    After the end of an episode, a measurement keeps its value of the last state.

    :param memory: keeps complete episodes in order
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
