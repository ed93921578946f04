"""TRPO balances a pole on a cart by continuous forces, with rl-baselines3-zoo's settings for MuJoCo."""

from rl_coach.agents.trpo_agent import TRPOAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import critic_and_actor, normalize_observations

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(0)
schedule_params.improve_steps = EnvironmentSteps(50 * 2048)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(5 * 2048)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = TRPOAgentParameters()
critic_and_actor(agent_params, learning_rate=0.001, batch_size=128)
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2 * 1024)
agent_params.algorithm.conjugate_gradient_iterations = 25
agent_params.algorithm.conjugate_gradient_damping = 0.1
agent_params.algorithm.value_epochs = 20
agent_params.algorithm.gae_lambda = 0.95
agent_params.algorithm.discount = 0.99
normalize_observations(agent_params)

# Environment
env_params = GymVectorEnvironment(level="InvertedPendulum-v5")
env_params.num_environments = 2

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
