"""The page of what goes together, written from the refusals that the cells confirm."""

from __future__ import annotations

import pathlib

from tests.conformance.axes import AXES, Refusal, cells_of, known_refusals

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "what_goes_together.md"
_BEGINNING = """\
# What goes together

Some features cannot work together. Coach refuses them with one line, before the first step. This page lists what is
refused, and why.

`make conformance` tests all pairs of values in this table with {cells} short runs. A run is refused in one line, or
the agent learns from exactly what the environment has logged.

| axis | values |
|---|---|
{axes}

"Own" is the default memory of the agent. "list" is the memory of a user on the page [Memories](memories.md). "with
state" is a filter of a user that remembers the last observation.

"""


def write() -> None:
    """Write the page."""
    PAGE.write_text(text())


def text() -> str:
    """The page."""
    refusals = known_refusals()
    axes = "\n".join(f"| {axis} | {', '.join(values)} |" for axis, values in AXES.items())
    parts = [_BEGINNING.format(cells=sum(len(cells_of(framework)) for framework in AXES["framework"]), axes=axes)]
    for title, one in (("For every agent", False), ("For one agent", True)):
        chosen = [refusal for refusal in refusals if ("agent" in refusal.values) is one]
        parts.append(f"## {title}\n\n| what | the line of Coach |\n|---|---|\n")
        parts += [f"| {_shown(refusal)} | {_in_a_cell(refusal.reason)} |\n" for refusal in chosen] + ["\n"]
    return "".join(parts).rstrip("\n") + "\n"


def _shown(refusal: Refusal) -> str:
    return " + ".join(f"{value} ({axis})" for axis, value in refusal.values.items())


def _in_a_cell(reason: str) -> str:
    return reason.replace("|", "\\|").replace("<", "&lt;")
