"""The tutorials' notebooks run from their first cell to their last, and show what they promise."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

DIRECTORY = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tutorials"
NOTEBOOKS = sorted(DIRECTORY.glob("*.ipynb"))


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """The name of a kernel that runs on this interpreter, whatever kernels the machine has."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    command = [sys.executable, "-m", "ipykernel", "install", "--prefix", str(tmp_path / "prefix"), "--name", "tested"]
    subprocess.run(command, check=True, capture_output=True)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "prefix" / "share" / "jupyter"))
    monkeypatch.setenv("PYTHONPATH", str(DIRECTORY.parents[1]))
    return "tested"


def outputs(notebook: nbformat.NotebookNode) -> str:
    """All that the cells show, as HTML and text."""
    shown = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown += [output.get("text", ""), *map(str, output.get("data", {}).values())]
    return "\n".join(shown)


def shortened(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """With a quarter of the steps where ten runs are compared: it shows the same things after them."""
    for cell in notebook.cells:
        cell.source = cell.source.replace("EnvironmentSteps(16384)", "EnvironmentSteps(4096)")
    return notebook


def test_there_are_four():
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_stored_without_outputs(path):
    assert outputs(nbformat.read(path, as_version=4)) == ""


@pytest.mark.parametrize(
    ("name", "promised"),
    [
        ("train_evaluate_deploy", ["<svg", "finished", "confidence_low"]),
        ("your_own_environment", ["<svg", "thermostat_level.py:Thermostat"]),
        ("compare_settings", ["<svg", "5 seeds", "twenty - two: ", "95% interval"]),
        (
            "several_agents",
            ["<svg", "40.0, 40.0", "follower {0: 0, 1: 1}", "leader {0: 0, 1: 1}"],
        ),
    ],
)
def test_runs_and_shows(name, promised, kernel, tmp_path):
    notebook = shortened(nbformat.read(DIRECTORY / f"{name}.ipynb", as_version=4))
    NotebookClient(notebook, timeout=300, kernel_name=kernel, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = outputs(notebook)
    for text in promised:
        assert text in shown, text
    for progress in ("| step", "building the graph", str(tmp_path)):
        assert progress not in shown, progress
