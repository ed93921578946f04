"""The other libraries: which works each one can do, and the Python environment that each one needs."""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
from dataclasses import dataclass
from typing import Callable

from benchmarks.seeds_side import ONE_BY_ONE, SIDES
from benchmarks.works import Work

ROOT = pathlib.Path(__file__).resolve().parents[1]


class MissingEnvironment(Exception):
    """The Python environment of a library does not exist. The message says how to make it."""


@dataclass(frozen=True)
class Peer:
    """A library to compare with.

    :param side: the function that begins a training, as ``module:function``
    :param algorithms: the algorithms that the library has, or that are measured here
    :param environment: the Python environment: ``sb3`` is the one in ``.venv-sb3``; None is Coach's environment
    :param levels: the environments: ``any``; ``gymnax``: only those of gymnax; ``copies``: only several copies of
        CartPole-v1
    """

    side: str
    algorithms: tuple[str, ...]
    environment: str | None
    levels: str = "any"

    def is_for(self, work: Work) -> bool:
        """Whether the library can do the work."""
        if work.level is None or work.seeds > 1 or work.algorithm not in self.algorithms:
            return False
        if self.levels == "gymnax":
            return work.level.startswith("gymnax:")
        return self.levels == "any" or (work.level == "CartPole-v1" and work.environments > 1)

    @property
    def begin(self) -> Callable:
        """The function of ``side``."""
        module, _, function = self.side.partition(":")
        return getattr(importlib.import_module(module), function)


PEERS = {
    "sb3": Peer("benchmarks.sb3_side:stable_baselines3", ("a2c", "ddpg", "dqn", "ppo", "sac", "td3"), "sb3"),
    "sb3_contrib": Peer("benchmarks.sb3_side:sb3_contrib", ("qr_dqn",), "sb3"),
    "sbx": Peer("benchmarks.sb3_side:sbx", ("ddpg", "dqn", "ppo", "sac", "td3"), "sb3"),
    "skrl": Peer("benchmarks.skrl_side:train", ("a2c", "dqn", "ppo"), "skrl", "copies"),
    "sample_factory": Peer("benchmarks.sample_factory_side:train", ("a2c", "ppo"), "sample-factory", "copies"),
    "pufferlib": Peer("benchmarks.pufferlib_side:train", ("a2c", "ppo"), "pufferlib", "copies"),
    "rejax": Peer("benchmarks.rejax_side:train", ("dqn", "ppo"), "rejax", "gymnax"),
    "sheeprl": Peer("benchmarks.sheeprl_side:train_until", ("dreamer_v3",), "sheeprl"),
}
STRAIGHT = Peer("benchmarks.straight_side:StraightLoop", ("dqn", "ppo"), None, "gymnax")
"""A training loop in JAX without any other function. It is not a library: it shows how fast a loop can be here."""


OWN_LOOPS = ("skrl", "sample_factory", "pufferlib", "rejax", "sheeprl")
"""Libraries with a function ``begin(work, tick)`` that trains until ``tick(steps)`` returns True. ``begin(work)`` of
the other libraries returns a function that makes steps.
"""

FRAMEWORKS = ("tensorflow", "jax", "mxnet", "torch")
"""Coach on its frameworks."""

LIBRARIES = (*FRAMEWORKS, *PEERS, "straight", ONE_BY_ONE)


def is_for(library: str, work: Work) -> bool:
    """Whether a library of ``LIBRARIES`` can do the work."""
    if work.seeds > 1:
        return library in SIDES
    if library in FRAMEWORKS:
        return library == "jax" or not (work.level or "").startswith("gymnax:")
    if library == ONE_BY_ONE:
        return False
    return (STRAIGHT if library == "straight" else PEERS[library]).is_for(work)


def interpreter_of(library: str) -> str:
    """The path of the Python interpreter that has the library.

    :raises MissingEnvironment: if the library's Python environment does not exist
    """
    environment = PEERS[library].environment if library in PEERS else None
    return sys.executable if environment is None else interpreter_in(environment, library)


def interpreter_in(environment: str, library: str) -> str:
    """The Python interpreter of an environment that ``make peers`` makes.

    :param environment: ``sb3`` for ``.venv-sb3``
    :param library: the library's name, for the error message
    :raises MissingEnvironment: if the environment does not exist
    """
    folder = pathlib.Path(os.environ.get("COACH_PEERS", ROOT)) / f".venv-{environment}"
    if not (folder / "bin" / "python").exists():
        raise MissingEnvironment(
            f"{library} is not installed: there is no {folder}. Make it with `make peers`, "
            "or set COACH_PEERS to the folder that has the environments"
        )
    return str(folder / "bin" / "python")
