"""Columns hold what the copies answer one by one, whatever steps them."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvResponse
from rl_coach.environments.gym_environment import Atari, GymVectorEnvironment
from rl_coach.environments.step_columns import InfoColumns, StepColumns
from rl_coach.graph_managers.building import make_copies
from rl_coach.spaces import BoxActionSpace
from tests.zoo.counting_environments import KINDS

LEVELS = ["CartPole-v1", *(f"tests.zoo.counting_environments:Coach{kind.__name__}-v0" for kind in KINDS)]
COUNT = 3


@pytest.fixture
def start(in_training):
    def make(level, vectorization, parameters=GymVectorEnvironment):
        made = parameters(level)
        made.seed, made.num_environments, made.vectorization = 1, COUNT, vectorization
        made.random_initialization_steps = 0
        return in_training(make_copies(made, VisualizationParameters()))

    return make


def drawn(copies, steps):
    """[steps, N, ...] actions; continuous ones leave their bounds now and then."""
    copies.action_space.seed(5)
    scale = 2 if isinstance(copies.action_space, BoxActionSpace) else 1
    return [np.array([copies.action_space.sample() for _ in range(COUNT)]) * scale for _ in range(steps)]


def one_by_one(copies, actions):
    """The answers to each row of actions, and the first states of the episodes that begin before it."""
    due = dict.fromkeys(range(COUNT), True)
    for row in actions:
        first = copies.begin_episodes(due) if due else {}
        answers = copies.step_all(row.tolist() if row.ndim == 1 else list(row))
        due = {index: False for index, answer in enumerate(answers) if answer.game_over}
        yield {index: response.next_state for index, response in first.items()}, answers


def in_columns(copies, actions):
    due = np.arange(COUNT)
    forced = np.ones(COUNT, np.bool_)
    for row in actions:
        first = copies.begin_columns(due, forced) if len(due) else {}
        columns = copies.step_columns(row)
        yield {index: {name: column[k] for name, column in first.items()} for k, index in enumerate(due)}, columns
        due = np.flatnonzero(columns.terminated | columns.truncated)
        forced = np.zeros(len(due), np.bool_)


def assert_states_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-7)


def assert_rows_are(columns, answers):
    assert columns.rewards.dtype == np.float64
    assert columns.terminated.dtype == columns.truncated.dtype == np.bool_
    for index, answer in enumerate(answers):
        assert_states_equal({name: column[index] for name, column in columns.states.items()}, answer.next_state)
        assert columns.rewards[index] == pytest.approx(answer.reward)
        assert columns.terminated[index] == answer.terminated
        assert columns.truncated[index] == (answer.game_over and not answer.terminated)
        assert (columns.goals is None) == (answer.goal is None)
        if answer.goal is not None:
            np.testing.assert_array_equal(columns.goals[index], answer.goal)
        present = {name: column[index] for name, column in columns.infos.items() if column[index] is not np.ma.masked}
        present = {name: value for name, value in present.items() if not np.ma.getmaskarray(value).all()}
        assert_states_equal(present, answer.info)


@pytest.mark.parametrize(
    ("vectorization", "level"),
    [*(("sync", level) for level in LEVELS), *(("native", level) for level in LEVELS), ("async", LEVELS[0]),
     ("async", LEVELS[2]), ("async", LEVELS[3])],
)  # fmt: skip
def test_columns_are_the_answers_of_ordinary_copies(start, vectorization, level):
    ordinary, copies = start(level, "sync"), start(level, vectorization)
    actions, ends = drawn(ordinary, 60), np.zeros(2, int)
    kept = []
    for (first, answers), (first_rows, columns) in zip(one_by_one(ordinary, actions), in_columns(copies, actions)):
        assert first.keys() == first_rows.keys()
        for index, state in first.items():
            assert_states_equal(first_rows[index], state)
        assert_rows_are(columns, answers)
        ends += columns.terminated.sum(), columns.truncated.sum()
        kept.append((columns, columns.states["observation"].copy()))
    assert ends[0] > 3 and (level == "CartPole-v1" or ends[1] > 3)
    for columns, observations in kept:  # no later step has written into them
        np.testing.assert_array_equal(columns.states["observation"], observations)


@pytest.mark.parametrize("level", LEVELS)
def test_answers_of_native_copies_are_rows_of_their_columns(start, level):
    one, other = start(level, "native"), start(level, "native")
    actions = drawn(one, 30)
    for (_, answers), (_, columns) in zip(one_by_one(one, actions), in_columns(other, actions)):
        assert_rows_are(columns, answers)


def test_lost_lives_end_episodes_of_columns_too(start):
    pytest.importorskip("ale_py", minversion="0.12")
    one, other = (start("BreakoutDeterministic-v4", "native", Atari) for _ in range(2))
    actions, ends = [np.array([0, 1, 2 + step % 2]) for step in range(120)], 0
    for (first, answers), (first_rows, columns) in zip(one_by_one(one, actions), in_columns(other, actions)):
        for index, state in first.items():
            assert_states_equal(first_rows[index], state)
        assert_rows_are(columns, answers)
        ends += columns.terminated.sum()
    assert ends > 3


def test_actions_are_kept_as_they_were(start):
    copies = start("tests.zoo.counting_environments:CoachSteered-v0", "sync")
    copies.begin_columns(np.arange(COUNT), np.ones(COUNT, np.bool_))
    actions = np.full((COUNT, 2), 0.5, np.float32)
    copies.step_columns(actions)
    actions[:] = 9
    assert copies.copies[0].last_action.tolist() == [0.5, 0.5]


def response(info, reward=0.0):
    return EnvResponse({"observation": np.zeros(2)}, reward, False, info)


def test_infos_that_only_some_copies_give_are_masked():
    columns = StepColumns.of([response({"a": 1, "word": "x"}), response({"a": 2}), response({})])
    assert list(columns.infos) == ["a", "word"]
    assert columns.infos["a"].tolist() == [1, 2, None]
    assert columns.infos["word"].tolist() == ["x", None, None]
    assert [one.info for one in columns.responses()] == [{"a": 1, "word": "x"}, {"a": 2}, {}]
    with pytest.raises(KeyError):
        columns.infos["b"]


def test_infos_of_different_shapes_stay_objects():
    columns = InfoColumns.of([{"a": np.zeros(2)}, {"a": [1, 2, 3]}, {"a": None}])
    assert columns["a"].dtype == object and columns["a"][1] == [1, 2, 3]
    assert InfoColumns.of([{}, {}]) == {}


def test_a_reward_of_whole_numbers_does_not_round_the_others():
    assert StepColumns.of([response({}, 1), response({}, 0.5)]).rewards.tolist() == [1.0, 0.5]
