"""Several workers on shared weights, as ``coach -n N`` starts them: real processes, stopped and killed."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import pathlib
import re
import signal
import threading

import pytest

from rl_coach.orchestrators.background_sender import BackgroundSender
from tests.faults.processes import Run

PRESET = '''\
import os, time

import gymnasium as gym
import numpy as np
from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters


class Light(gym.Env):
    """Press the button that is lit, ten times. Says its process's number at the thirtieth step."""

    observation_space = gym.spaces.Box(-1, 2, (4,))
    action_space = gym.spaces.Discrete(4)
    total = 0

    def _look(self):
        self.lit = int(self.np_random.integers(4))
        return np.eye(4, dtype=np.float32)[self.lit]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._look(), {}

    def step(self, action):
        reward = float(action == self.lit)
        self.steps += 1
        Light.total += 1
        if Light.total == 30:
            os.write(1, f"process {os.getpid()}{os.linesep}".encode())
        if Light.total == 40 and os.environ.get("FAULT") == "raise":
            raise ValueError("the bulb is gone")
        time.sleep(float(os.environ.get("PAUSE", "0")))
        return self._look(), reward, False, self.steps >= 10, {}


schedule = ScheduleParameters()
schedule.heatup_steps = EnvironmentSteps(0)
schedule.evaluation_steps = EnvironmentEpisodes(2)
schedule.steps_between_evaluation_periods = EnvironmentEpisodes(20)
schedule.improve_steps = EnvironmentSteps(int(os.environ.get("STEPS", "100000")))
agent = ActorCriticAgentParameters()
agent.algorithm.apply_gradients_every_x_episodes = 1
agent.algorithm.num_steps_between_gradient_updates = 5
agent.algorithm.discount = 0.5
agent.network_wrappers["main"].learning_rate = 0.003
agent.network_wrappers["main"].async_training = os.environ.get("SYNC") is None
agent.input_filter = InputFilter()
agent.input_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
environment = GymVectorEnvironment(level=f"{os.path.abspath(__file__)}:Light")
environment.custom_reward_threshold = 10
graph_manager = BasicRLGraphManager(agent, environment, schedule)
'''


def start(directory: pathlib.Path, *arguments: str, **environment: str) -> Run:
    (directory / "lights.py").write_text(PRESET)
    return Run(directory, "-p", "lights.py", "-e", "run", "--seed", "1", *arguments, **environment)


def experiment(directory: pathlib.Path) -> pathlib.Path:
    (found,) = (directory / "run").iterdir()
    return found


def signals(directory: pathlib.Path, worker: str) -> list[pathlib.Path]:
    """The CSVs of workers that have played an episode. :param worker: a pattern of numbers"""
    return list(experiment(directory).glob(f"worker_{worker}.simple_rl_graph.main_level.main_level.agent_0.csv"))


def rows(directory: pathlib.Path, worker: int) -> list[dict[str, str]]:
    (path,) = signals(directory, str(worker))
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def state(directory: pathlib.Path) -> str:
    return json.loads((experiment(directory) / "status.json").read_text())["state"]


def workers_in_summary(text: str) -> list[str]:
    summary = [line for line in text.splitlines() if line.startswith("worker ") and " updates" in line]
    return [line.split(":")[0] for line in summary]


def test_what_a_worker_logs_is_printed_under_its_name(tmp_path):
    settings = "improve_steps = EnvironmentSteps(40); evaluation_steps = EnvironmentEpisodes(0)"
    code, text = start(tmp_path, "-n", "2", "-f", "jax", "-lvl", "CartPole-v0", "-cp", settings).end()
    assert code == 0, text
    found = re.findall(r"^(.*)level 'CartPole-v0': using", text, re.MULTILINE)
    assert sorted(found) == ["worker 0: ", "worker 1: "]


def test_the_evaluation_worker_ends_the_run_at_its_goal(tmp_path):
    code, text = start(tmp_path, "-n", "2", "-ew", "-asc", "-f", "jax").end()
    assert code == 0, text
    solved = re.search(r"solved: evaluation reward ([\d.]+) reached the target ([\d.]+)", text)
    assert solved and float(solved[1]) >= float(solved[2]) and "Traceback" not in text
    assert workers_in_summary(text) == ["worker 0", "worker 1", "worker 2 (evaluation)"]
    assert state(tmp_path) == "finished"
    trained = signals(tmp_path, "[01]")  # one of them may reach the goal before the other has begun
    assert trained and not any(row["Evaluation Reward"] for path in trained for row in csv.DictReader(path.open()))
    assert max(float(row["Evaluation Reward"]) for row in rows(tmp_path, 2) if row["Evaluation Reward"]) == 10


def test_each_worker_plays_and_learns(tmp_path):
    code, text = start(tmp_path, "-n", "2", STEPS="2000").end()
    assert code == 0, text
    assert workers_in_summary(text) == ["worker 0", "worker 1"]
    assert re.search(r"coach evaluate run/.*\n.*look at it: \S*coach dashboard -d \S+$", text.rstrip())
    played = [[float(row["Training Reward"]) for row in rows(tmp_path, worker)[:-1]] for worker in (0, 1)]
    for rewards in played:
        assert len(rewards) > 190 and max(rewards) <= 10
        assert sum(rewards[-50:]) > sum(rewards[:50])
    assert played[0][:8] != played[1][:8], "each worker draws from streams of its own"


@pytest.mark.slow
def test_synchronous_workers_make_their_updates_together(tmp_path):
    code, text = start(tmp_path, "-n", "2", STEPS="400", SYNC="1").end()
    assert code == 0, text
    last = [int(float(rows(tmp_path, worker)[-1]["Training Iter"])) for worker in (0, 1)]
    assert last[0] == last[1] > 70


def test_ctrl_c_ends_all_and_saves(tmp_path):
    run = start(tmp_path, "-n", "2", PAUSE="0.002")
    run.wait_for("process")
    run.wait_for("process")
    run.signal_group(signal.SIGINT)
    code, text = run.end()
    assert code == 130, text
    assert "interrupted; saved" in text and "Traceback" not in text
    assert list(experiment(tmp_path).glob("checkpoint/*.ckpt")) and state(tmp_path) == "stopped"
    assert run.group_is_gone()


@pytest.mark.slow
def test_the_clock_of_all_workers_is_that_of_the_first(tmp_path):
    """It goes on from that of the checkpoint that the first worker starts from."""
    run = start(tmp_path, "-n", "2", PAUSE="0.002")
    run.wait_for("process")
    run.wait_for("process")
    run.signal_group(signal.SIGINT)
    assert run.end()[0] == 130
    first = experiment(tmp_path).rename(tmp_path / "first")
    last = first / "worker_0.simple_rl_graph.main_level.main_level.agent_0.csv"
    with open(last, newline="") as file:
        before = float(list(csv.DictReader(file))[-1]["Wall-Clock Time"])
    code, text = start(tmp_path, "-n", "2", "-crd", str(first / "checkpoint"), STEPS="3000", PAUSE="0.002").end()
    assert code == 0, text
    assert float(rows(tmp_path, 1)[0]["Wall-Clock Time"]) > before


@pytest.mark.slow
def test_a_worker_that_is_killed_is_a_line_and_the_other_goes_on(tmp_path):
    run = start(tmp_path, "-n", "2", PAUSE="0.002", STEPS="1500")
    numbers = [int(run.wait_for("process")[-1].split()[1]) for _ in range(2)]
    os.kill(max(numbers), signal.SIGKILL)  # started last, so it is not the first worker
    code, text = run.end()
    assert code == 0, text
    assert "worker 1 was killed by signal 9; the other workers continue" in text
    assert rows(tmp_path, 0)[-1]["Total steps"] == "1500" and run.group_is_gone()


@pytest.mark.slow
def test_an_environment_that_raises_ends_all_with_one_line(tmp_path):
    code, text = start(tmp_path, "-n", "2", FAULT="raise").end()
    assert code == 1 and "Traceback" not in text
    last = text.strip().splitlines()[-1]
    assert last.startswith("coach: worker ") and "ValueError: the bulb is gone" in last
    assert state(tmp_path) == "failed"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["-p", "CartPole_DQN", "-ew"], "workers that share weights need actor-critic or a similar agent"),
        (["-p", "CartPole_A3C", "-n", "2", "--play"], "leave out --play"),
        (["-p", "CartPole_A3C", "-ew", "-cp", "evaluation_steps=EnvironmentEpisodes(0)"], "-ew: evaluation_steps is 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(arguments, line, tmp_path):
    code, text = Run(tmp_path, *arguments).end()
    assert code == 2 and line in text.strip().splitlines()[-1], text
    assert not [path for path in tmp_path.rglob("*") if path.is_dir()]


def test_nobody_waits_for_a_worker_that_does_not_read():
    """Both ends write more than the pipe holds before either reads."""
    here, there = multiprocessing.Pipe()
    sender, count = BackgroundSender(here), 2000
    for number in range(count):
        sender.post((number, bytes(1000)))
    writer = threading.Thread(target=lambda: [there.send(bytes(1000)) for _ in range(count)], daemon=True)
    writer.start()
    assert sum(len(here.recv()) for _ in range(count)) == count * 1000
    writer.join(60)
    assert not writer.is_alive()
    assert [there.recv()[0] for _ in range(count)] == list(range(count))
    sender.close()
    assert not here.poll()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_is_posted_to_a_worker_that_has_gone_is_dropped():
    here, there = multiprocessing.Pipe()
    sender = BackgroundSender(here)
    there.close()
    for _ in range(3):
        sender.post("anybody there?")
    sender.close()
