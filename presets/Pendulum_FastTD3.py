"""FastTD3 swings up a pendulum in 64 copies of the environment. Networks and batches are smaller than in the paper.
``-f jax -lvl gymnax:Pendulum-v1`` compiles the whole loop."""

from rl_coach.agents.fast_td3_agent import FastTD3AgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
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
agent_params = FastTD3AgentParameters()
actor, critic = (agent_params.network_wrappers[name] for name in ("actor", "critic"))
actor.input_embedders_parameters["observation"].scheme = [Dense(128)]
actor.middleware_parameters.scheme = [Dense(64)]
critic.heads_parameters[0].network_layers_sizes = (256, 128)
for network in (actor, critic):
    network.batch_size, network.learning_rate = 1024, 0.001
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(COPIES)
agent_params.algorithm.discount = 0.97
agent_params.algorithm.v_min, agent_params.algorithm.v_max, agent_params.algorithm.atoms = -60.0, 0.0, 61
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
