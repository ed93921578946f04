from __future__ import annotations

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
