"""The signals of one run with several workers, merged as if one process had acted."""

from __future__ import annotations

import functools
from typing import Sequence

import numpy as np

from rl_coach.runs.signal_file import (
    EPISODE,
    TOTAL_STEPS,
    TRAINING_ITERATION,
    WALL_CLOCK,
    WALL_CLOCK_MINUTES,
    SignalFile,
)

_COUNTS = (EPISODE, TRAINING_ITERATION, TOTAL_STEPS)
_ORDERED_BY = (WALL_CLOCK_MINUTES, WALL_CLOCK, TOTAL_STEPS)


class RunSignals:
    """The columns of a run: the rows of all its workers in the order of time.

    Each worker counts its own episodes, updates and steps. Here these counts are sums over the run's workers so far. A
    worker that only evaluates adds nothing to them. The columns do not change when a CSV grows.

    :param files: the signals of each worker
    :param trains: for each worker True if it trains; empty if all train
    :ivar names: the names of all columns. The first column is the index. Empty before a header has been written
    """

    def __init__(self, files: Sequence[SignalFile], trains: Sequence[bool] = ()):
        written = [(place, file.table) for place, file in enumerate(files) if file.table is not None]
        self.names = list(dict.fromkeys(name for file in files for name in file.names))
        self._places = [place for place, _ in written]
        self._tables = [table for _, table in written]
        self._trains = [not trains or trains[place] for place in self._places]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(table.num_rows for table in self._tables)

    def column(self, name: str) -> np.ndarray:
        """The column ``name`` as float64 [rows]; NaN for workers without this column."""
        parts = self._parts(name)
        if len(parts) < 2:
            return parts[0] if parts else np.empty(0)
        if name in _COUNTS:
            grown = [np.diff(_largest_so_far(part), prepend=0.0) * trains for part, trains in zip(parts, self._trains)]
            return np.cumsum(np.concatenate(grown)[self._order])
        return np.concatenate(parts)[self._order]

    def workers(self) -> np.ndarray:
        """The index of each row's worker in ``files``, int [rows]."""
        places = [np.full(table.num_rows, place) for place, table in zip(self._places, self._tables)]
        return np.concatenate([np.empty(0, int), *places])[self._order]

    def _parts(self, name: str) -> list[np.ndarray]:
        return [
            table.column(name).to_numpy() if name in table.column_names else np.full(table.num_rows, np.nan)
            for table in self._tables
        ]

    @functools.cached_property
    def _order(self) -> np.ndarray:
        """Indices that sort the rows of all workers by time, by the first time column that all workers have."""
        common = set.intersection(*(set(table.column_names) for table in self._tables)) if self._tables else set()
        name = next((name for name in _ORDERED_BY if name in common), "")
        times = [_largest_so_far(part) for part in self._parts(name)] if name else []
        times = times or [np.arange(table.num_rows) for table in self._tables]
        return np.argsort(np.concatenate([np.empty(0), *times]), kind="stable")


def _largest_so_far(values: np.ndarray) -> np.ndarray:
    """The largest value up to each row. Counts and times never decrease, so this value also replaces missing values."""
    return np.fmax.accumulate(np.append(0.0, values))[1:]
