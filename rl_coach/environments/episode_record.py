"""Record of an episode, to repeat it. Most simulators cannot be saved, but the same actions repeat an episode."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from rl_coach.core_types import RunPhase


class EpisodeRecord:
    """An environment's state before the episode's reset, and the actions since."""

    def __init__(self) -> None:
        self.actions: list[Any] = []
        self._start: dict[str, Any] | None = None

    def begin(self, start: dict[str, Any], is_forced: bool, phase: RunPhase) -> None:
        """Record the beginning of an episode.

        :param start: the environment's state before the reset
        :param is_forced: the argument of ``reset_internal_state``
        """
        self._start = {"start": start, "is_forced": bool(is_forced), "phase": phase.name}

    def get_state(self) -> dict[str, Any] | None:
        """The record as plain data; None if the beginning was not recorded, or the actions cannot be saved."""
        actions = _plain_actions(self.actions)
        return None if self._start is None or actions is None else {**self._start, **actions}


def actions_of(state: dict[str, Any]) -> list[Any]:
    """The actions of a saved record."""
    if "players" in state:
        own = {player: iter(actions_of(part)) for player, part in state["players"].items()}
        return [{player: next(own[player]) for player in acting} for acting in state["acting"]]
    actions = state["actions"]
    if state["are_integers"]:
        return [int(action) for action in actions]
    if state.get("are_lists"):
        return [action.tolist() for action in actions]
    ends = np.cumsum([count for _, count in state["types"]])
    stretches = np.split(actions, ends[:-1])
    return [action for (type_, _), stretch in zip(state["types"], stretches) for action in stretch.astype(type_)]


def _plain_actions(actions: list[Any]) -> dict[str, Any] | None:
    """Actions as plain data; None if they cannot be saved. Integers become one array. Arrays and lists of numbers with
    one shape and kind become one array of the widest type: heatup draws actions of 64 bits, and many networks return
    actions of 32 bits. Actions of several players are dicts of such arrays."""
    if actions and all(isinstance(action, dict) for action in actions):
        return _plain_actions_of_players(actions)
    if all(isinstance(action, (int, np.integer)) for action in actions):
        return {"actions": np.asarray(actions, np.int64), "are_integers": True}
    if actions and all(map(_is_list_of_numbers, actions)):
        numbers = _plain_actions([np.asarray(action) for action in actions])
        return None if numbers is None else {**numbers, "are_lists": True}
    if not all(isinstance(action, np.ndarray) and action.dtype.kind in "biuf" for action in actions):
        return None
    if len({(action.dtype.kind, action.shape) for action in actions}) > 1:
        return None
    types = [[name, len(list(group))] for name, group in itertools.groupby(action.dtype.str for action in actions)]
    return {"actions": np.stack(actions), "are_integers": False, "types": types}


def _is_list_of_numbers(action: Any) -> bool:
    return isinstance(action, list) and all(isinstance(number, (int, float, np.number)) for number in action)


def _plain_actions_of_players(actions: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The form of ``_plain_actions`` for several players. :param actions: by step and by player"""
    players = sorted({player for action in actions for player in action})
    own = {player: _plain_actions([action[player] for action in actions if player in action]) for player in players}
    return None if None in own.values() else {"players": own, "acting": [list(action) for action in actions]}
