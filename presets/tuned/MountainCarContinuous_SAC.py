"""Soft actor-critic drives an underpowered car up a mountain. It explores by state-dependent noise."""

from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.state_dependent_noise import StateDependentNoiseParameters
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.presets.tuned._networks import as_pytorch, two_layers

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(32)
schedule_params.improve_steps = EnvironmentSteps(50_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(5_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = SoftActorCriticAgentParameters(use_value_network=False)
two_layers(agent_params.network_wrappers["policy"], (64, 64))
for name in ("policy", "q"):
    as_pytorch(agent_params.network_wrappers[name], learning_rate=0.0003, batch_size=512)
agent_params.network_wrappers["q"].heads_parameters[0].network_layers_sizes = (64, 64)
agent_params.network_wrappers["policy"].heads_parameters[0].initial_log_scale = -3.67
agent_params.network_wrappers["policy"].heads_parameters[0].mean_limit = 2.0
agent_params.memory.max_size = (MemoryGranularity.Transitions, 50_000)
agent_params.algorithm.temperature = 0.1
agent_params.algorithm.discount = 0.9999
agent_params.algorithm.rate_for_copying_weights_to_target = 0.01
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(32)
agent_params.algorithm.num_consecutive_training_steps = 32
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
agent_params.exploration = StateDependentNoiseParameters(agent_params)
agent_params.exploration.steps_between_draws = 32

# Environment
env_params = GymVectorEnvironment(level="MountainCarContinuous-v0")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
