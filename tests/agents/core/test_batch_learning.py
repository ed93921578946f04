"""Learning from batches, without an agent: when it is due, and how many updates it makes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.batches import MemoryBatches
from rl_coach.agents.core.clock import TrainingClock
from rl_coach.agents.core.learning import NoLearning
from rl_coach.agents.core.update_loop import BatchLearning
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, PlayUnit, Transition
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay

FOUR_STEPS = EnvironmentSteps(4)
STATE = {"observation": np.zeros(2, np.float32)}


class Updates:
    """Stands for the update loop, and notes how many updates each phase made."""

    def __init__(self) -> None:
        self.phases: list[int] = []

    def learn(self, updates: int) -> float:
        self.phases.append(updates)
        return 0.5


def learning(kind: type = BatchLearning, period: Any = FOUR_STEPS, is_in_episode: bool = False) -> Any:
    """A part with its clock, its memory and its updates."""
    algorithm = AlgorithmParameters()
    algorithm.num_consecutive_playing_steps, algorithm.num_consecutive_training_steps = period, 3
    algorithm.act_for_full_episodes = is_in_episode
    clock, memory, updates = TrainingClock(algorithm), ExperienceReplay((MemoryGranularity.Transitions, 10)), Updates()
    agent = SimpleNamespace(
        clock=clock, memory=memory, update_loop=updates, batches=MemoryBatches(memory), is_on_policy=True,
        ap=SimpleNamespace(algorithm=algorithm), is_played_elsewhere=False, parallel=None,
        episode=SimpleNamespace(buffer=SimpleNamespace(is_complete=not is_in_episode)),
    )  # fmt: skip
    return kind(agent), clock, memory, updates


def test_it_is_due_once_the_steps_are_played_and_there_is_something_to_draw():
    part, clock, memory, updates = learning()
    clock.steps = 4
    assert not part.is_due()
    memory.store(Transition(STATE, 0, 1.0, STATE, game_over=False))
    assert part.is_due() and part.is_due()
    assert part.learn() == 0.5 and updates.phases == [3]
    assert not part.is_due()
    clock.steps = 7
    assert not part.is_due() and part.left_to_play() == (1, PlayUnit.STEPS)


def test_it_waits_for_the_end_of_an_episode_if_the_agent_acts_for_full_ones():
    part, clock, memory, _ = learning(is_in_episode=True)
    memory.store(Transition(STATE, 0, 1.0, STATE, game_over=False))
    clock.steps = 100
    assert not part.is_due()


@pytest.mark.parametrize("played, left", [(0, 2), (1, 1), (5, 0)])
def test_others_are_told_the_episodes_that_are_left(played, left):
    part, clock, _, _ = learning(period=EnvironmentEpisodes(2))
    clock.episodes = played
    assert part.left_to_play() == (left, PlayUnit.EPISODES) and part.needs_newest_policy


def test_an_agent_that_learns_nothing_is_never_due():
    part, clock, memory, _ = learning(NoLearning)
    memory.store(Transition(STATE, 0, 1.0, STATE, game_over=True))
    clock.steps = 100
    assert not part.is_due() and part.learn() == 0.0 and part.get_state() == {}
