"""Agents of continuous actions learn to reach goals from hindsight."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.agents.ddpg_agent import DDPGAgentParameters
from rl_coach.agents.td3_agent import TD3AgentParameters
from rl_coach.core_types import EnvironmentEpisodes
from tests.zoo.goals import WalkToGoal, with_hindsight
from tests.zoo.graphs import graph, schedule


@pytest.mark.parametrize("make", [DDPGAgentParameters, TD3AgentParameters])
def test_they_reach_goals(make, tmp_path):
    parameters = with_hindsight(make())
    if make is TD3AgentParameters:
        parameters.algorithm.policy_noise, parameters.algorithm.noise_clipping = 0.04, 0.1  # actions are up to 0.2
    manager = graph(parameters, WalkToGoal, tmp_path, schedule(EnvironmentEpisodes(60)))
    manager.improve()
    agent = manager.get_agent()
    assert agent.training_iteration > 0
    assert agent.memory.num_transitions() > 3 * agent.clock.steps  # those with another goal are learned from
    manager.evaluate(EnvironmentEpisodes(20))
    rewards = manager.evaluation_rewards
    assert len(rewards) == 20 and np.mean(np.array(rewards) > -30) >= 0.9
    assert np.mean(rewards) > -8  # the straight way takes ten steps at most
