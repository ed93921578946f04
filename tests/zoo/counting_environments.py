"""Environments that count, registered with Gymnasium with a vector environment of their own: rewards tell the action
that arrived, and states tell the episode and the step."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv


class Counting(gym.Env):
    """Episodes of different lengths: episode number e has 2 + e % 3 steps. Every second one is truncated. The first one
    has the seed's number, plus one.

    :param render_mode: without effect
    :cvar action_space: chosen by the subclass
    """

    action_space: ClassVar[gym.Space]
    observation_space = Dict(
        {
            "observation": Box(-1000, 1000, (2, 3), np.float32),
            "desired_goal": Box(0, 1000, (1,), np.float32),
            "number": Discrete(1000, start=1),
            "switches": MultiBinary((2, 2)),
            "hands": MultiDiscrete([3, 1000]),
        }
    )

    def __init__(self, render_mode: str | None = None):
        self.episode, self.count = 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        if seed is not None:
            self.episode = seed % 100
        self.episode, self.count = self.episode + 1, 0
        return self._observation(), {"episode": self.episode}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.count += 1
        has_ended = self.count >= 2 + self.episode % 3
        info: dict[str, Any] = {"count": self.count, **({"last": np.array([self.episode])} if has_ended else {})}
        is_limit = has_ended and self.episode % 2 == 0
        reward = float(np.sum(np.ravel(action) * 10.0 ** np.arange(np.size(action))))
        # now and then a limit is reached in the step that also terminates
        return self._observation(), reward, has_ended and (not is_limit or self.episode % 4 == 0), is_limit, info

    def _observation(self) -> dict[str, Any]:
        place = self.episode + self.count / 100
        return {
            "observation": np.arange(6, dtype=np.float32).reshape(2, 3) + np.float32(place),
            "desired_goal": np.array([self.episode], np.float32),
            "number": self.episode + 1,
            "switches": np.array([[self.count % 2, 1], [0, self.episode % 2]], np.int8),
            "hands": np.array([self.count % 3, self.episode]),
        }


class Shifted(Counting):
    """Actions 3 to 5."""

    action_space = Discrete(3, start=3)


class Masked(Counting):
    """Three actions; the info of each second step allows only some of them."""

    action_space = Discrete(3)

    def reset(self, **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        observation, info = super().reset(**arguments)
        return observation, {**info, "action_mask": np.ones(3, np.int8)}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        if self.count % 2:
            info["action_mask"] = np.array([1, self.episode % 2, 0], np.int8)
        return observation, reward, terminated, truncated, info


class Steered(Counting):
    """Two continuous actions."""

    action_space = Box(np.array([-1, 0], np.float32), np.array([1, 2], np.float32))


class Pulled(Counting):
    """One whole number, without a list around it."""

    action_space = Box(-2, 2, (), np.int32)


class Combined(Counting):
    """Two choices at once."""

    action_space = MultiDiscrete([2, 3])


class Switched(Counting):
    """Three switches."""

    action_space = MultiBinary(3)


def make_vector(kind: type[Counting]) -> Any:
    def make(num_envs: int, autoreset_mode: AutoresetMode = AutoresetMode.DISABLED) -> SyncVectorEnv:
        return SyncVectorEnv([kind] * num_envs, autoreset_mode=autoreset_mode)

    return make


KINDS: tuple[type[Counting], ...] = (Shifted, Masked, Steered, Pulled, Combined, Switched)
for _kind in KINDS:
    gym.register(f"Coach{_kind.__name__}-v0", _kind, vector_entry_point=make_vector(_kind))


class SelfResetting(gym.vector.VectorEnv):
    """A vector environment without ``reset_mask``, which writes all answers into the same arrays.

    :param num_envs: number of copies
    :param mode: when the next episode of a copy begins
    :param kind: the class of the copies
    """

    def __init__(self, num_envs: int, mode: AutoresetMode, kind: type[Counting] = Masked):
        self.metadata = {"autoreset_mode": mode}
        inner = AutoresetMode.NEXT_STEP if mode is AutoresetMode.NEXT_STEP else AutoresetMode.SAME_STEP
        self._inner = SyncVectorEnv([kind] * num_envs, copy=False, autoreset_mode=inner)
        self.num_envs = num_envs
        self.single_observation_space = self._inner.single_observation_space
        self.observation_space = self._inner.observation_space
        self.single_action_space, self.action_space = self._inner.single_action_space, self._inner.action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self._inner.reset(seed=seed)

    def step(self, actions: Any) -> Any:
        return self._inner.step(actions)


def next_step(num_envs: int) -> SelfResetting:
    return SelfResetting(num_envs, AutoresetMode.NEXT_STEP)


def same_step(num_envs: int) -> SelfResetting:
    return SelfResetting(num_envs, AutoresetMode.SAME_STEP)


def gymnasiums_next_step(num_envs: int) -> SyncVectorEnv:
    return SyncVectorEnv([Masked] * num_envs)


def told(num_envs: int) -> SyncVectorEnv:
    return SyncVectorEnv([Masked] * num_envs, autoreset_mode=AutoresetMode.DISABLED)


def too_few(num_envs: int) -> SyncVectorEnv:
    return told(max(1, num_envs - 1))


def no_vector(num_envs: int) -> Masked:
    return Masked()


def without_argument() -> SyncVectorEnv:
    return told(1)


def without_final_observations(num_envs: int) -> SelfResetting:
    made = same_step(num_envs)
    step = made._inner.step

    def step_without(actions: Any) -> Any:
        *answer, infos = step(actions)
        infos.pop("final_obs", None)
        return *answer, infos

    made._inner.step = step_without
    return made


gym.register("CoachVectorOnly-v0", None, vector_entry_point=same_step)
