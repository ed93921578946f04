"""Wolpertinger acts with the best of the actions next to the actor's, and learns with their coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.rules.action_embedding import ActionEmbedding, embedding_of
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utils import CoachError
from tests.agents.numpy_gradients import recorded_columns
from tests.zoo.continuous import wolpertinger
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import graph


@pytest.mark.parametrize("width", [1, 3])
def test_nearest_actions_are_those_of_a_full_search(width):
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (500, width))
    embedding = ActionEmbedding(points)
    for _ in range(50):
        point = rng.uniform(-1.2, 1.2, width)
        expected = np.argsort(np.square(points - point).sum(axis=1))[:7]
        np.testing.assert_array_equal(embedding.nearest(point, 7), expected)
        assert embedding.nearest(point, 1).tolist() == expected[:1].tolist()


def test_all_actions_are_near_enough_if_all_are_asked_for():
    embedding = ActionEmbedding(np.array([[0.5], [-1.0], [1.0]]))
    assert embedding.nearest(np.array([0.9]), 3).tolist() == [2, 0, 1]


def test_embeddings_span_the_square():
    targets = np.array([[0.0, 10.0], [5.0, 10.0], [5.0, 30.0]])
    embedding = embedding_of(DiscreteActionSpace(3), targets, 2)
    np.testing.assert_allclose(embedding.points, [[-1, -1], [1, -1], [1, 1]])
    numbers = embedding_of(DiscreteActionSpace(3), None, 1)
    np.testing.assert_allclose(numbers.points, [[-1], [0], [1]])


def test_it_takes_the_best_of_the_nearest(tmp_path):
    agent = graph(wolpertinger(k=5), Target, tmp_path).get_agent()
    agent.phase = RunPhase.TEST
    state = {"observation": np.array([0.3], np.float32)}
    row = {"observation": state["observation"][None]}
    proto = agent.networks["actor"].online_network.predict(row)[0]
    points = agent.embedding.points
    near = np.argsort(np.abs(points[:, 0] - proto[0]))[:5]
    values = [
        float(agent.networks["critic"].online_network.predict({**row, "action": points[i][None]})[0]) for i in near
    ]
    assert agent.choose_action(state).action == near[int(np.argmax(values))]


def test_it_learns_with_coordinates(tmp_path):
    manager = graph(wolpertinger(), Target, tmp_path)
    manager.heatup(EnvironmentSteps(40))
    agent = manager.get_agent()
    batches = recorded_columns(agent)
    agent.phase = RunPhase.TRAIN
    float(agent.update_loop.learn(1))
    numbers = agent.memory.get_all_complete_episodes_transitions().actions()
    assert set(np.unique(numbers)) <= set(range(61))
    actions = batches[0]["actions"]
    assert actions.shape == (16, 1)
    np.testing.assert_allclose((actions + 1) * 30, np.rint((actions + 1) * 30), atol=1e-4)


def changed(**settings: Any) -> Any:
    parameters = wolpertinger()
    for name, value in settings.items():
        setattr(parameters.algorithm, name, value)
    return parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (changed(k=62), "k is 62, and there are 61 actions: choose fewer"),
        (changed(k=0), r"algorithm\.k is 0; it must be a whole number from 1"),
        (changed(action_embedding_width=2), "action_embedding_width is 2, and the actions have 1 coordinates"),
    ],
)
def test_bad_settings_are_refused(parameters, message, tmp_path):
    with pytest.raises(CoachError, match=message):
        graph(parameters, Target, tmp_path)


def test_continuous_actions_are_refused(tmp_path):
    parameters = wolpertinger()
    parameters.output_filter = None
    with pytest.raises(CoachError, match=r"needs discrete actions, .* add a BoxDiscretization to its output_filter"):
        graph(parameters, Target, tmp_path)


def test_actions_without_a_box_are_embedded_by_their_number(tmp_path):
    parameters = wolpertinger(k=2)
    parameters.output_filter = None
    manager = graph(parameters, Bandit, tmp_path)
    manager.improve()
    np.testing.assert_allclose(manager.get_agent().embedding.points, [[-1], [1]])
