"""An evaluation draws from streams fixed by seed and step: one more or fewer changes no other, and no training."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.graph_managers.run_seeds import evaluation_seed
from tests.zoo.runs import created, run_names


def rewards_of_second_evaluation(directory, name, first):
    """Rewards and the weights after 60 steps with or without an evaluation after 30."""
    graph = created(name, 1000, directory)
    graph.heatup(EnvironmentSteps(40))
    graph.train_and_act(EnvironmentSteps(30))
    for _ in range(first):
        graph.evaluate(EnvironmentEpisodes(2))
    graph.train_and_act(EnvironmentSteps(30))
    graph.evaluate(EnvironmentEpisodes(3))
    weights = next(iter(graph.get_agent().networks.values())).online_network.get_weights()
    episodes = graph.level_managers[0].evaluation_environment.total_reward_in_current_episode
    last = graph.progress.last_evaluation
    graph.close()
    return last, episodes, weights


@pytest.mark.parametrize("name", run_names("PG"))
def test_one_evaluation_more_changes_no_other(tmp_path, name):
    without = rewards_of_second_evaluation(tmp_path / "without", name, 0)
    once = rewards_of_second_evaluation(tmp_path / "once", name, 1)
    twice = rewards_of_second_evaluation(tmp_path / "twice", name, 2)
    assert without[:2] == once[:2] == twice[:2]
    for a, b, c in zip(without[2], once[2], twice[2]):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_seeds_differ_by_run_and_step():
    states = {tuple(evaluation_seed(seed, step).generate_state(2)) for seed in (1, 2) for step in (0, 100, 200)}
    children = {tuple(child.generate_state(2)) for child in np.random.SeedSequence(1).spawn(50)}
    assert len(states) == 6 and not states & children
    assert tuple(evaluation_seed(1, 100).generate_state(2)) in states
