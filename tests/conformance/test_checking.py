"""The comparison with the log finds what the environment did not give."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle

import numpy as np
import pytest

from tests.conformance import log
from tests.conformance.axes import Cell
from tests.conformance.checking import faults
from tests.conformance.running import run
from tests.frameworks import FRAMEWORK

CELL = Cell("DQN", framework=FRAMEWORK.name)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cell")
    return run(CELL, directory), list(log.entries(directory))


def _faults(ran, monkeypatch, change):
    outcome, found = copy.deepcopy(ran)
    change(outcome, list(itertools.chain(*found)))
    monkeypatch.setattr(log, "entries", lambda directory: found)
    return list(faults(CELL, outcome, directory=None))


def test_a_cell_that_learns_from_what_is_logged_has_no_faults(ran, monkeypatch):
    assert _faults(ran, monkeypatch, lambda outcome, entries: None) == []


@pytest.mark.parametrize(
    ("column", "change", "fault"),
    [
        ("states", lambda column: {name: values + 1 for name, values in column.items()}, "its state is none"),
        ("next_states", lambda column: {name: values + 1 for name, values in column.items()}, "its next observation"),
        ("actions", lambda column: (column + 1) % 3, "its action is"),
        ("rewards", lambda column: column + 0.01, "its reward is"),
        ("terminated", np.logical_not, "(terminated, over) is"),
        ("over", np.logical_not, "(terminated, over) is"),
    ],
)
def test_a_row_that_differs_from_the_log_is_a_fault(ran, monkeypatch, column, change, fault):
    def change_first(outcome, entries):
        rows = next(entry for entry in entries if entry["kind"] == "rows")
        rows[column] = change(rows[column])

    (line,) = _faults(ran, monkeypatch, change_first)
    assert line.startswith(f"row 0 of a batch: {fault}")


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"is_contained": False}, "is not in the action space"),
        ({"allowed": np.zeros(3, np.int8)}, "is masked by [0 0 0]"),
    ],
)
def test_an_action_that_is_not_possible_is_a_fault(ran, monkeypatch, changed, fault):
    def change_a_step(outcome, entries):
        next(entry for entry in entries if entry["kind"] == "step").update(changed)

    (line,) = _faults(ran, monkeypatch, change_a_step)
    assert line.endswith(fault)


@pytest.mark.parametrize("name", ["steps", "episodes"])
def test_a_wrong_count_is_a_fault(ran, monkeypatch, name):
    def count_one_more(outcome, entries):
        outcome.counted[name] += 1

    (line,) = _faults(ran, monkeypatch, count_one_more)
    assert line.startswith("the run counted") and name in line


def test_an_agent_that_learns_nothing_is_a_fault(ran, monkeypatch):
    def leave_out_rows(outcome, entries):
        for entry in entries:
            entry["kind"] = "left out" if entry["kind"] == "rows" else entry["kind"]

    assert _faults(ran, monkeypatch, leave_out_rows) == ["nothing was learned"]


def test_a_refusal_after_the_first_step_is_a_fault(ran, monkeypatch):
    outcome, found = ran
    monkeypatch.setattr(log, "entries", lambda directory: found)
    lines = list(faults(CELL, dataclasses.replace(outcome, refusal="no\nand no"), directory=None))
    assert [line.split(":")[0] for line in lines] == [
        "it is refused in more than one line", "it is refused after the first step",
        "it is refused after something was learned",
    ]  # fmt: skip


def test_an_entry_that_a_killed_process_did_not_finish_is_left_out(tmp_path):
    whole = pickle.dumps({"kind": "closed", "env": 1})
    (tmp_path / "7.log").write_bytes(whole + whole[:-3])
    assert list(log.entries(tmp_path)) == [[{"kind": "closed", "env": 1}]]
