"""``histograms.jsonl``: the distributions of a run's actions and weights, a line for each evaluation.

    {"steps": 2000, "histograms": {"agent: actions": {"low": 0.0, "high": 1.0, "counts": [12, 988]}, ...}}

The bins between ``low`` and ``high`` have equal widths.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
from typing import Any, Mapping

import numpy as np

HISTOGRAM_FILE = "histograms.jsonl"
NUM_BINS = 32
_MOST_LINES = 400
_MOST_NAMES = 60
_LONGEST_LINE = 1 << 20


def histogram(values: np.ndarray) -> dict[str, Any] | None:
    """The histogram of finite values; None without values. Whole numbers have one bin each, if they span at most
    ``NUM_BINS`` numbers."""
    values = np.asarray(values, np.float64).ravel()
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    low, high = float(values.min()), float(values.max())
    bins, edges = NUM_BINS, (low, high)
    if high - low < NUM_BINS and np.all(values == np.floor(values)):
        bins, edges = int(high - low) + 1, (low - 0.5, high + 0.5)
    counts, _ = np.histogram(values, bins=bins, range=edges)
    return {"low": low, "high": high, "counts": counts.tolist()}


def append(directory: str | os.PathLike[str], steps: int, values: Mapping[str, np.ndarray]) -> None:
    """Append a line with arrays of any shape, by name, to the file in a run's directory. May raise an ``OSError``."""
    found = {name: made for name, numbers in values.items() if (made := histogram(numbers)) is not None}
    with open(pathlib.Path(directory) / HISTOGRAM_FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps({"steps": steps, "histograms": found}) + "\n")


def read(directory: str | os.PathLike[str]) -> dict[str, list[dict[str, Any]]]:
    """The histograms by name, in the order of steps, each with its ``steps``. Damaged lines are left out. If there are
    many lines, only some are read. The result is empty without a file."""
    try:
        with open(pathlib.Path(directory) / HISTOGRAM_FILE, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    except OSError:
        return {}
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines[:: math.ceil(len(lines) / _MOST_LINES) or 1]:
        for name, one in _histograms_in(line):
            if name in found or len(found) < _MOST_NAMES:
                found.setdefault(name, []).append(one)
    return {name: sorted(several, key=lambda one: one["steps"]) for name, several in found.items()}


def _histograms_in(line: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        document = json.loads(line) if len(line) <= _LONGEST_LINE else {}
        steps, given = float(document["steps"]), dict(document["histograms"])
        read = []
        for name, one in given.items():
            counts = [float(count) for count in one["counts"]]
            numbers = {"steps": steps, "low": float(one["low"]), "high": float(one["high"])}
            if counts and all(map(math.isfinite, (*counts, *numbers.values()))):
                read.append((str(name), {**numbers, "counts": counts}))
        return read
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
