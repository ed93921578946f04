"""PPO with state-dependent noise swings up a pendulum."""

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.state_dependent_noise import StateDependentNoiseParameters
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import value_and_policy
from rl_coach.schedules import LinearSchedule

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(0)
schedule_params.improve_steps = EnvironmentSteps(100_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(10_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = ClippedPPOAgentParameters()
value_and_policy(agent_params.network_wrappers["main"], learning_rate=LinearSchedule(0.001, 0, 24), batch_size=64)
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(4 * 1024)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(4 * 1024)
agent_params.algorithm.optimization_epochs = 10
agent_params.algorithm.gae_lambda = 0.95
agent_params.algorithm.discount = 0.9
agent_params.algorithm.beta_entropy = 0

agent_params.exploration = StateDependentNoiseParameters(agent_params)
agent_params.exploration.steps_between_draws = 4
agent_params.network_wrappers["main"].heads_parameters[1].initial_log_scale = 0.0

# Environment
env_params = GymVectorEnvironment(level="Pendulum-v1")
env_params.num_environments = 4

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
