"""Double DQN learns CartPole from recorded random actions."""

from copy import deepcopy

from rl_coach.agents.ddqn_agent import DDQNAgentParameters
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

DATASET_SIZE = 40000

schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(10000000000)  # epochs
schedule_params.steps_between_evaluation_periods = TrainingSteps(1)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)
schedule_params.heatup_steps = EnvironmentSteps(DATASET_SIZE)

agent_params = DDQNAgentParameters()
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_reward_filter("rescale", RewardRescaleFilter(1 / 200.0))

algorithm = agent_params.algorithm
algorithm.discount = 0.98
algorithm.num_consecutive_playing_steps = EnvironmentSteps(0)

main_network = agent_params.network_wrappers["main"]
main_network.batch_size = 128
main_network.learning_rate = 0.0001
main_network.l2_regularization = 0.0001
main_network.replace_mse_with_huber_loss = False
main_network.softmax_temperature = 0.2
# 312.5 updates as in Coach 1.0.1: the weights are copied after every 313 updates
updates = DATASET_SIZE / main_network.batch_size
algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(updates)  # type: ignore[arg-type]

# The reward model predicts rewards for off-policy evaluation
reward_model = agent_params.network_wrappers["reward_model"] = deepcopy(main_network)
reward_model.learning_rate = 0.0001
reward_model.l2_regularization = 0

agent_params.memory = EpisodicExperienceReplayParameters()
agent_params.memory.max_size = (MemoryGranularity.Transitions, DATASET_SIZE)

agent_params.exploration.epsilon_schedule = LinearSchedule(0, 0, 10000)
agent_params.exploration.evaluation_epsilon = 0

env_params = GymVectorEnvironment(level="CartPole-v0")

preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 150
preset_validation_params.max_episodes_to_achieve_reward = 2000

graph_manager = BatchRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    preset_validation_params=preset_validation_params,
    reward_model_num_epochs=30,
    train_to_eval_ratio=0.4,
)
