"""An episode in progress as plain data, so that a checkpoint can be made in the middle of one.

What an agent holds between two steps is a web: a state is the next state of the step before it, and stacks of frames
share their frames. Memories recognise such sharing by identity, so it must survive. Therefore each object is written
once, as a node, and named by its number wherever it occurs; arrays of one shape and type lie in one array.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Iterable

import numpy as np

from rl_coach.core_types import ActionInfo, EnvResponse, Episode, Transition
from rl_coach.filters.observation.observation_stacking_filter import LazyStack

_CLASSES: dict[str, tuple[type, tuple[str, ...]]] = {
    "Transition": (
        Transition,
        ("state", "action", "reward", "next_state", "game_over", "terminated", "info", "_n_step_discounted_rewards"),
    ),
    "ActionInfo": (ActionInfo, ActionInfo.__slots__),
    "EnvResponse": (EnvResponse, EnvResponse.FIELDS),
    "Episode": (Episode, tuple(vars(Episode()))),
    "LazyStack": (LazyStack, LazyStack.__slots__),
}
_NAMES = {cls: name for name, (cls, _) in _CLASSES.items()}


class UnsavableError(TypeError):
    """Something in an episode is of a kind that cannot be saved."""


def pack(value: Any) -> dict[str, Any]:
    """A value as plain data that a checkpoint can hold.

    :raises UnsavableError: it holds something that is no number, text, array, container or record of an episode
    """
    return _Packer().pack(value)


def unpack(state: dict[str, Any]) -> Any:
    """What ``pack`` was given, with everything shared that was shared."""
    return _Unpacker(state).unpack()


class _Packer:
    """Numbers objects by identity; keeps them alive meanwhile, so that no number is given twice."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []
        self._arrays: dict[tuple[str, tuple[int, ...]], list[np.ndarray]] = {}

    def pack(self, value: Any) -> dict[str, Any]:
        root = self._reference(value)
        arrays = [np.stack(group) for group in self._arrays.values()]
        return {"root": root, "nodes": self._nodes, "arrays": arrays}

    def _reference(self, value: Any) -> Any:
        """A plain value as itself, anything else as ``[number of its node]``."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._nodes)
            self._alive.append(value)
            self._nodes.append(None)
            self._nodes[number] = self._node(value)
        return [number]

    def _node(self, value: Any) -> list[Any]:
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array_node(value)
        if type(value) in _NAMES:
            name = _NAMES[type(value)]
            return [name, *(self._reference(getattr(value, field)) for field in _CLASSES[name][1])]
        if isinstance(value, dict):
            return ["dict", *(self._reference(part) for item in value.items() for part in item)]
        for name, cls in (("list", list), ("tuple", tuple)):
            if type(value) is cls:
                return [name, *map(self._reference, value)]
        if isinstance(value, deque):
            return ["deque", value.maxlen, *map(self._reference, value)]
        raise UnsavableError(f"a {type(value).__name__} cannot be saved")

    def _array_node(self, value: np.ndarray | np.generic) -> list[Any]:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise UnsavableError(f"an array of {array.dtype} cannot be saved")
        group = self._arrays.setdefault((array.dtype.str, array.shape), [])
        group.append(array)
        index = list(self._arrays).index((array.dtype.str, array.shape))
        return ["scalar" if isinstance(value, np.generic) else "array", index, len(group) - 1]


class _Unpacker:
    """Makes each node's object once, before what it refers to, so that even a circle closes."""

    def __init__(self, state: dict[str, Any]):
        self._state = state
        self._objects: dict[int, Any] = {}

    def unpack(self) -> Any:
        return self._value(self._state["root"])

    def _value(self, reference: Any) -> Any:
        if not isinstance(reference, list):
            return reference
        number = reference[0]
        if number not in self._objects:
            kind, *parts = self._state["nodes"][number]
            _MAKERS.get(kind, _make_record)(self, number, kind, parts)
        return self._objects[number]

    def values(self, references: Iterable[Any]) -> list[Any]:
        return [self._value(reference) for reference in references]

    def keep(self, number: int, made: Any) -> Any:
        self._objects[number] = made
        return made

    def array(self, parts: list[int]) -> np.ndarray:
        return self._state["arrays"][parts[0]][parts[1]]


def _make_array(unpacker: _Unpacker, number: int, kind: str, parts: list[Any]) -> None:
    value = unpacker.array(parts)
    # a row of a stack is a view or a scalar already; arrays get memory of their own, as they had
    unpacker.keep(number, np.array(value) if kind == "array" else np.asarray(value)[()])


def _make_dict(unpacker: _Unpacker, number: int, kind: str, parts: list[Any]) -> None:
    made = unpacker.keep(number, {})
    made.update(zip(unpacker.values(parts[::2]), unpacker.values(parts[1::2])))


def _make_list(unpacker: _Unpacker, number: int, kind: str, parts: list[Any]) -> None:
    unpacker.keep(number, []).extend(unpacker.values(parts))


def _make_tuple(unpacker: _Unpacker, number: int, kind: str, parts: list[Any]) -> None:
    unpacker.keep(number, tuple(unpacker.values(parts)))


def _make_deque(unpacker: _Unpacker, number: int, kind: str, parts: list[Any]) -> None:
    unpacker.keep(number, deque(maxlen=parts[0])).extend(unpacker.values(parts[1:]))


def _make_record(unpacker: _Unpacker, number: int, kind: str, parts: list[Any]) -> None:
    cls, fields = _CLASSES[kind]
    made = unpacker.keep(number, object.__new__(cls))
    for field, value in zip(fields, unpacker.values(parts)):
        setattr(made, field, value)


_MAKERS: dict[str, Callable[[_Unpacker, int, str, list[Any]], None]] = {
    "array": _make_array,
    "scalar": _make_array,
    "dict": _make_dict,
    "list": _make_list,
    "tuple": _make_tuple,
    "deque": _make_deque,
}
