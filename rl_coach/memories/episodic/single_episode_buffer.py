"""A memory of one episode."""

from __future__ import annotations

from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity, MemoryParameters


class SingleEpisodeBufferParameters(MemoryParameters):
    """Parameters of a memory of the newest episode. There are no parameters to set."""

    path = "rl_coach.memories.episodic.single_episode_buffer:SingleEpisodeBuffer"


class SingleEpisodeBuffer(EpisodicExperienceReplay):
    """A memory of the newest episode only. The first transition of the next episode removes the old episode."""

    def __init__(self) -> None:
        super().__init__(max_size=(MemoryGranularity.Episodes, 1))
