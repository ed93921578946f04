from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rl_coach.environments.toy_problems.bit_flip import BitFlip


def solve(env):
    env.reset(seed=1)
    return [env.step(bit) for bit in np.flatnonzero(env.state != env.goal)]


def test_it_is_a_gymnasium_environment():
    check_env(BitFlip(8, mean_zero=True), skip_render_check=True)


def test_an_action_flips_its_bit():
    env = BitFlip(6)
    before, _ = env.reset(seed=0)
    after, *_ = env.step(4)
    np.testing.assert_array_equal(np.flatnonzero(before["state"] != after["state"]), [4])
    np.testing.assert_array_equal(after["achieved_goal"], after["state"])
    np.testing.assert_array_equal(after["desired_goal"], before["desired_goal"])


def test_only_reaching_the_goal_is_free_and_ends_the_episode():
    steps = solve(BitFlip(10))
    assert [step[1] for step in steps] == [-1.0] * (len(steps) - 1) + [0.0]
    assert [step[2] for step in steps] == [False] * (len(steps) - 1) + [True]
    assert not steps[-1][3]


@pytest.mark.parametrize(("max_steps", "limit"), [(None, 4), (7, 7)])
def test_an_episode_is_cut_at_max_steps(max_steps, limit):
    env = BitFlip(4, max_steps=max_steps)
    env.reset(seed=0)
    env.goal = np.full(4, 2.0, np.float32)
    assert [env.step(0)[3] for _ in range(limit)] == [False] * (limit - 1) + [True]


def test_without_a_limit_it_goes_on():
    env = BitFlip(4, max_steps=0)
    env.reset(seed=0)
    env.goal = np.full(4, 2.0, np.float32)
    assert not any(env.step(0)[3] for _ in range(50))


def test_bits_may_have_mean_zero():
    observation, _ = BitFlip(64, mean_zero=True).reset(seed=0)
    assert set(observation["state"]) == {-1.0, 1.0}
    observation, _ = BitFlip(64).reset(seed=0)
    assert set(observation["state"]) == {0.0, 1.0}


def test_an_episode_never_begins_at_its_goal():
    env = BitFlip(1)
    for seed in range(20):
        env.reset(seed=seed)
        assert env.state != env.goal


def test_the_picture_has_a_row_for_the_bits_and_one_for_the_goal():
    env = BitFlip(5, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert (picture.shape, picture.dtype) == ((32, 80, 3), np.uint8)
    np.testing.assert_array_equal(picture[0, ::16, 0], env.state * 255)


def test_no_bits_are_an_error():
    with pytest.raises(ValueError, match="bit_length"):
        BitFlip(0)
