from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rl_coach.environments.toy_problems.exploration_chain import ExplorationChain


def test_it_is_a_gymnasium_environment():
    check_env(ExplorationChain(), skip_render_check=True)


def test_always_right_returns_ten_in_the_presets_episode():
    env = ExplorationChain(chain_length=20, max_steps=27)
    env.reset()
    steps = [env.step(1) for _ in range(27)]
    assert sum(step[1] for step in steps) == 10
    assert [step[3] for step in steps] == [False] * 26 + [True]
    assert not any(step[2] for step in steps)


def test_the_left_end_pays_little_and_holds():
    env = ExplorationChain()
    env.reset()
    assert [env.step(0)[1] for _ in range(3)] == [0.001] * 3
    assert env.state == 0
    assert env.step(1)[1] == 0


def test_an_episode_lasts_n_plus_nine_steps_unless_told_otherwise():
    assert ExplorationChain(10).max_steps == 19
    env = ExplorationChain(10, max_steps=0)
    env.reset()
    assert not any(env.step(0)[3] for _ in range(100))


def test_observations():
    types = ExplorationChain.ObservationType
    one_hot, _ = ExplorationChain(5, start_state=2, observation_type=types.OneHot).reset()
    therm, _ = ExplorationChain(5, start_state=2, observation_type=types.Therm).reset()
    np.testing.assert_array_equal(one_hot, [0, 0, 1, 0, 0])
    np.testing.assert_array_equal(therm, [1, 1, 1, 0, 0])


def test_the_picture():
    env = ExplorationChain(5, start_state=3, render_mode="rgb_array")
    env.reset()
    np.testing.assert_array_equal(env.render()[0, ::16, 0], [0, 0, 0, 255, 0])
    env = ExplorationChain(5, start_state=3, simple_render=False, render_mode="rgb_array")
    env.reset()
    np.testing.assert_array_equal(env.render()[0, ::16, 0], [255, 255, 255, 255, 0])


def test_impossible_chains_are_errors():
    with pytest.raises(ValueError, match="chain_length"):
        ExplorationChain(3)
    with pytest.raises(ValueError, match="start_state"):
        ExplorationChain(5, start_state=5)
