"""Advantage weighted actor-critic learns to swing up a pendulum from the recorded steps of a learning TD3 agent."""

from rl_coach.agents.awac_agent import AWACAgentParameters
from rl_coach.agents.td3_agent import TD3AgentParameters
from rl_coach.base_parameters import EmbedderScheme, PresetValidationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.graph_managers.batch_rl_graph_manager import BatchRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.presets.tuned._networks import as_pytorch, two_layers
from rl_coach.schedules import ConstantSchedule

DATASET_SIZE = 10000

# Schedule. Training steps are epochs
schedule_params = ScheduleParameters()
schedule_params.improve_steps = TrainingSteps(10000000000)
schedule_params.steps_between_evaluation_periods = TrainingSteps(50)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)
schedule_params.heatup_steps = EnvironmentSteps(0)

# Agent
agent_params = AWACAgentParameters()
agent_params.algorithm.discount = 0.98
agent_params.algorithm.advantage_temperature = 0.02  # with 0.1, the policy also clones bad actions
for network in agent_params.network_wrappers.values():
    network.learning_rate = 0.001
agent_params.memory.max_size = (MemoryGranularity.Transitions, DATASET_SIZE)
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_reward_filter("rescale", RewardRescaleFilter(1 / 10))

# The agent that generates the data
generator = experience_generating_agent_params = TD3AgentParameters()
two_layers(generator.network_wrappers["actor"], (256, 256))
two_layers(generator.network_wrappers["critic"], (256, 256))
generator.network_wrappers["critic"].input_embedders_parameters["action"].scheme = EmbedderScheme.Empty
for name in ("actor", "critic"):
    as_pytorch(generator.network_wrappers[name], learning_rate=0.001, batch_size=256)
generator.memory.max_size = (MemoryGranularity.Transitions, DATASET_SIZE)
generator.algorithm.discount = 0.98
generator.exploration = AdditiveNoiseParameters()
generator.exploration.noise_schedule = ConstantSchedule(0.05)  # of the range: 0.1 if actions are from -1 to 1
generator.algorithm.policy_noise = 0.4  # in units of the actions, which are from -2 to 2
generator.algorithm.noise_clipping = 1.0
generator.algorithm.act_for_full_episodes = False
generator.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)

experience_generating_schedule_params = ScheduleParameters()
experience_generating_schedule_params.heatup_steps = EnvironmentSteps(1000)
experience_generating_schedule_params.improve_steps = TrainingSteps(DATASET_SIZE - 1000)
experience_generating_schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(10)
experience_generating_schedule_params.evaluation_steps = EnvironmentEpisodes(1)

# Environment
env_params = GymVectorEnvironment(level="Pendulum-v1")

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = -250
preset_validation_params.max_episodes_to_achieve_reward = 600

graph_manager = BatchRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    preset_validation_params=preset_validation_params,
    experience_generating_agent_params=experience_generating_agent_params,
    experience_generating_schedule_params=experience_generating_schedule_params,
    train_to_eval_ratio=1,
)
