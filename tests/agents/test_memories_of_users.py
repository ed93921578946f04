"""Memories as people wrote them for Coach get what agents play, are learned from, and go with checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.core_types import Batch, EnvironmentSteps, Episode, Transition
from rl_coach.memories.backend.memory import MemoryBackend, MemoryBackendParameters
from rl_coach.memories.episodic import EpisodicExperienceReplay
from rl_coach.memories.memory import Memory, MemoryGranularity, receives_episodes
from rl_coach.memories.non_episodic import ExperienceReplay, PrioritizedExperienceReplay
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.memories import EndlessListMemory, EpisodeListMemory, ListMemory, ListMemoryParameters
from tests.zoo.parameters import clipped_ppo, dqn
from tests.zoo.states import weights_of

SIZE = (MemoryGranularity.Transitions, 100)


def transitions(count: int) -> list[Transition]:
    states = [{"observation": np.full(2, number, np.float32)} for number in range(count + 1)]
    return [
        Transition(states[number], number % 2, float(number), states[number + 1], game_over=number % 5 == 4)
        for number in range(count)
    ]


def with_memory(parameters: Any, kind: type[Memory]) -> Any:
    parameters.memory = ListMemoryParameters(kind)
    return parameters


class Sent(MemoryBackend):
    """A backend that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__(MemoryBackendParameters("sent", "local", "worker"))
        self.objects: list[Any] = []

    def store(self, obj: Any) -> None:
        self.objects.append(obj)

    store_episode = store


@pytest.mark.parametrize("kind", [ListMemory, EpisodeListMemory])
def test_an_agent_learns_from_a_list(kind, tmp_path):
    parameters = with_memory(dqn(), kind)
    parameters.algorithm.num_consecutive_training_steps = 4
    manager = graph(parameters, Bandit, tmp_path, schedule(60, heatup=40))
    manager.improve()
    memory = manager.get_agent().memory
    assert memory.num_transitions() == memory.length() == len(memory.transitions) == 100
    assert manager.get_agent().training_iteration >= 60
    # each update of four in a phase asks for its own batch, of which no row comes twice
    assert memory.largest_sample == parameters.network_wrappers["main"].batch_size
    if kind is EpisodeListMemory:
        assert memory.episodes == [10] * 10
    mean = float(np.mean([transition.reward for transition in memory.transitions]))
    assert memory.mean_reward() == pytest.approx(mean)


def test_a_checkpoint_holds_the_list(tmp_path):
    whole = graph(with_memory(dqn(), ListMemory), Bandit, tmp_path / "whole", schedule(80, heatup=40))
    whole.improve()
    first = graph(with_memory(dqn(), ListMemory), Bandit, tmp_path / "parts", schedule(40, heatup=40))
    first.improve()
    path = first.save_checkpoint()
    second = graph(
        with_memory(dqn(), ListMemory), Bandit, tmp_path / "parts", schedule(80, heatup=40),
        checkpoint_restore_path=path, resume=True,
    )  # fmt: skip
    assert isinstance(second.get_agent().memory.transitions, list)
    second.improve()
    assert second.get_agent().memory.length() == 120
    for one, other in zip(weights_of(second), weights_of(whole)):
        np.testing.assert_array_equal(one, other)


def test_the_base_class_sends_what_is_stored():
    memory, backend = Memory(SIZE), Sent()
    memory.store("kept nowhere")
    memory.set_memory_backend(backend)
    transition, episode = transitions(1)[0], Episode()
    memory.store(transition)
    memory.store_episode(episode)
    assert backend.objects == [transition, episode]


@pytest.mark.parametrize("make", [ExperienceReplay, PrioritizedExperienceReplay, EpisodicExperienceReplay])
def test_an_assignment_replaces_the_columns(make):
    memory = make(SIZE)
    memory.transitions = transitions(20)
    memory.transitions = transitions(10)
    assert isinstance(memory.transitions, Batch)
    np.testing.assert_array_equal(memory.transitions.reward_column, np.arange(10))
    assert memory.sample(7).size == 7
    memory.transitions = []
    assert memory.num_transitions() == 0


class Says(EpisodeListMemory):
    stores_episodes = False


class WithEpisodes(ExperienceReplay):
    def store_episode(self, episode: Episode, lock: bool = True) -> None:
        super().store_episode(episode, lock)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ListMemory, False),
        (EpisodeListMemory, True),
        (EndlessListMemory, True),
        (Says, False),
        (ExperienceReplay, False),
        (PrioritizedExperienceReplay, False),
        (WithEpisodes, True),
        (EpisodicExperienceReplay, True),
    ],
)
def test_a_memory_that_defines_store_episode_receives_episodes(kind, expected):
    assert receives_episodes(kind) is expected
    assert receives_episodes(kind(SIZE)) is expected


@pytest.mark.parametrize("kind", [EpisodeListMemory, EndlessListMemory])
def test_ppo_learns_from_a_list_of_episodes(kind, tmp_path):
    parameters = with_memory(clipped_ppo(), kind)
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(20)
    manager = graph(parameters, Bandit, tmp_path, schedule(40))
    manager.improve()
    assert manager.get_agent().training_iteration == 2


def test_an_episode_without_an_end_is_bootstrapped(tmp_path):
    parameters = clipped_ppo()
    parameters.algorithm.discount, parameters.algorithm.gae_lambda = 0.5, 1.0
    agent = graph(parameters, Bandit, tmp_path).get_agent()
    steps = transitions(7)  # five of one episode, which terminates, and two of one that goes on
    columns = agent.fill_advantages(Batch(steps))
    value = agent.networks["main"].online_network.predict(
        {"observation": steps[-1].next_state["observation"][None]}, outputs=agent.networks["main"].outputs_named("v")
    )
    after = float(np.ravel(value[0] if isinstance(value, list) else value)[0])
    # with lambda 1 the critic learns discounted rewards, and after them the value of what follows
    expected = [1.625, 3.25, 4.5, 5.0, 4.0, 8.0 + 0.25 * after, 6.0 + 0.5 * after]
    np.testing.assert_allclose(columns["extra/returns"], expected, rtol=1e-5)
