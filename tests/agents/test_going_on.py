"""An agent restored from its state goes on exactly as the one that it was taken from."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.layers import NoisyNetDense
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentEpisodes
from rl_coach.exploration_policies.parameter_noise import ParameterNoiseParameters
from tests.zoo.agents import CoachDQN, of_class
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import clipped_ppo, dqn, policy_gradients, prioritized, soft_actor_critic, with_statistics
from tests.zoo.states import weights_of


def noisy() -> AgentParameters:
    agent = dqn()
    agent.exploration = ParameterNoiseParameters(agent)
    return agent


def coach_style() -> AgentParameters:
    return of_class(with_statistics(prioritized()), CoachDQN)


def segments() -> AgentParameters:
    agent = policy_gradients()
    agent.algorithm.apply_gradients_every_x_episodes = 3
    agent.algorithm.num_steps_between_gradient_updates = 4
    return agent


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        (noisy, Bandit),
        (coach_style, Bandit),
        (segments, Bandit),
        (clipped_ppo, Bandit),
        (soft_actor_critic, Target),
    ],
)
def test_restored_agents_go_on_exactly(parameters, problem, tmp_path):
    first = graph(parameters(), problem, tmp_path, schedule(10**6, heatup=40), seed=1)
    first.heatup(first.heatup_steps)
    first.train_and_act(EnvironmentEpisodes(8))
    state = copy.deepcopy(first.get_state())
    second = graph(parameters(), problem, tmp_path, schedule(10**6, heatup=40), seed=2)
    second.set_state(state)
    for manager in (first, second):
        manager.train_and_act(EnvironmentEpisodes(9))
    assert first.get_agent().training_iteration == second.get_agent().training_iteration > 1
    for a, b in zip(weights_of(first), weights_of(second)):
        np.testing.assert_array_equal(a, b)


def test_parameter_noise_makes_dense_layers_noisy(tmp_path):
    manager = graph(noisy(), Bandit, tmp_path)
    network: Any = manager.get_agent().networks["main"]
    assert network.network_parameters.heads_parameters[0].dense_layer is NoisyNetDense
    # two noisy layers of four arrays each
    assert len(network.online_network.get_weights()) == 8
