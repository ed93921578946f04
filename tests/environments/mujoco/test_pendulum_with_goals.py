from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mujoco")

from gymnasium.utils.env_checker import check_env

from rl_coach.environments.mujoco.common import ASSETS, read_model
from rl_coach.environments.mujoco.pendulum_with_goals import PendulumWithGoals


def set_state(env, angle, velocity):
    env.data.qpos[0], env.data.qvel[0] = angle, velocity


def test_it_is_a_gymnasium_environment():
    check_env(PendulumWithGoals(), skip_render_check=True)


def test_models_are_read_with_the_files_they_include():
    assert all(name in read_model("pendulum_with_goals.xml") for name in ASSETS)


def test_observation_goal_and_achievement_have_one_form():
    observation, _ = PendulumWithGoals().reset(seed=0)
    np.testing.assert_array_equal(observation["desired_goal"], [1, 0, 0])
    np.testing.assert_array_equal(observation["observation"], observation["achieved_goal"])
    assert np.hypot(*observation["observation"][:2]) == pytest.approx(1)
    polar, _ = PendulumWithGoals(polar_coordinates=True).reset(seed=0)
    assert polar["observation"].shape == (2,)
    cosine, sine, velocity = observation["observation"]
    np.testing.assert_allclose(polar["observation"], [np.arctan2(sine, cosine), velocity], rtol=1e-5)


def test_goals_may_be_angles_where_observations_are_not():
    env = PendulumWithGoals(polar_goals=True)
    check_env(env, skip_render_check=True)
    mixed, plain, polar = (
        PendulumWithGoals(**settings).reset(seed=0)[0]
        for settings in ({"polar_goals": True}, {}, {"polar_coordinates": True})
    )
    np.testing.assert_array_equal(mixed["observation"], plain["observation"])
    for name in ("desired_goal", "achieved_goal"):
        np.testing.assert_array_equal(mixed[name], polar[name])
    env.goal = np.array([np.pi - 0.01, 0.0])
    assert env._is_reached(np.array([-np.pi + 0.01, 0.0]))
    with pytest.raises(ValueError, match="2 goal_reaching_thresholds are needed"):
        PendulumWithGoals(goal_reaching_thresholds=np.ones(3), polar_goals=True)


def test_standing_upright_reaches_the_goal():
    env = PendulumWithGoals()
    env.reset(seed=0)
    assert env.step(np.zeros(1))[1:4] == (-1, False, False)
    set_state(env, 0.02, 0.1)
    assert env.step(np.zeros(1))[1:4] == (0, True, False)


def test_passing_upright_too_fast_does_not():
    env = PendulumWithGoals()
    env.reset(seed=0)
    set_state(env, 0.0, 3.0)
    assert env.step(np.zeros(1))[1:3] == (-1, False)


def test_polar_angles_are_compared_around_the_circle():
    env = PendulumWithGoals(polar_coordinates=True)
    env.goal = np.array([np.pi - 0.01, 0.0])
    assert env._is_reached(np.array([-np.pi + 0.01, 0.0]))


def test_the_goal_need_not_end_the_episode():
    env = PendulumWithGoals(terminate_on_goal_reaching=False, goal_reached_reward=5)
    env.reset(seed=0)
    set_state(env, 0.0, 0.0)
    assert env.step(np.zeros(1))[1:3] == (5, False)


def test_an_episode_is_cut_at_the_time_limit():
    env = PendulumWithGoals(time_limit=3)
    env.reset(seed=0)
    assert [env.step(np.zeros(1))[3] for _ in range(3)] == [False, False, True]


def test_a_frameskip_of_ten_is_ten_steps():
    single, skipping = PendulumWithGoals(), PendulumWithGoals(frameskip=10)
    single.reset(seed=0)
    skipping.reset(seed=0)
    for _ in range(10):
        expected, *_ = single.step(np.ones(1))
    np.testing.assert_allclose(skipping.step(np.ones(1))[0]["observation"], expected["observation"], rtol=1e-6)


def test_goals_may_be_random():
    env = PendulumWithGoals(random_goals_instead_of_standing_goal=True)
    goals = np.array([env.reset(seed=seed)[0]["desired_goal"] for seed in range(20)])
    assert len(np.unique(goals[:, 0])) == 20
    assert np.all(goals[:, 0] >= np.cos(np.pi / 8))
    assert np.all(np.abs(goals[:, 2]) <= 0.2)


def test_the_motor_alone_cannot_lift_but_can_swing_the_pendulum_up():
    env = PendulumWithGoals(frameskip=10)
    env.reset(seed=0)
    set_state(env, np.pi, 0.0)
    highest = max(env.step(np.full(1, 2.0))[0]["observation"][0] for _ in range(300))
    assert highest < 0.5
    env.reset(seed=0)
    reached = False
    for _ in range(500):
        cosine, sine, velocity = env._observe()["observation"]
        energy = 0.125 * velocity**2 + 4.905 * cosine
        torque = -8 * np.arctan2(sine, cosine) - 1.5 * velocity if cosine > 0.9 else 2 * np.sign(velocity)
        if energy > 4.905 and cosine <= 0.9:
            torque = -torque
        reached = env.step(np.clip([torque], -2, 2))[2] or reached
    assert reached


def test_thresholds_must_fit_the_coordinates():
    with pytest.raises(ValueError, match="2 goal_reaching_thresholds"):
        PendulumWithGoals(goal_reaching_thresholds=np.ones(3), polar_coordinates=True)
