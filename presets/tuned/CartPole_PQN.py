"""PQN balances a pole on a cart."""

from rl_coach.agents.pqn_agent import PQNAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward import RewardRescaleFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.schedules import LinearSchedule

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(0)
schedule_params.improve_steps = EnvironmentSteps(500_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(50_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = PQNAgentParameters()
agent_params.network_wrappers["main"].learning_rate = LinearSchedule(0.0001, 0, 244)
agent_params.network_wrappers["main"].adam_optimizer_beta2 = 0.999
agent_params.network_wrappers["main"].optimizer_epsilon = 1e-8
agent_params.algorithm.discount = 0.99
agent_params.algorithm.q_lambda = 0.95
agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.2, 100_000)
agent_params.input_filter = InputFilter()
agent_params.input_filter.add_reward_filter("rescale", RewardRescaleFilter(0.1))

# Environment
env_params = GymVectorEnvironment(level="CartPole-v1")
env_params.num_environments = 32

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
