"""Settings that a program changes on a live agent have effect from the next update on."""

from __future__ import annotations

from typing import Any

import pytest

from rl_coach.core_types import EnvironmentSteps
from rl_coach.schedules import LinearSchedule
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import acer, actor_critic, clipped_ppo, dqn


def asked(agent: Any) -> list[int]:
    """The sizes of the batches that an agent asks its memory for from now on."""
    sizes: list[int] = []
    sample = agent.memory.sample
    agent.memory.sample = lambda size: (sizes.append(size), sample(size))[1]
    return sizes


def test_batches_phases_and_periods_of_dqn(tmp_path):
    parameters = dqn()
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2)
    parameters.exploration.epsilon_schedule = LinearSchedule(1.0, 0.0, 100)
    manager = graph(parameters, Bandit, tmp_path, schedule(400, heatup=40))
    manager.heatup(EnvironmentSteps(40))
    agent = manager.get_agent()
    algorithm, network = agent.ap.algorithm, agent.ap.network_wrappers["main"]
    sizes = asked(agent)
    manager.train_and_act(EnvironmentSteps(4))
    before = network.batch_size
    assert sizes == [before] * 2
    network.batch_size = 5
    manager.train_and_act(EnvironmentSteps(4))
    assert sizes[2:] == [5, 5]
    algorithm.num_consecutive_training_steps = 3
    manager.train_and_act(EnvironmentSteps(2))
    assert agent.training_iteration == 7 and sum(sizes[4:]) == 15
    algorithm.num_consecutive_playing_steps.num_steps = 5
    manager.train_and_act(EnvironmentSteps(10))
    assert agent.training_iteration == 7 + 2 * 3
    algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
    manager.train_and_act(EnvironmentSteps(2))
    assert agent.training_iteration == 13 + 2 * 3
    epsilon = agent.exploration_policy.epsilon_schedule
    now = epsilon.current_value
    assert now == pytest.approx(1.0 - epsilon.num_steps / 100)
    epsilon.decay_steps, epsilon.num_steps = 200, 100
    epsilon.step()
    assert epsilon.current_value == pytest.approx(1.0 - 101 / 200)


def test_targets_follow_a_period_that_changes(tmp_path):
    parameters = dqn()
    parameters.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(20)
    manager = graph(parameters, Bandit, tmp_path, schedule(400, heatup=0))
    agent, copied = manager.get_agent(), []
    network = agent.networks["main"]
    update = network.update_target_network
    network.update_target_network = lambda rate: (copied.append(agent.total_steps_counter), update(rate))
    manager.train_and_act(EnvironmentSteps(40))
    assert copied == [20, 40]
    agent.ap.algorithm.num_steps_between_copying_online_weights_to_target.num_steps = 6
    manager.train_and_act(EnvironmentSteps(18))
    assert copied[2:] == [46, 52, 58]


def test_minibatches_and_epochs_of_ppo(tmp_path):
    parameters = clipped_ppo()
    parameters.network_wrappers["main"].batch_size = 16
    manager = graph(parameters, Bandit, tmp_path, schedule(400))
    agent, made = manager.get_agent(), []
    update = agent.update_loop.update
    agent.update_loop.update = lambda **how: (made.append(how["count"]), update(**how))[1]
    steps = agent.ap.algorithm.num_consecutive_playing_steps
    manager.train_and_act(EnvironmentSteps(70))
    assert made == [4 * 5]  # four epochs of 70 steps, whole episodes
    agent.ap.network_wrappers["main"].batch_size = 35
    agent.ap.algorithm.optimization_epochs = 3
    manager.train_and_act(EnvironmentSteps(70))
    assert made[1:] == [3 * 2]
    steps.num_steps = 20
    manager.train_and_act(EnvironmentSteps(40))
    assert made[2:] == [3, 3]


def test_segments_of_actor_critic(tmp_path):
    parameters = actor_critic()
    parameters.algorithm.num_steps_between_gradient_updates = 5
    manager = graph(parameters, Bandit, tmp_path, schedule(400))
    agent = manager.get_agent()
    manager.train_and_act(EnvironmentSteps(20))
    assert agent.training_iteration == 4
    agent.ap.algorithm.num_steps_between_gradient_updates = 2
    manager.train_and_act(EnvironmentSteps(20))
    assert agent.training_iteration == 4 + 10
    agent.ap.algorithm.num_steps_between_gradient_updates = 10
    agent.ap.algorithm.apply_gradients_every_x_episodes = 2
    manager.train_and_act(EnvironmentSteps(40))
    assert agent.training_iteration == 14 + 2


def test_replay_of_acer(tmp_path):
    """With a ratio of 0 there is one update for each new segment of 5 steps; with one of 50, many more."""
    parameters = acer()
    algorithm = parameters.algorithm
    algorithm.num_steps_between_gradient_updates, algorithm.ratio_of_replay = 5, 0
    algorithm.num_transitions_to_start_replay = 0
    manager = graph(parameters, Bandit, tmp_path, schedule(400))
    agent, sizes = manager.get_agent(), []
    sample = agent.memory.sample
    agent.memory.sample = lambda size, *how: (sizes.append(size), sample(size, *how))[1]
    manager.train_and_act(EnvironmentSteps(40))
    assert sizes == []
    agent.ap.algorithm.ratio_of_replay = 50
    manager.train_and_act(EnvironmentSteps(5))
    assert len(sizes) > 10 and set(sizes) == {5}
    agent.ap.algorithm.num_transitions_to_start_replay = 10000
    sizes.clear()
    manager.train_and_act(EnvironmentSteps(20))
    assert sizes == []
    agent.ap.algorithm.num_transitions_to_start_replay = 0
    agent.ap.algorithm.num_steps_between_gradient_updates = 2
    manager.train_and_act(EnvironmentSteps(4))
    assert set(sizes) == {2}
