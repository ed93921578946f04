"""TD3 learns to move MuJoCo's bodies: ``coach -p Mujoco_TD3 -lvl hopper``."""

from rl_coach.agents.td3_agent import TD3AgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import EmbedderScheme, PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.environment import SingleLevelSelection
from rl_coach.environments.gym_environment import GymVectorEnvironment, mujoco_v2
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(1000000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(5000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)
schedule_params.heatup_steps = EnvironmentSteps(10000)

# Agent
agent_params = TD3AgentParameters()
agent_params.network_wrappers["actor"].input_embedders_parameters["observation"].scheme = [Dense(400)]
agent_params.network_wrappers["actor"].middleware_parameters.scheme = [Dense(300)]
agent_params.network_wrappers["critic"].input_embedders_parameters["observation"].scheme = EmbedderScheme.Empty
agent_params.network_wrappers["critic"].input_embedders_parameters["action"].scheme = EmbedderScheme.Empty
agent_params.network_wrappers["critic"].middleware_parameters.scheme = [Dense(400), Dense(300)]

# Environment
env_params = GymVectorEnvironment(level=SingleLevelSelection(mujoco_v2))

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 500
preset_validation_params.max_episodes_to_achieve_reward = 1100
preset_validation_params.reward_test_level = "hopper"
preset_validation_params.trace_test_levels = ["inverted_pendulum", "hopper"]

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
