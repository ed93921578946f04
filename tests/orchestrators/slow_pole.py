"""CartPole that takes a while for each step."""

from __future__ import annotations

import time

from gymnasium.envs.classic_control import CartPoleEnv


class SlowPole(CartPoleEnv):
    """:param pause: seconds of each step"""

    def __init__(self, pause: float = 0.002, **settings):
        super().__init__(**settings)
        self._pause = pause
        self._steps = 0

    def reset(self, **how):
        self._steps = 0
        return super().reset(**how)

    def step(self, action):
        time.sleep(self._pause)
        self._steps += 1
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, self._steps >= 200, info
