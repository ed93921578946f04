"""Pendulum with room for a goal beside what is observed, as agents that set themselves goals want it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class PendulumWithGoal(gymnasium.ObservationWrapper):
    """Pendulum-v1 with the observations ``observation`` [3] and ``obs-goal`` [6], zeros that the agent writes over."""

    def __init__(self, **settings: Any):
        super().__init__(gymnasium.make("Pendulum-v1", **settings))
        shown = self.env.observation_space
        both = gymnasium.spaces.Box(-np.inf, np.inf, (2 * shown.shape[0],), np.float32)
        self.observation_space = gymnasium.spaces.Dict({"observation": shown, "obs-goal": both})

    def observation(self, observation: np.ndarray) -> dict[str, np.ndarray]:
        return {"observation": observation, "obs-goal": np.zeros(2 * len(observation), np.float32)}
