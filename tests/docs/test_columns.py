"""The page about signals lists the columns that agents write."""

from __future__ import annotations

import csv
import pathlib
import re
from typing import Any

import pytest

from rl_coach.core_types import EnvironmentSteps
from rl_coach.utils import Signal
from tests.zoo.runs import AGENTS, created

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "signals.md"
# by its class: several agents differ in a setting only
ONE_OF_EACH_CLASS = {make().path.split(":")[1]: name for name, (make, *_) in reversed(AGENTS.items())}


def listed() -> dict[str, list[str]]:
    """The lists of the page's tables, by the first cell of their rows."""
    rows = re.findall(r"^\| `?([^|`]+)`? \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    return {name.strip(): re.findall(r"`([^`]+)`", names) for name, names in rows}


def written(name: str, directory: Any) -> tuple[set[str], set[str]]:
    """The columns that an agent has written after its first updates: those without statistics, and the signals."""
    manager = created(name, 1000, directory)
    manager.heatup(EnvironmentSteps(60))
    agent = manager.get_agent()
    for _ in range(40):
        manager.train_and_act(EnvironmentSteps(20))
        if agent.training_iteration > 0 or "at random" in name:
            break
    manager.train_and_act(EnvironmentSteps(250))  # to the end of an episode, whose row has what was learned
    manager.close()
    with open(next(pathlib.Path(directory).glob("worker_0*.csv")), newline="", encoding="utf-8") as file:
        columns = next(csv.reader(file))
    statistics = tuple(f"/{one}" for one in Signal.STATISTICS)
    plain = {column for column in columns if not column.endswith(statistics)}
    return plain, {column.rsplit("/", 1)[0] for column in columns if column.endswith(statistics)}


@pytest.mark.slow
@pytest.mark.parametrize("agent", sorted(ONE_OF_EACH_CLASS))
def test_the_columns_of_each_agent_are_listed(agent, tmp_path):
    plain, signals = written(ONE_OF_EACH_CLASS[agent], tmp_path)
    page = listed()
    assert plain == set(page["every row"])
    assert signals == set(page["every agent"]) | set(page[agent])


def test_every_agent_is_listed():
    assert set(ONE_OF_EACH_CLASS) <= set(listed())
