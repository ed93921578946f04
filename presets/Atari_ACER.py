"""Actor-critic with experience replay plays an Atari game: ``coach -p Atari_ACER -lvl breakout``."""

from rl_coach.agents.acer_agent import ACERAgentParameters
from rl_coach.base_parameters import PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.environment import SingleLevelSelection
from rl_coach.environments.gym_environment import Atari, atari_deterministic_v4
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(10000000)
schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(100)
schedule_params.evaluation_steps = EnvironmentEpisodes(3)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Agent
agent_params = ACERAgentParameters()
agent_params.algorithm.apply_gradients_every_x_episodes = 1
agent_params.algorithm.num_steps_between_gradient_updates = 20
agent_params.algorithm.ratio_of_replay = 4
agent_params.algorithm.num_transitions_to_start_replay = 10000
agent_params.memory.max_size = (MemoryGranularity.Transitions, 50000)
agent_params.network_wrappers["main"].learning_rate = 0.0001
agent_params.algorithm.beta_entropy = 0.05

# Environment
env_params = Atari(level=SingleLevelSelection(atari_deterministic_v4))

# The levels that the trace tests play
preset_validation_params = PresetValidationParameters()
preset_validation_params.trace_test_levels = ["breakout", "pong", "space_invaders"]

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
