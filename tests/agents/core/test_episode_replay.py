"""Steps with what was measured later in their episodes, without an agent, by numbers worked out by hand."""

from __future__ import annotations

import itertools

import numpy as np

from rl_coach.agents.core.episode_replay import FutureReplay
from rl_coach.core_types import Episode, Transition
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity


def measured(*measurements: float) -> Episode:
    """An episode whose states have these measurements."""
    episode, last = Episode(), len(measurements) - 2
    for number, (before, after) in enumerate(itertools.pairwise(measurements)):
        states = ({"measurements": np.array([value], np.float32)} for value in (before, after))
        episode.insert(Transition(next(states), 0, 0.0, next(states), game_over=number == last))
    return episode


def test_a_target_is_the_scaled_change_and_stays_what_it_was_when_the_episode_ended():
    memory = EpisodicExperienceReplay((MemoryGranularity.Transitions, 100))
    memory.seed(0)
    source = FutureReplay(memory, "measurements", num_offsets=2, scales=np.array([10.0]))
    assert not source.has_rows
    memory.store_episode(measured(0, 10, 30, 60))
    memory.store_episode(measured(5, 25))
    assert source.has_rows
    batch = source.sample(updates=10, batch_size=20)
    assert len(batch) == 200
    found = {
        float(before[0]): (future.ravel().tolist(), is_known.tolist())
        for before, future, is_known in zip(
            batch.state_columns["measurements"], batch.info("future_measurements"), batch.info("is_known")
        )
    }
    # one and two steps ahead; an episode never goes on in the next one
    assert found == {
        0: ([1, 3], [True, True]),
        10: ([2, 5], [True, True]),
        30: ([3, 3], [True, False]),
        5: ([2, 2], [True, False]),
    }
