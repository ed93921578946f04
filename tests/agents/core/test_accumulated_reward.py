"""The reward so far as a measurement, without an agent."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.core.accumulated_reward import with_accumulated_reward, with_accumulated_reward_space
from rl_coach.spaces import StateSpace, VectorObservationSpace


def test_it_is_the_only_measurement_of_an_environment_without_any():
    spaces = StateSpace({"observation": VectorObservationSpace(3)})
    found = with_accumulated_reward_space(spaces)
    assert list(found.sub_spaces) == ["observation", "measurements"]
    assert found["measurements"].measurements_names == ["accumulated_reward"]
    state = with_accumulated_reward({"observation": np.zeros(3)}, 2.5)
    assert state["measurements"].tolist() == [2.5] and state["measurements"].dtype == np.float32


def test_it_comes_after_the_measurements_of_the_environment_whose_bounds_stay():
    measured = VectorObservationSpace(2, low=-1, high=4, measurements_names=["ammo", "health"])
    found = with_accumulated_reward_space(StateSpace({"measurements": measured}))["measurements"]
    assert found.measurements_names == ["ammo", "health", "accumulated_reward"]
    assert found.low.tolist() == [-1, -1, -np.inf] and found.high.tolist() == [4, 4, np.inf]
    before = {"measurements": np.array([3.0, 1.0])}
    assert with_accumulated_reward(before, -7)["measurements"].tolist() == [3, 1, -7]
    assert before["measurements"].tolist() == [3, 1], "the environment's own state stays as it is"
