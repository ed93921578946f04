"""Many graphs in one process: what one leaves behind does not add up.

Two things are measured. Objects of Python's: none of a graph may be held once it has gone. And the process's resident
memory: XLA keeps what it has compiled, 7 MB for a training step, as long as the process lives; steps that compute the
same are compiled once (``tensorflow_components.functions``); 0.2 MB a graph are left. Graphs of other structures each
cost their own.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pathlib
import sys
import weakref

import pytest

from rl_coach.base_parameters import TaskParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from tests.frameworks import FRAMEWORK
from tests.zoo.runs import graph_of

pytestmark = [pytest.mark.faults, pytest.mark.slow]

GRAPHS = 6
LARGEST_GROWTH = 3.0  # MB a graph


def resident_megabytes() -> float:
    """Memory of this process, without what its allocator has got back and keeps."""
    ctypes.CDLL(None).malloc_trim(0)
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


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
    references, counts, megabytes = [], [], []
    for number in range(GRAPHS):
        references += train_one(tmp_path / str(number))
        gc.collect()
        counts.append(len(gc.get_objects()))
        megabytes.append(resident_megabytes() if sys.platform == "linux" else 0.0)
    assert [reference() for reference in references] == [None] * len(references)
    # a few objects are the references themselves
    assert counts[-1] - counts[GRAPHS // 2] < 200
    assert megabytes[-1] - megabytes[GRAPHS // 2] < LARGEST_GROWTH * (GRAPHS - 1 - GRAPHS // 2)
