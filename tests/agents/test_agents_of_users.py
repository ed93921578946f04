"""Agents as people wrote them for Coach run as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters
from rl_coach.exploration_policies.greedy import GreedyParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from tests.zoo.agents import Alternating, CoachDQN, CoachPG, ExtendedPG, SelectingDQN, of_class
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn, policy_gradients, prioritized, with_statistics
from tests.zoo.states import weights_of


def trained(parameters: AgentParameters, tmp_path: Any, steps: int = 60) -> Any:
    manager = graph(parameters, Bandit, tmp_path, schedule(steps, heatup=40))
    manager.improve()
    return manager


@pytest.mark.parametrize("base", [dqn, prioritized, lambda: with_statistics(dqn())], ids=["dqn", "per", "filtered"])
def test_q_learning_in_numpy_learns_what_the_update_rule_learns(base, tmp_path):
    built_in = trained(of_class(base(), DQNAgent), tmp_path)
    for agent in (CoachDQN, SelectingDQN):
        own = trained(of_class(base(), agent), tmp_path)
        assert own.get_agent().training_iteration == built_in.get_agent().training_iteration > 20
        for a, b in zip(weights_of(own), weights_of(built_in)):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


def test_policy_gradients_in_numpy_learn_what_the_update_rule_learns(tmp_path):
    def parameters() -> Any:
        agent = with_statistics(policy_gradients())
        agent.algorithm.apply_gradients_every_x_episodes = 1
        agent.algorithm.num_steps_between_gradient_updates = 4
        return agent

    built_in = trained(parameters(), tmp_path)
    for kind in (CoachPG, ExtendedPG):
        own = trained(of_class(parameters(), kind), tmp_path)
        assert own.get_agent().training_iteration == built_in.get_agent().training_iteration == 18
        for a, b in zip(weights_of(own), weights_of(built_in)):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)
    assert own.get_agent().seen == 60


def test_an_agent_without_networks_acts(tmp_path):
    parameters = AgentParameters(AlgorithmParameters(), GreedyParameters(), ExperienceReplayParameters(), {})
    manager = trained(of_class(parameters, Alternating), tmp_path)
    memory = manager.get_agent().memory
    assert memory.num_transitions() == 100
    np.testing.assert_array_equal([memory.get(i).action for i in range(-10, 0)], [1, 0] * 5)


def test_an_agent_without_an_update_rule_says_what_is_missing(tmp_path):
    parameters = of_class(dqn(), Alternating)
    with pytest.raises(NotImplementedError, match="Alternating has no update rule"):
        trained(parameters, tmp_path)
