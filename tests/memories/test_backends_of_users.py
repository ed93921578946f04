"""Memory backends that were written for Coach, which define ``store`` alone."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.core_types import Episode, Transition
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import Memory, MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay


class StoreAlone:
    def __init__(self):
        self.got = []

    def store(self, what):
        self.got.append(what)


def episode():
    made = Episode()
    state = {"observation": np.zeros(2, np.float32)}
    made.insert(Transition(state=state, action=0, reward=1.0, next_state=state, game_over=True))
    return made


@pytest.mark.parametrize(
    ("kind", "unit", "gets"),
    [
        (Memory, MemoryGranularity.Transitions, Episode),
        (EpisodicExperienceReplay, MemoryGranularity.Episodes, Episode),
        (ExperienceReplay, MemoryGranularity.Transitions, Transition),
    ],
)
def test_an_episode_reaches_the_backend_by_store(kind, unit, gets):
    memory, backend = kind((unit, 10)), StoreAlone()
    memory.set_memory_backend(backend)
    memory.store_episode(episode())
    assert [type(one) for one in backend.got] == [gets]
