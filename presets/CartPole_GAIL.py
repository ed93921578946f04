"""Generative adversarial imitation learns from ten episodes of another player, without rewards."""

import pathlib

from rl_coach.agents.gail_agent import GAILAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import value_and_policy

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(200000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(4096)
schedule_params.evaluation_steps = EnvironmentEpisodes(5)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Agent
agent_params = GAILAgentParameters()
value_and_policy(agent_params.network_wrappers["main"], learning_rate=0.0003, batch_size=256)
discriminator = agent_params.network_wrappers["discriminator"]
discriminator.input_embedders_parameters["observation"].scheme = [Dense(64)]
discriminator.heads_parameters[0].scheme = [Dense(64)]
discriminator.batch_size = 256
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2048)
agent_params.algorithm.optimization_epochs = 10
agent_params.algorithm.beta_entropy = 0.001
agent_params.algorithm.discount = 0.99
agent_params.memory.load_memory_from_file_path = str(
    pathlib.Path(__file__).parent / "demonstrations" / "cart_pole_10.npz"
)

# Environment
env_params = GymVectorEnvironment(level="CartPole-v1")
env_params.num_environments = 8

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 450
preset_validation_params.max_episodes_to_achieve_reward = 3000

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
