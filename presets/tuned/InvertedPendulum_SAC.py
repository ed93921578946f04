"""Soft actor-critic balances a pendulum on a cart, with the settings of Haarnoja et al. 2018b, table 1."""

from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import as_soft_actor_critic

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(1_000)
schedule_params.improve_steps = EnvironmentSteps(30_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(3_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = SoftActorCriticAgentParameters(use_value_network=False)
as_soft_actor_critic(agent_params, learning_rate=0.0003)

# Environment
env_params = GymVectorEnvironment(level="InvertedPendulum-v5")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
