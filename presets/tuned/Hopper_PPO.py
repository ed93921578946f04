"""PPO makes a leg hop, with the settings of Schulman et al. 2017, table 3, and normalised observations."""

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import normalize_observations, value_and_policy

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(0)
schedule_params.improve_steps = EnvironmentSteps(50 * 2048)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(5 * 2048)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = ClippedPPOAgentParameters()
value_and_policy(agent_params.network_wrappers["main"], learning_rate=0.0003)
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(8 * 256)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(8 * 256)
agent_params.algorithm.optimization_epochs = 10
agent_params.algorithm.gae_lambda = 0.95
agent_params.algorithm.discount = 0.99
agent_params.algorithm.beta_entropy = 0
agent_params.exploration = AdditiveNoiseParameters()
normalize_observations(agent_params)

# Environment
env_params = GymVectorEnvironment(level="Hopper-v5")
env_params.num_environments = 8

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
