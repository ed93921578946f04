"""robosuite: what its tasks observe and what actions do, and ``CubeExp``, the task of our own."""

from __future__ import annotations

import importlib.util
import os
import pathlib
from typing import Any

import numpy as np
import pytest

from rl_coach.core_types import RunPhase
from rl_coach.environments.robosuite_environment import (
    OptionalObservations,
    RobosuiteBaseParameters,
    RobosuiteEnvironmentParameters,
    RobosuiteGoalBasedExpEnvironmentParameters,
    controller_file,
    get_robosuite_env_extra_parameters,
    robosuite_controllers,
    robosuite_environments,
    robosuite_robots,
)
from rl_coach.installation import install_command
from rl_coach.utils import CoachError
from tests.zoo.environments import environment_of

IS_INSTALLED = importlib.util.find_spec("robosuite") is not None
with_robosuite = pytest.mark.skipif(
    not IS_INSTALLED, reason=f"robosuite is not installed: {install_command('robosuite')}"
)
draws = pytest.mark.skipif(
    os.environ.get("MUJOCO_GL") not in ("egl", "osmesa"), reason="MUJOCO_GL is not egl or osmesa"
)


def settings(level: str = "Lift", **changes: Any) -> RobosuiteEnvironmentParameters:
    made = RobosuiteEnvironmentParameters(level, robot="Panda")
    made.base_parameters.use_object_obs, made.base_parameters.ignore_done = True, False
    made.frame_skip = 1
    for name, value in changes.items():
        setattr(made if hasattr(made, name) else made.base_parameters, name, value)
    return made


def exploring(**changes: Any) -> RobosuiteEnvironmentParameters:
    made = settings("CubeExp", control_freq=2, **changes)
    made.custom_controller_config_fpath = "./rl_coach/environments/robosuite/osc_pose.json"
    return made


@pytest.mark.skipif(IS_INSTALLED, reason="robosuite is installed")
def test_without_robosuite_the_command_that_installs_it_is_named():
    with pytest.raises(
        CoachError, match=r"robosuite is not installed: .*pip install .*, in an environment without JAX"
    ):
        environment_of(settings())


@pytest.mark.skipif(IS_INSTALLED, reason="robosuite is installed")
def test_a_package_that_robosuite_needs_is_named(tmp_path, monkeypatch):
    (tmp_path / "robosuite.py").write_text("import package_of_robosuite")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CoachError, match="robosuite cannot be imported: the package 'package_of_robosuite'"):
        environment_of(settings())


def test_optional_observations_are_a_view_of_the_two_settings():
    made = RobosuiteBaseParameters(OptionalObservations.CAMERA | OptionalObservations.OBJECT)
    assert made.use_camera_obs and made.use_object_obs and made.has_offscreen_renderer
    made.optional_observations = OptionalObservations.OBJECT
    assert not made.use_camera_obs and not made.has_offscreen_renderer
    assert made.optional_observations is OptionalObservations.OBJECT
    sent = made.env_kwargs_dict()
    assert sent["use_object_obs"] is True and sent["horizon"] == 1000 and "optional_observations" not in sent


def test_the_path_of_a_controller_in_the_repository_is_found_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = controller_file("./rl_coach/environments/robosuite/osc_pose.json")
    assert found.is_file() and found.name == "osc_pose.json"
    pathlib.Path("mine.json").write_text("{}")
    assert controller_file("mine.json") == pathlib.Path("mine.json")
    with pytest.raises(CoachError, match=r"no file 'others/osc_pose\.json' with controller settings"):
        controller_file("others/osc_pose.json")


@with_robosuite
def test_the_names_are_robosuites():
    import robosuite

    assert {*robosuite_environments} == {*robosuite.ALL_ENVIRONMENTS, "CubeExp"}
    assert {*robosuite_robots} <= {*robosuite.ALL_ROBOTS}
    assert {*robosuite_controllers} == {*robosuite.ALL_PART_CONTROLLERS}


@with_robosuite
@pytest.mark.parametrize(
    "changes, message",
    [
        ({"level": "Lifts"}, "no level 'Lifts'; did you mean 'Lift'"),
        ({"robot": "Pandas"}, "no robot 'Pandas'; did you mean 'Panda'"),
        ({"robot": None}, "no robot is selected: set env_params.robot to one of Baxter"),
        ({"controller": "OSC"}, "no controller 'OSC'; it has JOINT_VELOCITY"),
        ({"custom_controller_config_fpath": "no.json"}, "no file 'no.json' with controller settings"),
    ],
)
def test_names_that_do_not_exist_are_one_line(changes, message):
    with pytest.raises(CoachError, match=message):
        environment_of(settings(**changes))


@with_robosuite
def test_measurements_are_what_the_robot_feels_and_where_the_cube_is():
    environment = environment_of(settings())
    state = environment.state["measurements"]
    assert state.shape == tuple(environment.state_space["measurements"].shape) == (44,)
    assert state[-10:-7] == pytest.approx(environment._task.sim.data.body_xpos[environment._task.cube_body_id])
    assert environment_of(settings(use_joint_vel_obs=True)).state["measurements"].shape == (44 + 7 + 7 + 2,)
    assert environment_of(settings(use_object_obs=False)).state["measurements"].shape == (34,)
    assert environment.action_space.low.tolist() == [-1] * 7
    assert environment_of(settings(controller="OSC_POSITION")).action_space.low.tolist() == [-1] * 4


@with_robosuite
def test_a_horizon_of_the_extra_parameters_truncates():
    environment = environment_of(settings(extra_parameters={"horizon": 2}), 3)
    ends = [environment.step(environment.get_random_action()) for _ in range(2)]
    assert [(end.game_over, end.terminated) for end in ends] == [(False, False), (True, False)]


@with_robosuite
def test_the_horizon_truncates_and_rewards_of_a_held_action_are_added():
    single, held = environment_of(settings(horizon=4), 3), environment_of(settings(horizon=4, frame_skip=3), 3)
    action = np.full(7, 0.1)
    rewards = [single.step(action).reward for _ in range(3)]
    first, second = held.step(action), held.step(action)
    assert first.reward == pytest.approx(sum(rewards)) and not first.game_over
    assert second.game_over and not second.terminated


@with_robosuite
def test_equal_seeds_give_equal_episodes_and_other_seeds_others():
    def play(seed: int) -> list[float]:
        environment = environment_of(settings(extra_parameters={"hard_reset": False}), seed)
        environment.phase, found = RunPhase.TRAIN, []
        for _ in range(2):
            environment.reset_internal_state()
            for step in range(3):
                found += environment.step(np.full(7, np.sin(step))).next_state["measurements"].tolist()
        environment.close()
        return found

    assert play(1) == play(1) != play(2)


@with_robosuite
def test_the_hand_of_cube_exp_moves_shut_and_must_not_touch_the_table():
    environment = environment_of(exploring(horizon=50))
    assert environment.action_space.low.tolist() == [-1] * 3
    cube = environment._task.sim.data.body_xpos[environment._task.cube_body_id].copy()
    assert cube[:2].tolist() == [0, 0]
    first = environment._task._get_observations()
    before, opened = first["robot0_eef_pos"][0], first["robot0_gripper_qpos"][0]
    response = environment.step(np.array([-0.5, 0.0, 0.0]))
    after = environment._task._get_observations()["robot0_eef_pos"][0]
    assert before - after == pytest.approx(0.5 * 0.125, abs=0.02)
    assert response.reward == 0 and not response.game_over
    # the first action ends 4 cm above the table, which the second one meets; then the hand leans on it
    rewards = [environment.step(np.array([0.0, 0.0, -1.0])).reward for _ in range(4)]
    assert rewards == [0, -1, -1, -1]
    shut = environment._task._get_observations()["robot0_gripper_qpos"][0]
    assert opened == pytest.approx(0.0208, abs=1e-4) and shut == pytest.approx(0.0105, abs=1e-3)
    ending = exploring(horizon=50, end_episode_on_collision=True, penalize_reward_on_collision=False)
    environment = environment_of(ending)
    above, met = (environment.step(np.array([0.0, 0.0, -1.0])) for _ in range(2))
    assert not above.game_over and met.terminated and met.reward == 0


@with_robosuite
def test_with_randomized_domains_the_camera_moves():
    environment = environment_of(settings(apply_dr=True, dr_every_n_steps_min=1, dr_every_n_steps_max=1))
    before = environment._task.sim.model.cam_pos.copy()
    environment.step(np.zeros(7))
    assert not np.array_equal(environment._task.sim.model.cam_pos, before)


@with_robosuite
@draws
def test_cameras_and_goals():
    made = RobosuiteGoalBasedExpEnvironmentParameters("CubeExp", robot="Panda")
    made.base_parameters.camera_depths = True
    with pytest.raises(CoachError, match="goals are images"):
        environment_of(made)
    made.base_parameters.optional_observations = OptionalObservations.CAMERA
    environment = environment_of(made)
    assert environment.state["camera"].shape == (84, 84, 4) and environment.state["camera"].std() > 1
    assert environment.state["obs-goal"].shape == (84, 84, 8) and not environment.state["obs-goal"].any()
    for name, value in environment.state.items():
        assert environment.state_space[name].val_matches_space_definition(value), name
    picture = environment.get_rendered_image()
    assert picture.shape == (240, 320, 3) and picture.std() > 1


@with_robosuite
def test_extra_parameters_are_those_of_the_task():
    found = get_robosuite_env_extra_parameters("Lift")
    assert found["table_full_size"] == (0.8, 0.8, 0.05) and found["hard_reset"] is True
    assert not {"horizon", "robots", "camera_names"} & set(found)
    assert get_robosuite_env_extra_parameters("CubeExp")["table_full_size"] == (0.84, 1.25, 0.05)
