"""A simulated game of StarCraft II: a marine on the map CollectMineralShards, and the parts of pysc2 that reach it."""

from __future__ import annotations

import sys
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

SCREEN_MAPS, MINIMAP_MAPS, PLAYER_RELATIVE = 27, 11, 5
STEPS_OF_AN_EPISODE = 12
SHARDS = [(10, 10), (70, 20), (40, 60)]


class Marine:
    """The rules: it must be selected to be moved, and a shard within 3 pixels of where it stands is worth 1."""

    def __init__(self, size: int):
        self.size = size
        self.restart()

    def restart(self) -> None:
        self.steps, self.position, self.is_selected = 0, (self.size // 2, self.size // 2), False
        self.shards = [one for one in SHARDS if max(one) < self.size]

    def available(self) -> list[int]:
        """Numbers of the functions that may be called."""
        return [NO_OP, SELECT_ARMY, *([MOVE_SCREEN] if self.is_selected else [])]

    def obey(self, function: int, arguments: list[Any]) -> float:
        """Take a step and answer its reward."""
        assert function in self.available()
        self.steps += 1
        if function == SELECT_ARMY:
            self.is_selected = True
        if function == MOVE_SCREEN:
            x, y = self.position = tuple(arguments[1])
            assert 0 <= x < self.size and 0 <= y < self.size
        near = [one for one in self.shards if np.abs(np.subtract(one, self.position)).max() <= 3]
        self.shards = [one for one in self.shards if one not in near]
        return float(len(near))

    def player_relative(self) -> np.ndarray:
        """[size, size]: 1 where the marine is, 3 where a shard is. A point is (x, y), a pixel [y, x]."""
        plane = np.zeros((self.size, self.size), np.int32)
        for x, y in self.shards:
            plane[y, x] = 3
        plane[self.position[1], self.position[0]] = 1
        return plane


NO_OP, SELECT_ARMY, MOVE_SCREEN = 0, 7, 331  # their numbers in pysc2


class Function:
    """A function of the game: its name and the kinds of its arguments."""

    def __init__(self, number: int, name: str, args: list[Any]):
        self.id, self.name, self.args = number, name, args

    def __call__(self, *arguments: Any) -> SimpleNamespace:
        plain = [
            [{"now": 0, "queued": 1, "select": 0, "add": 1}[one]] if isinstance(one, str) else one for one in arguments
        ]
        return call(self.id, plain)


def call(function: int, arguments: list[Any]) -> SimpleNamespace:
    """What is sent to the game."""
    return SimpleNamespace(function=function, arguments=arguments)


class Functions:
    """All functions by number and by name; most of them have no arguments here."""

    def __init__(self) -> None:
        kinds = {kind.name: kind for kind in TYPES}
        self._all = [Function(number, f"function_{number}", []) for number in range(573)]
        self._all[NO_OP] = self.no_op = Function(NO_OP, "no_op", [])
        self._all[SELECT_ARMY] = self.select_army = Function(SELECT_ARMY, "select_army", [kinds["select_add"]])
        self._all[MOVE_SCREEN] = self.Move_screen = Function(
            MOVE_SCREEN, "Move_screen", [kinds["queued"], kinds["screen"]]
        )

    def __getitem__(self, number: int) -> Function:
        return self._all[number]

    def __iter__(self) -> Any:
        return iter(self._all)


TYPES = [
    SimpleNamespace(id=number, name=name, sizes=sizes)
    for number, (name, sizes) in enumerate(
        [("screen", (0, 0)), ("minimap", (0, 0)), ("screen2", (0, 0)), ("queued", (2,)), ("select_add", (2,))]
    )
]
Player = IntEnum(
    "Player",
    "player_id minerals vespene food_used food_cap food_army food_workers idle_worker_count army_count "
    "warp_gate_count larva_count",
    start=0,
)


def _features(count: int) -> list[SimpleNamespace]:
    scales = {1: 4, 5: 5, 6: 1962}  # of visibility, of whose unit it is, and of the kind of unit
    return [SimpleNamespace(scale=scales.get(i, 256), color=lambda plane: np.dstack([plane] * 3)) for i in range(count)]


class SimulatedGame:
    """The game as ``pysc2.env.sc2_env.SC2Env`` is called.

    :cvar has_result: the game itself ends an episode; otherwise it is too long
    :ivar settings: what it was made with
    """

    has_result = True

    made: list[SimulatedGame] = []

    def __init__(self, **settings: Any):
        if settings["map_name"] != "CollectMineralShards":
            raise ValueError(f"Map doesn't exist: {settings['map_name']}")
        self.settings, self.is_closed = settings, False
        shown = settings["agent_interface_format"]
        self.in_colours = shown.rgb_dimensions is not None
        self.dimensions = shown.rgb_dimensions or shown.feature_dimensions
        self.marine = Marine(self.dimensions.screen)
        SimulatedGame.made.append(self)

    def reset(self) -> Any:
        self.marine.restart()
        return self._answer(0.0)

    def step(self, calls: list[Any]) -> Any:
        (one,) = calls
        return self._answer(self.marine.obey(one.function, one.arguments))

    def _answer(self, reward: float) -> Any:
        is_last = self.marine.steps >= STEPS_OF_AN_EPISODE
        size, small = self.dimensions.screen, self.dimensions.minimap
        observation = {"player": np.arange(11), "available_actions": np.array(self.marine.available())}
        if self.in_colours:
            observation["rgb_screen"] = np.dstack([self.marine.player_relative() * 80] * 3)
            observation["rgb_minimap"] = np.zeros((small, small, 3), np.int32)
        else:
            observation["feature_screen"] = np.zeros((SCREEN_MAPS, size, size), np.int32)
            observation["feature_screen"][PLAYER_RELATIVE] = self.marine.player_relative()
            observation["feature_minimap"] = np.zeros((MINIMAP_MAPS, small, small), np.int32)
        return (
            SimpleNamespace(
                observation=observation,
                reward=reward,
                discount=0.0 if is_last and self.has_result else 1.0,
                last=lambda: is_last,
            ),
        )

    def close(self) -> None:
        self.is_closed = True


def install(monkeypatch: Any) -> None:
    """Have the parts of pysc2 that Coach imports be those of the simulated game."""
    named = {"screen": None, "minimap": None}

    def dimensions(screen: int, minimap: int) -> SimpleNamespace:
        return SimpleNamespace(**{**named, "screen": screen, "minimap": minimap})

    def interface(feature_dimensions: Any = None, rgb_dimensions: Any = None) -> SimpleNamespace:
        return SimpleNamespace(feature_dimensions=feature_dimensions, rgb_dimensions=rgb_dimensions)

    parts = {
        "pysc2": {},
        "pysc2.env": {},
        "pysc2.lib": {},
        "pysc2.env.sc2_env": {
            "SC2Env": SimulatedGame,
            "Agent": lambda race: SimpleNamespace(race=race),
            "Race": SimpleNamespace(terran="terran"),
            "Dimensions": dimensions,
            "AgentInterfaceFormat": interface,
        },
        "pysc2.lib.actions": {"FUNCTIONS": Functions(), "TYPES": TYPES, "FunctionCall": call},
        "pysc2.lib.features": {
            "SCREEN_FEATURES": _features(SCREEN_MAPS),
            "MINIMAP_FEATURES": _features(MINIMAP_MAPS),
            "Player": Player,
        },
    }
    for name, content in parts.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
