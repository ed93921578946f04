"""Keys of actions, for a person who plays an environment."""

from __future__ import annotations

import re
import string
from typing import Any, Mapping, Sequence

import numpy as np

from rl_coach.spaces import ActionSpace, DiscreteActionSpace, MultiDiscreteActionSpace, MultiSelectActionSpace
from rl_coach.utils import CoachError

# SDL's key codes; the code of a key that writes a character is the code of this character
UP, DOWN, RIGHT, LEFT = 0x40000052, 0x40000051, 0x4000004F, 0x40000050
_KEYS_OF_WORDS = {"UP": UP, "DOWN": DOWN, "RIGHT": RIGHT, "LEFT": LEFT, "FIRE": ord(" ")}
_WORDS = re.compile(f"({'|'.join(_KEYS_OF_WORDS)})+")
_NOTHING = ("NOOP", "NO-OP", "NOTHING", "NONE")
_COUNTING_KEYS = tuple(map(ord, "1234567890" + string.ascii_lowercase))
# some environments still use the key codes of SDL 1 for the arrows
_OLD_CODES = {273: UP, 274: DOWN, 275: RIGHT, 276: LEFT}

NAMES_OF_ACTIONS: dict[str, tuple[str, ...]] = {
    "CartPoleEnv": ("LEFT", "RIGHT"),
    "AcrobotEnv": ("LEFT", "NOOP", "RIGHT"),
    "MountainCarEnv": ("LEFT", "NOOP", "RIGHT"),
    "LunarLander": ("NOOP", "LEFT", "UP", "RIGHT"),
    "FrozenLakeEnv": ("LEFT", "DOWN", "RIGHT", "UP"),
    "CliffWalkingEnv": ("UP", "RIGHT", "DOWN", "LEFT"),
    "TaxiEnv": ("DOWN", "UP", "RIGHT", "LEFT", "PICK UP", "DROP OFF"),
}
"""Names of the actions of Gymnasium's environments, by the environment's class. These classes do not contain the
names."""


class Keyboard:
    """Maps the keys that are held down to an action.

    The keys are the ones that the environment defines. Actions with names such as ``UP`` or ``LEFTFIRE`` also have the
    arrows and the space bar. If the environment defines no keys, the actions also have the keys 1, 2, …, 9, 0, a, b, …
    in their order. If an action may contain several buttons, hold their keys together.

    :param space: the environment's actions
    :param own_keys: the environment's keys: the codes of keys that are held together, and the action
    :param names: name of each discrete action; None for the space's own descriptions
    :raises CoachError: if the actions have no keys
    """

    def __init__(self, space: ActionSpace, own_keys: Mapping[tuple[int, ...], Any], names: Sequence[str] | None = None):
        self._space = space
        self._names = names
        self._actions: dict[frozenset[int], Any] = {}
        if isinstance(space, DiscreteActionSpace):
            self._add_words(space)
        for keys, action in own_keys.items():
            self._actions[frozenset(_OLD_CODES.get(key, key) for key in keys)] = action
        if not own_keys:
            self._count(space)
        self._known = frozenset(key for keys in self._actions for key in keys)
        self.idle_action = self._find_idle_action(space)

    def _add_words(self, space: DiscreteActionSpace) -> None:
        for action in space.actions:
            name = self.describe(action).upper()
            if _WORDS.fullmatch(name):
                keys = frozenset(code for word, code in _KEYS_OF_WORDS.items() if word in name)
                self._actions.setdefault(keys, action)

    def _count(self, space: ActionSpace) -> None:
        """Give each action one of the keys 1, 2, …, 9, 0, a, b, …"""
        if not isinstance(space, (DiscreteActionSpace, MultiDiscreteActionSpace, MultiSelectActionSpace)):
            raise CoachError(
                f"a {type(space).__name__} cannot be played with keys: --play needs discrete actions, "
                "or an environment with a method get_keys_to_action"
            )
        many = isinstance(space, MultiSelectActionSpace)
        number = int(space.shape[0]) if many else space.num_actions
        if number > len(_COUNTING_KEYS):
            raise CoachError(
                f"there are {number} actions but only {len(_COUNTING_KEYS)} keys: give the environment a "
                "method get_keys_to_action"
            )
        actions: Any = space.actions
        for place, action in enumerate(actions):
            numbers = np.flatnonzero(action) if many else [place]
            self._actions.setdefault(frozenset(_COUNTING_KEYS[n] for n in numbers), action)

    def _find_idle_action(self, space: ActionSpace) -> Any:
        if frozenset() in self._actions:
            return self._actions[frozenset()]
        if isinstance(space, DiscreteActionSpace):
            return next((a for a in space.actions if self.describe(a).upper() in _NOTHING), None)
        return None

    def action_for(self, pressed: set[int]) -> Any:
        """The action of the keys that are held down. If these keys together have no action, the result is the action of
        the largest group of them that has one. Without keys, the result is the action that does nothing, or None if all
        actions do something.
        """
        held = pressed & self._known
        if not held:
            return self.idle_action
        fitting = [keys for keys in self._actions if keys and keys <= held]
        return self._actions[max(fitting, key=len)] if fitting else self.idle_action

    def describe(self, action: Any) -> str:
        """An action's name."""
        return self._space.get_description(action) if self._names is None else self._names[action]

    def bindings(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name of each action, and the keys to hold together for it."""
        return [(self.describe(action), tuple(sorted(keys))) for keys, action in self._actions.items() if keys]
