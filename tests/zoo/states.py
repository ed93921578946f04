"""All that a run holds or has left behind, to compare two runs to the last bit."""

from __future__ import annotations

import csv
import pathlib
from typing import Any

import numpy as np

from rl_coach.checkpoint import find_checkpoint, load_checkpoint
from rl_coach.graph_managers.graph_manager import GraphManager


def weights_of(manager: GraphManager) -> list[np.ndarray]:
    """All numbers of the agent's networks, targets and optimizers included."""
    states = [network.state for network in manager.get_agent().networks.values()]
    return [np.array(array) for state in states for group in state.groups() for array in state.arrays(group)]


def final_state(directory: pathlib.Path) -> dict[str, Any]:
    """Leaves of the newest checkpoint by their paths, without the clock."""
    state = load_checkpoint(find_checkpoint(directory))[0]
    # Python's own generator is seeded for the user's code, but libraries draw from it while they compile
    del state["python_random"]
    return {path: leaf for path, leaf in leaves(state) if not path.endswith("/seconds")}


def leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Each leaf of nested dicts and lists with its path; in the open rows of a CSV, not the time of day."""
    if isinstance(value, dict):
        if "names" in value and "values" in value:
            value = {n: v for n, v in zip(value["names"], value["values"]) if n != "Wall-Clock Time"}
        return [leaf for key, item in value.items() for leaf in leaves(item, f"{path}/{key}")]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, f"{path}/{index}")]
    return [(path, value)]


def samples_and_leaves(manager: GraphManager) -> dict[str, Any]:
    """Leaves of the levels by their paths, and the samples of the open row by their signals: these are in pieces, which
    depend on how the steps of a compiled loop were divided into calls."""
    signals = manager.get_agent().signals
    samples = {signal.name: signal.flat() for signal in signals.episode_signals + signals.step_signals if signal.values}
    found = {path: leaf for path, leaf in leaves(manager.get_state()["levels"]) if "/samples/" not in path}
    return {**found, **samples}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The paths of leaves that are not equal in type and to the last bit."""
    return [path for path in sorted({*one, *other}) if not _same(one.get(path, "absent"), other.get(path, "absent"))]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return type(one) is type(other) and repr(one) == repr(other)


def rows(directory: pathlib.Path) -> list[dict[str, str]]:
    """The agent's CSV without the wall clock."""
    (path,) = directory.glob("*.csv")
    return rows_of(path)


def rows_of(path: pathlib.Path) -> list[dict[str, str]]:
    """One CSV without the wall clock."""
    with open(path, encoding="utf-8", newline="") as file:
        return [{name: cell for name, cell in row.items() if name != "Wall-Clock Time"} for row in csv.DictReader(file)]
