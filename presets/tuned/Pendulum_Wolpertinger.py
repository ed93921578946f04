"""Wolpertinger swings up a pendulum with 51 possible torques. It uses the target of the paper."""

from collections import OrderedDict

from rl_coach.agents.wolpertinger_agent import WolpertingerAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.action.box_discretization import BoxDiscretization
from rl_coach.filters.filter import OutputFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import as_deterministic_policy

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(10_000)
schedule_params.improve_steps = EnvironmentSteps(10_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(1_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = WolpertingerAgentParameters()
as_deterministic_policy(agent_params, replay_size=200_000)
agent_params.network_wrappers["critic"].heads_parameters[0].initializer = "xavier"  # the initial weights of the network
agent_params.algorithm.discount = 0.98
agent_params.algorithm.k = 5
agent_params.algorithm.use_full_policy_in_target = True
agent_params.output_filter = OutputFilter(
    action_filters=OrderedDict([("discretization", BoxDiscretization(num_bins_per_dimension=51))]),
    is_a_reference_filter=False,
)

# Environment
env_params = GymVectorEnvironment(level="Pendulum-v1")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
