from __future__ import annotations

import gymnasium as gym
import numpy as np

from rl_coach.environments.toy_problems.cart_pole_without_velocity import CartPoleWithoutVelocity


def test_it_is_the_cart_pole_with_position_and_angle_alone():
    seen, whole = CartPoleWithoutVelocity(), gym.make("CartPole-v1")
    np.testing.assert_array_equal(seen.reset(seed=3)[0], whole.reset(seed=3)[0][[0, 2]])
    for action in (0, 1, 1, 0, *[1] * 12):
        observation, *outcome = whole.step(action)
        found, *others = seen.step(action)
        np.testing.assert_array_equal(found, observation[[0, 2]])
        assert found in seen.observation_space and others == outcome
    assert outcome[1], "it fell"
