from __future__ import annotations

import gymnasium
import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.environments.gym_environment import GymEnvironment
from rl_coach.environments.reward_ranges import range_of_episodes


@pytest.mark.parametrize(
    ("level", "known"),
    [("CartPole-v0", (0, 200)), ("CartPole-v1", (0, 500)), ("MountainCar-v0", (-200, 0)), ("FrozenLake-v1", (0, 1)),
     ("LunarLander-v3", None)],
)  # fmt: skip
def test_the_range_of_total_rewards(level, known):
    if level.startswith("LunarLander"):
        pytest.importorskip("Box2D", reason="Box2D is not installed")
    assert range_of_episodes(GymEnvironment(level, 1, VisualizationParameters(), seed=0)) == known


class TenTimes(gymnasium.RewardWrapper):
    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1"))

    def reward(self, reward):
        return 10 * reward


def test_the_range_of_changed_rewards_is_not_known():
    settings = {"additional_simulator_parameters": {"sutton_barto_reward": True}}
    for environment in (
        GymEnvironment(f"{__file__}:TenTimes", 1, VisualizationParameters(), seed=0),
        GymEnvironment("CartPole-v1", 1, VisualizationParameters(), seed=0, **settings),
    ):
        assert range_of_episodes(environment) is None
    without_velocity = "rl_coach.environments.toy_problems.cart_pole_without_velocity:CartPoleWithoutVelocity"
    assert range_of_episodes(GymEnvironment(without_velocity, 1, VisualizationParameters(), seed=0)) == (0, 500)
