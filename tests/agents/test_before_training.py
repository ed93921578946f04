"""What an agent does once, when its training begins."""

from __future__ import annotations

import copy
from typing import Any

from rl_coach.core_types import EnvironmentSteps, RunPhase, TrainingSteps
from tests.zoo.agents import Pretrained, of_class
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn


def pretrained(directory: Any, **settings: Any) -> Any:
    return graph(of_class(dqn(), Pretrained), Bandit, directory, schedule(10**6, heatup=40), **settings)


def test_it_is_called_once_after_the_heatup_and_counts_in_training_steps(tmp_path):
    manager = pretrained(tmp_path)
    agent = manager.get_agent()
    manager.heatup(EnvironmentSteps(40))
    assert agent.calls == [] and not agent.training_has_begun
    manager.train_and_act(EnvironmentSteps(1))
    assert agent.calls == [(RunPhase.TRAIN, 41, agent.memory.length())]
    assert agent.training_iteration >= 7 and agent.training_has_begun
    manager.train_and_act(EnvironmentSteps(9))
    assert len(agent.calls) == 1
    assert manager.total_steps_counters[RunPhase.TRAIN][TrainingSteps] == agent.training_iteration == 7 + 5


def test_its_updates_are_part_of_those_that_a_run_wants(tmp_path):
    manager = graph(of_class(dqn(), Pretrained), Bandit, tmp_path, schedule(TrainingSteps(9), heatup=40))
    manager.improve()
    assert manager.get_agent().training_iteration == 9


def test_it_is_not_repeated_after_a_resume(tmp_path):
    first, second = pretrained(tmp_path), pretrained(tmp_path)
    first.heatup(EnvironmentSteps(40))
    first.train_and_act(EnvironmentSteps(4))
    second.set_state(copy.deepcopy(first.get_state()))
    second.train_and_act(EnvironmentSteps(4))
    assert second.get_agent().calls == []


def test_a_checkpoint_of_the_heatup_leaves_it_to_be_done(tmp_path):
    first, second = pretrained(tmp_path), pretrained(tmp_path)
    first.heatup(EnvironmentSteps(40))
    second.set_state(copy.deepcopy(first.get_state()))
    second.train_and_act(EnvironmentSteps(4))
    assert len(second.get_agent().calls) == 1


def test_in_states_that_do_not_tell_training_has_begun_with_the_first_update(tmp_path):
    first = pretrained(tmp_path)
    first.heatup(EnvironmentSteps(40))
    agent, other = first.get_agent(), pretrained(tmp_path).get_agent()
    for has_begun in (False, True):
        if has_begun:
            first.train_and_act(EnvironmentSteps(4))
        state = copy.deepcopy(agent.get_state())
        del state["training_has_begun"]
        other.set_state(state)
        assert other.training_has_begun is has_begun
