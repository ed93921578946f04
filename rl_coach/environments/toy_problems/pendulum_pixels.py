"""A pendulum that is seen as a small picture, drawn without a graphics library."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

SIZE = 40
_LENGTH, _THICKNESS = 0.8, 0.12  # of the rod; the picture's edges are at -1 and 1


class PendulumPixels(gym.ObservationWrapper):
    """Gymnasium's Pendulum-v1 as a grey picture [40, 40] uint8 of its rod, white on black.

    One picture does not show the velocity, so stack several pictures.

    :param render_mode: as for Pendulum-v1
    """

    def __init__(self, render_mode: str | None = None):
        super().__init__(gym.make("Pendulum-v1", render_mode=render_mode))
        self.observation_space = spaces.Box(0, 255, (SIZE, SIZE), np.uint8)
        along = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
        self._x, self._y = np.meshgrid(along, -along)

    def observation(self, observation: Any) -> np.ndarray:
        """The picture of a state.

        :param observation: cosine and sine of the angle from upright, and the velocity, which is not used
        """
        upward, sideward = float(observation[0]), -float(observation[1])
        along = np.clip(self._x * sideward + self._y * upward, 0, _LENGTH)
        distance = np.hypot(self._x - along * sideward, self._y - along * upward)
        # the edge fades over a pixel, so that small movements show
        brightness = np.clip((_THICKNESS - distance) * SIZE / 2 + 0.5, 0, 1)
        return (255 * brightness).astype(np.uint8)
