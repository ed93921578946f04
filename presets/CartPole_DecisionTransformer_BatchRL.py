"""Decision Transformer learns CartPole from the recorded steps of a learning DQN."""

from rl_coach.agents.decision_transformer_agent import DecisionTransformerAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.base_parameters import PresetValidationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.batch_rl_graph_manager import BatchRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import LinearSchedule

DATASET_SIZE = 10000

# Schedule. Training steps are epochs
schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(20)
schedule_params.steps_between_evaluation_periods = TrainingSteps(2)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Agent
agent_params = DecisionTransformerAgentParameters()
agent_params.algorithm.context_length = 8
agent_params.algorithm.target_return = 200
agent_params.algorithm.return_scale = 100
agent_params.algorithm.max_timestep = 200
network = agent_params.network_wrappers["main"]
network.middleware_parameters.width = 64
network.middleware_parameters.blocks = 1
network.learning_rate = 0.001

# The agent that generates the data
generator = experience_generating_agent_params = DQNAgentParameters()
generator.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(100)
generator.algorithm.discount = 0.99
generator.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
generator.network_wrappers["main"].learning_rate = 0.00025
generator.network_wrappers["main"].replace_mse_with_huber_loss = False
generator.memory = EpisodicExperienceReplayParameters()
generator.memory.max_size = (MemoryGranularity.Transitions, DATASET_SIZE)
generator.exploration.epsilon_schedule = LinearSchedule(1.0, 0.01, 10000)

experience_generating_schedule_params = ScheduleParameters()
experience_generating_schedule_params.heatup_steps = EnvironmentSteps(1000)
experience_generating_schedule_params.improve_steps = TrainingSteps(DATASET_SIZE - 1000)
experience_generating_schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(10)
experience_generating_schedule_params.evaluation_steps = EnvironmentEpisodes(1)

# Environment
env_params = GymVectorEnvironment(level="CartPole-v0")

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = 180
preset_validation_params.max_episodes_to_achieve_reward = 20

graph_manager = BatchRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    preset_validation_params=preset_validation_params,
    experience_generating_agent_params=experience_generating_agent_params,
    experience_generating_schedule_params=experience_generating_schedule_params,
    train_to_eval_ratio=1,
)
