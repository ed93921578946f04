"""Many graphs in one process: what one leaves behind does not add up."""

from __future__ import annotations

import gc
import weakref

import pytest

from rl_coach.base_parameters import TaskParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from tests.frameworks import FRAMEWORK
from tests.zoo.runs import graph_of

pytestmark = [pytest.mark.faults, pytest.mark.slow]

GRAPHS = 6


def train_one(directory):
    """:return: weak references to the graph, its agent and its network"""
    graph = graph_of("DQN", 10)
    graph.heatup_steps, graph.evaluation_steps = EnvironmentSteps(40), EnvironmentEpisodes(0)
    graph.prints_summary = False
    graph.create_graph(TaskParameters(framework_type=FRAMEWORK, experiment_path=str(directory), seed=1))
    graph.run()
    agent = graph.get_agent()
    return [weakref.ref(one) for one in (graph, agent, agent.memory, agent.networks["main"].state)]


def test_nothing_of_a_graph_that_has_gone_is_held(tmp_path):
    references, counts = [], []
    for number in range(GRAPHS):
        references += train_one(tmp_path / str(number))
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert [reference() for reference in references] == [None] * len(references)
    # a few objects are the references themselves
    assert counts[-1] - counts[GRAPHS // 2] < 200
