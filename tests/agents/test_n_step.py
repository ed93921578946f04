"""DQN with n-step rewards: what is stored, what is bootstrapped, and the loss, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.core_types import EnvironmentSteps
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.utils import CoachError
from tests.zoo.environments import Bandit, Lottery
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn

N, DISCOUNT = 3, 0.9


def played(episodic: bool, whole: bool, tmp_path: Any) -> tuple[Any, list[list[tuple]]]:
    """An agent that has acted for a while, and the steps that it took, by episode."""
    parameters = dqn()
    parameters.algorithm.n_step, parameters.algorithm.discount = N, DISCOUNT
    parameters.algorithm.store_transitions_only_when_episodes_are_terminated = whole
    parameters.network_wrappers["main"].replace_mse_with_huber_loss = False
    if episodic:
        parameters.memory = EpisodicExperienceReplayParameters()
        parameters.memory.n_step = N
    manager = graph(parameters, Lottery, tmp_path, schedule(100, heatup=40))
    agent = manager.get_agent()
    episodes: list[list[tuple]] = [[]]
    take = agent.update_transition_before_adding_to_replay_buffer

    def noted(transition: Any) -> Any:
        state, following = transition.state["observation"], transition.next_state["observation"]
        episodes[-1].append((state, transition.action, transition.reward, following, transition.terminated))
        if transition.game_over:
            episodes.append([])
        return take(transition)

    agent.update_transition_before_adding_to_replay_buffer = noted
    manager.heatup(EnvironmentSteps(80))
    return agent, [episode for episode in episodes if episode]


def by_definition(episodes: list[list[tuple]]) -> list[tuple]:
    """R = sum_{k<n} discount^k r_{t+k}, bootstrapped from s_{t+n} with discount^n, cut at the episode's end (Hessel et
    al. 2018, section 3)."""
    rows = []
    for episode in episodes:
        for t, (state, action, *_) in enumerate(episode):
            steps = episode[t : t + N]
            reward = sum(DISCOUNT**k * step[2] for k, step in enumerate(steps))
            rows.append((state, action, reward, steps[-1][3], DISCOUNT ** len(steps) * (1 - steps[-1][4])))
    return rows


@pytest.mark.parametrize("episodic, whole", [(False, False), (False, True), (True, False)])
def test_what_is_stored_and_learned_from_is_what_the_definition_says(episodic, whole, tmp_path):
    agent, episodes = played(episodic, whole, tmp_path)
    expected = by_definition(episodes)
    batch = agent.memory.transitions
    columns = agent.learning_columns(batch)
    assert len(batch) == len(expected) > 30 and any(len(episode) < N for episode in episodes)
    np.testing.assert_array_equal(columns["states/observation"], [row[0] for row in expected])
    np.testing.assert_array_equal(columns["actions"], [row[1] for row in expected])
    np.testing.assert_allclose(columns["rewards"], [row[2] for row in expected], rtol=1e-6)
    np.testing.assert_array_equal(columns["next_states/observation"], [row[3] for row in expected])
    np.testing.assert_allclose(columns["discounts"], [row[4] for row in expected], rtol=1e-6)


def test_the_loss_is_that_of_the_definition(tmp_path):
    agent, episodes = played(False, False, tmp_path)
    main = agent.networks["main"]
    main.update_online_network(0.0)
    states, actions, rewards, following, discounts = map(np.asarray, zip(*by_definition(episodes)))
    q = main.online_network.predict({"observation": states.astype(np.float32)})
    q_next = main.target_network.predict({"observation": following.astype(np.float32)})
    errors = rewards + discounts * q_next.max(axis=1) - q[np.arange(len(actions)), actions]
    loss, _, _ = agent.learn_from_batch(agent.memory.transitions)
    np.testing.assert_allclose(loss, np.mean(errors**2), rtol=1e-4)


def test_the_last_steps_of_an_open_episode_wait_for_theirs(tmp_path):
    parameters = dqn()
    parameters.algorithm.n_step = N
    manager = graph(parameters, Bandit, tmp_path, schedule(100))
    agent = manager.get_agent()
    manager.act(EnvironmentSteps(5))
    assert agent.episode.buffer.length() == 5 and agent.memory.num_transitions() == 5 - N + 1
    manager.act(EnvironmentSteps(5))
    assert agent.memory.num_transitions() == 10, "the episode has ended: nothing is left behind"


def test_no_number_of_steps_is_refused(tmp_path):
    parameters = dqn()
    parameters.algorithm.n_step = 0
    with pytest.raises(CoachError, match="n_step"):
        graph(parameters, Bandit, tmp_path)
