"""PPO learns one policy for twenty pistons, which move a ball to the left."""

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.architectures.layers import Conv2d, Dense
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_rescale_to_size_filter import ObservationRescaleToSizeFilter
from rl_coach.filters.observation.observation_rgb_to_y_filter import ObservationRGBToYFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.filters.observation.observation_to_uint8_filter import ObservationToUInt8Filter
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.graph_managers.multi_agent_graph_manager import MultiAgentGraphManager
from rl_coach.spaces import ImageObservationSpace

# Schedule, in steps of the environment. All twenty agents act in each step
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(100000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(5000)
schedule_params.evaluation_steps = EnvironmentEpisodes(5)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Agent. The network sees the last four frames of 84x84 grey pixels
agent_params = ClippedPPOAgentParameters()
agent_params.network_wrappers["main"].learning_rate = 0.0003
agent_params.network_wrappers["main"].batch_size = 256
agent_params.network_wrappers["main"].input_embedders_parameters["observation"].scheme = [
    Conv2d(32, 8, 4),
    Conv2d(64, 4, 2),
    Conv2d(64, 3, 1),
]
agent_params.network_wrappers["main"].middleware_parameters.scheme = [Dense(512)]
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2500)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(2500)
agent_params.algorithm.discount = 0.99
agent_params.algorithm.gae_lambda = 0.95
agent_params.algorithm.beta_entropy = 0.1
agent_params.algorithm.optimization_epochs = 3
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_observation_filter(
    "observation", "rescaling", ObservationRescaleToSizeFilter(ImageObservationSpace((84, 84, 3), high=255))
)
agent_params.input_filter.add_observation_filter("observation", "to_grayscale", ObservationRGBToYFilter())
agent_params.input_filter.add_observation_filter("observation", "to_uint8", ObservationToUInt8Filter(0, 255))
agent_params.input_filter.add_observation_filter("observation", "stacking", ObservationStackingFilter(4))

# Environment
env_params = PettingZooEnvironmentParameters(level="pettingzoo.butterfly.pistonball_v6")

graph_manager = MultiAgentGraphManager(
    agents_params=[agent_params],
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
)
