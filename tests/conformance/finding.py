"""Search for values that do not go together: each refused cell is made as usual as it can be while it is refused."""

from __future__ import annotations

import pathlib
import tempfile
from typing import Collection

from tests.conformance.axes import (
    AXES,
    TRIED_FOR_ALL,
    Cell,
    Refusal,
    known_cells,
    known_refusals,
    refused_cell,
    running_cells,
    usual,
    write_cells,
    write_refusals,
)
from tests.conformance.forks import results
from tests.conformance.running import COMMANDS, run

_SEARCHED = [axis for axis in AXES if axis not in ("agent", "framework")]
_RICHEST = {"memory": "EpisodicExperienceReplay", "observations": "Dict"}


def find(framework: str, workers: int, agent: str | None = None) -> None:
    """Find the refusals of a framework, until all cells of the array can run, and write them down.

    A refusal names the framework unless it holds on JAX: find the refusals of JAX first. Listed refusals that do not
    hold any more are left out.

    :param agent: look at this agent only, such as a new one
    """
    known = known_refusals()
    again = [one for one in known if _framework_of(one) == framework and agent in (None, one.values.get("agent"))]
    refusals = [one for one in known if one not in again]
    for one, found in results(_again, again, workers):
        refusals += [] if isinstance(found, str) else found
        if isinstance(found, str) or not found:
            print(f"no longer refused: {dict(one.values)} {found or ''}", flush=True)
    tried: set[Cell] = set()
    while True:
        before = len(refusals)
        cells = [cell for cell in _cells(framework, refusals) if agent in (None, cell.agent)]
        unknown = (cell for cell in cells if cell not in tried and not _is_known(cell, refusals))
        for cell, found in results(_refusals_of, unknown, workers):
            tried.add(cell)
            if isinstance(found, str):
                print(f"{cell}\n{found}", flush=True)
                continue
            for refusal in found:
                if not any(one.values.items() <= refusal.values.items() for one in refusals):
                    refusals.append(refusal)
                    print(f"{dict(refusal.values)}: {refusal.reason}", flush=True)
            write_refusals(refusals)
        print(f"{len(cells)} cells, {len(refusals) - before} new refusals", flush=True)
        if len(refusals) == before:
            write_cells(running_cells(refusals, known_cells()))
            return


def _framework_of(refusal: Refusal) -> str:
    return refusal.values.get("framework", "jax")


def _again(refusal: Refusal) -> list[Refusal]:
    """The refusal with the line of today; empty if its values are not refused today."""
    reason = lasting_reason(refused_cell(refusal), refusal.values)
    return [] if reason is None else [Refusal(refusal.values, reason)]


def _cells(framework: str, refusals: list[Refusal]) -> list[Cell]:
    """The cells of the framework. JAX gets the cells of all frameworks, because most refusals depend on none."""
    cells = running_cells(refusals, known_cells())
    if framework == "jax":
        return list(dict.fromkeys(cell._replace(framework="jax") for cell in cells))
    return [cell for cell in cells if cell.framework == framework]


def _is_known(cell: Cell, refusals: list[Refusal]) -> bool:
    return any(one.is_in(dict(zip(AXES, cell))) for one in refusals)


def _refusals_of(cell: Cell) -> list[Refusal]:
    """The values that have the cell refused, and the other values of their last axis that are refused too."""
    if _reason(cell) is None:
        return []
    for axis in reversed(_SEARCHED):
        plainer = cell._replace(**{axis: getattr(usual(cell.agent), axis)})
        if plainer != cell and _reason(plainer) is not None:
            cell = plainer
    names = [axis for axis in AXES if axis != "agent" and getattr(cell, axis) != getattr(usual(cell.agent), axis)]
    searched = [axis for axis in names if axis in _SEARCHED]
    varied = [axis for axis in searched if axis not in _RICHEST] or searched
    siblings = (cell._replace(**{axis: value}) for axis in varied[-1:] for value in AXES[axis])
    return [_refusal(cell, names), *(_refusal(one, names) for one in siblings if one != cell and _is_as_refused(one))]


def _richer(cell: Cell, names: Collection[str]) -> list[tuple[str, Cell]]:
    return [(axis, cell._replace(**{axis: value})) for axis, value in _RICHEST.items() if axis not in names]


def _is_as_refused(cell: Cell) -> bool:
    return cell != usual(cell.agent) and cell.extra != "export and act" and _reason(cell) is not None


def _refusal(cell: Cell, names: list[str]) -> Refusal:
    """The refusal with the values of these axes, of the cell's agent or of every agent."""
    for axis, richer in _richer(cell, names):  # a usual value counts too, if a cell with more runs
        if names and _reason(richer) is None:
            names = [name for name in AXES if name in [*names, axis]]
    values, reason = {axis: getattr(cell, axis) for axis in names}, lasting_reason(cell, names)
    assert reason is not None
    others = [usual(agent)._replace(**values) for agent in TRIED_FOR_ALL]
    others += [one for other in others for _, one in _richer(other, names)]
    if values and all(_reason(one) is not None for one in others):
        return Refusal(values, reason)
    return Refusal({"agent": cell.agent, **values}, reason)


def lasting_reason(cell: Cell, names: Collection[str]) -> str | None:
    """The line that refuses a cell, if possible with a richer value of an axis that its refusal does not name.

    The line of the cell itself may be about a usual value, for example about an observation that vectors lack and a
    dictionary has.

    :param names: the axes of the refusal
    """
    for axis, richer in reversed(_richer(cell, names)):
        plain = usual(cell.agent)._replace(framework=cell.framework, **{axis: getattr(richer, axis)})
        if (reason := _reason(richer)) is not None and _reason(plain) is None:
            return reason
    return _reason(cell)


def _reason(cell: Cell) -> str | None:
    is_played = cell.extra == "export and act" and cell.way not in COMMANDS  # its refusal comes when a run has ended
    with tempfile.TemporaryDirectory() as directory:
        refusal = run(cell, pathlib.Path(directory), is_played=is_played).refusal
        return None if refusal is None else refusal.replace(directory, "DIRECTORY")
