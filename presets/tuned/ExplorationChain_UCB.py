"""An ensemble of Q heads walks along a chain with a reward at the far end. It chooses actions by upper
confidence bounds."""

from rl_coach.agents.bootstrapped_dqn_agent import BootstrappedDQNAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.ucb import UCBParameters
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.presets.tuned._networks import as_pytorch, two_layers
from rl_coach.schedules import ConstantSchedule

N = 50  # states in the chain
NUM_HEADS = 20

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(N + 7)
schedule_params.improve_steps = EnvironmentEpisodes(1_000)
schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(100)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = BootstrappedDQNAgentParameters()
network = agent_params.network_wrappers["main"]
two_layers(network, (64, 64))
as_pytorch(network, learning_rate=0.001, batch_size=64)
network.heads_parameters[0].num_output_head_copies = NUM_HEADS
network.heads_parameters[0].rescale_gradient_from_head_by_factor = 1 / NUM_HEADS
agent_params.memory.max_size = (MemoryGranularity.Transitions, 100_000)
agent_params.algorithm.discount = 0.99
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(4)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(100)
agent_params.exploration = UCBParameters()
agent_params.exploration.architecture_num_q_heads = NUM_HEADS
agent_params.exploration.bootstrapped_data_sharing_probability = 0.5
agent_params.exploration.epsilon_schedule = ConstantSchedule(0)
agent_params.exploration.evaluation_epsilon = 0.0
agent_params.exploration.lamb = 30

# Environment
env_params = GymVectorEnvironment(level="rl_coach.environments.toy_problems.exploration_chain:ExplorationChain")
env_params.additional_simulator_parameters = {"chain_length": N, "max_steps": N + 7}

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
