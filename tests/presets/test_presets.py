"""Every preset of an algorithm of Coach 1.0.1 holds its settings, which ``coach_1_0_1.json`` lists."""

from __future__ import annotations

import inspect
import json
import pathlib
import re
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import golden
from rl_coach.base_parameters import Parameters
from rl_coach.command_line import preset_catalogue
from rl_coach.utils import import_file
from tests.zoo.graphs import agents_parameters

SETTINGS = json.loads(pathlib.Path(__file__).with_name("coach_1_0_1.json").read_text(encoding="utf-8"))
PRESETS = preset_catalogue.list_all_presets()
OF_NEWER_ALGORITHMS = {
    "CartPole_APPO",
    "CartPole_ARS",
    "CartPole_ApexDQN",
    "CartPole_BC",
    "CartPole_DecisionTransformer_BatchRL",
    "CartPole_DreamerV3",
    "CartPole_DQfD",
    "CartPole_DiscreteCQL_BatchRL",
    "CartPole_GAIL",
    "CartPole_IMPALA",
    "CartPole_MARWIL_BatchRL",
    "CartPole_MunchausenDQN",
    "CartPole_PQN",
    "Pendulum_AWAC_BatchRL",
    "Pendulum_CQL_BatchRL",
    "Pendulum_FastSAC",
    "Pendulum_FastTD3",
    "CartPole_TRPO",
    "ControlSuite_DreamerV3",
    "ControlSuitePixels_DreamerV3",
    "MiniGridMemory_DreamerV3",
    "Pendulum_IQL_BatchRL",
    "Pendulum_TD3BC_BatchRL",
}
OF_SEVERAL_AGENTS = {
    "ConnectFour_SelfPlay", "Pistonball_PPO", "Spread_DQN", "Spread_MAPPO", "Spread_PPO", "Spread_QMIX", "Spread_VDN",
    "Tag_DQN", "TicTacToe_SelfPlay", "TwoStep_QMIX", "TwoStep_VDN",
}  # fmt: skip
SCHEDULE = ("heatup_steps", "evaluation_steps", "steps_between_evaluation_periods", "improve_steps")


def test_the_page_of_coachs_presets_lists_each_with_its_state():
    page = pathlib.Path(__file__).parents[2] / "docs" / "coach_presets.md"
    states = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert sorted(states) == sorted(SETTINGS) and len(SETTINGS) == 69
    assert {name for name, state in states.items() if state.startswith("not yet")} == set(SETTINGS) - set(PRESETS)
    reached: dict[str, dict[int, bool]] = {}
    for outcome in golden.read(golden.RESULTS):
        reached.setdefault(outcome.preset, {})[outcome.seed] = outcome.is_reached
    for name in SETTINGS:
        seeds = reached.get(name, {})
        expected = f"reaches its reward on {sum(seeds.values())} of {len(seeds)} seeds"
        assert (states[name] == expected) is bool(seeds), name


def plain(value: Any) -> Any:
    """Nested dicts, lists and numbers that are equal for equal settings."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.random.Generator):
        return "generator"
    if isinstance(value, (Enum, type)) or inspect.isroutine(value) or type(value).__repr__ is not object.__repr__:
        return str(value)
    attributes = {name: plain(item) for name, item in vars(value).items() if name != "_is_constructed"}
    return {"class": type(value).__name__, **attributes}


def rebuilt(preset: str) -> dict[str, Any]:
    """The objects that the settings of Coach's preset make, with the classes that ours imports."""
    module = vars(import_file(str(preset_catalogue.preset_directory() / f"{preset}.py")))
    names = {name: value for name, value in module.items() if not isinstance(value, (Parameters, int, float, str))}
    names["tf"] = SimpleNamespace(constant_initializer=int)  # a number serves every framework
    for setting in SETTINGS[preset]["settings"]:
        exec(setting.get("apply") or f"{setting['set']} = {setting['to']}", names)
    if preset.startswith("Acrobot"):  # Coach asks for 150, where no reward is above 0
        names["preset_validation_params"].min_reward_threshold = -100
    return names


@pytest.mark.parametrize("preset", sorted(set(PRESETS) - OF_NEWER_ALGORITHMS - OF_SEVERAL_AGENTS))
def test_has_the_settings_of_coach(preset):
    expected = rebuilt(preset)
    graph_manager = preset_catalogue.load(preset)
    assert type(graph_manager).__name__ == SETTINGS[preset]["graph_manager"]
    for name in (
        "agent_params",
        "env_params",
        "preset_validation_params",
        "experience_generating_agent_params",
        "experience_generating_schedule_params",
    ):
        if name in expected:
            assert plain(getattr(graph_manager, name)) == plain(expected[name])
    if any(setting.get("set") == "schedule_params" for setting in SETTINGS[preset]["settings"]):
        for name in SCHEDULE:
            assert getattr(graph_manager, name) == getattr(expected["schedule_params"], name)


@pytest.mark.parametrize("preset", PRESETS)
def test_two_loads_share_nothing(preset):
    one, other = (agents_parameters(preset_catalogue.load(preset)) for _ in range(2))
    for agent in one:
        agent.algorithm.discount = 0.123
    assert all(agent.algorithm.discount != 0.123 for agent in other)


def test_each_preset_says_what_it_is():
    for summary in preset_catalogue.summaries():
        assert summary.environment, summary.name
        assert summary.algorithm, summary.name
