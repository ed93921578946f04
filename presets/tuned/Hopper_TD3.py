"""TD3 makes a leg hop, for a million steps: the settings of Fujimoto et al. 2018, with rl-zoo's networks."""

from rl_coach.agents.td3_agent import TD3AgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import as_deterministic_policy

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(10_000)
schedule_params.improve_steps = EnvironmentSteps(990_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(49_500)
schedule_params.evaluation_steps = EnvironmentEpisodes(5)

# Agent
agent_params = TD3AgentParameters()
as_deterministic_policy(agent_params, replay_size=1_000_000)
agent_params.algorithm.discount = 0.99
agent_params.algorithm.policy_noise = 0.2
agent_params.algorithm.noise_clipping = 0.5
agent_params.algorithm.act_for_full_episodes = False
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)

# Environment
env_params = GymVectorEnvironment(level="Hopper-v5")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
