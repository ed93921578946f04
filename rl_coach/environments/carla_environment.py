"""Driving in the towns of CARLA (Dosovitskiy et al. 2017, "CARLA: an open urban driving simulator") with the client of
CARLA 0.9.

The client is imported when an environment is made, not with this module.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import time
from enum import Enum
from typing import Any, Sequence, Union

import numpy as np

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import ActionType
from rl_coach.environments import own_session
from rl_coach.environments.carla_routes import Command, CoRL2017, Route, distance, plan
from rl_coach.environments.environment import EnvironmentParameters, LevelSelection, SeededEnvironment
from rl_coach.environments.keyboard import DOWN, LEFT, RIGHT, UP
from rl_coach.filters.filter import InputFilter, NoOutputFilter
from rl_coach.filters.observation.observation_rescale_to_size_filter import ObservationRescaleToSizeFilter
from rl_coach.filters.observation.observation_rgb_to_y_filter import ObservationRGBToYFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.filters.observation.observation_to_uint8_filter import ObservationToUInt8Filter
from rl_coach.installation import import_package
from rl_coach.logger import screen
from rl_coach.spaces import BoxActionSpace, ImageObservationSpace, VectorObservationSpace
from rl_coach.utilities.requirements import FLAG, TEXT, instance, limit, member, number, optional, whole
from rl_coach.utils import CoachError, TrainingError

_SECONDS_OF_A_FRAME = 1 / 30
_SECONDS_TO_ANSWER = 60.0
_SECONDS_TO_START = 120.0
_LIDAR_RANGE = 50.0  # meters
_KM_PER_H = 3.6  # km/h in one m/s
_HOST, _PORT = "localhost", 2000
_ARRIVES = 2.0  # meters from the destination
_CAR = "vehicle.tesla.model3"

key_map = {
    "BRAKE": (DOWN,), "GAS": (UP,), "TURN_LEFT": (LEFT,), "TURN_RIGHT": (RIGHT,), "GAS_AND_TURN_LEFT": (UP, LEFT),
    "GAS_AND_TURN_RIGHT": (UP, RIGHT), "BRAKE_AND_TURN_LEFT": (DOWN, LEFT), "BRAKE_AND_TURN_RIGHT": (DOWN, RIGHT),
}  # fmt: skip
"""The keys of each action, for a person who drives."""
_GAS, _STEER = 1.0, 0.5  # throttle and steering while a person holds a key

# The weathers of CARLA 0.8 by their numbers, under the names of CARLA 0.9.
_WEATHERS = (
    "Default", "ClearNoon", "CloudyNoon", "WetNoon", "WetCloudyNoon", "MidRainyNoon", "HardRainNoon", "SoftRainNoon",
    "ClearSunset", "CloudySunset", "WetSunset", "WetCloudySunset", "MidRainSunset", "HardRainSunset", "SoftRainSunset",
)  # fmt: skip

# Grey images of 128×180 pixels, the last three stacked, as in Coach 1.0.1.
CarlaInputFilter = InputFilter(is_a_reference_filter=True)
CarlaInputFilter.add_observation_filter(
    "forward_camera",
    "rescaling",
    ObservationRescaleToSizeFilter(ImageObservationSpace(np.array([128, 180, 3]), high=255)),
)
CarlaInputFilter.add_observation_filter("forward_camera", "to_grayscale", ObservationRGBToYFilter())
CarlaInputFilter.add_observation_filter("forward_camera", "to_uint8", ObservationToUInt8Filter(0, 255))
CarlaInputFilter.add_observation_filter("forward_camera", "stacking", ObservationStackingFilter(3))

CarlaOutputFilter = NoOutputFilter()


class CarlaLevel(Enum):
    """CARLA's towns by the names that Coach uses."""

    TOWN1 = {"map_name": "Town01", "map_path": "/Game/Maps/Town01"}
    TOWN2 = {"map_name": "Town02", "map_path": "/Game/Maps/Town02"}


class CameraTypes(Enum):
    """Sensors. Each value is the name of the sensor's observation."""

    FRONT = "forward_camera"
    LEFT = "left_camera"
    RIGHT = "right_camera"
    SEGMENTATION = "segmentation"
    DEPTH = "depth"
    LIDAR = "lidar"


# The sensor of each observation: CARLA's name, its turn to the right and upwards in degrees, and CARLA's conversion.
_SENSORS = {
    "forward_camera": ("sensor.camera.rgb", 0, 0, None),
    "left_camera": ("sensor.camera.rgb", -30, 0, None),
    "right_camera": ("sensor.camera.rgb", 30, 0, None),
    "segmentation": ("sensor.camera.semantic_segmentation", 0, 0, "CityScapesPalette"),
    "depth": ("sensor.camera.depth", 0, 0, "LogarithmicDepth"),
    "lidar": ("sensor.lidar.ray_cast", 0, 0, None),
    "CameraRGB": ("sensor.camera.rgb", 0, -15, None),
}
_SENSOR_POSITION = (2.0, 0.0, 1.4)  # meters to the front, the right and above of the car's middle


class CarlaEnvironmentParameters(EnvironmentParameters):
    """Settings of a town of CARLA.

    Each environment needs its own server. The environment for evaluations needs another one. If the environment
    variable ``CARLA_ROOT`` is set, Coach starts the server from that directory. Otherwise ``CARLA_SERVER`` lists the
    running servers as ``host:port``, separated by commas; the default is ``localhost:2000``.

    :param level: a name of ``CarlaLevel``, in any case, or the name of one of the server's maps
    :ivar frame_skip: number of frames that an action lasts; a second has 30 frames
    :ivar server_height: height in pixels of the window of a server that Coach starts
    :ivar server_width: width of that window in pixels
    :ivar camera_height: height of the cameras' images in pixels
    :ivar camera_width: width of the cameras' images in pixels
    :ivar experiment_suite: ``CoRL2017(town)`` of ``carla_routes``: an episode drives to a destination in that town,
        with the observation ``high_level_command``. None: no destination
    :ivar config: must be None. CARLA 0.8 had a file of settings; CARLA 0.9 has none
    :ivar quality: quality of the rendering
    :ivar cameras: the cameras to observe, ``CameraTypes`` or their values; each camera is one observation
    :ivar weather_id: numbers of weathers, from 0 to 14; one is drawn for each episode. 1 is a clear noon
    :ivar verbose: print the server's output, and a line for each connection
    :ivar episode_max_time: milliseconds after which an episode is truncated
    :ivar allow_braking: False: the brake has no effect
    :ivar separate_actions_for_throttle_and_brake: an action is (steer, gas, brake) instead of (steer, gas or brake)
    :ivar num_speedup_steps: number of steps with full throttle at the beginning of an episode
    :ivar max_speed: km/h above which the throttle has no effect
    """

    path = "rl_coach.environments.carla_environment:CarlaEnvironment"

    class Quality(Enum):
        """Quality of the server's rendering."""

        LOW = "Low"
        EPIC = "Epic"

    constraints = {
        "server_height": whole(1),
        "server_width": whole(1),
        "camera_height": whole(1),
        "camera_width": whole(1),
        "quality": member(Quality),
        "cameras": instance((list, tuple), "a list of cameras"),
        "config": optional(TEXT),
        "weather_id": instance((list, tuple), "a list of numbers"),
        "verbose": FLAG,
        "episode_max_time": limit(),
        "allow_braking": FLAG,
        "separate_actions_for_throttle_and_brake": FLAG,
        "num_speedup_steps": whole(0),
        "max_speed": number(0),
    }

    def __init__(self, level: Union[str, LevelSelection] = "town1"):
        super().__init__(level=level)
        self.frame_skip = 3  # 0.1 seconds
        self.server_height = 512
        self.server_width = 720
        self.camera_height = 128
        self.camera_width = 180
        self.experiment_suite: Any = None
        self.config: str | None = None
        self.quality = self.Quality.LOW
        self.cameras: list[Union[CameraTypes, str]] = [CameraTypes.FRONT]
        self.weather_id = [1]
        self.verbose = True
        self.episode_max_time: float = 100000
        self.allow_braking = False
        self.separate_actions_for_throttle_and_brake = False
        self.num_speedup_steps = 30
        self.max_speed = 35.0
        self.default_input_filter = CarlaInputFilter
        self.default_output_filter = CarlaOutputFilter


class CarlaEnvironment(SeededEnvironment):
    """A car that drives in a town of CARLA, without other traffic.

    The observations are an image [camera_height, camera_width, 3] of each camera, the lidar's view from above
    [camera_height, camera_width, 1], and ``measurements`` [4]: the forward speed in m/s and the position in meters.
    With ``experiment_suite``, there is also the observation ``high_level_command`` [1], a ``Command`` of
    ``carla_routes``. The episode then terminates at a destination.

    The reward of a step is the speed in m/s minus 1, at most 30, minus penalties. The penalties are 5 in the lane of
    the opposite direction, 5 off the road, 10 times the absolute steering (0 to 1), and 100 for a collision, which
    terminates the episode.

    :param cameras: this and the other settings are described in ``CarlaEnvironmentParameters``
    :param kwargs: settings of ``Environment``
    :raises CoachError: if the client is not installed, no server answers, or a map or camera does not exist
    """

    def __init__(
        self,
        level: Union[str, LevelSelection, None],
        seed: int | None,
        frame_skip: int,
        human_control: bool,
        custom_reward_threshold: float | None,
        visualization_parameters: VisualizationParameters,
        server_height: int,
        server_width: int,
        camera_height: int,
        camera_width: int,
        verbose: bool,
        experiment_suite: Any,
        config: str | None,
        episode_max_time: int,
        allow_braking: bool,
        quality: CarlaEnvironmentParameters.Quality,
        cameras: Sequence[Union[CameraTypes, str]],
        weather_id: Sequence[int],
        experiment_path: str | None,
        separate_actions_for_throttle_and_brake: bool,
        num_speedup_steps: int,
        max_speed: float,
        target_success_rate: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(
            level, seed, frame_skip, human_control, custom_reward_threshold, visualization_parameters,
            target_success_rate, experiment_path=experiment_path, **kwargs,
        )  # fmt: skip
        if config is not None:
            raise CoachError(
                "env_params.config is a setting of CARLA 0.8, but Coach needs CARLA 0.9: set env_params.config to None"
            )
        if not (experiment_suite is None or isinstance(experiment_suite, CoRL2017)):
            raise CoachError("env_params.experiment_suite must be a CoRL2017 of rl_coach.environments.carla_routes")
        self.suite = experiment_suite
        self.route: Route | None = None
        self.camera_size = (camera_height, camera_width)
        self.cameras = [camera_name(camera) for camera in cameras]
        self.weathers = [weather_name(number) for number in (self.suite.weathers if self.suite else weather_id)]
        self.verbose = verbose
        self.episode_max_time: float = episode_max_time
        self.allow_braking = allow_braking
        self.separate_actions_for_throttle_and_brake = separate_actions_for_throttle_and_brake
        self.num_speedup_steps = num_speedup_steps
        self.max_speed = max_speed
        self._rng = np.random.default_rng(seed)
        self._steps_per_second = 1 / (frame_skip * _SECONDS_OF_A_FRAME)
        self._carla = import_package("carla")
        self._actors: list[Any] = []
        self._answers: dict[str, queue.SimpleQueue] = {}
        self._collisions: list[Any] = []
        self._frames = 0
        self._server = start_server(quality.value, server_width, server_height, self.native_rendering, verbose)
        self._connect()
        self._make_spaces()
        self.reset_internal_state(True)

    def _connect(self) -> None:
        """Connect to the server that Coach started, or to the first running server that no other client uses."""
        addresses = running_servers() if self._server is None else [self._server.address]
        try:
            for host, port in addresses:
                self.client = self._answering(host, port)
                world = self.client.get_world()
                if not world.get_settings().synchronous_mode:
                    self._take(world, f"{host}:{port}")
                    return
        except Exception:
            self._end_server()
            raise
        names = ", ".join(f"{host}:{port}" for host, port in addresses)
        raise CoachError(
            f"the CARLA server at {names} is in use by another environment, or by a run that was killed: start one "
            f"server for each environment and list them all in CARLA_SERVER, or set CARLA_ROOT, and Coach starts the "
            f"servers; restart a server that no process uses"
        )

    def _answering(self, host: str, port: int) -> Any:
        client = self._carla.Client(host, port)
        client.set_timeout(_SECONDS_TO_ANSWER)
        try:
            client.get_server_version()
        except RuntimeError as error:
            raise CoachError(
                f"the CARLA server at {host}:{port} does not answer: {' '.join(str(error).split())}; start one, or set "
                f"the environment variable CARLA_ROOT to the directory that has CarlaUE4.sh"
            ) from error
        return client

    def _take(self, world: Any, address: str) -> None:
        """Load the map. From now on, the server computes a frame only when this client calls ``tick``."""
        name = self.suite.town if self.suite else town(self.env_id)
        if world.get_map().name.rpartition("/")[2] != name:
            known = [one.rpartition("/")[2] for one in self.client.get_available_maps()]
            if name not in known:
                raise CoachError(f"the CARLA server has no map '{name}'; it has {', '.join(sorted(known))}")
            world = self.client.load_world(name)
        self.world, self.map = world, world.get_map()
        settings = world.get_settings()
        settings.synchronous_mode, settings.fixed_delta_seconds = True, _SECONDS_OF_A_FRAME
        world.apply_settings(settings)
        if self.verbose:
            screen.log(f"CARLA {self.client.get_server_version()} at {address}, map {self.map.name}")

    def _make_spaces(self) -> None:
        height, width = self.camera_size
        for name in self.cameras:
            channels = 1 if name == "lidar" else 3
            self.state_space[name] = ImageObservationSpace(np.array([height, width, channels]), high=255)
        self.state_space["measurements"] = VectorObservationSpace(
            4, measurements_names=["forward_speed", "x", "y", "z"]
        )
        if self.suite:
            self.state_space["high_level_command"] = VectorObservationSpace(1, 0, max(Command))
        if self.separate_actions_for_throttle_and_brake:
            lowest, names = np.array([-1.0, 0.0, 0.0]), ["steer", "gas", "brake"]
        else:
            lowest, names = np.array([-1.0, -1.0]), ["steer", "gas_and_brake"]
        self.action_space = BoxActionSpace(len(lowest), lowest, np.ones(len(lowest)), descriptions=names)
        self.action_space.seed(self.seed)
        for name, keys in {"COAST": (), **key_map}.items():
            self.key_to_action[keys] = self._action_of(name)

    def _action_of(self, name: str) -> np.ndarray:
        """The action for a name in ``key_map``, or for ``COAST``."""
        steer = _STEER * (("RIGHT" in name) - ("LEFT" in name))
        gas, brake = _GAS * ("GAS" in name), _GAS * ("BRAKE" in name)
        return np.array([steer, gas, brake] if self.separate_actions_for_throttle_and_brake else [steer, gas - brake])

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        self._remove_actors()
        carla = self._carla
        self.world.set_weather(getattr(carla.WeatherParameters, self.weathers[self._draw(len(self.weathers))]))
        places = self.map.get_spawn_points()
        if self.suite:
            start, self.route = self._draw_journey(places)
        else:
            start = places[self._draw(len(places))]
        blueprints = self.world.get_blueprint_library()
        self.car = self._spawn(blueprints.find(_CAR), start)
        self._add_sensors(blueprints)
        self._collisions, self._frames = [], 0
        self.world.tick()  # the car appears in this tick; sensors may not answer yet
        self._tick()
        for _ in range(self.num_speedup_steps):
            self._drive(0.0, 1.0, 0.0)
        self._read()

    def _draw_journey(self, places: list[Any]) -> tuple[Any, Route]:
        """A random start, and the route from it to a random destination."""
        for start in self._rng.permutation(len(places)):
            for end in self._rng.permutation(len(places)):
                route = plan(self.map, places[start].location, places[end].location)
                if route is not None and distance(places[start].location, places[end].location) > _ARRIVES:
                    return places[start], route
        raise TrainingError(f"map {self.map.name} has no two places with a route between them")

    def _draw(self, count: int) -> int:
        return int(self._rng.integers(count))

    def _spawn(self, blueprint: Any, place: Any, attached_to: Any = None) -> Any:
        actor = self.world.spawn_actor(blueprint, place, attach_to=attached_to)
        self._actors.append(actor)
        return actor

    def _add_sensors(self, blueprints: Any) -> None:
        carla = self._carla
        for name in self.cameras:
            kind, right, up, _ = _SENSORS[name]
            blueprint = blueprints.find(kind)
            if name == "lidar":
                blueprint.set_attribute("range", str(_LIDAR_RANGE))
                blueprint.set_attribute("rotation_frequency", str(1 / _SECONDS_OF_A_FRAME))  # a full turn in each frame
            else:
                blueprint.set_attribute("image_size_y", str(self.camera_size[0]))
                blueprint.set_attribute("image_size_x", str(self.camera_size[1]))
            place = carla.Transform(carla.Location(*_SENSOR_POSITION), carla.Rotation(pitch=up, yaw=right))
            self._answers[name] = queue.SimpleQueue()
            self._spawn(blueprint, place, self.car).listen(self._answers[name].put)
        collision = self._spawn(blueprints.find("sensor.other.collision"), carla.Transform(), self.car)
        collision.listen(lambda event: self._collisions.append(event))

    def _take_action(self, action: ActionType) -> None:
        steer, gas, *others = (float(number) for number in np.asarray(action))
        brake = others[0] if others else max(-gas, 0.0)
        self._drive(steer, max(gas, 0.0), brake)
        self._read()
        time_is_over = self._frames * _SECONDS_OF_A_FRAME * 1000 >= self.episode_max_time
        has_ended = bool(self._collisions) or self._has_arrived()
        self.done = has_ended or time_is_over
        self.truncated = self.done and not has_ended
        self.reward = self._reward_of(steer)

    def _has_arrived(self) -> bool:
        place = self.car.get_transform().location
        return self.route is not None and distance(place, self.route.destination) < _ARRIVES

    def _drive(self, steer: float, gas: float, brake: float) -> None:
        """Hold the controls for the frames of a step."""
        if self._speed() * _KM_PER_H > self.max_speed:
            gas = 0.0
        self.car.apply_control(
            self._carla.VehicleControl(throttle=gas, steer=steer, brake=brake if self.allow_braking else 0.0)
        )
        for _ in range(self.frame_skip):
            self._tick()

    def _tick(self) -> None:
        """Let the server compute a frame, and read the data of the sensors."""
        frame = self.world.tick()
        self._frames += 1
        self._seen = {name: self._answer(name, frame) for name in self.cameras}

    def _answer(self, name: str, frame: int) -> Any:
        """The data of a sensor for a frame. Data of earlier frames that wait in the queue are dropped."""
        while True:
            try:
                data = self._answers[name].get(timeout=_SECONDS_TO_ANSWER)
            except queue.Empty as error:
                raise TrainingError(f"CARLA sent no data of '{name}' for {_SECONDS_TO_ANSWER:.0f} s") from error
            if data.frame >= frame:
                return data

    def _speed(self) -> float:
        """Meters per second in the direction of the car."""
        velocity, ahead = self.car.get_velocity(), self.car.get_transform().get_forward_vector()
        return velocity.x * ahead.x + velocity.y * ahead.y + velocity.z * ahead.z

    def _reward_of(self, steer: float) -> float:
        is_on_other_lane, is_off_road = self._lane()
        return (
            min(self._speed() - 1, 30.0)
            - 5 * is_on_other_lane
            - 5 * is_off_road
            - 100 * bool(self._collisions)
            - 10 * abs(steer)
        )

    def _lane(self) -> tuple[bool, bool]:
        """Two values: True if the car is in the lane of the opposite direction, and True if it is off the road. The
        first value is False in a junction, because lanes cross there."""
        place = self.car.get_transform()
        waypoint = self.map.get_waypoint(place.location, project_to_road=False)
        if waypoint is None:
            return False, True
        lane, ahead = waypoint.transform.get_forward_vector(), place.get_forward_vector()
        return not waypoint.is_junction and lane.x * ahead.x + lane.y * ahead.y < 0, False

    def _read(self) -> None:
        place = self.car.get_transform().location
        self.state = {name: self._image_of(name) for name in self.cameras}
        self.state["measurements"] = np.array([self._speed(), place.x, place.y, place.z], np.float32)
        if self.route is not None:
            self.state["high_level_command"] = np.array([self.route.command(place)], np.float32)

    def _image_of(self, name: str) -> np.ndarray:
        data, conversion = self._seen[name], _SENSORS[name][3]
        if name == "lidar":
            return view_from_above(np.frombuffer(data.raw_data, np.float32).reshape(-1, 4), self.camera_size)
        if conversion is not None:
            data.convert(getattr(self._carla.ColorConverter, conversion))
        blue_first = np.frombuffer(data.raw_data, np.uint8).reshape(data.height, data.width, 4)
        return blue_first[..., 2::-1].copy()

    def get_rendered_image(self) -> np.ndarray:
        """[camera_height, width of all cameras, 3] uint8, the images of the cameras side by side."""
        images = [self.state[name] for name in self.cameras]
        return np.hstack([np.repeat(one, 3, axis=-1) if one.shape[-1] == 1 else one for one in images])

    def _remove_actors(self) -> None:
        """Remove the sensors, then the car."""
        for actor in reversed(self._actors):
            if hasattr(actor, "stop"):
                actor.stop()
            actor.destroy()
        self._actors, self._answers = [], {}

    def close(self) -> None:
        super().close()
        try:
            self._remove_actors()
            settings = self.world.get_settings()
            settings.synchronous_mode, settings.fixed_delta_seconds = False, 0.0  # the server may run on alone
            self.world.apply_settings(settings)
        except RuntimeError as error:
            screen.warning(f"the CARLA server ended before its environment was closed: {' '.join(str(error).split())}")
        self._end_server()

    def _end_server(self) -> None:
        if self._server is not None:
            self._server.end()


def town(level: str) -> str:
    """The name of a level's map."""
    known = CarlaLevel.__members__.get(level.upper())
    return level if known is None else known.value["map_name"]


def camera_name(camera: Union[CameraTypes, str]) -> str:
    """The name of a camera's observation. :raises CoachError: if the camera does not exist"""
    name = camera.value if isinstance(camera, CameraTypes) else camera
    if name not in _SENSORS:
        raise CoachError(f"CARLA has no camera '{name}'; the cameras are {', '.join(_SENSORS)}")
    return name


def weather_name(number: int) -> str:
    """CARLA 0.9's name for a weather number of CARLA 0.8. :raises CoachError: if the number does not exist"""
    if not 0 <= number < len(_WEATHERS):
        raise CoachError(f"CARLA has no weather {number}; weather_id has numbers from 0 to {len(_WEATHERS) - 1}")
    return _WEATHERS[number]


def view_from_above(points: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The lidar's points as an image: 255 for each pixel with a point, 0 for the others.

    :param points: [N, 4] meters to the front, the right and above, and intensities
    :param size: height and width of the image. It shows the lidar's range in all directions, the front at the top
    :return: [height, width, 1] uint8
    """
    image = np.zeros((*size, 1), np.uint8)
    inside = points[np.abs(points[:, :2]).max(axis=1, initial=0.0) < _LIDAR_RANGE] if len(points) else points
    rows = ((_LIDAR_RANGE - inside[:, 0]) / (2 * _LIDAR_RANGE) * size[0]).astype(int)
    columns = ((_LIDAR_RANGE + inside[:, 1]) / (2 * _LIDAR_RANGE) * size[1]).astype(int)
    image[rows.clip(0, size[0] - 1), columns.clip(0, size[1] - 1)] = 255
    return image


class Server:
    """A server that this process has started.

    :param process: the server's process, in its own session
    :param port: the server's port on this machine
    """

    def __init__(self, process: subprocess.Popen, port: int):
        self.process = process
        self.address = (_HOST, port)

    def end(self) -> None:
        """End the server and the processes that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def start_server(quality: str, width: int, height: int, has_window: bool, verbose: bool) -> Server | None:
    """Start the server of the directory ``$CARLA_ROOT``; None if the variable is not set.

    The server runs in its own session, so that a Ctrl-C does not end the server before the run is saved.

    :raises CoachError: if the directory has no server, or the server ended while it started
    """
    root = os.environ.get("CARLA_ROOT")
    if root is None:
        return None
    program = pathlib.Path(root, "CarlaUE4.sh")
    if not program.is_file():
        raise CoachError(f"CARLA_ROOT is '{root}': set it to the directory that has CarlaUE4.sh")
    port = _free_port()
    command = [sys.executable, "-I", "-S", own_session.__file__, str(program.resolve())]
    command += [f"-carla-rpc-port={port}", f"-quality-level={quality}", f"-ResX={width}", f"-ResY={height}"]
    command.append("-windowed" if has_window else "-RenderOffScreen")
    process = subprocess.Popen(command, cwd=root, stdout=None if verbose else subprocess.DEVNULL)
    server = Server(process, port)
    end = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < end:
        if process.poll() is not None:
            raise CoachError(
                f"{program} ended with exit code {process.returncode} when it started: set env_params.verbose to True "
                "to see its output"
            )
        if _is_open(port):
            return server
        time.sleep(0.1)
    server.end()
    raise CoachError(f"{program} does not listen at port {port} after {_SECONDS_TO_START:.0f} s")


def _is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((_HOST, port)) == 0


def _free_port() -> int:
    """A free port. The next port is free too, because the server uses both."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind((_HOST, 0))
            port = first.getsockname()[1]
            if second.connect_ex((_HOST, port + 1)) != 0:
                return port


def running_servers() -> list[tuple[str, int]]:
    """Host and port of each server that ``CARLA_SERVER`` lists.

    :raises CoachError: if ``CARLA_SERVER`` is not a list of ``host:port``
    """
    servers = []
    for address in os.environ.get("CARLA_SERVER", f"{_HOST}:{_PORT}").split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit():
            raise CoachError(f"CARLA_SERVER has '{address}'; it must be host:port, such as {_HOST}:{_PORT}")
        servers.append((host, int(port)))
    return servers
