"""Soft actor-critic with SimbaV2's networks swings up a pendulum. Weights and features are on spheres, critics predict
distributions of returns, and rewards are scaled. The policy is half as wide as in the paper, the critics are a quarter
as wide, and each network has one block."""

import math
from typing import Any

from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward import RewardReturnScalingFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.presets.tuned._networks import normalize_observations, on_spheres

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(100)
schedule_params.improve_steps = EnvironmentSteps(20_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(2_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = SoftActorCriticAgentParameters(use_value_network=False)
on_spheres(agent_params, policy_units=64, critic_units=128, depth=1)
for name in ("policy", "q", "temperature"):
    agent_params.network_wrappers[name].learning_rate = 0.001
temperature: Any = agent_params.network_wrappers["temperature"]
temperature.trained = {"log_temperature": math.log(0.01)}
agent_params.algorithm.discount = 0.99
agent_params.algorithm.target_entropy = -0.5
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_reward_filter("scale", RewardReturnScalingFilter(discount=0.99, largest_return=5.0))
normalize_observations(agent_params)
agent_params.memory.max_size = (MemoryGranularity.Transitions, 1_000_000)

# Environment
env_params = GymVectorEnvironment(level="Pendulum-v1")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
