"""The DeepMind Control Suite: what its tasks observe, how their episodes end, and that these repeat."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from rl_coach.base_parameters import TaskParameters
from rl_coach.command_line import preset_catalogue
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.environments.control_suite_environment import (
    ControlSuiteEnvironmentParameters,
    ObservationType,
    control_suite_envs,
)
from rl_coach.installation import install_command
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import environment_of

IS_INSTALLED = importlib.util.find_spec("dm_control") is not None
REASON = f"the DeepMind Control Suite is not installed: {install_command('control')}"
with_suite = pytest.mark.skipif(not IS_INSTALLED, reason=REASON)


def settings(level: str = "pendulum:swingup", **changes: Any) -> ControlSuiteEnvironmentParameters:
    made = ControlSuiteEnvironmentParameters(level)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def play(environment: Any, steps: int) -> list[tuple[float, bool, bool, list[float]]]:
    found = []
    for step in range(steps):
        response = environment.step(np.full(environment.action_space.shape, np.sin(step)))
        state = response.next_state["measurements"].tolist()
        found.append((response.reward, response.game_over, response.terminated, state))
        if response.game_over:
            environment.reset_internal_state()
    return found


@pytest.mark.skipif(IS_INSTALLED, reason="the DeepMind Control Suite is installed")
def test_without_the_suite_the_command_that_installs_it_is_named():
    with pytest.raises(CoachError, match="dm-control"):
        environment_of(settings())


@with_suite
def test_the_levels_are_the_suites_benchmark():
    from dm_control import suite

    assert sorted(control_suite_envs) == sorted(":".join(pair) for pair in suite.BENCHMARKING)
    with pytest.raises(CoachError, match="no level 'pendulum:swing'; did you mean 'pendulum:swingup'"):
        environment_of(settings("pendulum:swing"))


@with_suite
def test_measurements_are_all_that_the_task_observes():
    environment = environment_of(settings("hopper:hop"), seed=1)
    assert environment.state_space["measurements"].shape.tolist() == [6 + 7 + 2]
    assert environment.action_space.low.tolist() == [-1] * 4
    observed = environment.env.task.get_observation(environment.env.physics)
    expected = np.concatenate([np.ravel(part) for part in observed.values()])
    assert environment.state["measurements"] == pytest.approx(expected.astype(np.float32))
    environment.close()


@with_suite
def test_the_time_limit_truncates_and_rewards_of_a_held_action_are_added():
    single = environment_of(settings("cartpole:balance", frame_skip=1), seed=3)
    rewards = [single.step(np.zeros(1)).reward for _ in range(4)]
    held = environment_of(settings("cartpole:balance", frame_skip=4), seed=3)
    assert held.step(np.zeros(1)).reward == pytest.approx(sum(rewards))
    for number in range(2, 251):
        response = held.step(np.zeros(1))
        assert response.game_over is (number == 250) and not response.terminated
    single.close()
    held.close()


@with_suite
def test_equal_seeds_give_equal_episodes_and_other_seeds_others():
    environments = [environment_of(settings(), seed=seed) for seed in (1, 1, 2)]
    first, second, third = (play(one, 30) for one in environments)
    assert first == second != third
    for one in environments:
        one.phase = RunPhase.TRAIN
        one.seed_episodes(7)
        one.reset_internal_state(True)
    assert play(environments[0], 20) == play(environments[1], 20)
    # an episode that a checkpoint holds goes on as it would have
    going_on, restored = environments[0], environments[2]
    restored.set_state(going_on.get_state())
    assert restored.set_episode_state(going_on.get_episode_state())
    assert play(going_on, 300) == play(restored, 300)  # the next one too
    for one in environments:
        one.close()


@with_suite
def test_images_are_observed_where_they_can_be_drawn():
    """In a process of its own, since OpenGL is chosen when dm_control is imported."""
    program = (
        "from rl_coach.environments.control_suite_environment import *\n"
        "from tests.zoo.environments import environment_of\n"
        "made = ControlSuiteEnvironmentParameters('cartpole:swingup')\n"
        f"made.observation_type = ObservationType.{ObservationType.Image_and_Measurements.name}\n"
        "environment = environment_of(made, seed=1)\n"
        "print(environment.state['pixels'].shape, environment.state['pixels'].std() > 1, sorted(environment.state))\n"
    )
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env={**os.environ, "MUJOCO_GL": "egl"}, capture_output=True, text=True, timeout=120)
    if run.returncode != 0 and ("EGL" in run.stderr or "OpenGL" in run.stderr):
        pytest.skip("no OpenGL by EGL on this machine")
    assert run.stdout.splitlines()[-1:] == ["(84, 84, 3) True ['measurements', 'pixels']"], run.stderr[-2000:]


@with_suite
def test_the_preset_of_coach_learns(tmp_path):
    manager = preset_catalogue.load("ControlSuite_DDPG")
    manager.env_params.level.select("cartpole:swingup")
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=1))
    manager.heatup(EnvironmentSteps(100))
    manager.train_and_act(EnvironmentSteps(40))
    assert manager.get_agent().optimizer_steps == 40
    manager.close()
