"""CARLA: what an agent sees and does, with a simulated server. No test starts CARLA's own server."""

from __future__ import annotations

import importlib.util
import math
import os
import signal
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rl_coach.core_types import RunPhase
from rl_coach.environments import carla_environment
from rl_coach.environments.carla_environment import (
    CameraTypes,
    CarlaEnvironmentParameters,
    CarlaInputFilter,
    start_server,
    view_from_above,
)
from rl_coach.environments.carla_routes import Command, CoRL2017, plan
from rl_coach.installation import install_command
from rl_coach.utils import CoachError
from tests.zoo import carla_server
from tests.zoo.environments import environment_of

IS_INSTALLED = importlib.util.find_spec("carla") is not None


@pytest.fixture
def worlds(monkeypatch):
    """The worlds of the servers by their address."""
    return carla_server.install(monkeypatch)


def settings(**changes: Any) -> CarlaEnvironmentParameters:
    made = CarlaEnvironmentParameters()
    made.num_speedup_steps, made.verbose = 0, False
    for name, value in changes.items():
        setattr(made, name, value)
    return made


@pytest.mark.skipif(IS_INSTALLED, reason="CARLA's client is installed")
def test_without_the_client_the_command_that_installs_it_is_named():
    with pytest.raises(CoachError, match=r"the package 'carla' of the extra 'carla' is not installed: .*pip install"):
        environment_of(settings())


@pytest.mark.skipif(not IS_INSTALLED, reason=f"CARLA's client is not installed: {install_command('carla')}")
def test_the_simulated_client_has_no_names_that_the_real_one_lacks():
    import carla

    for simulated in carla_server.CLASSES:
        real = getattr(carla, simulated.__name__)
        own = {"move", "tell", "weathers", "worlds", "actors", "speed", "control", "callback", "address", "seconds"}
        names = {name for name in vars(simulated) if not name.startswith("_")} - own
        assert [name for name in names if not hasattr(real, name)] == [], simulated.__name__
    for weather in carla_environment._WEATHERS:
        assert hasattr(carla.WeatherParameters, weather)
    for _, _, _, conversion in carla_environment._SENSORS.values():
        assert conversion is None or hasattr(carla.ColorConverter, conversion)
    turned = carla.Transform(carla.Location(2.0, 0.0, 1.4), carla.Rotation(pitch=-15, yaw=30)).get_forward_vector()
    assert (turned.y, turned.z) == pytest.approx((math.sin(math.pi / 6) * math.cos(math.pi / 12), -0.2588), abs=1e-4)
    control = carla.VehicleControl(throttle=0.25, steer=-0.5, brake=0.0)
    assert (control.throttle, control.steer) == (0.25, -0.5)
    made = carla.WorldSettings()
    made.synchronous_mode, made.fixed_delta_seconds = True, 1 / 30
    assert made.fixed_delta_seconds == pytest.approx(1 / 30)


def test_the_town_is_loaded_and_its_server_waits_for_each_step(worlds):
    environment = environment_of(settings(level="town2"))
    (world,) = worlds.values()
    assert world.map.name == "Carla/Maps/Town02"
    assert world.settings.synchronous_mode and world.settings.fixed_delta_seconds == pytest.approx(1 / 30)
    frame = world.frame
    environment.step(np.array([0.0, 1.0]))
    assert world.frame == frame + 3
    environment.close()
    assert world.actors == [] and not world.settings.synchronous_mode
    environment_of(settings(level="Town02")).close()
    assert next(iter(worlds.values())) is world  # which had the town already


def test_each_environment_has_a_server_of_its_own(worlds, monkeypatch):
    worlds["localhost", 2002] = carla_server.World("Carla/Maps/Town01")
    monkeypatch.setenv("CARLA_SERVER", "localhost:2000, localhost:2002")
    first, second = environment_of(settings()), environment_of(settings())
    assert [one.world for one in (first, second)] == list(worlds.values())
    with pytest.raises(CoachError, match="server at localhost:2000, localhost:2002 is in use by another environment"):
        environment_of(settings())
    first.close()
    environment_of(settings()).close()
    second.close()


def test_a_town_that_does_not_exist_and_a_server_that_does_not_answer(worlds, monkeypatch):
    with pytest.raises(CoachError, match="no map 'Town99'; it has Town01, Town02, Town10HD_Opt"):
        environment_of(settings(level="Town99"))
    monkeypatch.setenv("CARLA_SERVER", "elsewhere:3000")
    with pytest.raises(CoachError, match=r"elsewhere:3000 does not answer: time-out of 60000ms .*CARLA_ROOT"):
        environment_of(settings())
    monkeypatch.setenv("CARLA_SERVER", "3000")
    with pytest.raises(CoachError, match="CARLA_SERVER has '3000'; it must be host:port"):
        environment_of(settings())


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"experiment_suite": object()}, r"env_params.experiment_suite must be a CoRL2017 of rl_coach"),
        ({"config": "CarlaSettings.ini"}, r"env_params.config is a setting of CARLA 0\.8"),
        ({"weather_id": [15]}, "no weather 15; weather_id has numbers from 0 to 14"),
        ({"cameras": ["front"]}, "no camera 'front'; the cameras are forward_camera, left_camera"),
    ],
)
def test_settings_that_cannot_be_met_are_one_line(worlds, changes, message):
    with pytest.raises(CoachError, match=message):
        environment_of(settings(**changes))


def test_cameras_see_the_frame_that_was_computed_last(worlds):
    environment = environment_of(settings(cameras=list(CameraTypes), camera_height=4, camera_width=6))
    for _ in range(30):
        environment.step(np.array([0.0, 1.0]))
    x = environment.state["measurements"][1]
    assert x > 20
    for name, turned in (("forward_camera", 0), ("left_camera", 256 - 30), ("right_camera", 30)):
        assert environment.state[name].shape == (4, 6, 3)
        assert environment.state[name][0, 0].tolist() == [7, turned, int(x)]  # red, green, blue
    assert environment.state["segmentation"].max() == 70 and environment.state["depth"].min() == 90
    assert environment.state["lidar"].shape == (4, 6, 1) and environment.state["lidar"].sum() == 255
    for name, value in environment.state.items():
        assert environment.state_space[name].val_matches_space_definition(value), name
    assert environment.get_rendered_image().shape == (4, 6 * 6, 3)


def test_the_view_from_above_has_the_front_at_the_top():
    points = np.array([[49, 0, 0, 1], [0, 49, 0, 1], [60, 0, 0, 1]], np.float32)
    assert np.argwhere(view_from_above(points, (10, 10))[..., 0]).tolist() == [[0, 5], [5, 9]]
    assert view_from_above(np.zeros((0, 4), np.float32), (10, 10)).sum() == 0


def test_the_reward_is_the_speed_less_what_is_done_wrong(worlds):
    environment = environment_of(settings())
    response = environment.step(np.array([0.0, 1.0]))
    assert response.reward == pytest.approx(carla_server.ACCELERATION * 0.1 - 1)
    assert response.next_state["measurements"][0] == pytest.approx(carla_server.ACCELERATION * 0.1)
    assert environment.step(np.array([0.5, 0.0])).reward == pytest.approx(0.6 - 1 - 5)
    place = environment.car.transform.location
    place.y = -1.0
    assert environment.step(np.array([0.0, 0.0])).reward == pytest.approx(0.6 - 1 - 5)  # the other lane
    place.y = 9.0
    assert environment.step(np.array([0.0, 0.0])).reward == pytest.approx(0.6 - 1 - 5)  # off the road
    place.x, place.y = 55.0, -1.0
    assert environment.step(np.array([0.0, 0.0])).reward == pytest.approx(0.6 - 1)  # lanes cross in a junction


def test_a_collision_terminates_and_time_truncates(worlds):
    environment = environment_of(settings(max_speed=200.0))
    response = environment.step(np.array([0.0, 1.0]))
    while not response.game_over:
        response = environment.step(np.array([0.0, 1.0]))
    assert response.terminated and response.reward < -60
    environment.close()
    short = environment_of(settings(episode_max_time=1000))
    ends = [short.step(np.array([0.0, 0.0])) for _ in range(10)]
    assert [one.game_over for one in ends] == [False] * 9 + [True] and not ends[-1].terminated


def test_throttle_brake_and_speed(worlds):
    environment = environment_of(settings(num_speedup_steps=5))
    assert environment.state["measurements"][0] == pytest.approx(5 * 0.1 * carla_server.ACCELERATION)
    environment.step(np.array([0.0, -1.0]))
    assert environment.car.control.brake == 0  # it may not brake
    environment.allow_braking = True
    environment.step(np.array([0.0, -0.5]))
    assert (environment.car.control.throttle, environment.car.control.brake) == (0, 0.5)
    environment.max_speed = 1.0
    environment.step(np.array([0.0, 1.0]))
    assert environment.car.control.throttle == 0
    environment.close()
    separate = environment_of(settings(separate_actions_for_throttle_and_brake=True, allow_braking=True))
    assert separate.action_space.low.tolist() == [-1, 0, 0]
    separate.step(np.array([0.1, 0.6, 0.2]))
    sent = separate.car.control
    assert (sent.steer, sent.throttle, sent.brake) == pytest.approx((0.1, 0.6, 0.2))


def test_keys_drive(worlds):
    environment = environment_of(settings())
    keys = carla_environment.key_map
    assert environment.keyboard.action_for(set(keys["GAS_AND_TURN_LEFT"])).tolist() == [-0.5, 1]
    assert environment.keyboard.action_for(set(keys["BRAKE"])).tolist() == [0, -1]
    assert environment.keyboard.action_for(set()).tolist() == [0, 0]


def test_equal_seeds_begin_at_equal_places_in_equal_weather(worlds):
    (world,) = worlds.values()

    def beginnings(seed: int) -> list[Any]:
        environment = environment_of(settings(weather_id=[1, 6], level="Town10HD_Opt"), seed=seed)
        environment.phase, found = RunPhase.TRAIN, []
        for _ in range(8):
            environment.reset_internal_state()
            found.append((float(environment.state["measurements"][1]), world.weathers[-1]))
        environment.close()
        return found

    assert beginnings(1) == beginnings(1) != beginnings(2)


def test_a_suite_drives_to_a_destination_by_commands(worlds):
    (world,) = worlds.values()
    environment = environment_of(settings(experiment_suite=CoRL2017("Town02"), cameras=["CameraRGB"]), seed=4)
    assert next(iter(worlds.values())).map.name.endswith("Town02") and world is not environment.world
    assert environment.state_space["high_level_command"].high.tolist() == [3]
    assert environment.world.weathers[0] in ("ClearNoon", "WetNoon", "HardRainNoon", "ClearSunset")
    assert environment.state["high_level_command"].tolist() == [Command.FOLLOW]
    assert environment.route.destination.x > environment.car.transform.location.x  # it does not drive backwards
    destination, places = environment.route.destination, carla_server.Location
    environment.route = plan(environment.map, places(0.0), places(58.0))
    environment.car.transform.location.x = 40.0
    assert environment.step(np.array([0.0, 0.0])).next_state["high_level_command"].tolist() == [Command.STRAIGHT]
    environment.route.destination = destination
    environment.car.transform.location.x = destination.x + 1
    response = environment.step(np.array([0.0, 0.0]))
    assert response.terminated and response.reward > -10


def waypoint(x: float, y: float, yaw: float, road: int) -> Any:
    """A waypoint of CARLA's; roads from 10 on are junctions."""
    place = carla_server.Transform(carla_server.Location(x, y), carla_server.Rotation(yaw=yaw))
    return SimpleNamespace(transform=place, is_junction=road >= 10, road_id=road, lane_id=-1)


class Crossing:
    """A road from the west to a crossing at x = 100, which goes on to the north, the east and the south (y = 50)."""

    def get_topology(self) -> list[Any]:
        def lead(road: int, x: float, y: float, yaw: float) -> list[Any]:
            far = (x + 40 * math.cos(math.radians(yaw)), y + 40 * math.sin(math.radians(yaw)))
            inside = (waypoint(100, 0, 0, road + 10), waypoint(x, y, yaw, road + 10))
            return [inside, (waypoint(x, y, yaw, road), waypoint(*far, yaw, road))]

        west = [(waypoint(0, 0, 0, 1), waypoint(100, 0, 0, 1))]
        return west + lead(2, 110, -10, -90) + lead(3, 120, 0, 0) + lead(4, 110, 10, 90)

    def get_waypoint(self, location: Any) -> Any:
        roads = {(110, -40): 2, (150, 0): 3, (110, 40): 4, (50, 50): 5}
        return waypoint(location.x, location.y, 0, roads.get((location.x, location.y), 1))


@pytest.mark.parametrize(
    "destination, command", [((110, -40), Command.LEFT), ((150, 0), Command.STRAIGHT), ((110, 40), Command.RIGHT)]
)
def test_a_route_commands_the_turn_before_the_crossing_and_until_it_is_through(destination, command):
    place = carla_server.Location
    route = plan(Crossing(), place(0, 0), place(*destination))
    exits = {Command.LEFT: (110, -10), Command.STRAIGHT: (120, 0), Command.RIGHT: (110, 10)}
    places = [(0, 0), (70, 0), (80, 0), (100, 0), exits[command], destination]
    found = [route.command(place(*one)) for one in places]
    assert found == [Command.FOLLOW, Command.FOLLOW, command, command, Command.FOLLOW, Command.FOLLOW]


def test_a_place_that_no_road_leads_to_has_no_route():
    assert plan(Crossing(), carla_server.Location(0, 0), carla_server.Location(50, 50)) is None


def test_filters_stack_grey_images(worlds):
    environment = environment_of(settings(camera_height=256, camera_width=360))
    space = CarlaInputFilter.get_filtered_observation_space("forward_camera", environment.state_space["forward_camera"])
    assert tuple(space.shape) == (128, 180, 3)


PROGRAM = """#!/bin/sh
echo "$@" > arguments.txt
exec {python} -c '
import socket, subprocess, sys, time
port = int(next(one for one in sys.argv if "rpc-port" in one).partition("=")[2])
listening = socket.create_server(("localhost", port))
child = subprocess.Popen(["sleep", "600"])
open("child.txt", "w").write(str(child.pid))
time.sleep(600)
' "$@"
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A directory of CARLA whose program listens, and starts another one."""
    program = tmp_path / "CarlaUE4.sh"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o700)
    monkeypatch.setenv("CARLA_ROOT", str(tmp_path))
    return tmp_path


def is_running(number: int) -> bool:
    try:
        with open(f"/proc/{number}/stat", encoding="utf-8") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    assert condition()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc lists the processes")
def test_a_server_is_started_in_a_session_of_its_own_and_ends_with_all_its_processes(root):
    server = start_server("Epic", 640, 480, has_window=False, verbose=False)
    arguments = (root / "arguments.txt").read_text().split()
    port = server.address[1]
    assert arguments == [f"-carla-rpc-port={port}", "-quality-level=Epic", "-ResX=640", "-ResY=480", "-RenderOffScreen"]
    assert os.getsid(server.process.pid) == server.process.pid
    wait_until(lambda: (root / "child.txt").exists() and (root / "child.txt").read_text())
    child = int((root / "child.txt").read_text())
    assert is_running(child)
    server.end()
    wait_until(lambda: not is_running(child))
    assert server.process.returncode == -signal.SIGKILL


def test_a_server_that_does_not_start_is_one_line(root, monkeypatch):
    (root / "CarlaUE4.sh").write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(CoachError, match=r"CarlaUE4\.sh ended with exit code 3 when it started"):
        start_server("Low", 1, 1, has_window=False, verbose=False)
    monkeypatch.setenv("CARLA_ROOT", str(root / "nothing"))
    with pytest.raises(CoachError, match=r"set it to the directory that has CarlaUE4\.sh"):
        start_server("Low", 1, 1, has_window=False, verbose=False)
