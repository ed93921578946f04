"""PPO with one policy for three agents, which spread over three landmarks."""

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward import RewardRescaleFilter
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.graph_managers.multi_agent_graph_manager import MultiAgentGraphManager

# Schedule, in steps of the environment. All three agents act in each step
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(400000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(20000)
schedule_params.evaluation_steps = EnvironmentEpisodes(40)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Agent. It counts its own steps, which are three in each step of the environment
agent_params = ClippedPPOAgentParameters()
agent_params.network_wrappers["main"].learning_rate = 0.0005
agent_params.network_wrappers["main"].batch_size = 500
agent_params.network_wrappers["main"].input_embedders_parameters["observation"].activation_function = "tanh"
agent_params.network_wrappers["main"].input_embedders_parameters["observation"].scheme = [Dense(64)]
agent_params.network_wrappers["main"].middleware_parameters.scheme = [Dense(64)]
agent_params.network_wrappers["main"].middleware_parameters.activation_function = "tanh"
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(3000)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(3000)
agent_params.algorithm.discount = 0.95
agent_params.algorithm.gae_lambda = 0.95
agent_params.algorithm.beta_entropy = 0.01
agent_params.algorithm.optimization_epochs = 10
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_reward_filter("rescale", RewardRescaleFilter(0.1))

# Environment
env_params = PettingZooEnvironmentParameters(level="mpe2.simple_spread_v3")

# The target reward: the sum of the three agents' rewards. It is about -127 for an untrained network
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = -60
preset_validation_params.max_episodes_to_achieve_reward = 16000

graph_manager = MultiAgentGraphManager(
    agents_params=[agent_params],
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
