"""A loss that is not finite stops the run with one error that names network and step, and keeps the state."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from rl_coach.base_parameters import TaskParameters
from rl_coach.checkpoint import load_checkpoint
from rl_coach.environments.native_copies import NativeCopies
from rl_coach.utils import TrainingError
from tests.frameworks import FRAMEWORK
from tests.zoo.runs import graph_of, run_names

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module", params=run_names("PG"))
def name(request):
    """A graph's name. By its scope both tests of a graph follow each other, and the second finds its step compiled."""
    return request.param


def failing(name, directory):
    graph = graph_of(name, 300)
    graph.prints_summary = False
    return graph, TaskParameters(framework_type=FRAMEWORK, experiment_path=str(directory), seed=5)


def assert_fails_and_keeps_its_state(graph, directory):
    with pytest.raises(TrainingError) as caught:
        graph.run()
    assert re.search(r"network '\w+'.*(update|step) \d+", str(caught.value)) and "\n" not in str(caught.value)
    (kept,) = (directory / "checkpoint").glob("*.failed")
    load_checkpoint(kept)
    assert not list((directory / "checkpoint").glob("*.ckpt"))


def test_rewards_that_are_not_numbers(tmp_path, name):
    graph, task = failing(name, tmp_path)
    graph.create_graph(task)
    first = graph.environments[0]
    if isinstance(first, NativeCopies):
        spoil_columns(first)
    else:
        for environment in getattr(first, "copies", graph.environments):
            spoil_rewards(environment)
    assert_fails_and_keeps_its_state(graph, tmp_path)


def spoil_rewards(environment):
    take_action = environment._take_action

    def spoiled(action):
        take_action(action)
        if environment.total_steps_counter > 40:
            environment.reward = float("nan")

    environment._take_action = spoiled


def spoil_columns(copies):
    """Spoil the rewards of copies that are stepped together."""
    step, count = copies._step, itertools.count()

    def spoiled(actions):
        rewards, *ends = step(actions)
        return np.full_like(rewards, np.nan) if next(count) > 40 else rewards, *ends

    copies._step = spoiled


def test_a_learning_rate_that_is_far_too_large(tmp_path, name):
    graph, task = failing(name, tmp_path)
    for network in graph.agent_params.network_wrappers.values():
        network.learning_rate = 1e30  # the optimizer stays, and with it the compiled step
    graph.create_graph(task)
    assert_fails_and_keeps_its_state(graph, tmp_path)
