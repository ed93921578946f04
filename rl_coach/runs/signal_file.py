"""Reads a signal CSV once, and later only its new rows. The memory for the rows is bounded."""

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
"""The largest length of a line. Longer lines count as damaged."""
MOST_ROWS = 1 << 20
"""The largest number of rows of one file for a plot."""
_BLOCK_BYTES = 8 << 20
_MISSING = ["", "nan", "NaN", "NAN", "None", "null", "NULL", "N/A", "-nan"]
_MOST_CHUNKS = 16
_SEAM_BYTES = 256
_NEWLINE = ord("\n")


class SignalFile:
    """The columns of one CSV. The file is read once; later, only its new rows are read.

    Every value is a float64; an empty cell, a word or a missing value is NaN. Damaged lines are left out and counted.
    Damaged lines have too many or too few cells, no number in the first column, invalid UTF-8, or more than
    ``LONGEST_LINE_BYTES``. A file that shrinks or is replaced is read again.

    :param wanted: read only these columns and the first; None reads all
    :param most_rows: if there are more rows, keep only the rows with the smallest and the largest value of each
        interval. Memory is then bounded, and plots look the same. None keeps all rows
    :ivar names: the names of all columns. The first column is the index. Empty before the header has been written
    :ivar left_out: number of damaged lines
    :ivar is_condensed: True if rows were left out because of ``most_rows``
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
        """A ``SignalFile`` that continues an earlier one, which was read up to ``offset``.

        :param seam: the last bytes before ``offset``; if they differ from the file's bytes, the file was replaced
        """
        file = cls(path)
        file.names, file.table, file.offset, file.seam = list(table.column_names), table, offset, seam
        return file

    @classmethod
    def from_offset(
        cls, path: str | os.PathLike, names: Sequence[str], offset: int, seam: bytes, wanted: Collection[str]
    ) -> SignalFile:
        """A ``SignalFile`` that reads only the rows after ``offset``. :param seam: as in ``from_table``"""
        file = cls(path, wanted, MOST_ROWS)
        file.names, file.offset, file.seam = list(names), offset, seam
        file.table = empty_table(file._kept())
        return file

    @property
    def rows(self) -> int:
        """Number of rows in memory."""
        return self.table.num_rows if self.table is not None else 0

    @property
    def nbytes(self) -> int:
        """Bytes of the columns in memory."""
        return self.table.nbytes if self.table is not None else 0

    def has(self, names: Collection[str]) -> bool:
        """True if each of these columns was read, or is not in the file."""
        return self.wanted is None or self.wanted.issuperset(names)

    def column(self, name: str) -> np.ndarray:
        """The column ``name`` as float64 [rows]; all NaN if the column does not exist."""
        if self.table is None or name not in self.table.column_names:
            return np.full(self.rows, np.nan)
        return self.table.column(name).to_numpy()

    def refresh(self, check: Callable[[], None] = lambda: None) -> bool:
        """Read the file's new rows. :return: True if anything changed

        :param check: called before each block. If it raises an exception, the reading ends, and the next ``refresh``
            continues there
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
        names = column_names(header)
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
    """Blocks of whole lines from the file's position to its end, each of about ``_BLOCK_BYTES``: the lines, the number
    of bytes in the file, and the number of lines that were left out because they are too long."""
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
    """All lines that are not longer than ``LONGEST_LINE_BYTES``, and the number of longer lines."""
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
    """The first line with its line end; empty if it is incomplete or too long."""
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
    """The names in a header line, made unique and not empty."""
    return list(_column_names(header))


def whole_lines(data: bytes) -> bytes:
    """``data`` up to its last line end. The line after it may be incomplete."""
    return data[: data.rfind(b"\n") + 1]


def empty_table(names: Sequence[str]) -> pa.Table:
    """A table of float64 columns without rows."""
    return pa.table({name: pa.array([], pa.float64()) for name in names})


def parse(body: bytes, names: Sequence[str], kept: Sequence[str] | None = None) -> tuple[pa.Table, int]:
    """CSV lines without their header as float64 columns. Values that are not numbers become NaN.

    :param kept: the columns to return, the first of ``names`` among them; None returns all
    :return: the columns, and the number of damaged lines, which are left out
    """
    kept = names if kept is None else kept
    body, left_out = _as_text(body)
    if not body.strip(b"\r\n"):
        return empty_table(kept), left_out
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
    """The valid UTF-8 lines without zero bytes, and the number of invalid lines."""
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

    table = arrow_csv.read_csv(
        pa.BufferReader(body),
        read_options=arrow_csv.ReadOptions(column_names=list(names), use_threads=False, block_size=len(body) + 1),
        # An unclosed quote would swallow all lines after it.
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
    """About ``rows`` rows or fewer: for each signal, the rows with the smallest and the largest value of each
    interval."""
    signals = [name for name in table.column_names if name not in TIME_COLUMNS] or table.column_names[-1:]
    each = max(4, rows // len(signals))
    picked = [np.array([0, table.num_rows - 1])]
    for name in signals:
        values = table.column(name).to_numpy()
        finite = np.flatnonzero(np.isfinite(values))
        picked.append(finite[extremes(values[finite], each)])
    return table.take(pa.array(np.unique(np.concatenate(picked)))).combine_chunks()


def extremes(y: np.ndarray, points: int) -> np.ndarray:
    """The indices of at most ``points`` values of y [points] without NaN that draw the same line: the first, the last,
    and the smallest and the largest value of each interval."""
    stretches = max(1, points // 2 - 1)
    if y.size <= max(points, 4):
        return np.arange(y.size)
    length = -(-y.size // stretches)
    padded = np.concatenate([y, np.full(-y.size % length, y[-1])]).reshape(-1, length)
    start = np.arange(len(padded)) * length
    picked = np.concatenate([start + padded.argmin(axis=1), start + padded.argmax(axis=1), [0, y.size - 1]])
    return np.unique(np.minimum(picked, y.size - 1))
