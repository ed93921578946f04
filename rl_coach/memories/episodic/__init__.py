"""Memories of whole episodes."""

from rl_coach.memories.episodic.episodic_experience_replay import (
    EpisodicExperienceReplay,
    EpisodicExperienceReplayParameters,
)
from rl_coach.memories.episodic.episodic_hindsight_experience_replay import (
    EpisodicHindsightExperienceReplay,
    EpisodicHindsightExperienceReplayParameters,
)
from rl_coach.memories.episodic.episodic_hrl_hindsight_experience_replay import (
    EpisodicHRLHindsightExperienceReplay,
    EpisodicHRLHindsightExperienceReplayParameters,
)
from rl_coach.memories.episodic.single_episode_buffer import SingleEpisodeBuffer, SingleEpisodeBufferParameters

__all__ = [
    "EpisodicExperienceReplay",
    "EpisodicExperienceReplayParameters",
    "EpisodicHRLHindsightExperienceReplay",
    "EpisodicHRLHindsightExperienceReplayParameters",
    "EpisodicHindsightExperienceReplay",
    "EpisodicHindsightExperienceReplayParameters",
    "SingleEpisodeBuffer",
    "SingleEpisodeBufferParameters",
]
