"""DDPG swings up a pendulum."""

from rl_coach.agents.ddpg_agent import DDPGAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import as_deterministic_policy

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(10_000)
schedule_params.improve_steps = EnvironmentSteps(10_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(1_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = DDPGAgentParameters()
as_deterministic_policy(agent_params, replay_size=200_000)
agent_params.network_wrappers["critic"].heads_parameters[0].initializer = "xavier"  # the initial weights of the network
agent_params.algorithm.discount = 0.98

# Environment
env_params = GymVectorEnvironment(level="Pendulum-v1")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
