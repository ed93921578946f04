"""SAC with FastTD3's settings swings up a pendulum in 64 copies of the environment. Networks and batches are smaller
than in the paper. ``-f jax -lvl gymnax:Pendulum-v1`` compiles the whole loop."""

from rl_coach.agents.fast_td3_agent import FastTD3AgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.values import ValuesParameters
from rl_coach.base_parameters import PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity

COPIES = 64

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(1000 * COPIES)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(40 * COPIES)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)
schedule_params.heatup_steps = EnvironmentSteps(10 * COPIES)

# Agent
agent_params = SoftActorCriticAgentParameters(use_value_network=False)
policy, q = (agent_params.network_wrappers[name] for name in ("policy", "q"))
policy.input_embedders_parameters["observation"].scheme = [Dense(128)]
policy.middleware_parameters.scheme = [Dense(64)]
q.heads_parameters[0].network_layers_sizes = (256, 128)
for network in (policy, q):
    network.batch_size, network.learning_rate = 1024, 0.001
# A temperature that starts at 1 is large for rewards of a tenth: after 64,000 steps, it would still be above 0.7.
agent_params.network_wrappers["temperature"] = ValuesParameters({"log_temperature": -4.6}, learning_rate=0.001)
algorithm = agent_params.algorithm
algorithm.num_consecutive_playing_steps = EnvironmentSteps(COPIES)
algorithm.num_consecutive_training_steps = 2
algorithm.update_policy_every_x_training_steps = 2
algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
algorithm.rate_for_copying_weights_to_target = 0.1
algorithm.discount = 0.97
algorithm.update_pre_network_filters_state_on_train = True
algorithm.update_pre_network_filters_state_on_inference = False
agent_params.pre_network_filter = FastTD3AgentParameters().pre_network_filter
agent_params.memory.max_size = (MemoryGranularity.Transitions, 1000 * COPIES)
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_reward_filter("rescale", RewardRescaleFilter(1 / 10))

# Environment
env_params = GymVectorEnvironment(level="Pendulum-v1")
env_params.num_environments = COPIES

# The target reward
preset_validation_params = PresetValidationParameters()
preset_validation_params.test = True
preset_validation_params.min_reward_threshold = -200
preset_validation_params.max_episodes_to_achieve_reward = 320

graph_manager = BasicRLGraphManager(
    agent_params=agent_params,
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=VisualizationParameters(),
    preset_validation_params=preset_validation_params,
)
