"""A safe reader of replay buffers that Coach 1.0.1 pickled. The reader does not run code that a pickle names.

A pickle is a program for a small virtual machine. This reader supports only the instructions that occur in pickles of
transitions. It replaces the functions and classes that a pickle names with harmless objects; names that are not on its
list raise an error. Only numbers of known types become arrays. The reader does not use the standard library's reader in
C, because a damaged pickle can make that reader allocate all memory. It does not use NumPy's unpickling, because NumPy
trusts the types in a pickle.
"""

from __future__ import annotations

import collections
import io
import math
import os
import pickle
import re
import struct
from typing import Any, Callable

import numpy as np

from rl_coach.core_types import Transition
from rl_coach.utilities.plain_data import DAMAGE
from rl_coach.utilities.safe_reading import read_bytes
from rl_coach.utils import CoachError

_MOST_FRAMES = 256  # frames in one stack: a small pickle could repeat a frame a million times


class _Refused(Exception):
    """Error for a pickle that contains something other than recorded transitions."""


_DAMAGE = (*DAMAGE, _Refused, pickle.UnpicklingError, EOFError, MemoryError, AssertionError)


class _Named:
    """A harmless replacement for a function or a class that a pickle names.

    :param call: checks the pickle's arguments and returns a value; None if the pickle may not call the name
    :param makes: the class of the objects that the pickle may make; None if it may make none
    """

    def __init__(self, name: str, call: Callable[..., Any] | None = None, makes: type | None = None):
        self.name, self.call, self.makes = name, call, makes


class _PickledObject:
    """The attributes of a pickled object of Coach. It has none of the object's methods."""

    def __init__(self) -> None:
        self.attributes: dict[str, Any] = {}

    def build(self, state: Any) -> None:
        """Store the attributes. An object of a class with slots has a second dict."""
        for part in state if isinstance(state, tuple) else (state,):
            if part is not None:
                _require(isinstance(part, dict), "the attributes of an object are not a dict")
                self.attributes.update(part)


class _PickledTransition(_PickledObject):
    pass


class _PickledEpisode(_PickledObject):
    pass


class _PickledStack(_PickledObject):
    pass


class _PickledType:
    """A NumPy type from a pickle: a boolean or a number of 1 to 16 bytes. Other properties are refused or ignored."""

    def __init__(self, code: Any = None, *flags: Any):
        _require(isinstance(code, str) and re.fullmatch(r"[<>=|]?[biuf](1|2|4|8|16)", code), "a type is not numeric")
        self.value = np.dtype(code)

    def build(self, state: Any) -> None:
        """Set the byte order."""
        is_plain = isinstance(state, tuple) and len(state) >= 5 and state[2:5] == (None, None, None)
        _require(is_plain and state[1] in ("<", ">", "|", "="), "a numeric type has fields")
        _require(not state[7:] or state[7:8] == (0,), "a numeric type has flags")
        self.value = self.value.newbyteorder(state[1])


class _PickledArray:
    """An array of numbers from a pickle."""

    value: np.ndarray | None = None

    def build(self, state: Any) -> None:
        """Set the array from ``(version, shape, type, is_fortran, bytes)``."""
        _require(isinstance(state, tuple) and len(state) == 5, "an array does not have five parts")
        self.value = _array(state[4], state[2], state[1], "F" if state[3] else "C")


def _require(is_met: Any, rule: str) -> None:
    if not is_met:
        raise _Refused(rule)


def _array(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    _require(isinstance(dtype, _PickledType) and isinstance(data, bytes), "an array has no type or no bytes")
    _require(
        isinstance(shape, tuple) and all(type(one) is int and one >= 0 for one in shape),
        "a shape has other values than integers",
    )
    # NumPy 1 has at most 32 dimensions.
    _require(len(shape) <= 32 and order in ("C", "F"), "an array has more than 32 dimensions or an unknown order")
    # Python's integers do not overflow, so a huge shape cannot pass this check.
    _require(math.prod(shape) * dtype.value.itemsize == len(data), "the bytes of an array do not fit its shape")
    # A copy, because the bytes of a pickle are read-only, and may be in the byte order of another machine.
    native = np.frombuffer(data, dtype.value).astype(dtype.value.newbyteorder("="))
    return native.reshape(shape, order=order)


def _reconstruct(subtype: Any, shape: Any, code: Any) -> _PickledArray:
    _require(isinstance(subtype, _Named) and subtype.name == "ndarray", "an array is not of the class ndarray")
    return _PickledArray()


def _frombuffer(data: Any, dtype: Any, shape: Any, order: Any) -> _PickledArray:
    made = _PickledArray()
    made.value = _array(data, dtype, shape, order)
    return made


def _scalar(dtype: Any, data: Any) -> Any:
    return _array(data, dtype, (), "C")[()]


def _encode(text: Any, encoding: Any) -> bytes:
    _require(isinstance(text, str) and encoding == "latin1", "bytes are not encoded as latin1")
    return text.encode("latin1")


def _deque(items: Any = (), most: Any = None) -> collections.deque:
    _require(isinstance(items, (list, tuple)) and (most is None or type(most) is int), "a deque has no list of items")
    return collections.deque(items, most)


def _ordered(items: Any = ()) -> dict:
    _require(isinstance(items, (list, tuple)), "a dict has no list of items")
    return dict(items)


def _object_of(made: Any, base: Any, state: Any) -> Any:
    is_known = isinstance(made, _Named) and made.makes is not None and isinstance(base, _Named)
    _require(is_known and base.name == "object" and state is None, "an object is not of a class of Coach")
    return made.makes()


_CALLS: dict[str, Callable[..., Any]] = {
    "dtype": _PickledType, "_reconstruct": _reconstruct, "_frombuffer": _frombuffer, "scalar": _scalar,
    "encode": _encode, "deque": _deque, "OrderedDict": _ordered, "_reconstructor": _object_of,
}  # fmt: skip
_OF_MODULES = {
    "numpy": ("ndarray", "dtype"),
    **dict.fromkeys(("numpy.core.multiarray", "numpy._core.multiarray"), ("_reconstruct", "scalar")),
    **dict.fromkeys(("numpy.core.numeric", "numpy._core.numeric"), ("_frombuffer",)),
    "collections": ("deque", "OrderedDict"),
    **dict.fromkeys(("builtins", "__builtin__"), ("object",)),
    **dict.fromkeys(("copyreg", "copy_reg"), ("_reconstructor",)),
    "_codecs": ("encode",),
}
_COACH_CLASSES = {
    ("rl_coach.core_types", "Transition"): _PickledTransition,
    ("rl_coach.core_types", "Episode"): _PickledEpisode,
    ("rl_coach.filters.observation.observation_stacking_filter", "LazyStack"): _PickledStack,
}
# INST, OBJ, EXT1 and others are left out, because they could name more functions and classes.
_INSTRUCTIONS = """
    PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1
    LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 UNICODE
    BINUNICODE SHORT_BINUNICODE BINUNICODE8 TUPLE EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3 LIST EMPTY_LIST
    APPEND APPENDS DICT EMPTY_DICT SETITEM SETITEMS GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT
    MEMOIZE GLOBAL STACK_GLOBAL REDUCE NEWOBJ BUILD
"""


_UNPICKLER: Any = pickle._Unpickler


class _Reader(_UNPICKLER):
    """Reads pickles of numbers, arrays, containers and Coach's transitions. It refuses everything else."""

    dispatch: Any = {code[0]: _UNPICKLER.dispatch[code[0]] for code in (
        getattr(pickle, name) for name in _INSTRUCTIONS.split()
    )}  # fmt: skip

    def find_class(self, module: str, name: str) -> _Named:
        if (known := _COACH_CLASSES.get((module, name))) is not None:
            return _Named(name, makes=known)
        if name in _OF_MODULES.get(module, ()):
            return _Named(name, _CALLS.get(name))
        raise _Refused(f"it contains {module}.{name}, which is not a part of a recorded transition")

    def load_reduce(self) -> None:
        arguments, named = self.stack.pop(), self.stack[-1]
        _require(
            isinstance(named, _Named) and named.call and isinstance(arguments, tuple), "it calls an unknown function"
        )
        self.stack[-1] = named.call(*arguments)

    def load_newobj(self) -> None:
        arguments, named = self.stack.pop(), self.stack.pop()
        _require(
            isinstance(named, _Named) and named.makes and arguments == (), "it makes an object of an unknown class"
        )
        self.append(named.makes())

    def load_build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        _require(
            isinstance(made, (_PickledObject, _PickledType, _PickledArray)), "it changes an object of an unknown kind"
        )
        made.build(state)

    def load_bytearray8(self) -> None:
        # Replaces the standard library's method, which allocates the length in the pickle before it reads the bytes.
        (length,) = struct.unpack("<Q", self.read(8))
        self.append(self.read(length))

    dispatch |= {
        pickle.REDUCE[0]: load_reduce,
        pickle.NEWOBJ[0]: load_newobj,
        pickle.BUILD[0]: load_build,
        pickle.BYTEARRAY8[0]: load_bytearray8,
    }


def read_pickled_transitions(file_path: str | os.PathLike) -> list[Transition]:
    """Read the transitions of a file that ``ExperienceReplay.save`` of Coach 1 pickled.

    A pickle can name any function, and an ordinary reader would call it. This reader accepts only arrays, numbers,
    containers and the attributes of Coach's transitions.

    :raises CoachError: if the file cannot be read, or contains anything else
    """
    return [transition for item in _read_pickle(file_path) for transition in _transitions_of(item, file_path)]


def read_pickled_episodes(file_path: str | os.PathLike) -> list[list[Transition]]:
    """Read the episodes of a file that ``EpisodicExperienceReplay.save`` of Coach 1 pickled.

    A file may also contain a list of transitions. An episode then ends after each ``game_over``. See
    ``read_pickled_transitions``.
    """
    items = _read_pickle(file_path)
    if items and isinstance(items[0], _PickledTransition):
        return _cut_into_episodes(read_pickled_transitions(file_path))
    return [_transitions_of(item, file_path) for item in items]


def _cut_into_episodes(transitions: list[Transition]) -> list[list[Transition]]:
    episodes: list[list[Transition]] = [[]]
    for transition in transitions:
        episodes[-1].append(transition)
        if transition.game_over:
            episodes.append([])
    return [episode for episode in episodes if episode]


def _read_pickle(file_path: str | os.PathLike) -> list[Any]:
    """Read the items of the list in a file: ``_PickledObject``s with arrays and numbers."""
    try:
        # Read from bytes in memory, so that a wrong length in a damaged pickle returns only the bytes that exist.
        content = _Reader(io.BytesIO(read_bytes(file_path))).load()
        _require(isinstance(content, (list, collections.deque)), f"it contains {_kind(content)}, not a list")
        return list(content)
    except CoachError:
        # This is a ValueError too, but its message is already complete.
        raise
    except _DAMAGE as error:
        raise _not_a_buffer(file_path, error) from None


def _not_a_buffer(file_path: str | os.PathLike, error: Exception) -> CoachError:
    text = " ".join((f"{type(error).__name__} {error}" if isinstance(error, KeyError) else str(error)).split())
    return CoachError(f"'{file_path}' is not a replay buffer that Coach pickled: {text[:300] or type(error).__name__}")


def _kind(value: Any) -> str:
    return f"a {type(value).__name__.removeprefix('_Pickled').removeprefix('_')}"


def _transitions_of(item: Any, file_path: str | os.PathLike) -> list[Transition]:
    """The transitions of an item, which is a transition or an episode."""
    try:
        if isinstance(item, _PickledTransition):
            return [_transition_of(item.attributes)]
        _require(isinstance(item, _PickledEpisode), f"it contains {_kind(item)} instead of a transition or an episode")
        inner = item.attributes["transitions"]
        _require(isinstance(inner, (list, collections.deque)), "an episode has no list of transitions")
        found = [_transition_of(one.attributes) for one in inner if isinstance(one, _PickledTransition)]
        _require(len(found) == len(inner), "an episode has items that are not transitions")
        return found
    except _DAMAGE as error:
        raise _not_a_buffer(file_path, error) from None


def _transition_of(attributes: dict[str, Any]) -> Transition:
    def attribute(name: str) -> Any:
        found = attributes.get(name, attributes.get(f"_{name}"))
        _require(found is not None, f"it contains a transition without '{name}'")
        return found

    game_over, info = _numbers(attribute("game_over")), attributes.get("info") or {}
    _require(
        np.ndim(game_over) == 0 and isinstance(info, dict), "game_over is not a single value, or info is not a dict"
    )
    transition = Transition(
        state=_state_of(attribute("state")),
        action=_numbers(attribute("action")),
        reward=_numbers(attribute("reward")),
        next_state=_state_of(attribute("next_state")),
        game_over=bool(game_over),
        info={str(name): value if isinstance(value, str) else _numbers(value) for name, value in info.items()},
    )
    known_return = attributes.get("_n_step_discounted_rewards")
    transition._n_step_discounted_rewards = None if known_return is None else _numbers(known_return)
    return transition


def _state_of(state: Any) -> dict[str, Any]:
    _require(isinstance(state, dict) and all(isinstance(name, str) for name in state), "a state is not a dict by name")
    return {
        name: _stacked(value.attributes) if isinstance(value, _PickledStack) else _numbers(value)
        for name, value in state.items()
    }


def _stacked(attributes: dict[str, Any]) -> np.ndarray:
    axis, frames = attributes.get("axis", attributes.get("_axis", -1)), attributes["history"]
    _require(
        isinstance(frames, (list, collections.deque)) and len(frames) <= _MOST_FRAMES,
        "a stack has too many frames or no list of frames",
    )
    return np.stack([_numbers(frame) for frame in frames], axis=axis)


def _numbers(value: Any) -> Any:
    """Check that a value is an array, a number or a list of numbers. Return the array or the number."""
    if isinstance(value, _PickledArray):
        value = value.value
    elif isinstance(value, (list, tuple)):
        _require(
            all(isinstance(one, (bool, int, float, np.generic)) for one in value),
            "a list has other values than numbers",
        )
        value = np.asarray(value)
    array = np.asarray(value)
    _require(array.dtype.kind in "biuf", f"it contains {_kind(value)} instead of numbers")
    return value
