"""Messages of a worker in which something is false: each of its fields, with each kind of value."""

from __future__ import annotations

import copy
from typing import Any, Iterator

import msgpack
import numpy as np

from rl_coach.memories.backend.wire import unpack

_NESTED: Any = []
for _ in range(300):
    _NESTED = [_NESTED]
VALUES: dict[str, Any] = {
    "nothing": None, "truth": True, "zero": 0, "negative": -1, "one": 1, "large": 90_000, "huge": 2**60,
    "largest": 2**64 - 1, "fraction": 0.5, "not a number": float("nan"), "infinite": float("inf"), "tiny": 1e-300,
    "too large to square": 1e30, "text": "text", "digits": "7", "no text": "", "long text": "x" * 10_000,
    "bytes": b"\xff\x00", "no list": [], "list": [1, 2, 3], "long list": [1] * 200_000, "texts": ["a", "b"],
    "nested": _NESTED, "no dict": {}, "dict": {"text": 1}, "dict of numbers": {1: 2},
    "array": np.arange(3.0), "no array": np.zeros(0), "array of NaN": np.full(3, np.nan), "flag": np.zeros((), bool),
    "two dimensions": np.ones((2, 3), np.float32), "extension": msgpack.ExtType(5, b"code"),
    "no extension": msgpack.ExtType(1, b"\xc1"), "time": msgpack.Timestamp(1, 2),
}  # fmt: skip
"""By what they are."""
_MOST_OF_A_LIST = 2


def places(part: Any, path: tuple = ()) -> Iterator[tuple]:
    """The paths of all fields in a header, those of a list's first elements included."""
    if path:
        yield path
    if isinstance(part, dict):
        for name, value in part.items():
            yield from places(value, (*path, name))
    elif isinstance(part, list):
        for index, value in enumerate(part[:_MOST_OF_A_LIST]):
            yield from places(value, (*path, index))


def changed(header: dict[str, Any], path: tuple, value: Any) -> dict[str, Any]:
    """A header with another value at a path."""
    header = copy.deepcopy(header)
    part: Any = header
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    return header


def false_messages(fields: dict[bytes, bytes]) -> Iterator[tuple[str, dict[bytes, bytes]]]:
    """What is false, and the message, for each field of an honest one and each kind of value."""
    header = unpack(fields[b"header"])
    for path in places(header):
        for kind, value in VALUES.items():
            yield f"{path}: {kind}", {**fields, b"header": packed(changed(header, path, value))}
        without = changed(header, path, None)
        part = without
        for step in path[:-1]:
            part = part[step]
        del part[path[-1]]
        yield f"{path}: missing", {**fields, b"header": packed(without)}
    rng = np.random.default_rng(0)
    for name in fields.keys() - {b"header"}:
        size = len(fields[name])
        for kind, buffer in (
            ("empty", b""), ("short", fields[name][:-1]), ("twice", fields[name] * 2), ("NaN", b"\xff" * size),
            ("random", rng.bytes(size)),
        ):  # fmt: skip
            yield f"buffer {name!r}: {kind}", {**fields, name: buffer}
        yield f"buffer {name!r}: missing", {other: buffer for other, buffer in fields.items() if other != name}


def packed(document: Any) -> bytes:
    """A document as bytes."""

    def as_extension(value: Any) -> Any:
        assert isinstance(value, np.ndarray)
        return msgpack.ExtType(1, msgpack.packb([value.dtype.str, list(value.shape), value.tobytes()]))

    return msgpack.packb(document, default=as_extension)
