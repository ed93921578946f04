"""``--budget``: the number of steps that fits a time."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from rl_coach.coach import main
from rl_coach.command_line import arguments, budget, preset_catalogue
from rl_coach.command_line.custom_parameters import apply_custom_parameters
from rl_coach.schedules import LinearSchedule
from tests.frameworks import FRAMEWORK

SLOWER = """\
import glob
import time

from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.wrappers import TimeLimit


class Slower(TimeLimit):
    # a step lasts a second in the run, but not in the measuring before it

    def __init__(self):
        super().__init__(CartPoleEnv(), 20)
        self._steps = 0

    def step(self, action):
        self._steps += 1
        if self._steps > 300 and glob.glob("experiments/mine/*/experiment.json"):
            time.sleep(1)
        return super().step(action)
"""
PRESET = """\
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.schedules import LinearSchedule

schedule = ScheduleParameters()
schedule.heatup_steps = EnvironmentSteps(100)
schedule.improve_steps = EnvironmentSteps(1_000_000)
schedule.steps_between_evaluation_periods = EnvironmentSteps(1_000_000)
schedule.evaluation_steps = EnvironmentEpisodes(1)
agent = DQNAgentParameters()
agent.exploration.epsilon_schedule = LinearSchedule(1.0, 0.1, 1_000_000)
environment = GymVectorEnvironment(level="slower.py:Slower")
graph_manager = BasicRLGraphManager(agent, environment, schedule)
"""


def speed(**values) -> budget.Speed:
    known = {"preparing": 10.0, "per_step": 0.01, "per_evaluation": 0.0, "steps_between_evaluations": 100.0,
             "per_checkpoint": 0.0}  # fmt: skip
    return budget.Speed(**{**known, **values})


def test_the_steps_fill_the_time_that_is_left():
    share, ends = budget._SHARE_PLANNED, budget._SECONDS_OF_START_AND_END
    assert speed().steps_in(110 + ends) == round(share * 100 / 0.01)
    assert speed(per_checkpoint=10.0).steps_in(140 + ends) == round(share * 100 / 0.01)
    # an evaluation of a second after each 100 steps takes as long as the steps, and there is one at the end
    with_evaluations = speed(per_evaluation=1.0).steps_in(110 + ends)
    assert with_evaluations == 4_450 == int((share * 100 - 1) / 0.02)
    assert speed().steps_in(5.0) == 0


@pytest.mark.parametrize(
    "preset, follow, stay",
    [
        (
            "tuned/CartPole_PPO",
            {"network_wrappers['main'].learning_rate": 391, "algorithm.clipping_decay_schedule": 100_000},
            [],
        ),
        ("tuned/CartPole_DQN", {"network_wrappers['main'].learning_rate": 50_000}, ["exploration.epsilon_schedule"]),
        ("CartPole_DQN", {}, ["exploration.epsilon_schedule"]),
    ],
)
def test_schedules_of_the_length_of_the_run_follow(preset, follow, stay):
    manager = preset_catalogue.load(preset)
    found = {path: budget._length_if_it_follows(manager, path, one) for path, one in budget._schedules(manager)}
    assert {path: length for path, length in found.items() if length} == {
        f"agent_params.{p}": n for p, n in follow.items()
    }
    assert [path for path, length in found.items() if not length] == [f"agent_params.{path}" for path in stay]
    for path, schedule in budget._schedules(manager):
        apply_custom_parameters(manager, f"{path}={budget._text(schedule, 17)}")
    assert all(one.decay_steps == 17 for _, one in budget._schedules(manager) if isinstance(one, LinearSchedule))


@pytest.mark.parametrize(
    "text, seconds", [("90s", 90), ("20min", 1200), ("1h30min", 5400), ("2H", 7200), ("1h5s", 3605)]
)
def test_forms_of_a_time(text, seconds):
    assert arguments.get_argument_parser().parse_args(["--budget", text]).budget == seconds


@pytest.mark.parametrize(
    "flags, said",
    [
        (["--budget", "20"], "'20' is not a time"),
        (["--budget", "20m"], "'20m' is not a time"),
        (["--budget", "0s"], "'0s' is not a time"),
        (["--budget", "-5s"], "expected one argument"),
        (["--budget", "9999h"], "at most 30 days"),
        (["--budget", "1min", "--seeds", "2"], "several runs would get different numbers of steps"),
        (["--budget", "1min", "-n", "2"], "--budget works only without workers"),
        (["--budget", "1min", "--evaluate"], "--budget and --evaluate"),
        (["--budget", "1min", "-cp", "improve_steps=EnvironmentSteps(5)"], "--budget sets improve_steps"),
    ],
)
def test_bad_input_is_one_line(flags, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["-p", "CartPole_DQN", "-f", FRAMEWORK.name, *flags]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [["sweep", "discount=0.9,0.8"], ["tune", "--steps", "1000"], ["dataset", "record", "--steps", "10", "-o", "x.csv"]],
)
def test_other_commands_refuse_a_budget(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*command, "-p", "CartPole_DQN", "-f", FRAMEWORK.name, "--budget", "1min"]) == 2
    assert "--budget: " in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_preset_that_learns_from_data_refuses_a_budget(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["-p", "CartPole_DDQN_BatchRL", "-f", FRAMEWORK.name, "--budget", "1min"]) == 2
    assert "--budget does not work with BatchRLGraphManager, which does not train for" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_ends_in_time_on_a_machine_that_becomes_slower_and_continues(tmp_path):
    (tmp_path / "slower.py").write_text(SLOWER)
    (tmp_path / "preset.py").write_text(PRESET)

    def coach(*flags: str) -> str:
        command = [sys.executable, "-m", "rl_coach", *flags]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    said = coach("-p", "preset.py", "-f", FRAMEWORK.name, "--budget", "2min", "-e", "mine")
    assert "the time budget is over; saved " in said and "--budget: the time ended at step " in said
    (directory,) = (tmp_path / "experiments" / "mine").iterdir()
    record = json.loads((directory / "experiment.json").read_text())
    settings = record["arguments"]["custom_parameter"]
    steps = int(settings.partition("improve_steps=EnvironmentSteps(")[2].partition(")")[0])
    assert f"LinearSchedule(1.0, 0.1, {steps})" in settings and f"{steps:,} steps fit" in said
    assert json.loads((directory / "status.json").read_text())["state"] == "stopped"
    (tmp_path / "slower.py").write_text(SLOWER.replace("time.sleep(1)", "pass"))
    assert f"{steps:,}" in coach("--resume", str(directory))
    assert json.loads((directory / "status.json").read_text())["state"] == "finished"


def test_a_run_with_a_budget_is_recorded_with_its_steps(tmp_path):
    command = [sys.executable, "-m", "rl_coach", "-p", "CartPole_DQN", "-f", FRAMEWORK.name, "--budget", "3min"]
    settings = "heatup_steps=EnvironmentSteps(100); steps_between_evaluation_periods=EnvironmentSteps(100)"
    ends_early = ["--callback", "StopOnReward(reward=1)", "-e", "mine", "-cp", settings]
    done = subprocess.run([*command, *ends_early], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (directory,) = pathlib.Path(tmp_path, "experiments", "mine").iterdir()
    given = json.loads((directory / "experiment.json").read_text())["arguments"]["custom_parameter"]
    assert given.startswith(settings) and "improve_steps=EnvironmentSteps(" in given
    assert "because they do not end with the run: agent_params.exploration.epsilon_schedule" in done.stdout
