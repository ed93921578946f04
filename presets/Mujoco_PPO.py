"""PPO with an adaptive KL penalty learns to move MuJoCo's bodies: ``coach -p Mujoco_PPO -lvl hopper``."""

from rl_coach.agents.ppo_agent import PPOAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import (
    DistributedCoachSynchronizationType,
    PresetValidationParameters,
    VisualizationParameters,
)
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.environment import SingleLevelSelection
from rl_coach.environments.gym_environment import GymVectorEnvironment, mujoco_v2
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(10000000000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(4000)
schedule_params.evaluation_steps = EnvironmentEpisodes(1)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Agent
agent_params = PPOAgentParameters()
agent_params.network_wrappers["actor"].learning_rate = 5e-05
agent_params.network_wrappers["critic"].learning_rate = 5e-05
agent_params.network_wrappers["actor"].input_embedders_parameters["observation"].scheme = [Dense(64)]
agent_params.network_wrappers["actor"].middleware_parameters.scheme = [Dense(64)]
agent_params.network_wrappers["critic"].input_embedders_parameters["observation"].scheme = [Dense(64)]
agent_params.network_wrappers["critic"].middleware_parameters.scheme = [Dense(64)]
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
agent_params.algorithm.initial_kl_coefficient = 0.2
agent_params.algorithm.gae_lambda = 1.0
agent_params.algorithm.distributed_coach_synchronization_type = DistributedCoachSynchronizationType.SYNC

# Environment
env_params = GymVectorEnvironment(level=SingleLevelSelection(mujoco_v2))

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 400
preset_validation_params.max_episodes_to_achieve_reward = 3000
preset_validation_params.reward_test_level = "inverted_pendulum"
preset_validation_params.trace_test_levels = ["inverted_pendulum", "hopper"]

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
