"""Behavioural cloning of a human player of CartPole.

``coach -p CartPole_BC --play`` records the games. Set ``memory.load_memory_from_file_path`` to their file.
"""

from rl_coach.agents.bc_agent import BCAgentParameters
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(3000)
schedule_params.steps_between_evaluation_periods = TrainingSteps(1000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Agent. It learns only from the file, and never acts in training
agent_params = BCAgentParameters()
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(0)
agent_params.network_wrappers["main"].learning_rate = 0.001
agent_params.exploration.evaluation_epsilon = 0
agent_params.memory.load_memory_from_file_path = "replay_buffer.npz"

# Environment
env_params = GymVectorEnvironment(level="CartPole-v1")

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
)
