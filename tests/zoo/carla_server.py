"""A simulated server of CARLA: a straight road with a wall at its end, and the parts of the client that reach it."""

from __future__ import annotations

import math
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, Callable

import numpy as np

LANE, WALL, ROAD_ENDS = 3.5, 60.0, 7.0
"""The car's lane lies to the right of y = 0, from 0 to 3.5 meters; the other one to the left, up to 3.5 meters; the
road ends 7 meters to the right. A wall stands at x = 60."""
ACCELERATION, BRAKING, TURN = 6.0, 12.0, 1.5  # m/s², m/s², rad/s at full lock


class Location:
    def __init__(self, x: float = 0.0, y: float = 0.0, z: float = 0.0):
        self.x, self.y, self.z = x, y, z


class Rotation:
    def __init__(self, pitch: float = 0.0, yaw: float = 0.0, roll: float = 0.0):
        self.pitch, self.yaw, self.roll = pitch, yaw, roll


class Transform:
    def __init__(self, location: Location | None = None, rotation: Rotation | None = None):
        self.location, self.rotation = location or Location(), rotation or Rotation()

    def get_forward_vector(self) -> Location:
        yaw = math.radians(self.rotation.yaw)
        return Location(math.cos(yaw), math.sin(yaw), 0.0)


class VehicleControl:
    def __init__(self, throttle: float = 0.0, steer: float = 0.0, brake: float = 0.0):
        self.throttle, self.steer, self.brake = throttle, steer, brake


class ActorBlueprint:
    def __init__(self, name: str):
        self.id, self.attributes = name, {}

    def set_attribute(self, name: str, value: str) -> None:
        assert isinstance(value, str)  # the real client takes nothing else
        self.attributes[name] = value


class BlueprintLibrary:
    def find(self, name: str) -> ActorBlueprint:
        return ActorBlueprint(name)


class Actor:
    """A car or a sensor in the world."""

    def __init__(self, world: World, blueprint: ActorBlueprint, transform: Transform):
        self.world, self.blueprint, self.transform = world, blueprint, transform

    def get_transform(self) -> Transform:
        return self.transform

    def destroy(self) -> bool:
        self.world.actors.remove(self)
        return True


class Vehicle(Actor):
    speed, control = 0.0, VehicleControl()

    def apply_control(self, control: VehicleControl) -> None:
        self.control = control

    def get_velocity(self) -> Location:
        ahead = self.transform.get_forward_vector()
        return Location(ahead.x * self.speed, ahead.y * self.speed, 0.0)

    def move(self, seconds: float) -> None:
        control, place = self.control, self.transform
        self.speed = max(0.0, self.speed + (ACCELERATION * control.throttle - BRAKING * control.brake) * seconds)
        place.rotation.yaw += math.degrees(control.steer * TURN * seconds)
        ahead = place.get_forward_vector()
        place.location.x = min(place.location.x + ahead.x * self.speed * seconds, WALL)
        place.location.y += ahead.y * self.speed * seconds


class Sensor(Actor):
    callback: Callable[[Any], None] | None = None

    def listen(self, callback: Callable[[Any], None]) -> None:
        self.callback = callback

    def stop(self) -> None:
        self.callback = None

    def tell(self, frame: int, car: Vehicle) -> None:
        """Give the callback what the sensor sees."""
        if self.callback is None:
            return
        kind, attributes = self.blueprint.id, self.blueprint.attributes
        if kind == "sensor.other.collision":
            if car.transform.location.x >= WALL:
                self.callback(SimpleNamespace(frame=frame, actor=car))
        elif kind == "sensor.lidar.ray_cast":
            points = np.array([[WALL - car.transform.location.x, 0, 0, 1]], np.float32)
            self.callback(SimpleNamespace(frame=frame, raw_data=points.tobytes()))
        else:
            self.callback(Image(frame, int(attributes["image_size_y"]), int(attributes["image_size_x"]), self, car))


class Image:
    """Blue, green, red and alpha of each pixel: how far the car is, how the camera is turned, and 7."""

    def __init__(self, frame: int, height: int, width: int, sensor: Sensor, car: Vehicle):
        self.frame, self.height, self.width = frame, height, width
        self.converted: list[str] = []
        turned = int(sensor.transform.rotation.yaw) % 256
        self._pixels = np.full((height, width, 4), [int(car.transform.location.x), turned, 7, 255], np.uint8)

    @property
    def raw_data(self) -> bytes:
        return self._pixels.tobytes()

    def convert(self, conversion: str) -> None:
        self._pixels[..., :3] = {"palette": 70, "logarithm": 90}[conversion]


def lane_at(x: float) -> SimpleNamespace:
    """A waypoint of the lane of the car."""
    is_junction = x > 50
    place = Transform(Location(x, LANE / 2), Rotation())
    return SimpleNamespace(transform=place, is_junction=is_junction, road_id=int(is_junction), lane_id=1)


class Map:
    def __init__(self, name: str):
        self.name = name

    def get_spawn_points(self) -> list[Transform]:
        return [Transform(Location(float(x), LANE / 2, 0.5), Rotation()) for x in (0, 2, 4, 6)]

    def get_topology(self) -> list[tuple[Any, Any]]:
        """The lane of the car, up to the junction and through it."""
        return [(lane_at(0.0), lane_at(50.0)), (lane_at(50.1), lane_at(WALL))]

    def get_waypoint(self, location: Location, project_to_road: bool = True) -> Any:
        if project_to_road:
            return lane_at(location.x)
        if not -LANE <= location.y <= ROAD_ENDS:
            return None
        direction = Rotation(yaw=180.0) if location.y < 0 else Rotation()
        return SimpleNamespace(transform=Transform(location, direction), is_junction=location.x > 50)


class World:
    """The world of a server.

    :ivar settings: with ``synchronous_mode`` and ``fixed_delta_seconds``, as clients set them
    :ivar weathers: those that were set, in order
    """

    def __init__(self, name: str):
        self.map, self.frame, self.actors, self.weathers = Map(name), 100, [], []
        self.settings = SimpleNamespace(synchronous_mode=False, fixed_delta_seconds=0.0)

    def get_map(self) -> Map:
        return self.map

    def get_settings(self) -> SimpleNamespace:
        return SimpleNamespace(**vars(self.settings))

    def apply_settings(self, settings: SimpleNamespace) -> int:
        self.settings = settings
        return self.frame

    def get_blueprint_library(self) -> BlueprintLibrary:
        return BlueprintLibrary()

    def set_weather(self, weather: str) -> None:
        self.weathers.append(weather)

    def spawn_actor(self, blueprint: ActorBlueprint, transform: Transform, attach_to: Actor | None = None) -> Actor:
        kind = Vehicle if blueprint.id.startswith("vehicle.") else Sensor
        assert (kind is Vehicle) is (attach_to is None)
        self.actors.append(kind(self, blueprint, transform))
        return self.actors[-1]

    def tick(self) -> int:
        assert self.settings.synchronous_mode  # otherwise the server does not wait for anybody
        self.frame += 1
        (car,) = (actor for actor in self.actors if isinstance(actor, Vehicle))
        car.move(self.settings.fixed_delta_seconds)
        for actor in self.actors:
            if isinstance(actor, Sensor):
                actor.tell(self.frame - 1, car)  # a late answer of the frame before, as a real server may send one
                actor.tell(self.frame, car)
        return self.frame


class Client:
    """A client of one of the servers that there are.

    :cvar worlds: the world of each address
    """

    worlds: dict[tuple[str, int], World] = {}

    def __init__(self, host: str, port: int):
        self.address = (host, port)

    def set_timeout(self, seconds: float) -> None:
        self.seconds = seconds

    def get_server_version(self) -> str:
        if self.address not in self.worlds:
            raise RuntimeError(f"time-out of {int(self.seconds * 1000)}ms while waiting for the simulator")
        return "0.9.16"

    def get_available_maps(self) -> list[str]:
        return [f"/Game/Carla/Maps/{name}" for name in ("Town01", "Town02", "Town10HD_Opt")]

    def get_world(self) -> World:
        return self.worlds[self.address]

    def load_world(self, name: str) -> World:
        self.worlds[self.address] = World(f"Carla/Maps/{name}")
        return self.worlds[self.address]


class WeatherParameters:
    """Weathers by name; each is its name here."""


for _name in (
    "ClearNoon", "CloudyNoon", "WetNoon", "WetCloudyNoon", "MidRainyNoon", "HardRainNoon", "SoftRainNoon",
    "ClearSunset", "CloudySunset", "WetSunset", "WetCloudySunset", "MidRainSunset", "HardRainSunset", "SoftRainSunset",
):  # fmt: skip
    setattr(WeatherParameters, _name, _name)


class ColorConverter:
    CityScapesPalette, LogarithmicDepth = "palette", "logarithm"


CLASSES = (
    Location, Rotation, Transform, VehicleControl, ActorBlueprint, BlueprintLibrary, Actor, Vehicle, Sensor, Image, Map,
    World, Client, WeatherParameters, ColorConverter,
)  # fmt: skip


def install(monkeypatch: Any) -> dict[tuple[str, int], World]:
    """Have the client be this one, with a server at its usual port.

    :return: the world of each server by its address
    """
    module = ModuleType("carla")
    vars(module).update({one.__name__: one for one in CLASSES})
    monkeypatch.setitem(sys.modules, "carla", module)
    monkeypatch.delenv("CARLA_ROOT", raising=False)
    monkeypatch.delenv("CARLA_SERVER", raising=False)
    monkeypatch.setattr(Client, "worlds", {("localhost", 2000): World("Carla/Maps/Town10HD_Opt")})
    return Client.worlds
