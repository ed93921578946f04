"""Batch-constrained double DQN learns Acrobot from the recorded steps of a learning double DQN."""

from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.ddqn_bcq_agent import DDQNBCQAgentParameters, KNNParameters
from rl_coach.architectures.head_parameters import QHeadParameters
from rl_coach.base_parameters import PresetValidationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.batch_rl_graph_manager import BatchRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import LinearSchedule

DATASET_SIZE = 50000

# Schedule. Training steps are epochs
schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(10000000000)
schedule_params.steps_between_evaluation_periods = TrainingSteps(1)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)
schedule_params.heatup_steps = EnvironmentSteps(DATASET_SIZE)

# Agent
agent_params = DDQNBCQAgentParameters()
agent_params.network_wrappers["main"].batch_size = 128
# An episode's return is -500 to about -65, so initial values of 0 would be far too high
agent_params.network_wrappers["main"].heads_parameters = [QHeadParameters(output_bias_initializer=-100)]
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(100)
agent_params.algorithm.discount = 0.99
agent_params.algorithm.action_drop_method_parameters = KNNParameters()
agent_params.network_wrappers["main"].learning_rate = 0.0001
agent_params.network_wrappers["main"].replace_mse_with_huber_loss = False
agent_params.network_wrappers["main"].softmax_temperature = 0.2

agent_params.memory = EpisodicExperienceReplayParameters()
agent_params.exploration.epsilon_schedule = LinearSchedule(0, 0, 10000)
agent_params.exploration.evaluation_epsilon = 0

# The agent that generates the data
experience_generating_agent_params = DDQNAgentParameters()
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
experience_generating_agent_params.network_wrappers["main"].learning_rate = 0.0001
experience_generating_agent_params.network_wrappers["main"].batch_size = 128
experience_generating_agent_params.network_wrappers["main"].heads_parameters = [
    QHeadParameters(output_bias_initializer=-100)
]
experience_generating_agent_params.network_wrappers["main"].replace_mse_with_huber_loss = False
experience_generating_agent_params.memory = EpisodicExperienceReplayParameters()
experience_generating_agent_params.memory.max_size = (
    MemoryGranularity.Transitions,
    experience_generating_schedule_params.heatup_steps.num_steps
    + experience_generating_schedule_params.improve_steps.num_steps
    + 1,
)
experience_generating_agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.01, DATASET_SIZE)
experience_generating_agent_params.exploration.evaluation_epsilon = 0

# Environment
env_params = GymVectorEnvironment(level="Acrobot-v1")

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = -100  # 150 in Coach 1.0.1, but rewards here are never above 0
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
