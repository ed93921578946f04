"""Gymnasium wrappers: holding an action for several frames, and environments written for the older gym interface."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import gymnasium as gym
import numpy as np


class MaxOverFramesAndFrameskipEnvWrapper(gym.Wrapper):
    """Wrapper that holds each action for several frames and sums their rewards. The observation is the pixelwise
    maximum of the last frames: the Atari draws some objects only in every other frame (Mnih et al. 2015, Methods).

    :param env: an environment that steps one frame at a time
    :param frameskip: number of frames for which an action is held; 1 skips no frames
    :param max_over_num_frames: number of the last frames that are merged; 1 returns the last frame unchanged
    """

    def __init__(self, env: gym.Env, frameskip: int = 4, max_over_num_frames: int = 2):
        super().__init__(env)
        self.frameskip = frameskip
        self.max_over_num_frames = max_over_num_frames
        self._first_seen_frame = max(0, frameskip - max_over_num_frames)
        self._blind_step = _blind_step(env)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step ``frameskip`` frames, or fewer if the episode ends before."""
        total_reward: Any = 0.0
        merged = None
        for frame in range(self.frameskip):
            is_seen = frame >= self._first_seen_frame
            if self._blind_step is not None and not is_seen:
                total_reward += self._blind_step(action)
                continue
            observation, reward, terminated, truncated, info = self.env.step(action)
            total_reward += reward
            has_ended = terminated or truncated
            if merged is not None:
                merged = np.maximum(merged, observation)
            elif has_ended or frame == self.frameskip - 1:
                merged = observation
            elif is_seen:
                merged = np.array(observation)  # the environment may write the next frame into the same array
            if has_ended:
                break
        return merged, total_reward, terminated, truncated, info


def _blind_step(env: gym.Env) -> Callable[[Any], float] | None:
    """A function that does a step and returns only the reward; None if the simulator has no such function. Reading an
    unused Atari screen takes a third of a frame's time. A finished game stays finished, with reward 0, until reset."""
    ale = getattr(env, "ale", None) if env is env.unwrapped else None
    if ale is None or not isinstance(env.action_space, gym.spaces.Discrete):
        return None
    minimal = ale.getMinimalActionSet()
    actions = minimal if len(minimal) == env.action_space.n else ale.getLegalActionSet()
    return lambda action: ale.act(actions[action])


class OldApiEnvironment(gym.Env):
    """Gymnasium's current interface for an environment with the older one: ``reset()`` returns only the observation,
    ``step`` returns four values, and ``render`` has a mode. An info of None becomes an empty dict.

    Each call is adapted separately, so an environment with parts of both interfaces works too. ``is_needed`` becomes
    True at the first difference, ``steps_are_of_old_gym`` at the first step that returns four values.
    """

    def __init__(self, env: Any):
        self.env = env
        self.steps_are_of_old_gym = False
        self._takes_seed = _takes(env.reset, "seed")
        self._takes_mode = hasattr(env, "render") and "mode" in inspect.signature(env.render).parameters
        self.is_needed = not isinstance(env, gym.Env) or not self._takes_seed or self._takes_mode
        self.observation_space = present_space(env.observation_space)
        self.action_space = present_space(env.action_space)
        self.render_mode = getattr(env, "render_mode", None)
        self.spec = getattr(env, "spec", None)

    @property
    def unwrapped(self) -> Any:
        return getattr(self.env, "unwrapped", self.env)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if not self._takes_seed and seed is not None and hasattr(self.env, "seed"):
            self.env.seed(seed)
        answer = self.env.reset(seed=seed) if self._takes_seed else self.env.reset()
        is_pair = isinstance(answer, tuple) and len(answer) == 2
        if is_pair and isinstance(answer[1], dict):
            return answer
        self.is_needed = True
        return answer[0] if is_pair and answer[1] is None else answer, {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        answer = self.env.step(action)
        if not isinstance(answer, (tuple, list)):
            raise TypeError(f"cannot unpack {type(answer).__name__}, which step() returned")
        if len(answer) == 5:
            observation, reward, terminated, truncated, info = answer
            self.is_needed |= info is None
            return observation, reward, terminated, truncated, {} if info is None else info
        self.is_needed = self.steps_are_of_old_gym = True
        observation, reward, done, info = answer
        info = {} if info is None else info
        truncated = bool(info.get("TimeLimit.truncated", False))
        return observation, reward, bool(done) and not truncated, truncated, info

    def render(self) -> Any:
        return self.env.render(mode="rgb_array") if self._takes_mode else self.env.render()

    def close(self) -> None:
        if hasattr(self.env, "close"):
            self.env.close()


def _takes(function: Callable, name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def present_space(space: Any) -> gym.Space:
    """The Gymnasium space for a space of the older gym, found by the name of its class. Other spaces are unchanged."""
    if isinstance(space, gym.Space):
        return space
    kind = type(space).__name__
    if kind == "Box":
        return gym.spaces.Box(space.low, space.high, dtype=space.dtype)
    if kind == "Discrete":
        return gym.spaces.Discrete(int(space.n), start=int(getattr(space, "start", 0)))
    if kind == "MultiBinary":
        return gym.spaces.MultiBinary(space.n)
    if kind == "MultiDiscrete":
        return gym.spaces.MultiDiscrete(space.nvec)
    if kind == "Dict":
        return gym.spaces.Dict({name: present_space(part) for name, part in space.spaces.items()})
    if kind == "Tuple":
        return gym.spaces.Tuple([present_space(part) for part in space.spaces])
    return space
