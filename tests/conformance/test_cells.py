"""The covering array covers, and a tenth of its cells holds; ``make conformance`` runs all of them."""

from __future__ import annotations

import hashlib
import pathlib

import pytest

import rl_coach
from tests.conformance.axes import Cell, Refusal, cells_of, known_refusals, refused_cell, running_cells, uncovered
from tests.conformance.cells import command_of, verdict
from tests.conformance.page import PAGE, text
from tests.conformance.running import COMMANDS
from tests.frameworks import FRAMEWORK

_SLOW = ("3 copies async", *COMMANDS)
_MOST = 40  # a cell takes a second of one processor


def _chosen(cells: list[Cell]) -> list[Cell]:
    """A tenth, which changes with the code."""
    code = hashlib.sha256()
    for path in sorted(pathlib.Path(rl_coach.__path__[0]).rglob("*.py")):
        code.update(path.read_bytes())
    cells = sorted(cells, key=lambda cell: hashlib.sha256(code.digest() + str(cell).encode()).digest())
    return cells[: min(len(cells) // 10, _MOST)]


@pytest.mark.slow
@pytest.mark.parametrize("cell", _chosen([cell for cell in cells_of(FRAMEWORK.name) if cell.way not in _SLOW]), ids=str)
def test_a_cell_is_refused_in_one_line_or_learns_from_what_is_logged(cell):
    what, faults = verdict(cell)
    assert not faults, f"{what}; repeat it with: {command_of(cell)}"


def test_every_pair_is_in_a_cell_or_refused():
    refusals = known_refusals()
    assert list(uncovered(running_cells(refusals), refusals)) == []


def test_a_pair_that_is_left_out_is_found():
    cells = [cell for cell in running_cells([]) if (cell.agent, cell.memory) != ("DQN", "list")]
    assert {"agent": "DQN", "memory": "list"} in uncovered(cells, [])


def test_no_cell_that_runs_has_refused_values():
    refusal = Refusal({"agent": "SAC", "actions": "Discrete"}, "")
    assert not any(cell.agent == "SAC" and cell.actions == "Discrete" for cell in running_cells([refusal]))
    assert refused_cell(refusal)[:4] == ("SAC", "own", "jax", "Discrete")


def test_the_page_is_that_of_the_refusals():
    assert PAGE.read_text() == text()
