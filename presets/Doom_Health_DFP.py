"""Direct future prediction gathers medikits in a room of acid."""

from rl_coach.agents.dfp_agent import DFPAgentParameters
from rl_coach.base_parameters import (
    EmbedderScheme,
    MiddlewareScheme,
    PresetValidationParameters,
    VisualizationParameters,
)
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.doom_environment import DoomEnvironmentParameters
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.schedules import LinearSchedule

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(6250000)
schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(5)
schedule_params.evaluation_steps = EnvironmentEpisodes(1)

# Agent
agent_params = DFPAgentParameters()
agent_params.network_wrappers["main"].learning_rate = 0.0001
agent_params.exploration.epsilon_schedule = LinearSchedule(0.5, 0, 10000)
agent_params.exploration.evaluation_epsilon = 0
agent_params.algorithm.goal_vector = [1]
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
agent_params.network_wrappers["main"].input_embedders_parameters["measurements"].input_rescaling["vector"] = 100.0
agent_params.network_wrappers["main"].input_embedders_parameters["measurements"].input_offset["vector"] = 0.5
agent_params.network_wrappers["main"].input_embedders_parameters["observation"].input_offset["vector"] = 0.5
agent_params.network_wrappers["main"].input_embedders_parameters["observation"].scheme = EmbedderScheme.Medium
agent_params.network_wrappers["main"].input_embedders_parameters["measurements"].scheme = EmbedderScheme.Medium
agent_params.network_wrappers["main"].input_embedders_parameters["goal"].scheme = EmbedderScheme.Medium
agent_params.network_wrappers["main"].middleware_parameters.scheme = MiddlewareScheme.Medium
agent_params.algorithm.scale_measurements_targets["GameVariable.HEALTH"] = 30.0
schedule_params.heatup_steps = EnvironmentSteps(agent_params.network_wrappers["main"].batch_size)

# Environment
env_params = DoomEnvironmentParameters(level="HEALTH_GATHERING")

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 1000
preset_validation_params.max_episodes_to_achieve_reward = 70
preset_validation_params.test_using_a_trace_test = False

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
