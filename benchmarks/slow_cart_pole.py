"""The preset of ``benchmarks.asynchronous``: A3C in an environment with steps of 10 ms."""

import pathlib

from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters

schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentSteps(1500)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(10**9)
schedule_params.evaluation_steps = EnvironmentEpisodes(0)
schedule_params.heatup_steps = EnvironmentSteps(0)

agent_params = ActorCriticAgentParameters()
agent_params.algorithm.apply_gradients_every_x_episodes = 1
agent_params.algorithm.num_steps_between_gradient_updates = 5

level = f"{pathlib.Path(__file__).with_name('asynchronous.py')}:SlowCartPole"
graph_manager = BasicRLGraphManager(agent_params, GymVectorEnvironment(level=level), schedule_params)
