"""Small environments that are pure functions, with the signatures of gymnax."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np


class WalkState(NamedTuple):
    """Place and step number."""

    place: Any
    steps: Any


class Walk:
    """A walk on a line: right and left are the actions, and the right end, four places away, gives 1. The left end, two
    places away, terminates too, and a limit of 12 steps truncates."""

    limit = 12

    def reset(self, key: Any, params: Any) -> tuple[Any, WalkState]:
        state = WalkState(jax.random.randint(key, (), 0, 2), jnp.int32(0))
        return self._observation(state), state

    def step(self, key: Any, state: WalkState, action: Any, params: Any) -> tuple:
        state = WalkState(state.place + jnp.where(action == 1, 1, -1), state.steps + 1)
        terminated = (state.place >= 4) | (state.place <= -2)
        reward = jnp.where(state.place >= 4, 1.0, 0.0)
        return self._observation(state), state, reward, terminated, state.steps >= self.limit, {}

    def _observation(self, state: WalkState) -> Any:
        return jnp.stack([state.place / 4.0, jnp.float32(1.0), state.steps / 12.0]).astype(jnp.float32)

    def observation_space(self, params: Any) -> gymnasium.Space:
        return gymnasium.spaces.Box(-10.0, 10.0, (3,), np.float32)

    def action_space(self, params: Any) -> gymnasium.Space:
        return gymnasium.spaces.Discrete(2)


class Reach(Walk):
    """A point in the plane that is moved by actions of two numbers; the reward is its negative distance from 0."""

    limit = 8

    def reset(self, key: Any, params: Any) -> tuple[Any, WalkState]:
        state = WalkState(jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0), jnp.int32(0))
        return state.place, state

    def step(self, key: Any, state: WalkState, action: Any, params: Any) -> tuple:
        state = WalkState(state.place + 0.2 * action, state.steps + 1)
        reward = -jnp.sqrt(jnp.sum(state.place**2) + 1e-6)
        return state.place, state, reward, jnp.bool_(False), state.steps >= self.limit, {}

    def observation_space(self, params: Any) -> gymnasium.Space:
        return gymnasium.spaces.Box(-10.0, 10.0, (2,), np.float32)

    def action_space(self, params: Any) -> gymnasium.Space:
        return gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)


class RecallState(NamedTuple):
    """The light that was seen, the episode's length, and the step number."""

    light: Any
    length: Any
    steps: Any


class Recall:
    """A light of two is seen at the beginning and asked for two or three steps later; see the ``Recall`` of
    ``environments``."""

    def reset(self, key: Any, params: Any) -> tuple[Any, RecallState]:
        one, other = jax.random.split(key)
        state = RecallState(jax.random.randint(one, (), 0, 2), jax.random.randint(other, (), 3, 5), jnp.int32(0))
        return jax.nn.one_hot(state.light, 3), state

    def step(self, key: Any, state: RecallState, action: Any, params: Any) -> tuple:
        state = state._replace(steps=state.steps + 1)
        is_over, is_asked = state.steps == state.length, state.steps == state.length - 1
        reward = jnp.where(is_over, jnp.where(action == state.light, 1.0, -1.0), 0.0)
        observation = jnp.array([0.0, 0.0, 1.0]) * is_asked
        return observation, state, reward, is_over, jnp.bool_(False), {}

    def observation_space(self, params: Any) -> gymnasium.Space:
        return gymnasium.spaces.Box(0.0, 1.0, (3,), np.float32)

    def action_space(self, params: Any) -> gymnasium.Space:
        return gymnasium.spaces.Discrete(2)


walk, reach, recall = Walk(), Reach(), Recall()


class PlainWalk(Walk):
    """Its step gives Python's numbers, and its parameters have other names."""

    def reset(this, rng: Any, settings: Any = None) -> tuple[Any, WalkState]:
        return super().reset(rng, settings)

    def step(this, rng: Any, at: WalkState, move: Any, settings: Any = None) -> tuple:
        observation, state, _, terminated, _, info = super().step(rng, at, move, settings)
        return observation, state, 1, terminated, False, info


class NotFinite(Walk):
    """A number of the walk is not finite: of an observation in the third step or at the beginning, or of a reward."""

    def __init__(self, where: str):
        self._where = where

    def reset(self, key: Any, params: Any) -> tuple[Any, WalkState]:
        observation, state = super().reset(key, params)
        return (observation.at[1].set(jnp.nan) if self._where == "beginning" else observation), state

    def step(self, key: Any, state: WalkState, action: Any, params: Any) -> tuple:
        observation, state, reward, *rest = super().step(key, state, action, params)
        is_third = state.steps == 3
        if self._where == "observation":
            observation = jnp.where(is_third, jnp.inf, observation)
        if self._where == "reward":
            reward = jnp.where(is_third, jnp.nan, reward)
        return observation, state, reward, *rest


nan_at_the_beginning, nan_observation, nan_reward = map(NotFinite, ("beginning", "observation", "reward"))
