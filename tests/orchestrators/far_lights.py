"""Lights to be switched off, whose reward is out of reach as long as a file is there."""

from __future__ import annotations

import os
import time

import gymnasium as gym
import numpy as np


class FarLights(gym.Env):
    """Press the button that is lit, ten times. The reward is their number, and ten less while a file is there.

    :param closed_by: the file
    :param pause: seconds of each step
    """

    observation_space = gym.spaces.Box(-1, 2, (4,))
    action_space = gym.spaces.Discrete(4)

    def __init__(self, closed_by: str, pause: float = 0.002):
        self._closed_by, self._pause = closed_by, pause

    def _look(self):
        self._lit = int(self.np_random.integers(4))
        return np.eye(4, dtype=np.float32)[self._lit]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return self._look(), {}

    def step(self, action):
        time.sleep(self._pause)
        self._steps += 1
        reward, is_last = float(action == self._lit), self._steps >= 10
        if is_last and os.path.exists(self._closed_by):
            reward -= 10
        return self._look(), reward, False, is_last, {}
