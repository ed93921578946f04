"""EnvPool's environments as levels, with the real package."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.environments import vector_levels
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.building import make_copies
from rl_coach.utils import CoachError

pytest.importorskip("envpool")


@pytest.fixture
def start(in_training):
    def make(level="envpool:CartPole-v1", count=3, seed=1, **settings):
        parameters = GymVectorEnvironment(level)
        parameters.seed, parameters.num_environments = seed, count
        parameters.additional_simulator_parameters = settings
        return in_training(make_copies(parameters, VisualizationParameters()))

    return make


def play(copies, steps):
    """[T, N, 4] observations, and the number of episodes that ended."""
    rows, ended = [], 0
    due = np.arange(copies.num_copies)
    for _ in range(steps):
        before = None if not rows else rows[-1]
        first = copies.begin_columns(due, np.zeros(len(due), np.bool_))["observation"] if len(due) else None
        if first is not None:
            assert np.abs(first).max() <= 0.05
        columns = copies.step_columns(np.ones(copies.num_copies, np.int64))
        observations = columns.states["observation"]
        changed = np.ones(copies.num_copies, np.bool_)
        changed[due] = False
        if before is not None:  # the velocity follows from the step before, so no step is missing or belongs to another
            np.testing.assert_allclose(
                observations[changed, 0], (before[:, 0] + 0.02 * before[:, 1])[changed], atol=1e-5
            )
        if first is not None:
            np.testing.assert_allclose(observations[due, 0], first[:, 0] + 0.02 * first[:, 1], atol=1e-5)
        ends = columns.terminated | columns.truncated
        assert (np.abs(observations[ends, 2]) > 0.2).all()  # it fell: this is the last state and not a first one
        due, ended = np.flatnonzero(ends), ended + ends.sum()
        rows.append(observations)
    return np.array(rows), ended


def test_no_action_is_lost_where_an_episode_begins(start):
    _, ended = play(start(), 60)
    assert ended > 10


def test_seeds_make_runs_repeatable(start):
    (one, _), (same, _), (other, _) = play(start(), 30), play(start(), 30), play(start(seed=7), 30)
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_screens_of_games(start):
    copies = start("envpool:Pong-v5", 2)
    first = copies.begin_columns(np.arange(2), np.ones(2, np.bool_))["observation"]
    columns = copies.step_columns(np.array([0, 2]))
    assert first.shape == columns.states["observation"].shape == (2, 84, 84, 4)
    assert "lives" in columns.infos


def test_continuous_actions(start):
    copies = start("envpool:HalfCheetah-v4", 2)
    copies.begin_columns(np.arange(2), np.ones(2, np.bool_))
    assert copies.step_columns(np.full((2, 6), 5.0)).states["observation"].shape == (2, 17)


def test_levels_and_settings_that_do_not_exist(start):
    with pytest.raises(CoachError, match=r"EnvPool has no level 'CartPole-v9'; did you mean 'envpool:CartPole-v"):
        start("envpool:CartPole-v9")
    with pytest.raises(CoachError, match=r"cannot make 'CartPole-v1'.*'gravity'"):
        start(gravity=3)


def test_a_missing_package_is_named(start, monkeypatch):
    monkeypatch.setattr(vector_levels, "is_installed", lambda name: False)
    with pytest.raises(CoachError, match=r"level 'envpool:CartPole-v1' needs EnvPool: .*envpool"):
        start()
