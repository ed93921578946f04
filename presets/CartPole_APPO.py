"""APPO balances a pole on a cart: ``coach -p CartPole_APPO -dc -n 4``, or in one process without ``-dc``."""

from rl_coach.agents.appo_agent import APPOAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(200_000)
schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(20)
schedule_params.evaluation_steps = EnvironmentEpisodes(5)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Agent
agent_params = APPOAgentParameters()
agent_params.algorithm.discount = 0.99
agent_params.algorithm.num_steps_between_gradient_updates = 20
agent_params.algorithm.segments_per_update = 8
agent_params.algorithm.beta_entropy = 0
network = agent_params.network_wrappers["main"]
network.input_embedders_parameters["observation"].scheme = [Dense(64)]
network.input_embedders_parameters["observation"].activation_function = "tanh"
network.middleware_parameters.scheme = [Dense(64)]
network.middleware_parameters.activation_function = "tanh"
network.use_separate_networks_per_head = True
network.learning_rate = 0.001
network.clip_gradients = 0.5

# Environment
env_params = GymVectorEnvironment(level="CartPole-v1")
env_params.num_environments = 8

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 400
preset_validation_params.max_episodes_to_achieve_reward = 1500

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
