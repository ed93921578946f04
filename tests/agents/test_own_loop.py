"""An agent in a loop of its user's own: no graph, no level, no filters set by hand."""

from __future__ import annotations

import gymnasium
import numpy as np

from rl_coach.agents.dqn_agent import DQNAgent, DQNAgentParameters
from rl_coach.base_parameters import TaskParameters
from rl_coach.core_types import EnvironmentSteps, EnvResponse, RunPhase
from rl_coach.spaces import DiscreteActionSpace, RewardSpace, SpacesDefinition, StateSpace, VectorObservationSpace
from tests.frameworks import FRAMEWORK


def test_an_agent_learns_in_a_loop_of_ones_own(tmp_path):
    parameters = DQNAgentParameters()
    parameters.task_parameters = TaskParameters(FRAMEWORK, experiment_path=str(tmp_path))
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
    agent = DQNAgent(parameters)
    agent.seed(0)
    agent.set_environment_parameters(
        SpacesDefinition(
            state=StateSpace({"observation": VectorObservationSpace(4)}),
            goal=None,
            action=DiscreteActionSpace(2),
            reward=RewardSpace(1),
        )
    )
    environment = gymnasium.make("CartPole-v1")
    agent.phase = RunPhase.TRAIN
    episodes = steps = 0
    while steps < 60:
        observation, _ = environment.reset(seed=steps)
        agent.reset_internal_state()
        is_over = agent.observe(EnvResponse({"observation": observation}, 0.0, False))
        while not is_over:
            observation, reward, terminated, truncated, _ = environment.step(agent.act().action)
            response = EnvResponse({"observation": observation}, reward, terminated or truncated, terminated=terminated)
            is_over = agent.observe(response)
            agent.train()
            steps += 1
        agent.handle_episode_ended()
        episodes += 1
    assert agent.current_episode == episodes and agent.total_steps_counter == steps
    assert agent.training_iteration == steps == agent.memory.num_transitions()
    assert np.isfinite(float(np.mean(agent.loss.read()[-1])))
    agent.close()
