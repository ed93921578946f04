"""The logged environment as pure functions on JAX, which a compiled loop steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from tests.conformance.environment import ACTIONS, OBSERVATIONS
from tests.conformance.log import record


class State(NamedTuple):
    """An episode: its number in the log, its length and end, and its last observation."""

    number: Any
    steps: Any
    length: Any
    terminates: Any
    seen: Any


class Functional:
    """See ``Logged``. Each episode is one environment in the log."""

    def __init__(self, actions: str, observations: str, log: str):
        self.log, self.actions, self.observations = log, ACTIONS[actions], OBSERVATIONS[observations]
        self.is_masked = actions == "masked"

    def observation_space(self, params: Any) -> gym.Space:
        if not self.is_masked:
            return self.observations
        parts = (
            self.observations if isinstance(self.observations, gym.spaces.Dict) else {"observation": self.observations}
        )
        return gym.spaces.Dict({**parts, "action_mask": gym.spaces.Box(0, 1, (4,), np.int8)})

    def action_space(self, params: Any) -> gym.Space:
        return self.actions

    def reset(self, key: Any, params: Any) -> tuple[Any, State]:
        number, length, terminates, seen = jax.random.split(key, 4)
        observation = self._sample(seen)
        return observation, State(
            jax.random.randint(number, (2,), 0, 2**30), jnp.int32(0), jax.random.randint(length, (), 3, 8),
            jax.random.bernoulli(terminates), observation,
        )  # fmt: skip

    def step(self, key: Any, state: State, action: Any, params: Any) -> tuple:
        drawn, seen = jax.random.split(key)
        observation, reward = self._sample(seen), jax.random.uniform(drawn, (), minval=-1.0)
        steps = state.steps + 1
        terminated = (steps >= state.length) & state.terminates
        truncated = (steps >= state.length) & ~state.terminates
        jax.debug.callback(self._record, state, action, observation, reward, terminated, truncated)
        return observation, state._replace(steps=steps, seen=observation), reward, terminated, truncated, {}

    def _sample(self, key: Any) -> Any:
        space = self.observation_space(None)
        parts = dict(space.items()) if isinstance(space, gym.spaces.Dict) else {"": space}
        keys = jax.random.split(key, len(parts))
        drawn = {name: self._draw(one, name, part) for one, (name, part) in zip(keys, parts.items())}
        return drawn.get("", drawn)

    def _draw(self, key: Any, name: str, space: gym.Space) -> Any:
        if name == "action_mask":
            return (jax.random.permutation(key, 4) < 2).astype(jnp.int8)
        if isinstance(space, gym.spaces.Tuple):
            return tuple(self._draw(one, name, part) for one, part in zip(jax.random.split(key, len(space)), space))
        if isinstance(space, gym.spaces.Discrete):
            return jax.random.randint(key, (), 0, space.n)
        if np.issubdtype(space.dtype, np.integer):
            return jax.random.randint(key, space.shape, 0, int(space.high.max()) + 1).astype(space.dtype)
        return jax.random.uniform(key, space.shape, minval=-3.0, maxval=3.0)

    def _record(self, state: State, action: Any, after: Any, reward: Any, terminated: Any, truncated: Any) -> None:
        number, steps = tuple(np.asarray(state.number).tolist()), int(state.steps)
        action = int(action) if isinstance(self.actions, gym.spaces.Discrete) else np.asarray(action)
        before, mask = self._without_mask(state.seen)
        if steps == 0:
            record(self.log, "reset", env=number, observation=before, mask=mask, step=0)
        observation, next_mask = self._without_mask(after)
        record(
            self.log, "step", env=number, action=action, is_contained=self.actions.contains(action), allowed=mask,
            observation=observation, reward=float(reward), terminated=bool(terminated), truncated=bool(truncated),
            mask=next_mask, step=steps + 1,
        )  # fmt: skip

    def _without_mask(self, seen: Any) -> tuple[Any, Any]:
        seen = jax.tree.map(np.asarray, seen)
        if not self.is_masked:
            return seen, None
        mask = seen.pop("action_mask")
        return (seen if isinstance(self.observations, gym.spaces.Dict) else seen["observation"]), mask
