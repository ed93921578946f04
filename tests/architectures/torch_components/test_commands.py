"""``coach -f torch`` as a person types it, with modules of the user as parts of the network."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from rl_coach.installation import install_command
from tests.faults.processes import ROOT, SHORT, Run
from tests.frameworks import starts_another_framework, where_installed
from tests.resume.test_kills import newest_number, start, wait_for_experiment
from tests.zoo.states import differences, final_state, rows

pytestmark = where_installed("torch")

WITH_MODULES = """
from rl_coach.presets.{preset} import graph_manager
from tests.architectures.torch_components.parts import EncoderParameters, ResidualParameters

network = graph_manager.agent_params.network_wrappers["main"]
network.input_embedders_parameters = {{"observation": EncoderParameters()}}
network.middleware_parameters = ResidualParameters()
"""
ACTS = """
import sys, numpy as np
from rl_coach.policy import Policy
assert Policy.load("exported").act(np.zeros(4, np.float32)) in (0, 1)
assert "torch" not in sys.modules
"""
OWN_LOOP = """
from rl_coach import Agent, make_agent
from tests.architectures.torch_components.parts import EncoderParameters

embedders = {"observation": EncoderParameters()}
settings = dict(seed=3, framework="torch", batch_size=8, input_embedders_parameters=embedders)
agent = make_agent("DQN", "CartPole-v1", **settings)
agent.learn(60)
agent.save("saved")
again = Agent.load("saved", input_embedders_parameters=embedders)
for one in (agent, again):
    one.learn(60)
first, second = (one.get_weights()["main"] for one in (agent, again))
assert all((array == same).all() for array, same in zip(first, second))
"""


def preset(directory: pathlib.Path, name: str = "CartPole_DQN") -> str:
    (directory / "mine.py").write_text(WITH_MODULES.format(preset=name))
    return "mine.py"


def coach(directory: pathlib.Path, *arguments: str, **environment: str) -> str:
    """Run a command. :return: what it printed"""
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", **environment}
    command = [sys.executable, "-m", "rl_coach.coach", *arguments]
    done = subprocess.run(command, env=settings, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def trained(directory: pathlib.Path, *arguments: str, steps: int = 100) -> pathlib.Path:
    """The experiment of a short run."""
    settings = ("-f", "torch", "-e", "short", "-cp", SHORT.format(steps=steps), "--nocolor", "--seed", "5")
    coach(directory, "-p", preset(directory), *settings, *arguments)
    (experiment,) = (directory / "experiments" / "short").iterdir()
    return experiment


def test_what_was_trained_is_evaluated_exported_and_acts_without_pytorch(tmp_path):
    experiment = trained(tmp_path, "--checkpoint_save_steps", "50")
    coach(tmp_path, "evaluate", str(experiment), "--nocolor")
    coach(tmp_path, "export", str(experiment), "-o", "exported")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", ACTS], env=environment, cwd=tmp_path, check=True)


@starts_another_framework
def test_another_framework_refuses_the_modules_in_one_line(tmp_path):
    run = Run(tmp_path, "-p", preset(tmp_path), "-f", "tensorflow")
    code, text = run.end()
    assert code == 2 and text.splitlines()[-1] == "coach: 'Encoder' is a module of PyTorch: use -f torch"


@pytest.mark.slow
def test_a_killed_run_goes_on_exactly(tmp_path):
    whole = trained(tmp_path, "--checkpoint_save_steps", "20", steps=400)
    settings = ("-f", "torch", "-e", "parts", "-cp", SHORT.format(steps=400), "--nocolor", "--seed", "5")
    process = start("-m", "rl_coach.coach", "-p", "mine.py", *settings, "--checkpoint_save_steps", "20", cwd=tmp_path)
    directory = wait_for_experiment(tmp_path, process)
    while newest_number(directory) < 2 and process.poll() is None:
        time.sleep(0.02)
    assert process.poll() is None
    process.kill()
    process.communicate()
    coach(tmp_path, "--resume", str(directory))
    assert differences(final_state(whole), final_state(directory)) == []
    assert rows(whole) == rows(directory)


@pytest.mark.slow
def test_workers_that_share_weights_have_the_modules(tmp_path):
    short = "evaluation_steps=EnvironmentEpisodes(0); improve_steps=EnvironmentSteps(200)"
    text = coach(tmp_path, "-p", preset(tmp_path, "CartPole_A3C"), "-f", "torch", "-n", "2", "-cp", short, "--nocolor")
    assert "worker 0: " in text and "worker 1: " in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server: apt install redis-server")
def test_rollout_workers_act_with_the_modules(tmp_path):
    pytest.importorskip("redis", reason=f"rollout workers need Redis: {install_command('distributed')}")
    text = coach(
        tmp_path, "-p", preset(tmp_path), "-f", "torch", "-dc", "-n", "2", "-cp", SHORT.format(steps=200), "--nocolor"
    )
    assert "Name=worker-0, State=ended, Steps=" in text and "Name=worker-1, State=ended, Steps=" in text


@pytest.mark.slow
def test_a_sweep(tmp_path):
    setting = "agent_params.network_wrappers['main'].learning_rate = 0.001, 0.0001"
    settings = ("-f", "torch", "-cp", SHORT.format(steps=100), "--nocolor")
    text = coach(tmp_path, "sweep", "-p", preset(tmp_path), setting, *settings)
    assert "learning_rate=0.0001 " in text and "learning_rate=0.001 " in text


@pytest.mark.slow
def test_an_agent_in_the_users_own_loop_goes_on_exactly(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", OWN_LOOP], env=environment, cwd=tmp_path, check=True)


@pytest.mark.slow
def test_without_a_compiler_it_trains_and_one_line_says_so(tmp_path):
    settings = ("-f", "torch", "-cp", SHORT.format(steps=20), "--nocolor")
    text = coach(tmp_path, "-p", preset(tmp_path), *settings, PATH=str(tmp_path), COACH_TORCH_COMPILE="on")
    assert text.count("because the C++ compiler 'g++' is missing") == 1 and "trained" in text


@pytest.mark.slow
def test_ctrl_c_stops_the_compiler(tmp_path):
    settings = ("-f", "torch", "-cp", SHORT.format(steps=10_000))
    run = Run(tmp_path, "-p", preset(tmp_path), *settings, COACH_TORCH_COMPILE="on")
    run.wait_for("compiling the training step")
    run.process.send_signal(signal.SIGINT)
    code, text = run.end()
    assert code == 130 and "interrupted; saved" in text
    assert run.group_is_gone()
