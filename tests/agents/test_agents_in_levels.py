"""Agents below and beside others: the directives that they take, and the files that they write."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.composite_agent import CompositeAgent, SingleDecider
from rl_coach.base_parameters import TaskParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.filters.filter import NoInputFilter, NoOutputFilter
from rl_coach.graph_managers.graph_manager import GraphManager
from rl_coach.level_manager import LevelManager
from rl_coach.spaces import DiscreteActionSpace
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn


class SeveralInOne(GraphManager):
    """Two agents that act as one."""

    def _create_graph(self, task_parameters):
        settings = {"frame_skip": 1, "human_control": False, "custom_reward_threshold": None}
        environment = Bandit(level="bandit", seed=0, visualization_parameters=VisualizationParameters(), **settings)
        parameters = {name: dqn() for name in ("left", "right")}
        for each in parameters.values():
            each.task_parameters = task_parameters
            each.input_filter, each.output_filter = NoInputFilter(), NoOutputFilter()
        agent = CompositeAgent(
            parameters, VisualizationParameters(), SingleDecider("left"), DiscreteActionSpace(2), name="both"
        )
        agent.seed(np.random.SeedSequence(1))
        return [LevelManager("main_level", agent, environment)], [environment]


def test_agents_in_a_composite_name_graph_and_level_in_their_files(tmp_path):
    manager = SeveralInOne("pair", schedule(20), VisualizationParameters())
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=1))
    manager.heatup(EnvironmentSteps(20))
    manager.close()
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == [
        "worker_0.pair.main_level.main_level.both.left_0.csv",
        "worker_0.pair.main_level.main_level.both.right_0.csv",
    ]


def test_a_directive_stays_out_of_the_environments_own_state(tmp_path):
    manager = graph(dqn(), Bandit, tmp_path)
    agent, environment = manager.get_agent(), manager.environments[0]
    agent.set_incoming_directive(np.array([6.0]))
    with manager.phase_context(RunPhase.TRAIN):
        manager.act(EnvironmentSteps(1))
        answer = environment.last_env_response
        agent.set_incoming_directive(np.array([7.0]))
        assert "desired_goal" not in answer.next_state and "desired_goal" not in environment.state
        assert agent.curr_state["desired_goal"] == 7.0
        manager.act(EnvironmentSteps(1))
    # a goal is in force until the next one: a transition has it on both sides
    goals = [
        (step.state["desired_goal"].item(), step.next_state["desired_goal"].item())
        for step in agent.current_episode_buffer.transitions
    ]
    assert goals == [(6.0, 6.0), (7.0, 7.0)]
