"""Normalized advantage functions swing up a pendulum."""

from rl_coach.agents.naf_agent import NAFAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.presets.tuned._networks import as_pytorch, two_layers
from rl_coach.schedules import ConstantSchedule, LinearSchedule

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(1_000)
schedule_params.improve_steps = EnvironmentSteps(20_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(2_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = NAFAgentParameters()
two_layers(agent_params.network_wrappers["main"], (256, 256))
as_pytorch(agent_params.network_wrappers["main"], learning_rate=LinearSchedule(0.001, 0, 20_000), batch_size=256)
agent_params.network_wrappers["main"].heads_parameters[0].diagonal_bounds = (0.1, 10)  # keeps L away from 0
agent_params.memory = ExperienceReplayParameters()
agent_params.memory.max_size = (MemoryGranularity.Transitions, 200_000)
agent_params.algorithm.discount = 0.98
agent_params.algorithm.num_consecutive_training_steps = 1
agent_params.algorithm.rate_for_copying_weights_to_target = 0.005
agent_params.exploration = AdditiveNoiseParameters()
agent_params.exploration.noise_schedule = ConstantSchedule(0.05)  # of the range: 0.1 if actions are from -1 to 1
agent_params.exploration.evaluation_noise = 0.0

# Environment
env_params = GymVectorEnvironment(level="Pendulum-v1")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
