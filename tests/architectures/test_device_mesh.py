"""Several devices share the batches of an ordinary loop: the command trains on two devices of the host.

JAX reads the number of devices at its first use, so each run is a process of its own.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tests.zoo.states import final_state

pytest.importorskip("jax")

SHORT = "heatup_steps=EnvironmentSteps(64); improve_steps=EnvironmentSteps({}); evaluation_steps=EnvironmentEpisodes(0)"
PPO = "agent_params.algorithm.num_consecutive_playing_steps=EnvironmentSteps(96)"  # a second minibatch with padding


def coach(*words: str, devices: int = 2, flags: str = "") -> subprocess.CompletedProcess:
    """Run ``coach`` with a number of devices that JAX finds. :param flags: further flags of XLA"""
    xla = f"--xla_force_host_platform_device_count={devices} {flags}"
    # a kept program would not be compiled again, and XLA writes only the programs that it compiles
    environment = {**os.environ, "XLA_FLAGS": xla, "COACH_COMPILATION_CACHE": "off"}
    command = [sys.executable, "-m", "rl_coach", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def train(directory: pathlib.Path, preset: str, num_devices: int, steps: int, settings: str = "", flags: str = ""):
    custom = "; ".join(filter(None, [SHORT.format(steps), settings]))
    done = coach(
        "-p", preset, "-f", "jax", "--seed", "1", "-ep", str(directory.parent), "-e", directory.name,
        "--num_devices", str(num_devices), "-s", "100000", "-cp", custom, flags=flags,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_below(directory: pathlib.Path) -> pathlib.Path:
    (found,) = directory.glob("*/checkpoint")
    return found.parent


def assert_equal_numbers(one: pathlib.Path, other: pathlib.Path) -> None:
    states = [final_state(run_below(directory) / "checkpoint") for directory in (one, other)]
    of_networks = [path for path in states[0] if "/networks/" in path and isinstance(states[0][path], np.ndarray)]
    assert len(of_networks) > 6
    for path in of_networks:
        np.testing.assert_allclose(states[0][path], states[1][path], rtol=0, atol=1e-5, err_msg=path)


def assert_divided(printed: str, programs: pathlib.Path, rows: int) -> None:
    assert f"batches of {rows} rows are divided between 2 devices" in printed
    # XLA adds the devices' gradients: without a division, there would be nothing to add
    assert any("all-reduce" in file.read_text() for file in programs.glob("*after_optimizations.txt"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "steps", "settings", "rows"),
    [
        ("CartPole_DQN", 100, "", 32),
        ("CartPole_ClippedPPO", 200, PPO, 64),
        ("tuned/Pendulum_SAC", 100, "", 256),
    ],
)
def test_several_devices_make_the_updates_of_one(preset, steps, settings, rows, tmp_path):
    printed = train(tmp_path / "two", preset, 2, steps, settings, f"--xla_dump_to={tmp_path / 'programs'}")
    assert_divided(printed, tmp_path / "programs", rows)
    assert "divided" not in train(tmp_path / "one", preset, 1, steps, settings)
    assert_equal_numbers(tmp_path / "one", tmp_path / "two")


def test_a_run_on_two_devices_goes_on_with_one_and_learns_the_same(tmp_path):
    printed = train(tmp_path / "moved", "CartPole_DQN", 2, 60, flags=f"--xla_dump_to={tmp_path / 'programs'}")
    assert_divided(printed, tmp_path / "programs", 32)
    run = str(run_below(tmp_path / "moved"))
    refused = coach("--resume", run, devices=1)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1] == "coach: num_devices is 2, but JAX has only one device (cpu): use fewer"
    resumed = coach("--resume", run, "--num_devices", "1", "-cp", SHORT.format(100), devices=1)
    assert resumed.returncode == 0, resumed.stderr
    train(tmp_path / "one", "CartPole_DQN", 1, 100)
    assert_equal_numbers(tmp_path / "moved", tmp_path / "one")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["-p", "CartPole_DQN", "-f", "jax", "-cp", "agent_params.network_wrappers['main'].batch_size=33"],
            "num_devices is 2, which does not divide a batch of 33 rows: change num_devices or the batch size",
        ),
        (
            ["-p", "CartPole_DQN", "-f", "tensorflow"],
            "tensorflow learns on one device: leave out num_devices, or use the framework jax",
        ),
        (
            ["-p", "CartPole_ClippedPPO", "-f", "jax", "-lvl", "tests.zoo.function_environments:Walk",
             "-cp", "env_params.num_environments=3;"
             "agent_params.algorithm.num_consecutive_playing_steps=EnvironmentSteps(96)"],
            "num_devices is 2, which does not divide the 3 environments of the compiled loop: change num_devices or "
            "env_params.num_environments",
        ),
    ],
    ids=["batch", "framework", "environments"],
)  # fmt: skip
def test_work_that_cannot_be_divided_is_refused(words, message, tmp_path):
    done = coach(*words, "--num_devices", "2", "-ep", str(tmp_path))
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if not line.startswith("level ")]
    assert errors == [f"coach: {message}"]
