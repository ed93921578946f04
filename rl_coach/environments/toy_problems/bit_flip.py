"""The bit-flipping problem of hindsight experience replay (Andrychowicz et al. 2017, section 3.1)."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

PIXELS_PER_BIT = 16


class BitFlip(gym.Env):
    """Flip one bit at a time until the bits equal the goal. A step that reaches the goal has the reward 0 and
    terminates the episode; all other steps have the reward -1.

    Observations are a dict of ``state``, ``desired_goal`` and ``achieved_goal``, each [bit_length] float32.

    :param bit_length: number of bits, and of actions
    :param max_steps: largest length of an episode; None is ``bit_length``, 0 sets no limit
    :param mean_zero: observe the bits as -1 and 1, not as 0 and 1
    :param render_mode: ``'rgb_array'`` or None
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(
        self,
        bit_length: int = 16,
        max_steps: int | None = None,
        mean_zero: bool = False,
        render_mode: str | None = None,
    ):
        if bit_length < 1:
            raise ValueError(f"bit_length must be at least 1, not {bit_length}")
        self.bit_length = bit_length
        self.max_steps = bit_length if max_steps is None else max_steps
        self.mean_zero = mean_zero
        self.render_mode = render_mode
        self.steps = 0
        self.state: np.ndarray = np.zeros(bit_length, dtype=np.float32)
        self.goal: np.ndarray = np.zeros(bit_length, dtype=np.float32)
        bits = spaces.Box(-1 if mean_zero else 0, 1, shape=(bit_length,), dtype=np.float32)
        self.observation_space = spaces.Dict({"state": bits, "desired_goal": bits, "achieved_goal": bits})
        self.action_space = spaces.Discrete(bit_length)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Draw the bits and a goal that differs from them."""
        super().reset(seed=seed)
        self.steps = 0
        self.state = self.np_random.integers(2, size=self.bit_length).astype(np.float32)
        self.goal = self.state
        while np.array_equal(self.goal, self.state):
            self.goal = self.np_random.integers(2, size=self.bit_length).astype(np.float32)
        return self._observe(), {}

    def step(self, action: int) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Flip the bit with the number ``action``."""
        self.steps += 1
        self.state = self.state.copy()
        self.state[action] = 1 - self.state[action]
        reached = bool(np.array_equal(self.state, self.goal))
        truncated = self.steps == self.max_steps and not reached
        return self._observe(), 0.0 if reached else -1.0, reached, truncated, {}

    def _observe(self) -> dict[str, np.ndarray]:
        state, goal = self._shown(self.state), self._shown(self.goal)
        return {"state": state, "desired_goal": goal, "achieved_goal": state}

    def _shown(self, bits: np.ndarray) -> np.ndarray:
        return 2 * bits - 1 if self.mean_zero else bits

    def render(self) -> np.ndarray:
        """The bits above the goal: [32, 16 * bit_length, 3] uint8; 1 is white. Grey marks the goal of a wrong bit."""
        wrong = self.state != self.goal
        rows = np.stack([self.state * 255, np.where(wrong, 96 + 64 * self.goal, self.goal * 255)])
        picture = np.kron(rows, np.ones((PIXELS_PER_BIT, PIXELS_PER_BIT)))
        return np.repeat(picture[..., None], 3, axis=-1).astype(np.uint8)
