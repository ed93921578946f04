"""Facts that are known only from a running environment: its interface, the reuse of arrays, and its keys."""

from __future__ import annotations

from typing import Any, Callable, Iterable, NamedTuple

import gymnasium as gym
import numpy as np

from rl_coach.environments.gym_wrappers import OldApiEnvironment
from rl_coach.spaces import ActionSpace

ACTION_MASK = "action_mask"  # in an observation or an info


class Probe(NamedTuple):
    """Environment with Gymnasium's current interface, and its answers to a reset and a step."""

    env: gym.Env
    observation: Any
    info: dict[str, Any]
    reuses_memory: bool
    steps_are_of_old_gym: bool


def probe(simulator: Any, first_action: Callable[[Any], Any], seed: int | None) -> Probe:
    """Reset an environment and take one step.

    :param first_action: function that returns the action of the step, in the environment's own space, for the action
        mask of the first state (None without a mask)
    """
    env = OldApiEnvironment(simulator)
    observation, info = env.reset(seed=seed)
    action = first_action(action_mask_of(observation, info))
    next_observation, _, _, _, next_info = env.step(action)
    reuses_memory = any(np.may_share_memory(a, b) for a in _arrays(observation) for b in _arrays(next_observation))
    return Probe(
        env if env.is_needed else simulator, observation, {**next_info, **info}, reuses_memory, env.steps_are_of_old_gym
    )


def action_mask_of(observation: Any, info: dict[str, Any]) -> Any:
    """The action mask for a state, from the observation or the info; None without a mask."""
    return info.get(ACTION_MASK, observation.get(ACTION_MASK) if isinstance(observation, dict) else None)


def _arrays(observation: Any) -> Iterable[np.ndarray]:
    if isinstance(observation, (dict, tuple)):
        for part in observation.values() if isinstance(observation, dict) else observation:
            yield from _arrays(part)
    elif isinstance(observation, np.ndarray):
        yield observation


def keys_to_actions(simulator: Any, space: ActionSpace) -> dict[tuple[int, ...], Any]:
    """Coach's action for each key combination that the environment defines (sorted key codes); empty if there are
    none."""
    offered: dict[Any, Any] = getattr(simulator, "get_keys_to_action", dict)()
    return {_key_codes(keys): space.from_raw(action) for keys, action in offered.items()}


def _key_codes(keys: Any) -> tuple[int, ...]:
    parts = keys if isinstance(keys, (tuple, list, str)) else (keys,)
    return tuple(sorted(ord(key) if isinstance(key, str) else int(key) for key in parts))
