"""ViZDoom's scenarios: what they observe, that episodes repeat, and that the game outlives a Ctrl-C but not its run."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from rl_coach.base_parameters import TaskParameters, VisualizationParameters
from rl_coach.command_line import preset_catalogue
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.environments.doom_environment import (
    DoomEnvironment,
    DoomEnvironmentParameters,
    DoomInputFilter,
    DoomLevel,
    DoomOutputFilter,
    scenario_file,
)
from rl_coach.installation import install_command
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import environment_of

CAMERAS = DoomEnvironment.CameraTypes
IS_INSTALLED = importlib.util.find_spec("vizdoom") is not None
with_vizdoom = pytest.mark.skipif(not IS_INSTALLED, reason=f"ViZDoom is not installed: {install_command('doom')}")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc lists the processes")


def settings(level: str = "basic", **changes: Any) -> DoomEnvironmentParameters:
    made = DoomEnvironmentParameters(level)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def play(environment: Any, steps: int) -> list[tuple[float, bool, bool, bytes]]:
    """Steps of a fixed series of actions, with new episodes where they end."""
    found, actions = [], environment.action_space.actions
    for step in range(steps):
        response = environment.step(actions[step * 7 % len(actions)])
        image = np.asarray(response.next_state["observation"]).tobytes()
        found.append((response.reward, response.game_over, response.terminated, image))
        if response.game_over:
            environment.reset_internal_state()
    return found


@pytest.mark.skipif(IS_INSTALLED, reason="ViZDoom is installed")
def test_without_vizdoom_the_command_that_installs_it_is_named():
    with pytest.raises(CoachError, match=r"the package 'vizdoom' of the extra 'doom' is not installed: .*pip install"):
        environment_of(settings())


def test_levels_are_files_of_vizdoom_or_of_ones_own(tmp_path, monkeypatch):
    scenarios, root = tmp_path / "scenarios", tmp_path / "root"
    scenarios.mkdir()
    (root / "scenarios").mkdir(parents=True)
    for level in DoomLevel:
        if not level.name.endswith("COACH_LOCAL"):
            (scenarios / level.value).touch()
            assert scenario_file(level.name.lower(), scenarios) == scenarios / level.value
    with pytest.raises(CoachError, match="no level 'basik'; did you mean 'BASIC'"):
        scenario_file("basik", scenarios)
    with pytest.raises(
        CoachError, match=r"needs D3_battle\.cfg, which came with Coach 1\.0\.1 .*\$VIZDOOM_ROOT/scenarios"
    ):
        scenario_file("BATTLE_COACH_LOCAL", scenarios)
    with pytest.raises(CoachError, match=r"there is no scenario file '.*mine.cfg'"):
        scenario_file(str(tmp_path / "mine.cfg"), scenarios)
    (tmp_path / "mine.cfg").touch()
    assert scenario_file(str(tmp_path / "mine.cfg"), scenarios) == tmp_path / "mine.cfg"
    supreme = "HEALTH_GATHERING_SUPREME_COACH_LOCAL"
    assert scenario_file(supreme, scenarios).name == "health_gathering_supreme.cfg"
    monkeypatch.setenv("VIZDOOM_ROOT", str(root))
    (root / "scenarios" / "D2_navigation.cfg").touch()
    assert scenario_file(supreme, scenarios) == root / "scenarios" / "D2_navigation.cfg"


@with_vizdoom
def test_observations_actions_and_filters():
    environment = environment_of(settings(cameras=list(CAMERAS)))
    spaces = environment.state_space.sub_spaces
    assert list(spaces) == ["observation", "depth", "labels", "map", "measurements"]
    for camera in CAMERAS:
        image = environment.state[camera.value[0]]
        assert image.shape == tuple(spaces[camera.value[0]].shape) == (120, 160, 3) and image.dtype == np.uint8
    assert np.array_equal(environment.state["depth"][..., 0], environment.state["depth"][..., 2])
    assert spaces["measurements"].measurements_names == ["GameVariable.AMMO2"]
    assert environment.state["measurements"].tolist() == [50]
    filtered = DoomInputFilter.get_filtered_observation_space("observation", spaces["observation"])
    assert tuple(filtered.shape) == (60, 76, 3)
    actions = DoomOutputFilter.get_unfiltered_action_space(environment.action_space)
    assert actions.descriptions == ["no-op", "MOVE_LEFT", "MOVE_RIGHT", "ATTACK"]
    assert environment.get_rendered_image().shape == (480, 160, 3)
    environment.close()


@with_vizdoom
def test_several_buttons_may_be_held_together():
    environment = environment_of(settings("deadly_corridor", max_simultaneous_buttons=2))
    assert environment.action_space.num_actions == 1 + 7 + 21
    assert environment.action_space.get_description([0, 0, 1, 1, 0, 0, 0]) == "ATTACK + MOVE_FORWARD"
    play(environment, 30)
    environment.close()
    without_measurements = environment_of(settings("my_way_home"))
    assert list(without_measurements.state) == ["observation"]
    without_measurements.close()


@with_vizdoom
def test_an_episode_is_that_of_vizdooms_own_loop():
    """``basic`` costs 1 for each tic, 5 for a shot that misses, and ends without a state after 300 tics."""
    import vizdoom

    environment = environment_of(settings(), seed=3)
    own = vizdoom.DoomGame()
    own.load_config(os.path.join(vizdoom.scenarios_path, "basic.cfg"))
    own.set_window_visible(False)
    own.set_doom_config_path(os.devnull)
    own.set_seed(int(np.random.default_rng(3).integers(2**31)))
    own.init()
    own.new_episode()
    rewards, responses = [], []
    while not own.is_episode_finished():
        rewards.append(own.make_action([1, 0, 0], 4))
        responses.append(environment.step([1, 0, 0]))
    assert [response.reward for response in responses] == rewards and sum(rewards) == -300
    assert [response.game_over for response in responses] == [False] * 74 + [True]
    assert not responses[-1].terminated  # the time was over
    own.close()
    environment.close()


@with_vizdoom
def test_a_death_is_no_time_limit():
    environment = environment_of(settings("health_gathering"))
    response = environment.step([0, 0, 0])
    while not response.game_over:
        response = environment.step([0, 0, 0])
    assert response.terminated and response.reward < 0 and environment.current_episode_steps_counter < 2100 / 4
    environment.close()


@with_vizdoom
def test_seeds_repeat_runs_and_states_go_on_where_they_were():
    environment, same, other = (environment_of(settings("defend"), seed) for seed in (1, 1, 2))
    for one in (environment, same, other):
        one.phase = RunPhase.TRAIN
        one.reset_internal_state()
    found = play(environment, 130)
    assert found == play(same, 130) and found != play(other, 130)
    episode = environment.get_episode_state()
    assert episode is not None
    following = play(environment, 150)
    assert other.set_episode_state(episode)
    assert play(other, 150) == following
    for one in (environment, same, other):
        one.close()


def games() -> set[int]:
    """Processes of ViZDoom's program that work in a directory of this environment's."""
    found = set()
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes().split(b"\0")[0].decode()
            works_in = os.readlink(directory / "cwd")
        except OSError:  # it has ended
            continue
        if pathlib.PurePath(command).name == "vizdoom" and "coach-doom-" in works_in:
            found.add(int(directory.name))
    return found


def is_under(process: int, ancestor: int) -> bool:
    """True if a process is a descendant of another. False if it has ended."""
    while process > 1 and process != ancestor:
        try:
            status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        except OSError:
            return False
        process = int(status.partition("PPid:")[2].split()[0])
    return process == ancestor


def game_of(run: int) -> int:
    """The process of the only game of a run; tests in other processes have other games."""
    (number,) = (game for game in games() if is_under(game, run))
    return number


def wait_until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    assert condition()


@with_vizdoom
@on_linux
def test_the_game_has_a_session_of_its_own_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environment = environment_of(settings())
    number = game_of(os.getpid())
    assert os.getsid(number) == number != os.getsid(0)
    directory = os.readlink(f"/proc/{number}/cwd")
    environment.close()
    wait_until(lambda: number not in games())
    assert not os.path.exists(directory) and list(tmp_path.iterdir()) == []


PLAYING = """
import time
from tests.environments.test_doom_environment import environment_of, settings
environment = environment_of(settings())
print("ready", flush=True)
time.sleep(600)
"""


@with_vizdoom
@on_linux
def test_the_game_ends_with_a_run_that_is_killed():
    run = subprocess.Popen(
        [sys.executable, "-c", PLAYING], stdout=subprocess.PIPE, text=True, env=environment_variables()
    )
    assert run.stdout is not None and "ready" in run.stdout.readline()
    number = game_of(run.pid)
    run.kill()
    run.wait()
    wait_until(lambda: number not in games())


def environment_variables() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@with_vizdoom
def test_a_run_saves_itself_after_ctrl_c(tmp_path):
    """The terminal's signal goes to all processes of the run's group."""
    preset = preset_catalogue.preset_directory() / "Doom_Basic_DQN.py"
    command = [sys.executable, "-m", "rl_coach.coach", "-p", str(preset), "-e", "doom", "-ep", str(tmp_path)]
    command += ["-f", str(FRAMEWORK.name), "-cp", "heatup_steps=EnvironmentSteps(100000)"]
    log = tmp_path / "log.txt"
    with open(log, "w", encoding="utf-8") as output:
        run = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, env=environment_variables()
        )
        try:
            wait_until(lambda: re.search(r"episode \d+ \| steps \d", log.read_text(encoding="utf-8")) or run.poll())
            os.killpg(run.pid, signal.SIGINT)
            assert run.wait(120) == 130, log.read_text(encoding="utf-8")
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
    assert list(tmp_path.glob("doom/*/checkpoint/*.ckpt")), log.read_text(encoding="utf-8")


@with_vizdoom
@pytest.mark.parametrize(
    "preset", [name for name in preset_catalogue.list_all_presets() if name.startswith("Doom_") and "_BC" not in name]
)
@pytest.mark.slow
def test_presets_play_and_learn(preset, tmp_path):
    manager = preset_catalogue.load(preset)
    if preset == "Doom_Battle_DFP":
        with pytest.raises(CoachError, match=r"needs D3_battle\.cfg"):
            manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=0))
        return
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=0))
    manager.heatup(EnvironmentSteps(100))
    manager.train_and_act(EnvironmentSteps(600 if "Health" in preset else 80))
    assert manager.get_agent().training_iteration > 0
    manager.close()


@with_vizdoom
def test_a_rendered_game_has_a_larger_picture_and_the_same_observations(tmp_path):
    shown = VisualizationParameters(dump_gifs=True)
    environment = DoomEnvironment(
        "basic", 0, 4, False, None, shown, [CAMERAS.OBSERVATION], experiment_path=str(tmp_path)
    )
    assert environment.get_rendered_image().shape == (240, 320, 3)
    small = environment_of(settings())
    assert repr(environment.state_space) == repr(small.state_space)
    assert environment.state["observation"].shape == (120, 160, 3)
    small.close()
    environment.close()
