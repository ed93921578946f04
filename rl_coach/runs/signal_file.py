"""Reading one signal CSV: once, then only where it has grown, and never more of it than memory has room for."""

from __future__ import annotations

import csv
import functools
import io
import os
import pathlib
from collections import Counter
from typing import Callable, Collection, Iterator, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow_csv

EPISODE = "Episode #"
TRAINING_ITERATION = "Training Iter"
TOTAL_STEPS = "Total steps"
WALL_CLOCK = "Wall-Clock Time"
WALL_CLOCK_MINUTES = "Wall-Clock Time (minutes)"
TIME_COLUMNS = (EPISODE, TRAINING_ITERATION, TOTAL_STEPS, WALL_CLOCK, WALL_CLOCK_MINUTES)

LONGEST_LINE_BYTES = 2 << 20
"""A longer line is damaged."""
MOST_ROWS = 1 << 20
"""Rows of one file that a plot is drawn from."""
_BLOCK_BYTES = 8 << 20
_MISSING = ["", "nan", "NaN", "NAN", "None", "null", "NULL", "N/A", "-nan"]
_MOST_CHUNKS = 16
_SEAM_BYTES = 256
_NEWLINE = ord("\n")


class SignalFile:
    """The columns of one CSV, read once and then only where the file has grown.

    Every value is a float64; an empty cell, a word or a missing value is NaN. Damaged lines are left out and counted:
    too many or too few cells, no number in the first column, not UTF-8, longer than ``LONGEST_LINE_BYTES``. A file
    that shrinks or is replaced is read anew.

    :param path: the CSV
    :param wanted: read only these columns and the first; None reads all
    :param most_rows: of more rows keep those that hold the smallest and the largest values of each stretch, so that
        memory is bounded and a plot looks as it would; None keeps all
    :ivar names: the names of all columns, the first is the index; empty before the header has been written
    :ivar left_out: how many damaged lines there were
    :ivar is_condensed: whether there were more rows than are kept
    """

    def __init__(self, path: str | os.PathLike, wanted: Collection[str] | None = None, most_rows: int | None = None):
        self.path = pathlib.Path(path)
        self.most_rows = most_rows
        self.wanted = None if wanted is None else frozenset(wanted)
        self.names: list[str] = []
        self.table: pa.Table | None = None
        self.offset = 0
        self.seam = b""
        self.restarts = 0
        self.left_out = 0
        self.is_condensed = False

    @classmethod
    def from_table(cls, path: str | os.PathLike, table: pa.Table, offset: int, seam: bytes) -> SignalFile:
        """A file of which everything up to ``offset`` was read earlier.

        :param seam: the last bytes before ``offset``; where they differ from the file's, it is another file
        """
        file = cls(path)
        file.names, file.table, file.offset, file.seam = list(table.column_names), table, offset, seam
        return file

    @classmethod
    def from_offset(
        cls, path: str | os.PathLike, names: Sequence[str], offset: int, seam: bytes, wanted: Collection[str]
    ) -> SignalFile:
        """A file of which only what follows ``offset`` is of interest; ``seam`` as in ``from_table``."""
        file = cls(path, wanted, MOST_ROWS)
        file.names, file.offset, file.seam = list(names), offset, seam
        file.table = empty_table(file._kept())
        return file

    @property
    def rows(self) -> int:
        """Number of rows that are kept."""
        return self.table.num_rows if self.table is not None else 0

    @property
    def nbytes(self) -> int:
        """Bytes that the columns take."""
        return self.table.nbytes if self.table is not None else 0

    def has(self, names: Collection[str]) -> bool:
        """True if these columns were read, as far as the file has them."""
        return self.wanted is None or self.wanted.issuperset(names)

    def column(self, name: str) -> np.ndarray:
        """The column ``name`` as float64 [rows]; all NaN if there is none of that name."""
        if self.table is None or name not in self.table.column_names:
            return np.full(self.rows, np.nan)
        return self.table.column(name).to_numpy()

    def refresh(self, check: Callable[[], None] = lambda: None) -> bool:
        """Read what the file has gained; whether anything changed.

        :param check: called before every block; what it raises ends the reading, which another ``refresh`` goes on with
        :raises OSError: if the file is gone or cannot be read
        """
        with open(self.path, "rb") as file:
            header = read_header(file)
            changed = self._restart_unless_the_same(file, header)
            if not header:
                return changed
            file.seek(self.offset)
            for body, size, too_long in line_blocks(file):
                check()
                self._append(body)
                self.left_out += too_long
                self.offset += size
                self.seam = (self.seam + body)[-_SEAM_BYTES:] if not too_long else b""
                changed = True
        return changed

    def _kept(self) -> list[str]:
        return [
            name for place, name in enumerate(self.names) if self.wanted is None or not place or name in self.wanted
        ]

    def _restart_unless_the_same(self, file: io.BufferedReader, header: bytes) -> bool:
        names = column_names(header) if header else []
        if self.table is not None and names == self.names and self._seam_fits(file):
            return False
        had_rows = self.table is not None
        self.restarts += had_rows
        self.names, self.left_out, self.is_condensed = names, 0, False
        self.table = empty_table(self._kept()) if names else None
        self.offset, self.seam = len(header), header[-_SEAM_BYTES:]
        return had_rows or bool(names)

    def _seam_fits(self, file: io.BufferedReader) -> bool:
        file.seek(0, os.SEEK_END)
        if file.tell() < self.offset:
            return False
        file.seek(self.offset - len(self.seam))
        return file.read(len(self.seam)) == self.seam

    def _append(self, body: bytes) -> None:
        table, left_out = parse(body, self.names, self._kept())
        self.left_out += left_out
        self.table = pa.concat_tables([self.table, table]) if self.rows else table
        if self.most_rows is not None and self.table.num_rows > self.most_rows:
            self.table, self.is_condensed = condensed(self.table, self.most_rows // 2), True
        elif self.table.num_columns and self.table.column(0).num_chunks > _MOST_CHUNKS:
            self.table = self.table.combine_chunks()


def line_blocks(file: io.BufferedReader) -> Iterator[tuple[bytes, int, int]]:
    """Blocks of whole lines of what is left of a file, each of about ``_BLOCK_BYTES``.

    :return: the lines, how many bytes of the file they took, and how many lines were too long and are not among them
    """
    rest, skipped = b"", 0
    while data := file.read(_BLOCK_BYTES):
        data = rest + data
        end = data.rfind(b"\n") + 1
        if end:
            begin = data.find(b"\n") + 1 if skipped else 0
            lines, too_long = without_long_lines(data[begin:end])
            yield lines, skipped + end, too_long + (skipped > 0)
            skipped = 0
        rest = data[end:]
        if len(rest) > LONGEST_LINE_BYTES:
            rest, skipped = b"", skipped + len(rest)


def without_long_lines(body: bytes) -> tuple[bytes, int]:
    """Whole lines but those longer than ``LONGEST_LINE_BYTES``, and how many those are."""
    if len(body) <= LONGEST_LINE_BYTES:
        return body, 0
    ends = np.flatnonzero(np.frombuffer(body, np.uint8) == _NEWLINE) + 1
    starts = np.concatenate([[0], ends[:-1]])
    long = np.flatnonzero(ends - starts > LONGEST_LINE_BYTES)
    if not long.size:
        return body, 0
    cuts = [0, *(cut for place in long for cut in (starts[place], ends[place])), len(body)]
    return b"".join(body[first:last] for first, last in zip(cuts[::2], cuts[1::2])), int(long.size)


def read_header(file: io.BufferedReader) -> bytes:
    """The first line with its end, empty if it has not been written to its end yet or is damaged: too long."""
    file.seek(0)
    line = file.readline(LONGEST_LINE_BYTES)
    return line if line.endswith(b"\n") else b""


@functools.lru_cache(maxsize=64)
def _column_names(header: bytes) -> tuple[str, ...]:
    line = header.decode("utf-8-sig", errors="replace").replace("\0", "")
    cells = [name.strip() or f"column {place + 1}" for place, name in enumerate(_cells(line))]
    seen: Counter[str] = Counter()
    taken = set(cells)
    names: list[str] = []
    for name in cells:
        seen[name] += 1
        unique = name
        while seen[name] > 1 and unique in taken:
            unique = f"{name} ({seen[name]})"
            seen[name] += unique in taken
        taken.add(unique)
        names.append(unique)
    return tuple(names)


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a field of more than 131,072 characters
        return line.rstrip("\r\n").split(",")


def column_names(header: bytes) -> list[str]:
    """The names in a header line, each made unique and none empty."""
    return list(_column_names(header))


def whole_lines(data: bytes) -> bytes:
    """``data`` up to its last line end: the rest of the line may still be on its way."""
    return data[: data.rfind(b"\n") + 1]


def empty_table(names: Sequence[str]) -> pa.Table:
    """A table of float64 columns without rows."""
    return pa.table({name: pa.array([], pa.float64()) for name in names})


def parse(body: bytes, names: Sequence[str], kept: Sequence[str] | None = None) -> tuple[pa.Table, int]:
    """Whole CSV lines without their header as float64 columns; what is not a number becomes NaN.

    :param kept: the columns to return, the first of ``names`` among them; None returns all
    :return: the columns, and how many lines were damaged and left out
    """
    kept = names if kept is None else kept
    if not body.strip(b"\r\n"):
        return empty_table(kept), 0
    body, left_out = _as_text(body)
    try:
        table, invalid = _read_csv(body, names, kept, pa.float64())
    except pa.ArrowInvalid:
        words, invalid = _read_csv(body, names, kept, pa.string())
        table = pa.table({name: _numbers(words.column(name)) for name in kept})
    columns = [compute.fill_null(column, float("nan")) for column in table.columns]
    table = pa.table(columns, names=list(kept))
    has_index = compute.is_finite(table.column(0))
    indexed = table if compute.all(has_index).as_py() else table.filter(has_index)
    return indexed, left_out + invalid + table.num_rows - indexed.num_rows


def _as_text(body: bytes) -> tuple[bytes, int]:
    """Lines but those that are not UTF-8, without zero bytes; how many were not UTF-8."""
    body = body.replace(b"\0", b"") if b"\0" in body else body
    if body.isascii():
        return body, 0
    lines = body.splitlines(keepends=True)
    good = [line for line in lines if _is_utf_8(line)]
    return b"".join(good), len(lines) - len(good)


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _read_csv(body: bytes, names: Sequence[str], kept: Sequence[str], kind: pa.DataType) -> tuple[pa.Table, int]:
    invalid = []

    def skip(row: arrow_csv.InvalidRow) -> str:
        invalid.append(row.number)
        return "skip"

    if not body.strip(b"\r\n"):
        return pa.table({name: pa.array([], kind) for name in kept}), 0
    table = arrow_csv.read_csv(
        pa.BufferReader(body),
        read_options=arrow_csv.ReadOptions(column_names=list(names), use_threads=False, block_size=len(body) + 1),
        # A quote that is never closed would take in all lines after it.
        parse_options=arrow_csv.ParseOptions(
            invalid_row_handler=skip, quote_char=False if body.count(b'"') % 2 else '"'
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(kept, kind),
            include_columns=list(kept),
            null_values=_MISSING,
            strings_can_be_null=True,
            check_utf8=False,
        ),
    )
    return table, len(invalid)


def _numbers(words: pa.ChunkedArray) -> pa.Array:
    raw = [value.as_buffer().to_pybytes().decode("utf-8", "replace") if value.is_valid else None for value in words]
    text = pd.Series(raw, dtype=object)
    text = text.replace({"True": "1", "true": "1", "False": "0", "false": "0"})
    return pa.array(pd.to_numeric(text, errors="coerce").to_numpy(np.float64))


def condensed(table: pa.Table, rows: int) -> pa.Table:
    """At most about ``rows`` rows: those with the smallest and the largest values of each stretch of each signal."""
    signals = [name for name in table.column_names if name not in TIME_COLUMNS] or table.column_names[-1:]
    each = max(4, rows // len(signals))
    picked = [np.array([0, table.num_rows - 1])]
    for name in signals:
        values = table.column(name).to_numpy()
        finite = np.flatnonzero(np.isfinite(values))
        picked.append(finite[extremes(values[finite], each)])
    return table.take(pa.array(np.unique(np.concatenate(picked)))).combine_chunks()


def extremes(y: np.ndarray, points: int) -> np.ndarray:
    """The indices of at most ``points`` values that draw like all of them: each stretch's smallest and largest.

    The first and the last are among them. y is [points] without NaN.
    """
    stretches = max(1, points // 2 - 1)
    if y.size <= max(points, 4):
        return np.arange(y.size)
    length = -(-y.size // stretches)
    padded = np.concatenate([y, np.full(-y.size % length, y[-1])]).reshape(-1, length)
    start = np.arange(len(padded)) * length
    picked = np.concatenate([start + padded.argmin(axis=1), start + padded.argmax(axis=1), [0, y.size - 1]])
    return np.unique(np.minimum(picked, y.size - 1))
