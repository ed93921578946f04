"""Observations as agents see them, computed from the log with NumPy alone."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from tests.conformance.axes import Cell
from tests.conformance.environment import ACTIONS, OBSERVATIONS
from tests.conformance.parts import STACK


def named(cell: Cell, entry: dict[str, Any]) -> dict[str, np.ndarray]:
    """The observations of an entry by the names and in the forms that docs/adding_an_environment.md gives them."""
    observation, space = entry["observation"], OBSERVATIONS[cell.observations]
    if isinstance(space, gym.spaces.Dict):
        found = {name: np.asarray(value) for name, value in observation.items()}
    elif isinstance(space, gym.spaces.Tuple):
        # pure functions give their mask in a Dict
        prefix = "observation/" if cell.way == "compiled" and entry["mask"] is not None else ""
        parts = enumerate(zip(space, observation))
        found = {f"{prefix}{number}": _plain(part, value) for number, (part, value) in parts}
    else:
        found = {"observation": _plain(space, observation)}
    if entry["mask"] is not None:
        found["action_mask"] = entry["mask"]
    return found


def _plain(space: gym.Space, value: Any) -> np.ndarray:
    if isinstance(space, gym.spaces.Discrete):
        return (np.arange(space.n) == value - space.start).astype(np.float32)
    # the small first axis of an image counts its channels
    is_first = len(space.shape) == 3 and space.dtype == np.uint8 and space.shape[0] <= 4 < space.shape[2]
    return np.moveaxis(value, 0, -1) if is_first else np.asarray(value)


def filtered(cell: Cell, history: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The newest observations of an episode after the filters."""
    newest, before = history[-1], history[-2] if len(history) > 1 else None
    if "observation" not in newest or cell.filters in ("none", "normalisation"):
        return newest
    observation = newest["observation"]
    if cell.filters == "with state":
        observation = observation.astype(np.float32)
        if before is not None:
            observation = (observation + before["observation"].astype(np.float32)) / 2
    if cell.filters == "stack":
        frames = [one["observation"] for one in [history[0]] * STACK + history][-STACK:]
        observation = np.stack(frames, axis=-1)
        observation = observation.ravel() if frames[0].ndim == 1 else observation
    return {**newest, "observation": observation}


def is_same_action(cell: Cell, given: Any, learned: Any) -> bool:
    """True if the action that was learned from is the one that the environment was given."""
    space = ACTIONS[cell.actions]
    if isinstance(space, gym.spaces.Box):
        clipped = np.clip(np.asarray(learned).reshape(space.shape), space.low, space.high)
        return np.allclose(clipped, given, atol=1e-5)
    if np.size(learned) == 1:
        return int(agents_action(space, given)) == int(np.ravel(learned)[0])
    return np.array_equal(np.asarray(given), np.asarray(learned))


def agents_action(space: gym.Space, given: Any, acts_in_parts: bool = False) -> Any:
    """The action in a data file for the action of the environment: a number, or the values of a Box in a row.

    :param acts_in_parts: the agent chooses each part of the action; otherwise, a number for each combination
    """
    if isinstance(space, gym.spaces.Discrete):
        return int(given) - int(space.start)
    if isinstance(space, gym.spaces.Box):
        return np.ravel(given)
    if acts_in_parts:
        return np.asarray(given, int)
    sizes = np.full(space.n, 2) if isinstance(space, gym.spaces.MultiBinary) else space.nvec
    return int(np.ravel_multi_index(tuple(np.asarray(given, int)), tuple(sizes)))
