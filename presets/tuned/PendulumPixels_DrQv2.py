"""DrQ-v2 swings up a pendulum. It sees three images of 40 x 40 pixels. Each action lasts for two steps."""

from rl_coach.agents.drq_agent import DrQv2AgentParameters, trunk
from rl_coach.architectures.layers import Conv2d, Dense, Detached
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_squeeze_filter import ObservationSqueezeFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import LinearSchedule

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(1_000)
schedule_params.improve_steps = EnvironmentSteps(15_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(1_500)
schedule_params.evaluation_steps = EnvironmentEpisodes(5)

# Agent. Layers and batches are smaller than in the paper, for a CPU
agent_params = DrQv2AgentParameters()
encoder = [Conv2d(16, 3, 2), Conv2d(16, 3, 2), Conv2d(16, 3, 1)]
critic, actor = agent_params.network_wrappers["critic"], agent_params.network_wrappers["actor"]
critic.input_embedders_parameters["observation"].scheme = [*encoder, *trunk(50)]
actor.input_embedders_parameters["observation"].scheme = [*encoder, Detached(), *trunk(50)]
for network in (critic, actor):
    network.middleware_parameters.scheme = [Dense(128), Dense(128)]
    network.learning_rate, network.batch_size = 0.0005, 128
agent_params.algorithm.image_shift = 2
agent_params.exploration.noise_schedule = LinearSchedule(0.5, 0.05, 10_000)
agent_params.memory.max_size = (MemoryGranularity.Transitions, 20_000)
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_observation_filter("observation", "squeeze", ObservationSqueezeFilter())
agent_params.input_filter.add_observation_filter("observation", "stack", ObservationStackingFilter(3))
agent_params.input_filter.add_reward_filter("rescale", RewardRescaleFilter(0.1))

# Environment
env_params = GymVectorEnvironment(level="rl_coach.environments.toy_problems.pendulum_pixels:PendulumPixels")
env_params.frame_skip = 2

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
