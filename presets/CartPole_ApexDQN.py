"""Ape-X DQN balances a pole on a cart: ``coach -p CartPole_ApexDQN -dc -n 2``, or in one process without ``-dc``."""

from rl_coach.agents.apex_agent import ApexDQNAgentParameters
from rl_coach.base_parameters import PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(1_000)
schedule_params.improve_steps = EnvironmentSteps(50_000)
schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(10)
schedule_params.evaluation_steps = EnvironmentEpisodes(5)

# Agent
agent_params = ApexDQNAgentParameters()
agent_params.memory.max_size = (MemoryGranularity.Transitions, 50_000)
agent_params.algorithm.discount = 0.99
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(4)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(250)
network = agent_params.network_wrappers["main"]
network.batch_size = 128
network.learning_rate = 0.0005

# Environment
env_params = GymVectorEnvironment(level="CartPole-v1")

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 400
preset_validation_params.max_episodes_to_achieve_reward = 600

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
