"""Routes through a town of CARLA, and episodes in which an agent follows the commands of a route."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Iterable

_SEES_A_CROSSING = 25.0  # meters before it
_IS_THROUGH = 3.0  # meters from its exit
_TURNS = 30.0  # degrees


class Command(IntEnum):
    """Direction to take at the next crossing."""

    FOLLOW = 0
    LEFT = 1
    RIGHT = 2
    STRAIGHT = 3


class CoRL2017:
    """Episodes that drive from one point of a town to another one, in the training weathers of CARLA's first benchmark
    (Dosovitskiy et al. 2017, section 4).

    An episode draws its start and destination at random. The points of the benchmark are not used, because the towns of
    CARLA 0.9 do not have them.

    :param town: the map's name
    """

    weathers = (1, 3, 6, 8)

    def __init__(self, town: str):
        self.town = town


@dataclass
class Segment:
    """A part of a lane between two of CARLA's waypoints."""

    entry: Any
    exit: Any

    @property
    def command(self) -> Command:
        """The command for a car in this segment. A yaw increases to the right."""
        turn = (self.exit.transform.rotation.yaw - self.entry.transform.rotation.yaw + 180) % 360 - 180
        if not self.entry.is_junction:
            return Command.FOLLOW
        return Command.STRAIGHT if abs(turn) < _TURNS else Command.RIGHT if turn > 0 else Command.LEFT


class Route:
    """A route to a destination, and the command at each place of the route.

    :param segments: the segments in driving order
    :param destination: the end of the route
    """

    def __init__(self, segments: Iterable[Segment], destination: Any):
        self.destination = destination
        self._crossings = [segment for segment in segments if segment.entry.is_junction]

    def command(self, place: Any) -> Command:
        """The command at the car's current place. Successive calls must give the places in driving order."""
        if self._crossings and distance(place, self._crossings[0].exit.transform.location) < _IS_THROUGH:
            self._crossings.pop(0)
        if not self._crossings:
            return Command.FOLLOW
        ends = (self._crossings[0].entry, self._crossings[0].exit)
        is_near = min(distance(place, end.transform.location) for end in ends) < _SEES_A_CROSSING
        return self._crossings[0].command if is_near else Command.FOLLOW


def plan(town: Any, start: Any, destination: Any) -> Route | None:
    """The shortest route between two places of CARLA's map; None if they are not connected."""
    segments = [Segment(entry, leave) for entry, leave in town.get_topology()]
    ahead: dict[tuple[int, int], list[int]] = {}
    for number, segment in enumerate(segments):
        ahead.setdefault(_key(segment.entry), []).append(number)
    first, last = (_segments_at(segments, town.get_waypoint(place)) for place in (start, destination))
    waiting: list[tuple[float, int, list[int]]] = [(0.0, number, [number]) for number in first]
    done: set[int] = set()
    while waiting:
        length, number, way = heapq.heappop(waiting)
        is_behind = len(way) == 1 and _is_before(segments[number], destination, start)
        if number in last and not is_behind:
            return Route([segments[one] for one in way], destination)
        if number in done:
            continue
        done.add(number)
        for following in ahead.get(_key(segments[number].exit), []):
            heapq.heappush(waiting, (length + _length(segments[following]), following, [*way, following]))
    return None


def _segments_at(segments: list[Segment], waypoint: Any) -> list[int]:
    """Indices of the segments in a waypoint's lane."""
    lane = (waypoint.road_id, waypoint.lane_id)
    return [number for number, segment in enumerate(segments) if (segment.entry.road_id, segment.entry.lane_id) == lane]


def _is_before(segment: Segment, place: Any, other: Any) -> bool:
    """True if a car in a segment comes to a place before another one."""
    entry = segment.entry.transform.location
    return distance(entry, place) < distance(entry, other)


def _key(waypoint: Any) -> tuple[int, int]:
    """Key of a place, for comparisons. CARLA has two waypoints where a segment ends and the next one begins. Both have
    the same key."""
    return round(waypoint.transform.location.x), round(waypoint.transform.location.y)


def _length(segment: Segment) -> float:
    return distance(segment.entry.transform.location, segment.exit.transform.location)


def distance(one: Any, other: Any) -> float:
    """Meters between two places, seen from above."""
    return math.hypot(one.x - other.x, one.y - other.y)
