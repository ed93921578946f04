"""Copies answer as one, in this process and in processes of their own."""

from __future__ import annotations

from functools import partial

import gymnasium
import numpy as np
import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import RunPhase
from rl_coach.environments.environment_copies import EnvironmentCopies, EnvironmentProcesses
from rl_coach.environments.gym_environment import GymEnvironment


@pytest.fixture(params=[EnvironmentCopies, EnvironmentProcesses])
def start(request, in_training):
    """Starts two copies of CartPole, and closes them after the test."""

    def make(seed):
        settings = {"level": "CartPole-v1", "frame_skip": 1, "visualization_parameters": VisualizationParameters()}
        return in_training(request.param([partial(GymEnvironment, seed=seed + i, **settings) for i in range(2)]))

    return make


def play(copies, steps):
    """[steps, 2, 4]: what each of the copies shows."""
    responses = [copies.step_all([step % 2, 1 - step % 2]) for step in range(steps)]
    return np.array([[response.next_state["observation"] for response in row] for row in responses])


def test_a_phase_reaches_every_copy(start):
    copies = start(1)
    copies.phase = RunPhase.TEST
    copies.begin_episodes({0: True, 1: True})
    assert copies.phase is RunPhase.TEST
    assert [episode["phase"] for episode in copies.get_episode_state().values()] == ["TEST", "TEST"]


def test_a_saved_state_gives_each_copy_its_own_next_episode(start):
    copies = start(1)
    copies.begin_episodes({0: True, 1: True})
    play(copies, 5)
    state = copies.get_state()
    assert list(state) == ["0", "1"]
    restored = start(50)
    restored.set_state(state)
    expected, found = (each.begin_episodes({0: True, 1: True}) for each in (copies, restored))
    for index in range(2):
        np.testing.assert_array_equal(expected[index].next_state["observation"], found[index].next_state["observation"])
    assert restored.get_state() == copies.get_state()


def test_episodes_go_on_where_they_were_saved(start):
    copies = start(1)
    copies.begin_episodes({0: True, 1: True})
    play(copies, 5)
    restored = start(50)
    assert restored.set_episode_state(copies.get_episode_state())
    np.testing.assert_array_equal(play(copies, 3), play(restored, 3))


def test_one_copy_that_does_not_repeat_is_found_out(start):
    copies = start(1)
    copies.begin_episodes({0: True, 1: True})
    play(copies, 5)
    state = copies.get_episode_state()
    state["1"]["start"]["next_seed"] = 77
    assert not start(50).set_episode_state(state)


def test_nothing_is_saved_where_one_episode_cannot_be(start):
    copies = start(1)
    copies.begin_episodes({0: True})
    assert copies.get_episode_state() is None
    copies.begin_episodes({1: True})
    assert copies.get_episode_state() is not None


class BooleanMasks(gymnasium.Env):
    """Masks of True and False, as in SB3-Contrib."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.bool_)
    action_space = gymnasium.spaces.Discrete(2)
    info = {"action_mask": np.array([True, False])}

    def reset(self, *, seed=None, options=None):
        return np.ones(1, np.bool_), self.info

    def step(self, action):
        return np.zeros(1, np.bool_), 0.0, False, False, self.info


@pytest.mark.parametrize("kind", [EnvironmentCopies, EnvironmentProcesses])
def test_masks_and_observations_may_be_boolean(kind, in_training):
    settings = {"level": f"{__file__}:BooleanMasks", "visualization_parameters": VisualizationParameters()}
    copies = in_training(kind([partial(GymEnvironment, frame_skip=1, **settings)] * 2))
    copies.begin_episodes({0: True, 1: True})
    states = copies.step_columns(np.zeros(2, int)).states
    assert states["action_mask"].tolist() == [[True, False]] * 2
    assert states["observation"].tolist() == [[False]] * 2
