"""Conservative Q-learning learns CartPole from the recorded steps of a learning DQN."""

from copy import deepcopy

from rl_coach.agents.discrete_cql_agent import DiscreteCQLAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.base_parameters import PresetValidationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.graph_managers.batch_rl_graph_manager import BatchRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import LinearSchedule

DATASET_SIZE = 10000

# Schedule. Training steps are epochs
schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(10000000000)
schedule_params.steps_between_evaluation_periods = TrainingSteps(1)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)
schedule_params.heatup_steps = EnvironmentSteps(DATASET_SIZE)

# Agent
agent_params = DiscreteCQLAgentParameters()
agent_params.network_wrappers["main"].batch_size = 128
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(100)
agent_params.algorithm.discount = 0.98
agent_params.algorithm.conservative_weight = 0.005  # for rewards that are divided by 200; use 1 for other rewards
agent_params.network_wrappers["main"].learning_rate = 0.0001
agent_params.network_wrappers["main"].replace_mse_with_huber_loss = False
agent_params.network_wrappers["main"].l2_regularization = 0.0001
agent_params.network_wrappers["main"].softmax_temperature = 0.2

# The reward model is used in off-policy evaluation
agent_params.network_wrappers["reward_model"] = deepcopy(agent_params.network_wrappers["main"])
agent_params.network_wrappers["reward_model"].learning_rate = 0.0001
agent_params.network_wrappers["reward_model"].l2_regularization = 0

agent_params.memory = EpisodicExperienceReplayParameters()
agent_params.exploration.epsilon_schedule = LinearSchedule(0, 0, 10000)
agent_params.exploration.evaluation_epsilon = 0

agent_params.input_filter = InputFilter()
agent_params.input_filter.add_reward_filter("rescale", RewardRescaleFilter(1 / 200.0))

# The agent that generates the data
experience_generating_agent_params = DQNAgentParameters()
experience_generating_schedule_params = ScheduleParameters()
experience_generating_schedule_params.heatup_steps = EnvironmentSteps(1000)
experience_generating_schedule_params.improve_steps = TrainingSteps(
    DATASET_SIZE - experience_generating_schedule_params.heatup_steps.num_steps
)
experience_generating_schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(10)
experience_generating_schedule_params.evaluation_steps = EnvironmentEpisodes(1)

experience_generating_agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(100)
experience_generating_agent_params.algorithm.discount = 0.99
experience_generating_agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
experience_generating_agent_params.network_wrappers["main"].learning_rate = 0.00025
experience_generating_agent_params.network_wrappers["main"].replace_mse_with_huber_loss = False
experience_generating_agent_params.memory = EpisodicExperienceReplayParameters()
experience_generating_agent_params.memory.max_size = (MemoryGranularity.Transitions, DATASET_SIZE)
experience_generating_agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.01, 10000)

# Environment
env_params = GymVectorEnvironment(level="CartPole-v0")

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 150
preset_validation_params.max_episodes_to_achieve_reward = 50
preset_validation_params.read_csv_tries = 500

graph_manager = BatchRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    preset_validation_params=preset_validation_params,
    experience_generating_agent_params=experience_generating_agent_params,
    experience_generating_schedule_params=experience_generating_schedule_params,
    reward_model_num_epochs=30,
    train_to_eval_ratio=0.4,
)
