"""Tables of the algorithms' pages show the defaults of the classes."""

from __future__ import annotations

import ast
import pathlib
import re
from enum import Enum
from typing import Any, Callable, Iterator, Mapping

import pytest

from rl_coach.agents.algorithms import known_algorithms
from rl_coach.agents.bootstrapped_dqn_agent import BootstrappedDQNAgentParameters
from rl_coach.agents.ddqn_bcq_agent import KNNParameters, NNImitationModelParameters
from rl_coach.core_types import StepMethod
from rl_coach.exploration_policies.ucb import UCBParameters
from rl_coach.schedules import ConstantSchedule, LinearSchedule, Schedule

PAGES = sorted((pathlib.Path(__file__).resolve().parents[2] / "docs" / "algorithms").glob("*.md"))
TABLE = re.compile(r"^\| parameter( of `algorithm`)? \| default \| meaning \|\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
TABLES = [(page, *found) for page in PAGES for found in TABLE.findall(page.read_text(encoding="utf-8"))]
AGENTS = {algorithm.parameters.__name__: algorithm.parameters for algorithm in known_algorithms()}


def q_ensembles() -> BootstrappedDQNAgentParameters:
    parameters = BootstrappedDQNAgentParameters()
    parameters.exploration = UCBParameters()
    return parameters


OTHERS: Mapping[str, list[Callable]] = {
    "ddqn_bcq": [KNNParameters, NNImitationModelParameters],
    "q_ensembles": [q_ensembles],
}
"""What has the parameters on pages that are about a part of an agent."""

Check = tuple[str, Any]


def written(text: str) -> Any:
    """The value that a cell of a table shows. Ellipsis if the cell describes the value in words."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text.replace("−", "-").strip(" `"))
    if line := re.fullmatch(r"(?:from )?(\S+) to (\S+) in (\d+) (?:steps|updates)", text):
        numbers = [written(number) for number in line.groups()]
        return ... if ... in numbers else LinearSchedule(*numbers)
    if amount := re.fullmatch(r"\w+Steps\((\d+)\)|(\S+) (?:steps|transitions)", text):
        text = amount[1] or amount[2]
    if constant := re.fullmatch(r"(?:constant |ConstantSchedule\()([\d.]+)\)?", text):
        return ConstantSchedule(float(constant[1]))
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text if re.fullmatch(r"[A-Z_]+", text) else ...


def checks(is_of_algorithm: bool, rows: str) -> Iterator[Check]:
    """The paths of parameters, and the defaults that the table shows for them."""
    for row in rows.splitlines():
        names, defaults = re.split(r" ?\| ?", row)[1:3]
        paths = re.findall(r"`([^`]+)`", names)
        values = re.split(r", (?![^(\[]*[)\]])", defaults)
        if len(paths) != len(values):
            continue
        parent = "algorithm." if is_of_algorithm else paths[0].rpartition(".")[0] + "."
        for path, value in zip(paths, map(written, values)):
            if value is not ...:
                yield (path if "." in path else (parent + path).lstrip(".")), value


def values_of(parameters: Any, path: str) -> list[Any]:
    """The default at a path; of all networks if the path is a parameter of networks."""
    if path in ("batch_size", "learning_rate") or "[...]" in path:
        return [getattr(network, path.rpartition(".")[2]) for network in parameters.network_wrappers.values()]
    return [eval(f"parameters.{path}", {"parameters": parameters})]


def plain(value: Any) -> Any:
    if isinstance(value, StepMethod):
        return value.num_steps
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Schedule):
        return {name: field for name, field in vars(value).items() if isinstance(field, (int, float))}
    if isinstance(value, tuple):
        # the size of a memory is a pair of the unit and the number
        return value[1] if value and isinstance(value[0], Enum) else list(value)
    return value


def differences(parameters: Any, expected: list[Check]) -> list[tuple[str, Any, Any]]:
    found: list[tuple[str, Any, Any]] = []
    for path, value in expected:
        try:
            defaults = values_of(parameters, path)
        except (AttributeError, KeyError, IndexError) as error:
            found.append((path, value, repr(error)))
            continue
        same_kind = [
            d.initial_value if isinstance(d, Schedule) and not isinstance(value, Schedule) else d for d in defaults
        ]
        found += [(path, value, default) for default in same_kind if plain(default) != plain(value)]
    return found


@pytest.mark.parametrize(("page", "is_of_algorithm", "rows"), TABLES, ids=lambda value: getattr(value, "stem", ""))
def test_the_defaults_in_a_table_are_those_of_an_agent_of_the_page(page, is_of_algorithm, rows):
    names = dict.fromkeys(re.findall(r"\w+AgentParameters", page.read_text(encoding="utf-8")))
    owners = OTHERS.get(page.stem) or [AGENTS[name] for name in names if name in AGENTS]
    expected = list(checks(bool(is_of_algorithm), rows))
    assert expected
    assert [] in (found := [differences(owner(), expected) for owner in owners]), min(found, key=len)


def test_most_defaults_are_compared():
    rows = sum(rows.count("\n") for _, _, rows in TABLES)
    compared = sum(len(list(checks(bool(of_algorithm), rows))) for _, of_algorithm, rows in TABLES)
    assert len(TABLES) >= 48 and compared >= 0.9 * rows
