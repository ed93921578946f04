"""Deep Q-learning from demonstrations balances a pole on a cart. The demonstrations are three recorded episodes.

``coach -p CartPole_DQfD --play`` records other episodes. Set ``memory.load_memory_from_file_path`` to their file.
"""

import pathlib

from rl_coach.agents.dqfd_agent import DQfDAgentParameters
from rl_coach.base_parameters import PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import ConstantSchedule

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(2000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(200)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Agent
agent_params = DQfDAgentParameters()
agent_params.algorithm.pretraining_updates = 3000
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(100)
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
agent_params.network_wrappers["main"].learning_rate = 0.0005
agent_params.network_wrappers["main"].batch_size = 64
agent_params.exploration.epsilon_schedule = ConstantSchedule(0.01)
agent_params.exploration.evaluation_epsilon = 0
agent_params.memory.max_size = (MemoryGranularity.Transitions, 40000)
agent_params.memory.load_memory_from_file_path = str(
    pathlib.Path(__file__).parent / "demonstrations" / "cart_pole_3.npz"
)

# Environment
env_params = GymVectorEnvironment(level="CartPole-v1")

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 475
preset_validation_params.max_episodes_to_achieve_reward = 50

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
