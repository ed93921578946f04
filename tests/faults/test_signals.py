"""Signals to a run whose environment's copies are processes of their own, and copies that die."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import time

import pytest

from rl_coach.utilities.stop_signals import SECONDS_OF_ONE_REQUEST
from tests.faults.processes import ROOT, TOO_LONG, Run

pytestmark = [pytest.mark.faults, pytest.mark.slow]

PRESET = '''\
import os, time

import gymnasium as gym
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters


class Tells(gym.Env):
    """Says its process's number in its first episode's tenth step; raises or dies where it is asked to."""

    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)
    total = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        Tells.total += 1
        if Tells.total == 30:
            os.write(1, f"copy {os.getpid()}{os.linesep}".encode())
        if Tells.total == 40:
            if os.environ.get("FAULT") == "raise":
                raise ValueError("the pole is gone")  # the user's own line
            if os.environ.get("FAULT") == "die":
                os.kill(os.getpid(), 9)
        time.sleep(0.002)
        return self.observation_space.sample(), 1.0, False, self.steps >= 50, {}


schedule = ScheduleParameters()
schedule.heatup_steps = EnvironmentSteps(100)
schedule.evaluation_steps = EnvironmentEpisodes(0)
schedule.steps_between_evaluation_periods = EnvironmentSteps(100000)
schedule.improve_steps = EnvironmentSteps(1000000)
agent = DQNAgentParameters()
agent.network_wrappers["main"].batch_size = 8
environment = GymVectorEnvironment(level=f"{os.path.abspath(__file__)}:Tells")
environment.num_environments = 2
environment.vectorization = "async"
graph_manager = BasicRLGraphManager(agent, environment, schedule)
'''

USERS_LINE = PRESET[: PRESET.index("# the user's own line")].count("\n") + 1


def start(directory: pathlib.Path, *arguments: str, **environment: str) -> Run:
    (directory / "tells.py").write_text(PRESET)
    return Run(directory, "-p", "tells.py", "-e", "run", "-ns", *arguments, **environment)


def experiment(directory: pathlib.Path) -> pathlib.Path:
    (found,) = (directory / "run").iterdir()
    return found


def test_a_signal_to_the_process_group_saves_a_checkpoint_and_ends(tmp_path):
    run = start(tmp_path)
    run.wait_for("copy")
    run.wait_for("copy")
    run.signal_group(signal.SIGTERM)
    code, text = run.end()
    assert code == 143, text
    assert "interrupted; saved" in text and "Traceback" not in text
    assert list(experiment(tmp_path).glob("checkpoint/*.ckpt"))
    assert json.loads((experiment(tmp_path) / "status.json").read_text())["state"] == "stopped"
    assert run.group_is_gone()


@pytest.mark.parametrize("vectorization", ["async", "sync"])
def test_an_environment_that_raises_is_one_line(tmp_path, vectorization):
    run = start(tmp_path, "-cp", f"env_params.vectorization='{vectorization}'", FAULT="raise")
    code, text = run.end()
    assert code == 1, text
    last = text.strip().splitlines()[-1]
    assert last.startswith("coach: environment '") and "tells.py:Tells' failed in step" in last
    assert f"tells.py:{USERS_LINE}: ValueError: the pole is gone" in last
    assert "Traceback" not in text and run.group_is_gone()


def test_the_traceback_with_v(tmp_path):
    code, text = start(tmp_path, "-v", "high", "-cp", "env_params.num_environments=1", FAULT="raise").end()
    assert code == 1 and "Traceback" in text and "# the user's own line" in text
    assert text.strip().splitlines()[-1].startswith("coach: environment '")


def test_a_copy_that_dies_is_one_line(tmp_path):
    run = start(tmp_path, FAULT="die")
    code, text = run.end()
    assert code == 1, text
    assert "coach: environment copy 0 was killed by signal 9" in text or "coach: environment copy 1" in text
    assert "Traceback" not in text and run.group_is_gone()


def test_killed_itself_a_run_leaves_no_copies(tmp_path):
    run = start(tmp_path)
    run.wait_for("copy")
    os.kill(run.process.pid, signal.SIGKILL)
    run.end()
    assert run.group_is_gone()


SLOW_TO_SAVE = """\
import os
import time

from rl_coach.memories.non_episodic import ExperienceReplay, ExperienceReplayParameters
from rl_coach.presets.CartPole_DQN import graph_manager


class SlowToSave(ExperienceReplay):
    def get_state(self):
        print("saving", flush=True)
        time.sleep(float(os.environ["SECONDS_TO_SAVE"]))  # as a large memory would
        return super().get_state()


class SlowToSaveParameters(ExperienceReplayParameters):
    path = "slow_to_save:SlowToSave"


graph_manager.agent_params.memory = SlowToSaveParameters()
"""
DISTRIBUTED = (
    "-p", "slow_to_save.py", "-dc", "-f", "jax", "-ns", "-e", "run",
    "-cp", "improve_steps=EnvironmentSteps(10000000); evaluation_steps=EnvironmentEpisodes(0)",
)  # fmt: skip


def run_that_saves(tmp_path, seconds):
    """A distributed run that was stopped and is saving, for so many seconds."""
    (tmp_path / "slow_to_save.py").write_text(SLOW_TO_SAVE)
    settings = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "TMPDIR": str(tmp_path), "SECONDS_TO_SAVE": str(seconds)}
    run = Run(tmp_path, *DISTRIBUTED, **settings)
    run.wait_for("Training | ")
    os.kill(run.process.pid, signal.SIGINT)
    run.wait_for("saving")
    return run


def test_the_trainer_of_a_distributed_run_has_the_time_to_save_a_large_memory(tmp_path):
    code, text = run_that_saves(tmp_path, 15).end()
    assert code == 130 and "interrupted; saved" in text and "Traceback" not in text, text
    assert list(experiment(tmp_path).glob("checkpoint/*.ckpt"))


def test_a_second_ctrl_c_ends_a_distributed_run_without_a_checkpoint(tmp_path):
    run = run_that_saves(tmp_path, 10 * TOO_LONG)
    time.sleep(2 * SECONDS_OF_ONE_REQUEST)  # two signals that are closer together are one request
    os.kill(run.process.pid, signal.SIGINT)
    code, text = run.end()
    assert code == 130 and "Traceback" not in text, text
    assert not list(experiment(tmp_path).glob("checkpoint/*.ckpt"))
