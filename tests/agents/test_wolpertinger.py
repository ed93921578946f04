"""Wolpertinger acts with the best of the actions next to the actor's, and learns with their coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.rules.action_embedding import ActionEmbedding, embedding_of
from rl_coach.agents.rules.deterministic_policy import best_of_next_actions
from rl_coach.architectures.update import LearningBatch
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.filters.filter import NoOutputFilter
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utils import CoachError
from tests.agents.numpy_gradients import recorded_columns
from tests.zoo.continuous import wolpertinger
from tests.zoo.environments import Bandit, MaskedChain, Target
from tests.zoo.graphs import graph, schedule


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


def test_only_allowed_actions_are_near():
    embedding = ActionEmbedding(np.array([[-1.0], [0.0], [0.5], [1.0]]))
    mask = np.array([1, 0, 0, 1])
    assert embedding.nearest(np.array([0.4]), 1, mask).tolist() == [3]
    assert embedding.nearest(np.array([0.4]), 3, mask).tolist() == [3, 0]
    assert embedding.nearest(np.array([0.4]), 1, 0 * mask).tolist() == [2], "a mask that allows nothing masks nothing"
    near = embedding.nearest_to_each(np.array([[0.4], [-0.9]]), 3, np.array([mask, [0, 0, 1, 0]]))
    assert near[..., 0].tolist() == [[1, -1, 1], [0.5, 0.5, 0.5]]


def test_a_masked_action_is_neither_taken_nor_bootstrapped_from(tmp_path):
    parameters = wolpertinger(k=3)
    parameters.algorithm.use_full_policy_in_target, parameters.output_filter = True, NoOutputFilter()
    manager = graph(parameters, MaskedChain, tmp_path, schedule(60, heatup=20))
    manager.improve()  # the environment refuses the last action
    agent = manager.get_agent()
    near = agent.columns_of_networks(agent.memory.sample(32))["extra/next_actions"]
    assert agent.training_iteration > 0 and agent.embedding.points[2] == 1 and near.max() < 1


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


def test_the_papers_target_is_the_best_of_the_target_actors_neighbours(tmp_path):
    """Each update searches with the target actor as it is then, and values with the target critic."""
    manager = graph(changed(k=5, use_full_policy_in_target=True), Target, tmp_path)
    manager.heatup(EnvironmentSteps(40))
    agent = manager.get_agent()
    actor, critic = agent.networks["actor"], agent.networks["critic"]
    # a target that differs from the network that learns, as it does after some updates
    critic.target_network.set_weights([weight + 0.3 for weight in critic.target_network.get_weights()])
    batches, targets = recorded_columns(agent), []
    columns_of = agent.learning_columns

    def expecting(batch: Any) -> dict[str, np.ndarray]:
        columns = columns_of(batch)
        following = columns["next_states/observation"]
        points = np.linspace(-1, 1, 61)
        best = []
        for row, proto in zip(following, actor.target_network.predict({"observation": following})):
            near = points[np.argsort(np.abs(points - proto[0]), kind="stable")[:5]]
            rows = {"observation": np.repeat(row[None], 5, axis=0), "action": near[:, None].astype(np.float32)}
            best.append(float(np.max(critic.target_network.predict(rows))))
        targets.append(float(np.mean(columns["rewards"] + columns["discounts"] * np.array(best))))
        return columns

    agent.learning_columns = expecting
    agent.phase = RunPhase.TRAIN
    float(agent.update_loop.learn(2))
    assert [batch["extra/next_actions"].shape for batch in batches] == [(16, 5, 1), (16, 5, 1)]
    (signal,) = (signal for signal in agent.episode_signals if signal.name == "TD targets")
    assert signal.get_mean() == pytest.approx(np.mean(targets), rel=1e-4)


def test_values_of_neighbours_worked_out_by_hand():
    ops = pytest.importorskip("keras", reason="the operations of Keras 3 compute the numbers").ops

    class Sum:
        def target(self, states: Any) -> Any:
            return [{"q": states["observation"][:, 0] + 10 * states["action"][:, 0]}]

    batch = LearningBatch(
        {}, {"observation": ops.convert_to_tensor([[1.0], [2.0]])}, None, None, None, None,
        {"next_actions": ops.convert_to_tensor([[[0.1], [0.3]], [[-0.5], [-0.2]]])}, {},
    )  # fmt: skip
    # 1 + 10 * 0.3 of 2 and 4, and 2 - 10 * 0.2 of -3 and 0
    values = best_of_next_actions(ops, {"critic": Sum()}, batch)  # type: ignore[dict-item]
    np.testing.assert_allclose(np.asarray(values), [4.0, 0.0], atol=1e-6)


def changed(**settings: Any) -> Any:
    parameters = wolpertinger()
    for name, value in settings.items():
        setattr(parameters.algorithm, name, value)
    return parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (changed(k=62), "k is 62, and there are 61 actions: choose a smaller k"),
        (changed(use_full_policy_in_target=2), r"algorithm\.use_full_policy_in_target is 2; it must be"),
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
