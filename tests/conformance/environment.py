"""An environment of any spaces that keeps a log, in all forms of environments."""

from __future__ import annotations

import itertools
import os
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from tests.conformance.log import record

ACTIONS: dict[str, gym.Space] = {
    "Discrete": spaces.Discrete(3),
    "Discrete with start": spaces.Discrete(3, start=5),
    "MultiDiscrete": spaces.MultiDiscrete([2, 3]),
    "MultiBinary": spaces.MultiBinary(3),
    "Box": spaces.Box(np.array([-1, 0], np.float32), np.array([1, 3], np.float32)),
    "Box with two axes": spaces.Box(-1, 2, (2, 2), np.float32),
    "one-sided Box": spaces.Box(0, np.inf, (2,), np.float32),
    "unbounded Box": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "masked": spaces.Discrete(4),
}
OBSERVATIONS: dict[str, gym.Space] = {
    "vector": spaces.Box(-9, 9, (5,), np.float32),
    "Dict": spaces.Dict(
        {
            "observation": spaces.Box(-9, 9, (5,), np.float32),
            "achieved_goal": spaces.Box(-9, 9, (2,), np.float32),
            "desired_goal": spaces.Box(-9, 9, (2,), np.float32),
            "obs-goal": spaces.Box(-9, 9, (10,), np.float32),
            "measurements": spaces.Box(-9, 9, (2,), np.float32),
            "command": spaces.Box(0, 1, (1,), np.int64),
        }
    ),
    "image, channels last": spaces.Box(0, 255, (14, 12, 3), np.uint8),
    "image, channels first": spaces.Box(0, 255, (3, 14, 12), np.uint8),
    "stacked frames": spaces.Box(0, 255, (4, 14, 12), np.uint8),
    "Discrete": spaces.Discrete(500),
    "Tuple": spaces.Tuple([spaces.Discrete(4), spaces.Box(-9, 9, (4,), np.float32)]),
}
_numbers = itertools.count()


def sample(space: gym.Space, rng: np.random.Generator) -> Any:
    """A value that no other step has."""
    if isinstance(space, spaces.Dict):
        return {name: sample(part, rng) for name, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(sample(part, rng) for part in space)
    if isinstance(space, spaces.Discrete):
        return space.start + rng.integers(space.n)
    if np.issubdtype(space.dtype, np.integer):
        return rng.integers(space.low, space.high, space.shape, space.dtype, endpoint=True)
    return rng.uniform(-3, 3, space.shape).astype(np.float32)


class Logged(gym.Env):
    """Each step draws new observations and rewards, so that the values of a row identify its step.

    :param actions: the name of its space in ``ACTIONS``
    :param observations: the name of its space in ``OBSERVATIONS``
    :param log: the directory of the log
    """

    def __init__(self, actions: str, observations: str, log: str, render_mode: str | None = None):
        self.log = log
        self.action_space, self.observation_space = ACTIONS[actions], OBSERVATIONS[observations]
        self.is_masked = actions == "masked"
        self.number = (os.getpid(), next(_numbers))
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.length, self.terminates = int(self.np_random.integers(3, 8)), bool(self.np_random.integers(2))
        self.steps = 0
        observation, info = self._observe()
        record(self.log, "reset", env=self.number, observation=observation, mask=self.mask)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        before, reward = self.mask, float(np.float32(self.np_random.uniform(-1, 1)))
        observation, info = self._observe()
        is_over = self.steps >= self.length
        terminated, truncated = is_over and self.terminates, is_over and not self.terminates
        record(
            self.log, "step", env=self.number, action=action, is_contained=self.action_space.contains(action),
            allowed=before, observation=observation, reward=reward, terminated=terminated, truncated=truncated,
            mask=self.mask,
        )  # fmt: skip
        return observation, reward, terminated, truncated, info

    def _observe(self) -> tuple[Any, dict[str, Any]]:
        self.mask = None
        if self.is_masked:
            self.mask = np.zeros(self.action_space.n, np.int8)
            self.mask[self.np_random.permutation(self.action_space.n)[:2]] = 1
        info = {} if self.mask is None else {"action_mask": self.mask}
        return sample(self.observation_space, self.np_random), info

    def close(self) -> None:
        record(self.log, "closed", env=self.number)


def native(num_envs: int, **settings: Any) -> gym.vector.VectorEnv:
    """Copies in a vector environment of the level's own."""
    copies = [lambda: Logged(**settings) for _ in range(num_envs)]
    return gym.vector.SyncVectorEnv(copies, autoreset_mode=gym.vector.AutoresetMode.DISABLED)


def players(**settings: Any) -> Any:
    """Two players. Each has an environment, and their episodes end together."""
    from pettingzoo import ParallelEnv  # its import takes a second, and few cells need it

    class Players(ParallelEnv):
        metadata = {"name": "logged", "render_modes": []}
        possible_agents = ["one", "other"]
        parts = {name: Logged(**settings) for name in ("one", "other")}

        def observation_space(self, agent: str) -> gym.Space:
            return self.parts[agent].observation_space

        def action_space(self, agent: str) -> gym.Space:
            return self.parts[agent].action_space

        def reset(self, seed: int | None = None, options: Any = None) -> Any:
            self.agents = list(self.possible_agents)
            seeds = [seed, None if seed is None else seed + 1]
            found = {name: part.reset(seed=one) for (name, part), one in zip(self.parts.items(), seeds)}
            self.parts["other"].length = self.parts["one"].length
            return tuple({name: answer[place] for name, answer in found.items()} for place in range(2))

        def step(self, given: dict[str, Any]) -> Any:
            found = {name: self.parts[name].step(action) for name, action in given.items()}
            if any(answer[2] or answer[3] for answer in found.values()):
                self.agents = []
            return tuple({name: answer[place] for name, answer in found.items()} for place in range(5))

    return Players()
