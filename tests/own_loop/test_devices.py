"""Several devices share the batches of an agent in a user's loop.

JAX reads the number of devices at its first use, so each script is a process of its own.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("jax")

BEGIN = """
import numpy as np
from gymnasium.spaces import Box, Discrete
from rl_coach import Agent, make_agent
from rl_coach.utils import CoachError

PLACE = Box(-1, 1, (3,), np.float32)

def agent_on(num_devices, algorithm="DQN", framework="jax", **settings):
    settings = {"observation_space": PLACE, "action_space": Discrete(2), "seed": 1, **settings}
    return make_agent(algorithm, framework=framework, num_devices=num_devices, **settings)

def play(agent, steps):
    rng = np.random.default_rng(agent.total_steps)
    for step in range(steps):
        agent.act(rng.uniform(-1, 1, 3))
        agent.observe(rng.normal(), step % 8 == 7)

def assert_equal_weights(one, other):
    for name, arrays in one.get_weights().items():
        for array, its in zip(arrays, other.get_weights()[name], strict=True):
            np.testing.assert_allclose(array, its, rtol=0, atol=1e-5, err_msg=name)
"""


def run(script: str, devices: int, flags: str = "") -> str:
    """What a script prints, if JAX finds a number of devices. :param flags: further flags of XLA"""
    xla = f"--xla_force_host_platform_device_count={devices} {flags}"
    environment = {**os.environ, "XLA_FLAGS": xla, "COACH_COMPILATION_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_devices_make_the_updates_of_one_and_one_goes_on(tmp_path: pathlib.Path):
    saved, programs = tmp_path / "saved", tmp_path / "programs"
    script = f"""
one, two = agent_on(1), agent_on(2)
play(one, 60)
play(two, 60)
assert one.total_updates == two.total_updates > 10
assert_equal_weights(one, two)
two.save({str(saved)!r})
"""
    printed = run(script, 2, f"--xla_dump_to={programs}")
    assert printed.count("batches of 32 rows are divided between 2 devices") == 1
    # XLA adds the devices' gradients: without a division, there would be nothing to add
    assert any("all-reduce" in file.read_text() for file in programs.glob("*after_optimizations.txt"))
    script = f"""
one = agent_on(None)
play(one, 60)
play(one, 20)
try:
    Agent.load({str(saved)!r})
except CoachError as error:
    print(error)
moved = Agent.load({str(saved)!r}, num_devices=1)
play(moved, 20)
assert one.total_updates == moved.total_updates > 15
assert_equal_weights(one, moved)
"""
    assert "num_devices is 2, but JAX has only one device (cpu): use fewer\n" in run(script, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("0", "task_parameters.num_devices is 0; it must be None or a whole number from 1"),
        ("3", "num_devices is 3, but JAX has only 2 devices (cpu): use fewer"),
        (
            "2, framework='tensorflow'",
            "tensorflow learns on one device: leave out num_devices, or use the framework jax",
        ),
        (
            "2, batch_size=33",
            "num_devices is 2, which does not divide a batch of 33 rows: change num_devices or the batch size",
        ),
        ("2, 'ARS'", "agent 'agent' has no batches that devices could share: leave out num_devices"),
    ],
    ids=["none", "missing", "framework", "batch", "algorithm"],
)
def test_work_that_cannot_be_divided_is_refused(arguments, message):
    script = f"""
try:
    play(agent_on({arguments}), 60)
except CoachError as error:
    print(error)
"""
    assert run(script, 2).splitlines()[-1] == message
