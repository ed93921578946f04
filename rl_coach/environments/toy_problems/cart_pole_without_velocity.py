"""A pole on a cart without velocities in the observation. An agent must remember earlier observations."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from gymnasium import spaces

SEEN = [0, 2]  # the cart's position and the pole's angle; 1 and 3 are their velocities


class CartPoleWithoutVelocity(gym.ObservationWrapper):
    """Gymnasium's CartPole-v1 with observations [2] float32: only the cart's position (metres) and the pole's angle
    (radians).

    :param render_mode: as for CartPole-v1
    """

    def __init__(self, render_mode: str | None = None):
        super().__init__(gym.make("CartPole-v1", render_mode=render_mode))
        whole = self.env.observation_space
        assert isinstance(whole, spaces.Box)
        self.observation_space = spaces.Box(whole.low[SEEN], whole.high[SEEN], dtype=np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return observation[SEEN]
