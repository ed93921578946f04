"""Double DQN walks along a chain with a reward at the far end. Exploration by random actions, for comparison."""

from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.presets.tuned._networks import as_pytorch, two_layers
from rl_coach.schedules import LinearSchedule

N = 50  # states in the chain

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(N + 7)
schedule_params.improve_steps = EnvironmentEpisodes(1_000)
schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(100)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = DDQNAgentParameters()
two_layers(agent_params.network_wrappers["main"], (64, 64))
as_pytorch(agent_params.network_wrappers["main"], learning_rate=0.001, batch_size=64)
agent_params.memory.max_size = (MemoryGranularity.Transitions, 100_000)
agent_params.algorithm.discount = 0.99
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(4)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(100)
agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.1, 1_000 * (N + 7))
agent_params.exploration.evaluation_epsilon = 0.0

# Environment
env_params = GymVectorEnvironment(level="rl_coach.environments.toy_problems.exploration_chain:ExplorationChain")
env_params.additional_simulator_parameters = {"chain_length": N, "max_steps": N + 7}

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
