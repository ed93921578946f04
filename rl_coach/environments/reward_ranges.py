"""Ranges of the total rewards of episodes, for environments with known ranges."""

from __future__ import annotations

import math
from typing import Any

_OF_A_STEP = {
    "CartPole": (0.0, 1.0),
    "MountainCar": (-1.0, 0.0),
    "Acrobot": (-1.0, 0.0),
    "Pendulum": (-(math.pi**2 + 0.1 * 8**2 + 0.001 * 2**2), 0.0),
    "CliffWalking": (-100.0, 0.0),
}
_OF_AN_EPISODE = {
    "FrozenLake": (0.0, 1.0),
    "FrozenLake8x8": (0.0, 1.0),
    "Blackjack": (-1.0, 1.5),
    "Pong": (-21.0, 21.0),
}
_CHANGE_REWARDS = {"reward_schedule", "sutton_barto_reward"}  # arguments of these environments


def range_of_episodes(environment: Any) -> tuple[float, float] | None:
    """The smallest and the largest total reward that an episode can have; None if it is not known.

    :param environment: an ``Environment``. A step's range is taken from its ``reward_space`` if this space has bounds,
        otherwise from the known range of Gymnasium's environment with this name
    """
    specification = getattr(getattr(environment, "env", None), "spec", None)
    name = _name_of(specification)
    if name in _OF_AN_EPISODE:
        return _OF_AN_EPISODE[name]
    steps = getattr(specification, "max_episode_steps", None)
    space = environment.reward_space
    low, high = float(space.low.min()), float(space.high.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        low, high = _OF_A_STEP.get(name, (-math.inf, math.inf))
    if steps is None or not math.isfinite(high - low):
        return None
    # an episode may end at once
    return min(0.0, low * steps), max(0.0, high * steps)


def _name_of(specification: Any) -> str:
    """The name of an environment with Gymnasium's rewards; empty if an argument or a user's wrapper may change them."""
    arguments = getattr(specification, "kwargs", None) or {}
    wrappers = getattr(specification, "additional_wrappers", ())
    if _CHANGE_REWARDS & arguments.keys() or any(not one.entry_point.startswith("rl_coach.") for one in wrappers):
        return ""
    return str(getattr(specification, "name", ""))
