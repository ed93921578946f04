"""Memories of single transitions."""

from rl_coach.memories.non_episodic.balanced_experience_replay import (
    BalancedExperienceReplay,
    BalancedExperienceReplayParameters,
)
from rl_coach.memories.non_episodic.differentiable_neural_dictionary import QDND
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay, ExperienceReplayParameters
from rl_coach.memories.non_episodic.prioritized_experience_replay import (
    PrioritizedExperienceReplay,
    PrioritizedExperienceReplayParameters,
)
from rl_coach.memories.non_episodic.transition_collection import TransitionCollection

__all__ = [
    "BalancedExperienceReplay",
    "BalancedExperienceReplayParameters",
    "ExperienceReplay",
    "ExperienceReplayParameters",
    "PrioritizedExperienceReplay",
    "PrioritizedExperienceReplayParameters",
    "QDND",
    "TransitionCollection",
]
