"""The page of what goes together, written from the refusals that the cells confirm."""

from __future__ import annotations

import pathlib
import re
from typing import Any

from tests.conformance.axes import (
    ALONE,
    AXES,
    FROM_FILES,
    TRIED_FOR_ALL,
    Refusal,
    cells_of,
    known_refusals,
    usual,
)

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "what_goes_together.md"
_NAME = re.compile(r"\b\w+(?:Agent|Buffer|Head|Memory|Replay|Space)\b|^[\w+-]+(?= is for )")
_LEVEL = re.compile(r"tests\.conformance\.environment:Logged|your environment")
_BEGINNING = """\
# Features that work together

Look up whether two features work together. Coach refuses a run with features that do not work together: it prints one
line and ends before the first step. Exception: the value `export and act` can be refused at the export, after the run.
The last two tables list the refused combinations and the line that Coach prints.

The first table lists the features. An axis is a kind of feature, and a value is one feature of this kind:

| axis | values |
|---|---|
{axes}

| value | meaning |
|---|---|
| memory: own | the default memory of the agent |
| memory: ExperienceReplay and the other names | Coach's [memories](memories.md) |
| memory: list | a user's memory: the example of the page [Memories](memories.md#your-own-memory) |
| filters: normalisation, stack | `ObservationNormalizationFilter`, and `ObservationStackingFilter` of 3 observations |
| filters: with state | a user's filter that remembers the last observation |
| actions: Discrete with start | a `Discrete` space with actions from 5 to 7 |
| actions: one-sided Box | a `Box` with lower bounds of 0 and no upper bounds |
| actions: masked | discrete actions with an action mask |
| observations: Dict | a dictionary of vectors. Among them are `desired_goal`, `achieved_goal`, `measurements` and \
`command` |
| observations: Discrete, Tuple | a `Discrete` space, and a `Tuple` of a `Discrete` space and a vector |
| way: 3 copies | [several copies](several_environments.md) of the environment, with this vectorization |
| way: compiled | a [compiled loop](compiled_loops.md) |
| way: -n 2, -dc -n 2 | two [workers](distributed.md), with these flags |
| way: own loop | [`make_agent`](own_loop.md), with `act` and `observe` |
| way: two players | [two agents in one environment](several_agents.md) |
| way: recorded data | the agent learns from recorded data. In [your own loop](own_loop.md#recorded-data), it imports \
recorded steps. {from_files}, and all agents with a callback, learn in a [`BatchRLGraphManager`](batch_rl.md) |
| extra: callback, evaluation | a [callback](callbacks.md) that counts steps, episodes and updates; evaluations during \
training |
| extra: kill and resume | the run is killed and resumed |
| extra: export and act | the policy is exported, and the exported policy acts |
| extra: two seeds | two runs with different seeds end with different weights |

`make conformance` (JAX and TensorFlow), `make torch` and `make mxnet` together test every pair of values in {cells}
short runs. Either Coach refuses the run, or the agent learns from exactly the data that the environment has logged.
Other tests cover the agents {alone}.

In the last two tables, each row lists values of one axis or of several axes. Coach refuses a run that has, for every
axis of the row, one of the listed values. A value in quotation marks contains a comma. The message is an example, with
the names of the first agent and the first values of the row.

Each row was tested with the usual values of the agent on all other axes. The rows for every agent were tested with
{tried}. These are the usual values:

| axis | usual value | other usual values |
|---|---|---|
{usual}
"""


def write() -> None:
    """Write the page."""
    PAGE.write_text(text())


def text() -> str:
    """The page."""
    refusals = known_refusals()
    axes = "\n".join(f"| {axis} | {_listed(values)} |" for axis, values in AXES.items())
    cells = sum(len(cells_of(framework)) for framework in AXES["framework"])
    usual_values = "\n".join(_usual_row(axis) for axis in AXES if axis != "agent")
    names = {"alone": ALONE, "from_files": FROM_FILES, "tried": TRIED_FOR_ALL}
    joined = {name: _joined_names(one) for name, one in names.items()}
    parts = [_BEGINNING.format(cells=cells, axes=axes, usual=usual_values, **joined)]
    for title, heads, chosen in (
        ("For every agent", "", [one for one in refusals if "agent" not in one.values]),
        ("For some agents", "| agents ", [one for one in refusals if "agent" in one.values]),
    ):
        parts.append(f"\n## {title}\n\n{heads}| values | message of Coach |\n{'|---' if heads else ''}|---|---|\n")
        parts += [f"{row}\n" for row in rows(chosen)]
    return "".join(parts)


def _usual_row(axis: str) -> str:
    """The row of an axis in the table of usual values: the most frequent value, then the others with their agents."""
    agents: dict[str, list[str]] = {}
    for agent in AXES["agent"]:
        agents.setdefault(getattr(usual(agent), axis), []).append(agent)
    most, *others = sorted(agents, key=lambda value: -len(agents[value]))
    shown = "; ".join(f"{_listed((value,))} for {_joined_names(tuple(agents[value]))}" for value in others)
    return f"| {axis} | {_listed((most,))} | {shown or '–'} |"


_Row = tuple[dict[str, tuple[str, ...]], str]


def _joined_names(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def rows(refusals: list[Refusal]) -> list[str]:
    """Rows of a table. Refusals with the same reason that differ in one axis share a row."""
    joined: list[_Row] = [
        ({axis: (value,) for axis, value in one.values.items()}, _LEVEL.sub("The environment", one.reason))
        for one in refusals
    ]
    for axis in reversed(AXES):
        joined = _joined(joined, axis)
    return [_row(values, reason) for values, reason in joined]


def _joined(rows: list[_Row], axis: str) -> list[_Row]:
    groups: dict[Any, list[_Row]] = {}
    for values, reason in rows:
        others = tuple((name, value) for name, value in values.items() if name != axis)
        groups.setdefault((others, axis in values, _NAME.sub("", reason)), []).append((values, reason))
    joined: list[_Row] = []
    for same in groups.values():
        values, reason = same[0]
        chosen = dict.fromkeys(value for one, _ in same for value in one.get(axis, ()))
        joined.append(({**values, axis: tuple(chosen)} if chosen else values, reason))
    return joined


def _row(values: dict[str, tuple[str, ...]], reason: str) -> str:
    agents = [_listed(values["agent"])] if "agent" in values else []
    shown = "; ".join(f"{axis}: {_listed(chosen)}" for axis, chosen in values.items() if axis != "agent")
    reason = reason.replace("|", "\\|").replace("<", "&lt;")
    return "".join(f"| {cell} " for cell in (*agents, shown or "all", reason)) + "|"


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(f"{value!r}" if "," in value else value for value in values)
