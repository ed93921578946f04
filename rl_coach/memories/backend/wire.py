"""Encoding of chunks of experience: a small header, and one buffer of raw bytes for each column.

The header has the path, type and shape of each column. The buffers contain the bytes of the columns as they are in
memory. Frames that observations share are sent once. Decoding cannot run code: it reads only numbers, texts, lists and
dicts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping

import msgpack
import numpy as np

from rl_coach.core_types import Batch, PlayUnit
from rl_coach.memories.columns import FrameStacks
from rl_coach.utilities.sound_values import NUMBERS, is_count, is_finite, is_text
from rl_coach.utils import CoachError

MOST_BYTES, MOST_ROWS = 64 << 20, 100_000
"""The limits of a chunk, in bytes and rows. A larger chunk is refused."""
UNREADABLE = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError,
    msgpack.UnpackException,
)  # fmt: skip
"""Errors that a malformed document can cause. Code that catches these errors must not have changed anything before."""
_MOST_STACKED_BYTES = 16 * MOST_BYTES
_DTYPE = re.compile(r"[<|][biuf][1248]")
_GROUPS = ("state", "next_state", "frames", "info", "absent")
_SINGLE = ("action", "reward", "game_over", "terminated", "return", "no_return", "n_step")
_HEADER = b"header"
_ARRAY = 1  # msgpack's extension type of an array
_MOST_DIMENSIONS = 8
PolicyName = tuple[int, int]
"""The name of a policy: the incarnation (number of the start) of the trainer, and the version in this incarnation."""


@dataclass
class Chunk:
    """Consecutive steps of a worker, for one message.

    :param run: the run's id
    :param sender: the name of the worker and of its start; a restarted worker is a new sender
    :param number: the number of the chunk, counted from 1 for each sender
    :param first: the number of the sender's oldest unacknowledged chunk
    :param policy: the name of the policy that acted
    :param updates: number of the trainer's updates when it published that policy
    :param steps: number of environment steps
    :param episode_lengths: the number of rows in each episode that has ended
    :param columns: the transitions [N, ...]; None for a chunk without transitions
    :param about: other plain data and arrays, by name
    """

    run: str
    sender: str
    number: int
    first: int
    policy: PolicyName
    updates: int
    steps: int
    episode_lengths: list[int] = field(default_factory=list)
    columns: Batch | None = None
    about: dict[str, Any] = field(default_factory=dict)


class ChunkError(CoachError):
    """Error for a message that is not a valid chunk of this run.

    :param reason: the reason in one or two words. Refused messages are counted by reason
    """

    def __init__(self, reason: str, message: str):
        super().__init__(f"{reason}: {message}")
        self.reason = reason


class EncodedChunk:
    """An encoded chunk. It can be sent several times; only ``first`` changes.

    :raises ChunkError: if ``decode`` would refuse the chunk, because it is too large or has NaN or infinite numbers

    :ivar number: number of the chunk
    :ivar steps: number of environment steps
    :ivar played: number of steps, of ended episodes, and of segments, by ``PlayUnit``
    :ivar size: number of bytes of all columns
    """

    def __init__(self, chunk: Chunk):
        self.number, self.steps = chunk.number, chunk.steps
        self.played = {
            PlayUnit.STEPS: chunk.steps,
            PlayUnit.EPISODES: len(chunk.about.get("reports", ())),
            PlayUnit.SEGMENTS: len(chunk.episode_lengths),
        }
        # Encoded here and not in fields(), because a chunk may be sent several times.
        described, buffers = [], []
        rows = 0 if chunk.columns is None else chunk.columns.size
        for path, array, details in _flat(chunk.columns):
            # Checked here too: a trainer refuses such a chunk without a receipt, and the worker would wait for ever.
            _require_column(path, array, rows)
            described.append([path, array.dtype.str, list(array.shape), *details])
            buffers.append(array.tobytes())
        self._header = {
            "run": chunk.run, "sender": chunk.sender, "number": chunk.number, "policy": list(chunk.policy),
            "updates": chunk.updates, "steps": chunk.steps, "episode_lengths": list(chunk.episode_lengths),
            "columns": described, "about": chunk.about,
        }  # fmt: skip
        self._buffers = {str(i).encode(): buffer for i, buffer in enumerate(buffers)}
        self.size = sum(len(buffer) for buffer in buffers)
        _require_size(self.size, rows)

    def fields(self, first: int) -> dict[bytes, Any]:
        """The fields of an entry in the stream. :param first: the number of the sender's oldest unacknowledged chunk"""
        return {_HEADER: pack({**self._header, "first": first}), **self._buffers}


def decode(fields: Mapping[bytes, bytes], run: str) -> Chunk:
    """Decode the chunk in an entry of the stream.

    :param run: the id of the reader's run
    :raises ChunkError: if the entry is not a chunk, belongs to another run, is too large, or has NaN or infinite
        numbers
    """
    # The size is checked first, because unpacking a very large chunk could exhaust the trainer's memory.
    _require_size(sum(map(len, fields.values())))
    try:
        header = unpack(fields[_HEADER])
        if header["run"] != run:
            raise ChunkError("another run", f"the chunk is of run '{str(header['run'])[:40]}'")
        return _chunk(header, fields)
    except ChunkError:
        raise
    except UNREADABLE as error:
        raise ChunkError("garbage", f"{type(error).__name__} {str(error)[:80]}") from error


def _chunk(header: dict[str, Any], fields: Mapping[bytes, bytes]) -> Chunk:
    number, first, updates, steps = (_count(header[name]) for name in ("number", "first", "updates", "steps"))
    lengths = [_count(length) for length in header["episode_lengths"]]
    incarnation, version = map(_count, header["policy"])
    sender, about = header["sender"], header["about"]
    if not is_text(sender) or not isinstance(about, dict):
        raise ChunkError("garbage", "no sender")
    if not (1 <= first <= number and 1 <= steps <= MOST_ROWS and len(lengths) <= MOST_ROWS):
        raise ChunkError(
            "garbage", f"wrong numbers: number {number}, first {first}, {steps} steps, {len(lengths)} episodes"
        )
    columns = _columns(header["columns"], fields)
    policy = (incarnation, version)
    return Chunk(header["run"], sender, number, first, policy, updates, steps, lengths, columns, about)


def _count(value: Any) -> int:
    if not is_count(value):
        raise ChunkError("garbage", f"{str(value)[:40]!r} is not a whole number from 0 on")
    return value


def read_document(document: bytes | None, checks: Mapping[str, Callable[[Any], bool]]) -> dict[str, Any] | None:
    """Read the entries of a document of plain data, and check them.

    :param document: the packed document, which any process may have written; None if it does not exist
    :param checks: a function for each entry, which returns True for a valid value
    :return: the entries by name; None if the document does not exist, has other entries, or has an invalid value
    """
    if document is None:
        return None
    try:
        found = unpack(document)
        is_sound = found.keys() == checks.keys() and all(check(found[name]) for name, check in checks.items())
    except UNREADABLE:
        return None
    return found if is_sound else None


def _flat(columns: Batch | None) -> Iterator[tuple[str, np.ndarray, tuple]]:
    """The arrays of a batch, each with its path, and for stacked frames the axis and the name of the frames."""
    if columns is None:
        return
    frames: dict[int, str] = {}
    for kind, group in (("state", columns.state_columns), ("next_state", columns.next_state_columns)):
        for name, column in group.items():
            if not isinstance(column, FrameStacks):
                yield f"{kind}/{name}", column, ()
                continue
            # State and next state share one array of frames. This array is sent once, and both refer to it by its name.
            if id(column.frames) not in frames:
                frames[id(column.frames)] = name
                yield f"frames/{name}", column.frames, ()
            # Unsigned, because NumPy would accept a negative index; narrow, because two bytes are enough for most
            # chunks.
            narrow = np.uint16 if len(column.frames) < 1 << 16 else np.uint32
            yield f"{kind}/{name}", column.indices.astype(narrow), (column.axis, frames[id(column.frames)])
    for name, array in (
        ("action", columns.action_column), ("reward", columns.reward_column), ("game_over", columns.game_over_column),
        ("terminated", columns.terminated_column), ("return", columns.return_column), ("n_step", columns.n_step_column),
    ):  # fmt: skip
        if array is not None:
            yield name, np.ma.getdata(array), ()
    if isinstance(columns.return_column, np.ma.MaskedArray):
        yield "no_return", np.ma.getmaskarray(columns.return_column), ()
    for name, column in columns.info_columns.items():
        if column.dtype.kind not in NUMBERS:
            continue  # texts and other objects are not sent, only numbers
        yield f"info/{name}", np.ma.getdata(column), ()
        if isinstance(column, np.ma.MaskedArray):
            yield f"absent/{name}", np.asarray(np.ma.getmaskarray(column).reshape(len(column), -1).all(axis=1)), ()


def _columns(described: list, fields: Mapping[bytes, bytes]) -> Batch | None:
    if not isinstance(described, list):
        raise ChunkError("garbage", "the header has no list of columns")
    if not described:
        return None
    arrays = {
        path: _array(dtype, shape, fields[str(i).encode()]) for i, (path, dtype, shape, *_) in enumerate(described)
    }
    details = {path: rest for path, _, _, *rest in described if rest}
    rows = len(arrays["reward"])
    if not rows:
        raise ChunkError("garbage", "no rows")
    _require_size(0, rows)
    for path, array in arrays.items():
        _require_column(path, array, rows)
    states: dict[str, Any] = {}
    next_states: dict[str, Any] = {}
    info: dict[str, Any] = {}
    for path, array in arrays.items():
        kind, _, name = path.partition("/")
        if kind in ("state", "next_state"):
            column = _stacks(array, arrays, *details[path]) if path in details else array
            (states if kind == "state" else next_states)[name] = column
        elif kind == "info":
            info[name] = array
    for name, column in info.items():
        absent = arrays.get(f"absent/{name}")
        if absent is not None:
            mask = np.broadcast_to(absent.reshape(-1, *(1 for _ in column.shape[1:])), column.shape)
            info[name] = np.ma.MaskedArray(column, mask)
    returns = arrays.get("return")
    if returns is not None and "no_return" in arrays:
        returns = np.ma.MaskedArray(returns, np.broadcast_to(arrays["no_return"], returns.shape))
    return Batch.from_columns(
        states, arrays["action"], arrays["reward"], arrays["game_over"], next_states, arrays["terminated"],
        returns, None, info, arrays.get("n_step"),
    )  # fmt: skip


def _require_size(size: int, rows: int = 0) -> None:
    """Check the size of a chunk in bytes, and its rows. :raises ChunkError: if the chunk is larger than the limits"""
    if size > MOST_BYTES:
        raise ChunkError("too large", f"{size >> 20} MB, at most {MOST_BYTES >> 20} MB")
    if rows > MOST_ROWS:
        raise ChunkError("too large", f"{rows:,} rows, at most {MOST_ROWS:,}")


def _require_column(path: str, array: np.ndarray, rows: int) -> None:
    """Check the path, the number of rows and the numbers of a column. :raises ChunkError: if one is wrong"""
    kind, slash, name = path.partition("/")
    if not (is_text(name) and kind in _GROUPS if slash else kind in _SINGLE):
        raise ChunkError("garbage", f"unknown column '{path[:40]}'")
    if not array.ndim or (kind != "frames" and len(array) != rows):
        raise ChunkError("garbage", f"column '{path[:40]}' has {len(array) if array.ndim else 'no'} rows, not {rows}")
    # NaN is only allowed in returns (unknown) and in an environment's info.
    if kind not in ("return", "info") and not is_finite(array):
        raise ChunkError("garbage", f"column '{path[:40]}' has NaN or infinite numbers")


def _stacks(indices: np.ndarray, arrays: dict[str, np.ndarray], axis: int | None, name: str) -> FrameStacks:
    frames = arrays[f"frames/{name}"]
    if indices.ndim != 2 or indices.dtype.kind != "u" or not len(frames) or indices.max(initial=0) >= len(frames):
        raise ChunkError("garbage", f"observation '{name}' refers to missing frames")
    if axis is None and indices.shape[1] != 1:
        raise ChunkError("garbage", f"observation '{name}' has several frames and no axis")
    if axis is not None and not (type(axis) is int and -frames.ndim <= axis < frames.ndim):
        raise ChunkError("garbage", f"observation '{name}' has no axis {axis}")
    # An index of two bytes stands for a whole frame, so a small chunk could expand to very many bytes.
    if indices.size * (frames.nbytes // len(frames)) > _MOST_STACKED_BYTES:
        raise ChunkError("too large", f"{indices.size:,} frames of observation '{name}'")
    return FrameStacks(frames, indices.astype(np.int64), axis)


def _array(dtype: str, shape: list[int], buffer: bytes) -> np.ndarray:
    # Only numbers, because NumPy would read the bytes of objects as pointers. No negative sizes, because reshape would
    # replace -1 with a computed size.
    if not _DTYPE.fullmatch(dtype) or len(shape) > _MOST_DIMENSIONS or not all(map(is_count, shape)):
        raise ChunkError("garbage", f"a column has the type {str(dtype)[:40]} and the shape {str(shape)[:40]}")
    return np.frombuffer(buffer, dtype).reshape(shape)


def pack(document: Any) -> bytes:
    """Encode plain data and arrays as bytes."""
    return msgpack.packb(document, default=_as_extension)


def unpack(document: bytes) -> Any:
    """Decode a document of ``pack``. :raises ValueError: if the document is malformed"""
    # strict_map_key=False, because msgpack would refuse dicts with numbers as keys.
    try:
        return msgpack.unpackb(document, ext_hook=_from_extension, strict_map_key=False)
    except msgpack.UnpackException as error:
        raise ValueError(str(error)) from error


def _as_extension(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in NUMBERS:
        return msgpack.ExtType(_ARRAY, msgpack.packb([value.dtype.str, list(value.shape), value.tobytes()]))
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def _from_extension(code: int, content: bytes) -> np.ndarray:
    if code != _ARRAY:
        raise ValueError(f"the extension type {code} is unknown")
    dtype, shape, buffer = msgpack.unpackb(content)
    return _array(dtype, shape, buffer)
