"""Search for values that do not go together: each refused cell is made as usual as it can be while it is refused."""

from __future__ import annotations

import pathlib
import tempfile

from tests.conformance.axes import AXES, Cell, Refusal, known_refusals, running_cells, usual, write_refusals
from tests.conformance.forks import results
from tests.conformance.running import run

_AGENTS = ("DQN", "DDPG", "PPO")  # one of them takes whatever any agent takes


def find(workers: int) -> None:
    """Look for refusals that are not known, until all cells of the array can run, and write each of them down."""
    refusals = known_refusals()
    while True:
        before = len(refusals)
        cells = dict.fromkeys(cell._replace(framework="jax", extra="none") for cell in running_cells(refusals))
        unknown = (cell for cell in cells if not any(one.is_in(dict(zip(AXES, cell))) for one in refusals))
        for cell, found in results(_refusal_of, unknown, workers):
            if isinstance(found, str):
                print(f"{cell}\n{found}", flush=True)
            elif found is not None and found.values not in [one.values for one in refusals]:
                refusals.append(found)
                write_refusals(refusals)
                print(f"{dict(found.values)}: {found.reason}", flush=True)
        print(f"{len(cells)} cells, {len(refusals) - before} new refusals", flush=True)
        if len(refusals) == before:
            return


def _refusal_of(cell: Cell) -> Refusal | None:
    reason = _reason(cell)
    if reason is None:
        return None
    for axis in reversed(AXES):
        if axis == "agent":
            continue
        plainer = cell._replace(**{axis: getattr(usual(cell.agent), axis)})
        if plainer != cell and (found := _reason(plainer)) is not None:
            cell, reason = plainer, found
    values = {axis: value for axis, value in zip(AXES, cell) if value != getattr(usual(cell.agent), axis)}
    others = [usual(agent)._replace(**values) for agent in _AGENTS if agent != cell.agent]
    if values and all(_reason(other) is not None for other in others):
        return Refusal(values, reason)
    return Refusal({"agent": cell.agent, **values}, reason)


def _reason(cell: Cell) -> str | None:
    with tempfile.TemporaryDirectory() as directory:
        return run(cell, pathlib.Path(directory), is_played=False).refusal
