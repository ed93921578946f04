"""The axes, and the cells of the covering array: every pair of two values that go together is in at least one cell."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Iterator, Mapping, NamedTuple

from allpairspy import AllPairs

from rl_coach.agents.algorithms import known_algorithms

ALONE = ("Composite", "HAC", "Human", "MAPPO", "QMIX", "VDN")
"""A group of agents, a hierarchy, a person at the keyboard, and the agents of a team. They are in no cell."""
AXES: dict[str, tuple[str, ...]] = {
    "agent": tuple(one.names[0] for one in known_algorithms() if one.names[0] not in ALONE),
    "memory": (
        "own", "ExperienceReplay", "PrioritizedExperienceReplay", "DemonstrationReplay", "BalancedExperienceReplay",
        "EpisodicExperienceReplay", "EpisodicHindsightExperienceReplay", "EpisodicHRLHindsightExperienceReplay",
        "SingleEpisodeBuffer", "list",
    ),
    "framework": ("jax", "tensorflow", "mxnet", "torch"),
    "actions": (
        "Discrete", "Discrete with start", "MultiDiscrete", "MultiBinary", "Box", "Box with two axes", "one-sided Box",
        "unbounded Box", "masked",
    ),
    "observations": (
        "vector", "Dict", "image, channels last", "image, channels first", "stacked frames", "Discrete", "Tuple",
    ),
    "way": (
        "one environment", "3 copies sync", "3 copies native", "3 copies async", "own loop", "-n 2", "-dc -n 2",
        "compiled", "two players", "recorded data",
    ),
    "filters": ("none", "normalisation", "stack", "with state"),
    "extra": ("none", "callback", "evaluation", "kill and resume", "export and act", "two seeds"),
}  # fmt: skip

_CONTINUOUS = (
    "CQL", "DDPG", "DrQv2", "IQL", "NAF", "SAC", "TD3", "TD3+BC", "TD3Exploration", "TD3GoalBased",
    "TD3IntrinsicReward", "Random", "AWAC", "CIL", "FastTD3",
)  # fmt: skip
FROM_DATA = ("AWAC", "BCQ", "CQL", "IQL", "DiscreteCQL", "TD3+BC", "BC", "CIL", "MARWIL", "DecisionTransformer")
_OBSERVATIONS = {"DrQv2": "image, channels last", "TD3GoalBased": "Dict", "CIL": "Dict"}
FROM_FILES = ("AWAC", "BCQ", "IQL", "TD3+BC")
"""Agents that need a data file. The other agents of ``FROM_DATA`` import recorded steps."""
TRIED_FOR_ALL = ("DQN", "DDPG", "PPO")
"""One of these agents accepts whatever any agent accepts."""
_REFUSED = pathlib.Path(__file__).with_name("refused.json")
_CELLS = pathlib.Path(__file__).with_name("cells.json")


class Cell(NamedTuple):
    """A value of each axis. Its text, the values with ``/`` between them, names it on the command line."""

    agent: str = "DQN"
    memory: str = "own"
    framework: str = "jax"
    actions: str = "Discrete"
    observations: str = "vector"
    way: str = "one environment"
    filters: str = "none"
    extra: str = "none"

    def __str__(self) -> str:
        return "/".join(self)

    @classmethod
    def of(cls, text: str) -> Cell:
        """The cell that ``text`` names."""
        return cls(*text.split("/"))


def usual(agent: str) -> Cell:
    """The cell of an agent that has nothing unusual."""
    return Cell(
        agent,
        memory="EpisodicExperienceReplay" if agent == "BCQ" else "own",
        actions="Box" if agent in _CONTINUOUS else "Discrete",
        way="recorded data" if agent in FROM_DATA else "one environment",
        observations=_OBSERVATIONS.get(agent, "vector"),
    )


class Refusal(NamedTuple):
    """Values that do not go together.

    :param values: by their axes, two as a rule
    :param reason: the line that refuses them
    """

    values: Mapping[str, str]
    reason: str

    def is_in(self, cell: Mapping[str, str]) -> bool:
        """True if a cell, or the beginning of one, has all of the values."""
        return self.values.items() <= cell.items()


def known_refusals() -> list[Refusal]:
    """The refusals that were found last; ``python -m tests.conformance find`` finds them."""
    return [Refusal(one["values"], one["reason"]) for one in json.loads(_REFUSED.read_text())]


def write_refusals(refusals: list[Refusal]) -> None:
    """Keep them for ``known_refusals``."""
    order = [(axis, value) for axis, values in AXES.items() for value in values]
    refusals = sorted(refusals, key=lambda one: [order.index(value) for value in one.values.items()])
    plain = [{"values": dict(one.values), "reason": one.reason} for one in refusals]
    lines = ",\n".join(json.dumps(one) for one in plain)
    _REFUSED.write_text(f"[\n{lines}\n]\n" if plain else "[]\n")


def refused_cell(refusal: Refusal) -> Cell:
    """A cell that has the values of a refusal and is usual otherwise."""
    agent = refusal.values.get("agent") or _agent_for(refusal.values)
    return usual(agent)._replace(**dict(refusal.values))


def _agent_for(values: Mapping[str, str]) -> str:
    return "DDPG" if "Box" in values.get("actions", "") else "DQN"


def known_cells() -> list[Cell]:
    """The cells that ran when the refusals were found last."""
    return list(map(Cell.of, json.loads(_CELLS.read_text())))


def write_cells(cells: list[Cell]) -> None:
    """Keep them for ``known_cells``."""
    _CELLS.write_text(json.dumps(list(map(str, cells)), indent=0) + "\n")


def running_cells(refusals: list[Refusal], kept: list[Cell]) -> list[Cell]:
    """Cells that contain every pair of values at least once, unless it is refused.

    :param kept: cells that stay unless they are refused. Without them, one more refusal would change all cells.
    """

    def may_run(values: list[Any]) -> bool:
        return not _is_refused(dict(zip(AXES, values)), refusals)

    cells = [cell for cell in kept if not _is_refused(cell._asdict(), refusals)]
    cells += [
        Cell(*values)
        for values in AllPairs(list(AXES.values()), filter_func=may_run, previously_tested=list(map(list, cells)))
    ]
    # with many refusals the generator leaves pairs out
    left = list(uncovered(cells, refusals))
    while left:
        values = left.pop(0)
        for pair in list(left):
            joined = {**values, **pair}
            if values.items() <= joined.items() and _filled(joined, refusals) is not None:
                values = joined
                left.remove(pair)
        if (cell := _filled(values, refusals)) is not None:
            cells.append(cell)
    return cells


def _is_refused(values: Mapping[str, str], refusals: list[Refusal]) -> bool:
    return any(one.is_in(values) for one in refusals)


def _filled(values: dict[str, str], refusals: list[Refusal]) -> Cell | None:
    """A cell with these values, as usual as it can be; None if every cell is refused."""
    if _is_refused(values, refusals):
        return None
    missing = next((axis for axis in AXES if axis not in values), None)
    if missing is None:
        return Cell(**values)
    first = [getattr(usual(values["agent"]), missing)] if missing != "agent" else []
    for value in dict.fromkeys([*first, *AXES[missing]]):
        if (cell := _filled({**values, missing: value}, refusals)) is not None:
            return cell
    return None


def cells_of(framework: str) -> list[Cell]:
    """All cells of a framework: the cells that run, then one for each refusal."""
    refusals = known_refusals()
    cells = [*running_cells(refusals, known_cells()), *map(refused_cell, refusals)]
    return list(dict.fromkeys(cell for cell in cells if cell.framework == framework))


def uncovered(cells: list[Cell], refusals: list[Refusal]) -> Iterator[dict[str, str]]:
    """The pairs that are in none of the cells, and that no refusal of two values explains."""
    axes = list(AXES)
    seen = {frozenset(pair) for cell in cells for pair in _pairs(list(zip(axes, cell)))}
    for number, one in enumerate(axes):
        for other in axes[number + 1 :]:
            for value in AXES[one]:
                for other_value in AXES[other]:
                    pair = {one: value, other: other_value}
                    if frozenset(pair.items()) not in seen and not any(refusal.is_in(pair) for refusal in refusals):
                        yield pair


def _pairs(values: list[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for number, one in enumerate(values):
        for other in values[number + 1 :]:
            yield one, other
