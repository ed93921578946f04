"""PPO with an LSTM balances a pole on a cart without seeing the velocities."""

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import MiddlewareScheme
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import as_ppo
from rl_coach.schedules import LinearSchedule

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(0)
schedule_params.improve_steps = EnvironmentSteps(102_400)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(10_240)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent: the network
agent_params = ClippedPPOAgentParameters()
network = agent_params.network_wrappers["main"]
network.use_separate_networks_per_head = False
network.input_embedders_parameters["observation"].scheme = [Dense(64)]
network.middleware_parameters = LSTMMiddlewareParameters(scheme=MiddlewareScheme.Empty, number_of_lstm_cells=64)
network.middleware_parameters.sequence_length = 64
as_ppo(network, learning_rate=LinearSchedule(0.001, 0.0, 100), batch_size=256)
network.middleware_parameters.initial_weights = "kaiming_uniform"  # PyTorch's default, as in the libraries
agent_params.pre_network_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())

# Agent: the algorithm
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(8 * 128)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(8 * 128)
agent_params.algorithm.optimization_epochs = 20
agent_params.algorithm.gae_lambda = 0.8
agent_params.algorithm.discount = 0.98
agent_params.algorithm.beta_entropy = 0
agent_params.algorithm.clipping_decay_schedule = LinearSchedule(1.0, 0.0, 102_400)

# Environment
env_params = GymVectorEnvironment(
    level="rl_coach.environments.toy_problems.cart_pole_without_velocity:CartPoleWithoutVelocity"
)
env_params.num_environments = 8

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
