"""Columns of a batch as one float vector, because each argument of a compiled step costs as much as a small update.

Measured for a 64 x 64 Q-network: six arrays as arguments 1,020 us a step, one packed array 390 us.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SMALLEST_BUCKET = 32
LARGE_ROW = 4096  # columns of more numbers a row than this, such as images, travel on their own, in their own dtype


@dataclass(frozen=True)
class PackedColumn:
    """The place of a column in a packed row, and its form."""

    start: int
    stop: int
    shape: tuple[int, ...]
    is_integer: bool


class Packing:
    """The packing of columns of one layout.

    :param columns: an example of the columns, each [N, ...]
    :param num_scalars: number of scalars that each update gets besides its batch
    :param num_updates: K, how many updates one call makes

    :ivar size: the length of the packed vector: rows, scalars of each update, and the number of updates to make
    """

    def __init__(self, columns: dict[str, np.ndarray], num_scalars: int, num_updates: int):
        self.rows = len(next(iter(columns.values())))
        self.num_scalars = num_scalars
        self.num_updates = num_updates
        self.packed: dict[str, PackedColumn] = {}
        self.large: dict[str, tuple[tuple[int, ...], np.dtype]] = {}
        width = 0
        for name, column in columns.items():
            size = int(np.prod(column.shape[1:]))
            if size > LARGE_ROW:
                self.large[name] = (column.shape, column.dtype)
                continue
            is_integer = np.issubdtype(column.dtype, np.integer) and name == "actions"
            self.packed[name] = PackedColumn(width, width + size, column.shape[1:], is_integer)
            width += size
        self.width = width
        self.size = self.rows * width + num_updates * num_scalars + 1

    def pack(self, columns: dict[str, np.ndarray], scalars: np.ndarray, count: int) -> np.ndarray:
        """[size] float32. :param scalars: [K, S]; :param count: number of the K updates to make"""
        vector = np.empty(self.size, np.float32)
        rows = vector[: self.rows * self.width].reshape(self.rows, self.width)
        for name, place in self.packed.items():
            rows[:, place.start : place.stop] = columns[name].reshape(self.rows, -1)
        vector[self.rows * self.width : -1] = scalars.ravel()
        vector[-1] = count
        return vector

    def unpack_rows(self, ops: Any, vector: Any) -> Any:
        """[N, width], the packed rows as a tensor."""
        return ops.reshape(vector[: self.rows * self.width], (self.rows, self.width))

    def unpack_scalars(self, ops: Any, vector: Any) -> Any:
        """[K, S], each update's scalars."""
        return ops.reshape(vector[self.rows * self.width : -1], (self.num_updates, self.num_scalars))

    def columns(self, ops: Any, rows: Any) -> dict[str, Any]:
        """The packed columns of some rows [B, width] by name, integers as int32."""
        columns = {}
        for name, place in self.packed.items():
            column = ops.reshape(rows[:, place.start : place.stop], (-1, *place.shape))
            columns[name] = ops.cast(column, "int32") if place.is_integer else column
        return columns


def pad(columns: dict[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
    """The columns with rows of zeros, and so of weight 0, added up to ``rows``; compiled steps have fixed sizes."""
    missing = rows - len(columns["weights"])
    if not missing:
        return columns
    return {
        name: np.concatenate([column, np.zeros((missing, *column.shape[1:]), column.dtype)])
        for name, column in columns.items()
    }


def padded(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns with rows of weight 0 added, up to a power of two, so that few lengths have to be compiled."""
    return pad(columns, padded_length(len(columns["weights"])))


def padded_length(rows: int) -> int:
    """The rows that ``padded`` makes of so many."""
    return max(SMALLEST_BUCKET, 1 << (rows - 1).bit_length())


def padded_sequences(sequences: list[dict[str, np.ndarray]]) -> tuple[dict[str, np.ndarray], int]:
    """Sequences as columns of one batch, each with rows of weight 0 added up to one length, and sequences of weight 0
    added; lengths and numbers are powers of two.

    :param sequences: columns [T, ...] each
    :return: the columns, and the rows of each sequence
    """
    longest = max(len(columns["weights"]) for columns in sequences)
    length = 1 << (longest - 1).bit_length()
    equal = [pad(columns, length) for columns in sequences]
    together = {name: np.concatenate([columns[name] for columns in equal]) for name in equal[0]}
    return pad(together, length << (len(sequences) - 1).bit_length()), length
