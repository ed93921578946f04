"""A memory of one episode."""

from __future__ import annotations

from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity, MemoryParameters


class SingleEpisodeBufferParameters(MemoryParameters):
    """The newest episode; nothing to set."""

    path = "rl_coach.memories.episodic.single_episode_buffer:SingleEpisodeBuffer"


class SingleEpisodeBuffer(EpisodicExperienceReplay):
    """The newest episode only: the first transition of the next one makes it go."""

    def __init__(self) -> None:
        super().__init__(max_size=(MemoryGranularity.Episodes, 1))
