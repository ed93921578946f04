"""Several seeds whose loops are compiled as one program, as a person starts, stops and resumes them."""

from __future__ import annotations

import copy
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from rl_coach.base_parameters import Frameworks
from rl_coach.core_types import RunPhase
from tests.frameworks import FRAMEWORK
from tests.zoo.graphs import compiled
from tests.zoo.parameters import clipped_ppo, dqn

pytestmark = pytest.mark.skipif(
    FRAMEWORK is not Frameworks.jax, reason="loops are compiled on JAX (COACH_TEST_FRAMEWORK)"
)
COACH = [sys.executable, "-m", "rl_coach"]
ROOT = pathlib.Path(__file__).parents[1]
PRESET = """
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from tests.zoo.graphs import schedule
from tests.zoo.parameters import {agent}

environment = GymVectorEnvironment("gymnax:CartPole-v1")
environment.num_environments = 4
steps = schedule(512, evaluate_every=256, evaluation=2, heatup={heatup})
graph_manager = BasicRLGraphManager({agent}(), environment, steps)
"""
TRAINED = ("-p", "walk.py", "-lvl", "tests.zoo.function_environments:walk", "-f", "jax", "-ep", "runs")
IN_ONE_PROGRAM = "in one program with the other seeds"
ENDLESS = "improve_steps = EnvironmentSteps(10**9); steps_between_evaluation_periods = EnvironmentSteps(10**9)"


def begin(directory: pathlib.Path, *flags: str, agent: str = "clipped_ppo", heatup: int = 0) -> subprocess.Popen[str]:
    """Begin to train from a preset in a directory, which is made."""
    directory.mkdir(exist_ok=True)
    (directory / "walk.py").write_text(PRESET.format(agent=agent, heatup=heatup))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BACKEND": "jax"}
    return subprocess.Popen(
        [*COACH, *flags], cwd=directory, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def train(directory: pathlib.Path, *flags: str, **preset: Any) -> pathlib.Path:
    """Train to the end. :return: the directory of the runs"""
    process = begin(directory, *TRAINED, *flags, **preset)
    printed, _ = process.communicate()
    assert process.returncode == 0, printed
    return group_of(directory)


def group_of(directory: pathlib.Path) -> pathlib.Path:
    (found,) = (directory / "runs" / "walk").iterdir()
    return found


def rows_of(run: pathlib.Path) -> list[dict[str, str]]:
    with open(next(run.glob("*.csv")), newline="") as file:
        rows = list(csv.DictReader(file))
    return [{name: value for name, value in row.items() if "Wall-Clock" not in name} for row in rows]


def wait_for(condition: Any, process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)


def log_of(group: pathlib.Path, seed: int) -> str:
    return (group / f"seed_{seed}.log").read_text()


@pytest.mark.parametrize(("agent", "heatup"), [("clipped_ppo", 0), pytest.param("dqn", 100, marks=pytest.mark.slow)])
def test_seeds_train_in_one_program_as_they_do_alone(agent, heatup, tmp_path):
    together = train(tmp_path / "together", "--seeds", "2", agent=agent, heatup=heatup)
    apart = train(tmp_path / "apart", "--seeds", "2", "--at_once", "2", agent=agent, heatup=heatup)
    for seed in range(2):
        assert IN_ONE_PROGRAM in log_of(together, seed) and IN_ONE_PROGRAM not in log_of(apart, seed)
        one, other = rows_of(together / f"seed_{seed}"), rows_of(apart / f"seed_{seed}")
        assert len(one) == len(other) > 10
        assert sum(bool(row["Evaluation Reward"]) for row in one) == 2
        for name in one[0]:
            numbers = [[float(row[name] or "nan") for row in rows] for rows in (one, other)]
            np.testing.assert_allclose(*numbers, rtol=1e-3, atol=1e-5, err_msg=name)
    assert rows_of(together / "seed_0") != rows_of(together / "seed_1")


@pytest.mark.slow
def test_they_resume_exactly(tmp_path):
    preset = (
        "-cp",
        "improve_steps = EnvironmentSteps(100000); steps_between_evaluation_periods = EnvironmentSteps(50000)",
    )
    whole = train(tmp_path / "whole", "--seeds", "2", *preset)
    process = begin(tmp_path / "cut", *TRAINED, "--seeds", "2", *preset)
    wait_for(lambda: (tmp_path / "cut" / "runs").exists(), process)
    cut = group_of(tmp_path / "cut")
    wait_for(lambda: all(steps_of(cut / f"seed_{seed}") > 2000 for seed in range(2)), process)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate()
    assert process.returncode == 130 and "coach --resume" in printed
    assert all(0 < steps_of(cut / f"seed_{seed}") < 100000 for seed in range(2)), "they ended before they were stopped"
    resumed = begin(tmp_path / "cut", "--resume", str(cut))
    assert resumed.wait() == 0, resumed.communicate()
    for seed in range(2):
        assert rows_of(cut / f"seed_{seed}") == rows_of(whole / f"seed_{seed}")


@pytest.mark.parametrize("agent", [clipped_ppo, pytest.param(dqn, marks=pytest.mark.slow)])
def test_one_after_the_other_computes_the_same_as_both_at_once(agent, tmp_path):
    """To the last bit, so that runs that were stopped at different steps go on exactly."""
    manager = compiled(agent(), tmp_path)
    level: Any = manager.level_managers[0]
    level.phase = RunPhase.TRAIN
    plan, _ = level._plan(copy.copy(manager.get_agent().clock), 100, None, 0, 0)
    together, apart = level.for_seeds(2), level.for_seeds(2)
    for seeds, calls in ((together, [[]]), (apart, [[1], [0]])):
        seeds.begin(0, 7, {"main": 0}), seeds.begin(1, 8, {"main": 0})
        for waiting in calls:
            before = [numbers_of(seeds, row) for row in range(2)]
            seeds.run(plan, waiting).of(0)
            for row in range(2):
                is_same = all(map(np.array_equal, numbers_of(seeds, row), before[row]))
                assert is_same is (row in waiting)
    for row in range(2):
        for one, other in zip(numbers_of(together, row), numbers_of(apart, row)):
            np.testing.assert_array_equal(one, other)
    assert not all(map(np.array_equal, numbers_of(together, 0), numbers_of(together, 1)))
    manager.close()


def numbers_of(seeds: Any, row: int) -> list[np.ndarray]:
    variables, _ = seeds.results(row)
    return [*seeds.leaves(row), *variables["main"]]


def steps_of(run: pathlib.Path) -> int:
    """Steps that a run has made by what it says of itself."""
    try:
        return json.loads((run / "status.json").read_text())["progress"]["steps"]
    except (OSError, KeyError, json.JSONDecodeError):
        return 0


def train_endlessly(directory: pathlib.Path) -> tuple[subprocess.Popen[str], pathlib.Path]:
    """Begin to train two seeds, and wait until both have made steps. :return: the program, the directory of the runs"""
    process = begin(directory, *TRAINED, "--seeds", "2", "-cp", ENDLESS)
    wait_for(lambda: (directory / "runs").exists(), process)
    group = group_of(directory)
    wait_for(lambda: all(steps_of(group / f"seed_{seed}") for seed in range(2)), process)
    return process, group


@pytest.mark.slow
def test_a_seed_that_dies_does_not_stop_the_others(tmp_path):
    process, group = train_endlessly(tmp_path)
    os.kill(json.loads((group / "seed_0" / "status.json").read_text())["pid"], signal.SIGKILL)
    before = steps_of(group / "seed_1")
    wait_for(lambda: steps_of(group / "seed_1") > before + 5000, process)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate()
    assert "seed 0 failed: was killed by signal 9" in printed
    assert "seed 1: stopped after" in printed


@pytest.mark.slow
def test_without_the_program_each_seed_says_what_has_happened(tmp_path):
    process, group = train_endlessly(tmp_path)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (program,) = (pid for pid in children if "seeds-program" in pathlib.Path(f"/proc/{pid}/cmdline").read_text())
    os.kill(int(program), signal.SIGKILL)
    printed, _ = process.communicate()
    assert process.returncode == 1
    assert printed.count("the process that computes all seeds has ended") == 2
    assert "Traceback" not in log_of(group, 0)
