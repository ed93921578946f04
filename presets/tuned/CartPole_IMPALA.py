"""IMPALA balances a pole on a cart."""

from rl_coach.agents.impala_agent import IMPALAAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import value_and_policy
from rl_coach.schedules import LinearSchedule

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(0)
schedule_params.improve_steps = EnvironmentSteps(200_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(20_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = IMPALAAgentParameters()
value_and_policy(agent_params.network_wrappers["main"], learning_rate=LinearSchedule(0.0015, 0, 1_562))
agent_params.algorithm.num_steps_between_gradient_updates = 8
agent_params.algorithm.segments_per_update = 16
agent_params.algorithm.vtrace_lambda = 0.95
agent_params.algorithm.discount = 0.99
agent_params.algorithm.beta_entropy = 0

# Environment
env_params = GymVectorEnvironment(level="CartPole-v1")
env_params.num_environments = 16

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
