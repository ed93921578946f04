"""Plain data: values as bytes and back. Without pickle, reading never calls functions that the data names.

There are three forms. Each form builds on the form before:

- *A plain tree*: dicts with string keys and lists of arrays, numbers, strings, booleans and None. ``separate``
  removes the arrays, so that the rest fits into JSON; ``join`` puts them back.
- *Bytes*: ``dumps`` and ``loads`` (``dump`` and ``load`` for open files), an ``.npz`` with the JSON as member
  ``tree``. Checkpoints have a separate JSON file, and the arrays in a safetensors file, which other tools can read.
- *A graph of objects* that share parts by identity (for example, a state is also the next state of the step before, and
  stacks of frames share frames): ``flatten`` converts the graph to a plain tree, and ``restore`` builds the graph
  again, with the same shared parts. Classes must be registered, see ``register``.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import math
import struct
import zipfile
import zlib
from collections import deque
from typing import Any, BinaryIO, Iterable, Iterator, Mapping, TypeVar

import numpy as np

from rl_coach.utilities.errors import CoachError

State = dict[str, Any]
"""A plain tree, such as the results of ``get_state`` methods."""

_ARRAY = "__array__"
_CONSTANT = "__constant__"
_ARRAY_IN_OLD_MEMORIES = "__member__"
_MARKS = frozenset({_ARRAY, _CONSTANT, _ARRAY_IN_OLD_MEMORIES})
_LARGEST_CONSTANT = 100_000_000
_TREE = "tree"
_TREE_IN_OLD_FILTERS = "rest"
_NUMERIC_KINDS = "biufc"
# most leaves have these types and are returned unchanged, without a call for each
_PLAIN = frozenset({type(None), bool, int, float, str})

_SAFETENSORS_TYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float16": "F16", "float32": "F32", "float64": "F64",
}  # fmt: skip
_NUMPY_TYPES = {code: name for name, code in _SAFETENSORS_TYPES.items()}

DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error)
"""Errors of reading plain data from a damaged file."""

ARCHIVE_DAMAGE = (*DAMAGE, EOFError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""Errors of reading a damaged ``.npz``. A changed bit may mark the file as encrypted or as a later format."""


class UnsavableError(TypeError):
    """Raised for a value that cannot be written as plain data. The message names its path or type."""


# Trees


def separate(tree: Any, numbered: bool = False, fold_constants: bool = False) -> tuple[Any, dict[str, np.ndarray]]:
    """Two values: a plain tree for JSON with each array replaced by its name, and the arrays by name.

    Tuples become lists, and NumPy scalars become Python numbers.

    :param numbered: names are ``array_0``, ``array_1`` and so on; otherwise the arrays' paths, such as
        ``network/weights``
    :param fold_constants: an array of equal numbers is stored as one number and the shape
    :raises UnsavableError: if the tree contains other values
    """
    separator = _Separator(numbered, fold_constants)
    return separator.plain(tree, ""), separator.arrays


class _Separator:
    def __init__(self, numbered: bool, fold_constants: bool):
        self.arrays: dict[str, np.ndarray] = {}
        self._numbered = numbered
        self._fold_constants = fold_constants

    def plain(self, value: Any, path: str) -> Any:
        if type(value) in _PLAIN:
            return value
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, np.generic) and value.dtype.kind in _NUMERIC_KINDS:
            return value.item()
        if isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (list, tuple)):
            return [
                item if type(item) in _PLAIN else self.plain(item, f"{path}/{index}")
                for index, item in enumerate(value)
            ]
        if isinstance(value, dict):
            if not (_MARKS.isdisjoint(value) and all(isinstance(key, str) for key in value)):
                raise UnsavableError(f"the state's '{path}' has keys that are not plain strings: {list(value)}")
            return {
                key: item if type(item) in _PLAIN else self.plain(item, _below(path, key))
                for key, item in value.items()
            }
        raise UnsavableError(f"the state's '{path}' is a {type(value).__name__}, which cannot be saved")

    def _array(self, array: np.ndarray, path: str) -> dict[str, Any]:
        if array.dtype.kind not in _NUMERIC_KINDS:
            raise UnsavableError(f"the state's '{path}' is an array of {array.dtype}, which cannot be saved")
        name = self._name(path)
        if self._fold_constants and array.size > 1 and (array == array.flat[0]).all():
            self.arrays[name] = array.reshape(-1)[:1]
            return {_CONSTANT: [name, list(array.shape)]}
        self.arrays[name] = array
        return {_ARRAY: name}

    def _name(self, path: str) -> str:
        if self._numbered:
            return f"array_{len(self.arrays)}"
        while path in self.arrays:  # an empty key adds nothing to a path
            path += "_"
        return path


def _below(path: str, key: str) -> str:
    """The path of a key; slashes within keys are doubled, so that all paths are different."""
    name = key.replace("/", "//")
    return f"{path}/{name}" if path else name


def join(plain: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The tree from the results of ``separate``.

    :raises KeyError: if an array is missing
    :raises ValueError: if an array of equal numbers has more than 100 million elements
    """
    if isinstance(plain, list):
        return [join(item, arrays) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) == 1:
        ((key, value),) = plain.items()
        if key in (_ARRAY, _ARRAY_IN_OLD_MEMORIES):
            return arrays[value]
        if key == _CONSTANT:
            # the array is a view of one number, but computations need the memory of the full shape
            if math.prod(value[1]) > _LARGEST_CONSTANT:
                raise ValueError(f"it contains an array of the shape {value[1]}, which is too large")
            return np.broadcast_to(arrays[value[0]][0], value[1])
    return {key: join(item, arrays) for key, item in plain.items()}


def numbered(items: Iterable[Any]) -> State:
    """A list as a dict with the numbers of its items as keys, ``000`` and so on. ``in_order`` is the inverse."""
    return {f"{number:03d}": item for number, item in enumerate(items)}


def in_order(items: Mapping[str, Any]) -> list[Any]:
    """The items of ``numbered`` in the order of their numbers. Numbers may have any count of leading zeros.

    :raises ValueError: if a key is not a number
    """
    return [items[key] for key in sorted(items, key=int)]


# Bytes


def dump(value: Any, file: BinaryIO) -> None:
    """Write a plain tree to an open file, array by array, so that memory holds no second copy.

    :raises UnsavableError: if the tree contains values that are not plain data
    """
    plain, arrays = separate(value, numbered=True)
    np.savez(file, **{_TREE: np.asarray(json.dumps(plain)), **arrays})  # type: ignore[arg-type]


def load(file: Any) -> Any:
    """Read the tree that ``dump`` wrote, from an open file or a path.

    :raises ValueError: if the file has another form or is damaged
    :raises OSError: if the file cannot be opened
    """
    try:
        with np.load(file, allow_pickle=False) as archive:
            tree = archive[_TREE_IN_OLD_FILTERS if _TREE_IN_OLD_FILTERS in archive else _TREE]
            return join(json.loads(str(tree)), archive)
    except ARCHIVE_DAMAGE as error:
        raise ValueError(str(error)) from error


def dumps(value: Any) -> bytes:
    """A plain tree as bytes.

    :raises UnsavableError: if the tree contains values that are not plain data
    """
    stream = io.BytesIO()
    dump(value, stream)
    return stream.getvalue()


def loads(data: bytes) -> Any:
    """The tree from the bytes of ``dumps``.

    :raises ValueError: if the bytes have another form or are damaged
    """
    return load(io.BytesIO(data))


def safetensors_chunks(arrays: Mapping[str, np.ndarray]) -> Iterator[Any]:
    """The bytes of a safetensors file, array by array, so that memory holds no second copy of a replay memory.

    :raises UnsavableError: if safetensors does not support the dtype of an array
    """
    header: dict[str, Any] = {}
    offset = 0
    for name, array in arrays.items():
        if array.dtype.name not in _SAFETENSORS_TYPES:
            raise UnsavableError(f"the state's '{name}' is an array of {array.dtype}, which cannot be saved")
        header[name] = {
            "dtype": _SAFETENSORS_TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for array in arrays.values():
        # safetensors is little-endian throughout
        ordered = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        if ordered.nbytes:
            yield ordered.reshape(-1).view(np.uint8).data


def read_safetensors(file: BinaryIO) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file by name; the arrays are writable."""
    size = file.seek(0, 2)
    file.seek(0)
    (length,) = struct.unpack("<Q", file.read(8))
    start = 8 + length
    if start > size:
        raise ValueError(f"the header needs {length} bytes, but the file has only {size} bytes")
    header = json.loads(file.read(length))
    arrays = {}
    for name, entry in header.items():
        dtype = np.dtype(_NUMPY_TYPES[entry["dtype"]]).newbyteorder("<")
        first, end = entry["data_offsets"]
        # before any allocation, because a damaged header may claim any shape
        if not 0 <= first <= end <= size - start or math.prod(entry["shape"]) * dtype.itemsize != end - first:
            raise ValueError(f"the array '{name}' is outside of the file")
        file.seek(start + first)
        array = np.empty(entry["shape"], dtype=dtype)
        if array.nbytes:
            file.readinto(array.reshape(-1).view(np.uint8).data)  # type: ignore[attr-defined]
        arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return arrays


# Graphs of objects

AnyClass = TypeVar("AnyClass", bound=type)


@dataclasses.dataclass(frozen=True)
class _Registered:
    """The written form of the objects of a class: ``fields``, and if ``has_more`` is True all other attributes."""

    cls: type
    fields: tuple[str, ...]
    has_more: bool


_registered: dict[str, _Registered] = {}
_names: dict[type, str] = {}


def register(
    cls: AnyClass, fields: Iterable[str] | None = None, name: str | None = None, others: bool = False
) -> AnyClass:
    """Register a class, so that ``flatten`` accepts its objects. The function is also a decorator::

        @plain_data.register
        @dataclass
        class OptionInProgress: ...

    An object is restored without calling its ``__init__``. A subclass must be registered separately. If a class is
    defined again, in a notebook or by importing a module again, the new class replaces the old one.

    :param fields: the attributes to write; all attributes of the object by default
    :param name: the name of the class in the written data; by default, the class's own name
    :param others: also write attributes that are not in ``fields``, each with its name
    :raises ValueError: if another class with that name is registered
    """
    name = name or cls.__name__
    known = _registered.get(name)
    if known is not None and (known.cls.__module__, known.cls.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"another class {name} is registered, {known.cls.__module__}.{known.cls.__qualname__}")
    named = _slots(cls) if fields is None else tuple(fields)
    _registered[name] = _Registered(cls, named, fields is None or others)
    _names[cls] = name
    return cls


def _slots(cls: type) -> tuple[str, ...]:
    slots = [slot for base in reversed(cls.__mro__) for slot in vars(base).get("__slots__", ())]
    return tuple(slot for slot in slots if slot not in ("__dict__", "__weakref__"))


def flatten(value: Any) -> State:
    """A graph of objects as a plain tree. Each object is written once, as a node. Each reference to the object is the
    node's number. Arrays with equal shape and dtype are joined into one array.

    The graph may contain numbers, strings, None, numeric arrays and scalars, lists, tuples, dicts (whatever their
    keys), deques, and objects of registered classes, and cycles.

    :raises UnsavableError: if the graph contains other values
    """
    return _Flattener().flatten(value)


def restore(tree: State) -> Any:
    """The graph of objects from the result of ``flatten``, with the same shared parts.

    :raises CoachError: if the class of an object is not registered
    """
    return _Restorer(tree).restore()


class _Flattener:
    """Numbers objects by identity. This class keeps the objects alive, so that no id is reused."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []
        self._arrays: dict[tuple[str, tuple[int, ...]], tuple[int, list[np.ndarray]]] = {}

    def flatten(self, value: Any) -> State:
        root = self._reference(value)
        arrays = [np.stack(group) for _, group in self._arrays.values()]
        return {"root": root, "nodes": self._nodes, "arrays": arrays}

    def _reference(self, value: Any) -> Any:
        """The value itself if it is plain, otherwise ``[number of its node]``."""
        if type(value) in _PLAIN:
            return value
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._nodes)
            self._alive.append(value)
            self._nodes.append(None)
            self._nodes[number] = self._node(value)
        return [number]

    def _references(self, values: Iterable[Any]) -> list[Any]:
        return [value if type(value) in _PLAIN else self._reference(value) for value in values]

    def _node(self, value: Any) -> list[Any]:
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array_node(value)
        if type(value) in _names:
            return self._object_node(value, _names[type(value)])
        if isinstance(value, dict):
            return ["dict", *self._references(itertools.chain.from_iterable(value.items()))]
        for name, cls in (("list", list), ("tuple", tuple)):
            if type(value) is cls:
                return [name, *self._references(value)]
        if isinstance(value, deque):
            return ["deque", value.maxlen, *self._references(value)]
        raise UnsavableError(f"a {type(value).__name__} cannot be saved")

    def _object_node(self, value: Any, name: str) -> list[Any]:
        registered = _registered[name]
        try:
            node = [name, *self._references([getattr(value, field) for field in registered.fields])]
        except AttributeError as error:
            raise UnsavableError(f"a {name} without one of its attributes cannot be saved: {error}") from None
        more = getattr(value, "__dict__", {}) if registered.has_more else {}
        others = [item for item in more.items() if item[0] not in registered.fields]
        return node + self._references(itertools.chain.from_iterable(others))

    def _array_node(self, value: np.ndarray | np.generic) -> list[Any]:
        array = np.asarray(value)
        if array.dtype.kind not in _NUMERIC_KINDS:
            raise UnsavableError(f"an array of {array.dtype} cannot be saved")
        index, group = self._arrays.setdefault((array.dtype.str, array.shape), (len(self._arrays), []))
        group.append(array)
        return ["scalar" if isinstance(value, np.generic) else "array", index, len(group) - 1]


class _Restorer:
    """Builds the object of each node once. An object is built before the objects that it refers to, so that cycles
    work."""

    def __init__(self, tree: State):
        self._tree = tree
        self._objects: dict[int, Any] = {}

    def restore(self) -> Any:
        return self.value(self._tree["root"])

    def value(self, reference: Any) -> Any:
        if not isinstance(reference, list):
            return reference
        number = reference[0]
        if number not in self._objects:
            kind, *parts = self._tree["nodes"][number]
            self._make(number, kind, parts)
        return self._objects[number]

    def _values(self, references: Iterable[Any]) -> list[Any]:
        return [self.value(reference) for reference in references]

    def _make(self, number: int, kind: str, parts: list[Any]) -> None:
        made: Any
        if kind in ("array", "scalar"):
            value = self._tree["arrays"][parts[0]][parts[1]]
            # a row of a joined array is a view, so each array is copied to its own memory
            self._objects[number] = np.array(value) if kind == "array" else np.asarray(value)[()]
        elif kind == "dict":
            made = self._objects[number] = {}
            made.update(zip(self._values(parts[::2]), self._values(parts[1::2])))
        elif kind == "list":
            made = self._objects[number] = []
            made.extend(self._values(parts))
        elif kind == "tuple":
            self._objects[number] = tuple(self._values(parts))
        elif kind == "deque":
            made = self._objects[number] = deque(maxlen=parts[0])
            made.extend(self._values(parts[1:]))
        else:
            self._make_object(number, kind, parts)

    def _make_object(self, number: int, kind: str, parts: list[Any]) -> None:
        if kind not in _registered:
            raise CoachError(
                f"the saved data contains a '{kind}', a class that is not registered; import its module first"
            )
        registered = _registered[kind]
        made: Any = object.__new__(registered.cls)
        self._objects[number] = made  # before its attributes, which may refer to it
        count = len(registered.fields)
        for field, value in zip(registered.fields, self._values(parts[:count])):
            object.__setattr__(made, field, value)
        for field, value in zip(parts[count::2], self._values(parts[count + 1 :: 2])):
            object.__setattr__(made, field, value)
