"""The covering array covers, and a tenth of its cells holds; ``make conformance`` runs all of them."""

from __future__ import annotations

import hashlib
import pathlib

import pytest

import rl_coach
from tests.conformance.axes import (
    Cell,
    Refusal,
    cells_of,
    known_cells,
    known_refusals,
    refused_cell,
    running_cells,
    uncovered,
)
from tests.conformance.cells import command_of, verdict
from tests.conformance.finding import lasting_reason
from tests.conformance.page import PAGE, rows, text
from tests.conformance.running import COMMANDS
from tests.frameworks import FRAMEWORK

_SLOW = ("3 copies async", *COMMANDS)
_MOST = 40  # most cells take a second of one processor, and none takes ten


def _chosen() -> list[Cell]:
    """A tenth of the cells that ran or were refused when the refusals were found last. It changes with the code."""
    known = {*known_cells(), *map(refused_cell, known_refusals())}
    cells = [cell for cell in cells_of(FRAMEWORK.name) if cell in known and cell.way not in _SLOW]
    code = hashlib.sha256()
    for path in sorted(pathlib.Path(rl_coach.__path__[0]).rglob("*.py")):
        code.update(path.read_bytes())
    cells = sorted(cells, key=lambda cell: hashlib.sha256(code.digest() + str(cell).encode()).digest())
    return cells[: min(len(cells) // 10, _MOST)]


@pytest.mark.parametrize("cell", _chosen(), ids=str)
def test_a_cell_is_refused_in_one_line_or_learns_from_what_is_logged(cell):
    what, faults = verdict(cell)
    assert not faults, f"{what}; repeat it with: {command_of(cell)}"


def test_every_pair_is_in_a_cell_or_refused():
    refusals = known_refusals()
    assert list(uncovered(running_cells(refusals, known_cells()), refusals)) == []


def test_cells_are_kept_unless_they_are_refused():
    kept = running_cells([], [])[:30]
    refused = Refusal({"agent": kept[0].agent, "memory": kept[0].memory}, "why")
    cells = running_cells([refused], kept)
    assert kept[0] not in cells and set(kept[1:]) <= set(cells)
    assert list(uncovered(cells, [refused])) == []


def test_a_pair_that_is_left_out_is_found():
    cells = [cell for cell in running_cells([], []) if (cell.agent, cell.memory) != ("DQN", "list")]
    assert {"agent": "DQN", "memory": "list"} in uncovered(cells, [])


def test_no_cell_that_runs_has_refused_values():
    refusal = Refusal({"agent": "SAC", "actions": "Discrete"}, "")
    assert not any(cell.agent == "SAC" and cell.actions == "Discrete" for cell in running_cells([refusal], []))
    assert refused_cell(refusal)[:4] == ("SAC", "own", "jax", "Discrete")


@pytest.mark.parametrize(
    ("listed", "fault"),
    [
        (Refusal({"agent": "DQN", "memory": "list"}, "why"), "it is refused, which no listed refusal explains: agent"),
        (Refusal({"agent": "PPO", "memory": "list"}, "why"), None),
    ],
)
def test_a_refusal_that_is_not_listed_is_a_fault(listed, fault, monkeypatch):
    monkeypatch.setattr("tests.conformance.cells.known_refusals", lambda: [listed])
    what, found = verdict(Cell("PPO", memory="list", framework=FRAMEWORK.name))
    assert what == "refused" and [one.startswith(fault or "") for one in found] == [True] * (fault is not None)


def test_a_listed_refusal_that_runs_is_a_fault(monkeypatch):
    listed = Refusal({"agent": "DQN", "memory": "list"}, "why")
    monkeypatch.setattr("tests.conformance.cells.known_refusals", lambda: [listed])
    assert verdict(Cell("DQN", memory="list", framework=FRAMEWORK.name)) == (
        "ran", ["it ran, and should be refused: why"],
    )  # fmt: skip


def test_refusals_with_one_reason_share_a_row_of_the_page():
    refusals = [
        Refusal({"agent": agent, "memory": memory}, f"needs more than {memory}Memory")
        for agent in ("PPO", "A2C")
        for memory in ("list", "own")
    ]
    assert rows(refusals) == ["| PPO, A2C | memory: list, own | needs more than listMemory |"]


def test_the_page_is_that_of_the_refusals():
    assert PAGE.read_text() == text()


def test_a_reason_lasts_if_the_observations_have_what_the_memory_needs():
    cell = Cell("DQN", memory="EpisodicHRLHindsightExperienceReplay", framework=FRAMEWORK.name)
    reason = lasting_reason(cell, ("agent", "memory"))
    assert "stores 'achieved_goal' of shape (2,) as actions" in str(reason)


def test_the_page_shows_the_usual_values_of_each_axis():
    table = text().partition("| axis | usual value |")[2].partition("\n\n")[0]
    assert "| memory | own | EpisodicExperienceReplay for BCQ |" in table
    assert "| observations | vector | Dict for CIL and TD3GoalBased; 'image, channels last' for DrQv2 |" in table
    assert "| extra | none | – |" in table
