"""Quantile regression DQN with 3-step returns learns Pong in 3.2 million frames."""

from rl_coach.agents.qr_dqn_agent import QuantileRegressionDQNAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import Atari
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import LinearSchedule

# Schedule. A step is four frames
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(20_000)
schedule_params.improve_steps = EnvironmentSteps(780_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(39_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(3)

# Agent
agent_params = QuantileRegressionDQNAgentParameters()
network = agent_params.network_wrappers["main"]
network.middleware_parameters.scheme = [Dense(512)]
network.learning_rate = 0.00025
agent_params.memory.max_size = (MemoryGranularity.Transitions, 200_000)
agent_params.algorithm.discount = 0.99
agent_params.algorithm.n_step = 3
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(2_000)
agent_params.algorithm.atoms = 50
agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.01, 100_000)
agent_params.exploration.evaluation_epsilon = 0.0

# Environment
env_params = Atari(level="PongNoFrameskip-v4")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
