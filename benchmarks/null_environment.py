"""An environment that does nothing, to time what surrounds it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class NullEnvironment(gymnasium.Env):
    """Four zeros, two actions, episodes of 1,000 steps."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self._steps = 0
        self._zeros = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        self._steps = 0
        return self._zeros, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._steps += 1
        return self._zeros, 0.0, self._steps >= 1_000, False, {}
