"""The verdict on a cell."""

from __future__ import annotations

import pathlib
import tempfile

import numpy as np

from tests.conformance.axes import AXES, Cell, known_refusals
from tests.conformance.checking import faults
from tests.conformance.running import COMMANDS, run


def verdict(cell: Cell) -> tuple[str, list[str]]:
    """``ran`` or ``refused``, and the faults of the cell."""
    expected = [one for one in known_refusals() if one.is_in(dict(zip(AXES, cell)))]
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory) / "first"
        outcome = run(cell, place)
        found = list(faults(cell, outcome, place))
        if outcome.refusal is None and _is_repeatable(cell):
            again = run(cell, pathlib.Path(directory) / "again")
            other = run(cell, pathlib.Path(directory) / "other", seed=2)
            if not _are_equal(outcome.weights, again.weights):
                found.append("two runs of one seed have other weights")
            if outcome.updates and _are_equal(outcome.weights, other.weights):
                found.append("runs of two seeds have equal weights")
    if outcome.refusal is None:
        return "ran", found + [f"it ran, and should be refused: {one.reason}" for one in expected]
    if not expected:
        found.append(f"it is refused, which no listed refusal explains: {outcome.refusal}")
    return "refused", found


def _is_repeatable(cell: Cell) -> bool:
    return cell.extra == "two seeds" and cell.way != "3 copies async" and cell.way not in COMMANDS


def _are_equal(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def command_of(cell: Cell) -> str:
    """The command that repeats a cell."""
    return f"python -m tests.conformance run '{cell}'"
