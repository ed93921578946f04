"""Level names: the lists that presets choose from, and the creation of a Gymnasium environment from a name.

For a name that Gymnasium has removed, Coach makes the current environment of the same task, and logs its name.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import importlib.util
import inspect
import io
import logging
import os
import re
import sys
import warnings
from types import ModuleType
from typing import Any, Iterator

from rl_coach.environments.rendering import has_display
from rl_coach.installation import install_command, is_installed, missing_package, pip_install
from rl_coach.utilities.dynamic_import import import_module
from rl_coach.utils import CoachError, did_you_mean, lower_under_to_upper, short_dynamic_import

logger = logging.getLogger("rl_coach")

# fmt: off
gym_roboschool_envs = [
    "inverted_pendulum", "inverted_pendulum_swingup", "inverted_double_pendulum", "reacher", "hopper", "walker2d",
    "half_cheetah", "ant", "humanoid", "humanoid_flagrun", "humanoid_flagrun_harder", "pong",
]
gym_mujoco_envs = [
    "inverted_pendulum", "inverted_double_pendulum", "reacher", "hopper", "walker2d", "half_cheetah", "ant",
    "swimmer", "humanoid", "humanoid_standup", "pusher", "thrower", "striker",
]
gym_fetch_envs = ["reach", "slide", "push", "pick_and_place"]
gym_atari_envs = [
    "air_raid", "alien", "amidar", "assault", "asterix", "asteroids", "atlantis", "bank_heist", "battle_zone",
    "beam_rider", "berzerk", "bowling", "boxing", "breakout", "carnival", "centipede", "chopper_command",
    "crazy_climber", "demon_attack", "double_dunk", "elevator_action", "enduro", "fishing_derby", "freeway",
    "frostbite", "gopher", "gravitar", "hero", "ice_hockey", "jamesbond", "journey_escape", "kangaroo", "krull",
    "kung_fu_master", "montezuma_revenge", "ms_pacman", "name_this_game", "phoenix", "pitfall", "pong", "pooyan",
    "private_eye", "qbert", "riverraid", "road_runner", "robotank", "seaquest", "skiing", "solaris",
    "space_invaders", "star_gunner", "tennis", "time_pilot", "tutankham", "up_n_down", "venture", "video_pinball",
    "wizard_of_wor", "yars_revenge", "zaxxon",
]
# fmt: on


def _camel(name: str) -> str:
    return lower_under_to_upper(name).replace("2D", "2d")


roboschool_v1 = {name: f"Roboschool{_camel(name)}-v1" for name in gym_roboschool_envs}
mujoco_v2 = {name: f"{_camel(name)}-v2" for name in gym_mujoco_envs}
fetch_v1 = {name: f"Fetch{_camel(name)}-v1" for name in gym_fetch_envs}
atari_deterministic_v4 = {name: f"{_camel(name)}Deterministic-v4" for name in gym_atari_envs}
atari_no_frameskip_v4 = {name: f"{_camel(name)}NoFrameskip-v4" for name in gym_atari_envs}

_ARCADE_LEVEL = re.compile(r"(?P<game>[A-Z]\w*?)(?P<ram>-ram)?(?P<skip>Deterministic|NoFrameskip)?-v(?P<version>[04])")
_ARCADE_GAMES = {_camel(name) for name in gym_atari_envs}
_REGISTERED_LEVEL = re.compile(r"-v\d+$|/")
FUNCTION_LEVEL = re.compile(r"(gymnax|playground|brax|pgx):.+")
"""Levels of libraries whose environments are pure functions."""

ENVPOOL = "envpool"
"""The library of levels that begin with ``envpool:``."""

# For each beginning of a level's name: the distribution that registers the level, and our extra that installs it.
_ROBOTS = ("Fetch", "HandManipulate", "HandReach", "Adroit", "AntMaze", "PointMaze", "FrankaKitchen")
_PLUGINS = {"ALE/": ("ale_py", "atari"), **dict.fromkeys(_ROBOTS, ("gymnasium_robotics", "mujoco"))}
_EXTRA_OF_ENTRY_POINT = {"ale_py": "atari", "gymnasium.envs.mujoco": "mujoco", "gymnasium_robotics": "mujoco"}
_EXTRAS_OF_GYMNASIUM = ("box2d", "toy-text", "classic-control")
_WITHOUT_SUCCESSOR = {
    **dict.fromkeys(("Thrower", "Striker"), "'Pusher-v5' is the most similar level"),
    "Roboschool": "the most similar levels are levels of MuJoCo, such as 'Ant-v5'",
}

# MuJoCo levels of version 2 that had longer observations than today's levels.
_OBSERVATION_LENGTHS = {
    "Ant": 111, "Humanoid": 376, "HumanoidStandup": 376, "InvertedDoublePendulum": 11, "Reacher": 11,
}  # fmt: skip


class UnknownLevelError(CoachError):
    """Gymnasium has no level with this name."""


@functools.cache
def say_once(message: str) -> None:
    """Log a warning, unless this process has logged it before."""
    logger.warning(message)


def make_ordinary_simulator(level: str, parameters: dict[str, Any], frame_skip: int, render_mode: str | None) -> Any:
    """The Gymnasium environment of a level that is not a vector environment.

    :param level: a registered id (``CartPole-v1``, or ``module:MyLevel-v0`` if importing the module registers it),
        ``module:Class`` or ``path/to/file.py:Class``; for pure functions on JAX, ``gymnax:LEVEL`` (also ``playground``,
        ``brax`` and ``pgx``), or ``module:environment`` with the signatures of gymnax
    :param parameters: keyword arguments for its constructor
    :param frame_skip: above 1, an Atari game steps single frames, because the caller skips frames
    :param render_mode: ``'rgb_array'``, ``'human'`` or None
    :raises CoachError: if the level does not exist, a package is missing, or the parameters do not fit
    """
    if FUNCTION_LEVEL.fullmatch(level):
        if not is_installed("jax"):
            raise CoachError(f"level '{level}' needs JAX: {install_command('jax')}")
        from rl_coach.environments.function_environment import FunctionSimulator, make_function_environment

        return FunctionSimulator(make_function_environment(level, parameters))
    module, _, name = level.rpartition(":")
    if module and not _REGISTERED_LEVEL.search(name):
        return _make_from_class(level, parameters, render_mode)
    if module:
        _import(module, level)
    return _make_registered(name, parameters, frame_skip, render_mode)


def draw_without_display() -> None:
    """Let MuJoCo draw with EGL if there is no window system. MuJoCo reads ``MUJOCO_GL`` when it is imported. A later
    change of the variable makes MuJoCo crash."""
    if not has_display() and "mujoco" not in sys.modules:
        os.environ.setdefault("MUJOCO_GL", "egl")


def _import(module: str, level: str) -> ModuleType:
    with _naming_missing_modules(level):
        return import_module(module)


@contextlib.contextmanager
def _naming_missing_modules(level: str) -> Iterator[None]:
    """Inside this context, a missing module is a ``CoachError`` that names the level."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise _missing_import(level, error) from error


def _missing_import(level: str, error: ModuleNotFoundError) -> CoachError:
    """An error for a level whose module does not exist, or imports a module that does not exist."""
    if error.name and error.name != "gym" and f"{level.partition(':')[0]}.".startswith(f"{error.name}."):
        return CoachError(
            f"no level '{level}': there is no module '{error.name}'; correct the name, or install the module's package"
        )
    hint = " (or import gymnasium, the successor of gym, in the file)" if error.name == "gym" else ""
    return CoachError(f"level '{level}' cannot be imported: {missing_package(error)}{hint}")


def _make_from_class(level: str, parameters: dict[str, Any], render_mode: str | None) -> Any:
    if render_mode == "rgb_array":
        draw_without_display()
    cls = import_level(level)
    if _is_function_environment(cls):
        from rl_coach.environments.function_environment import FunctionSimulator, environment_of_user

        return FunctionSimulator(environment_of_user(level, cls(**parameters) if inspect.isclass(cls) else cls))
    signature = inspect.signature(cls)
    if render_mode is not None and "render_mode" in signature.parameters:
        parameters = {"render_mode": render_mode, **parameters}
    try:
        signature.bind(**parameters)
    except TypeError as error:
        raise CoachError(_unfit_parameters(level, error)) from None
    with _naming_missing_modules(level):
        made = cls(**parameters)
    if hasattr(made, "single_observation_space"):
        raise CoachError(f"level '{level}' makes a vector environment: give its function an argument num_envs")
    return made


def is_function_level(level: str) -> bool:
    """True if a level's environment consists of pure functions. The environment is not made.

    :param level: see ``make_simulator``
    :raises CoachError: if the level's module or attribute does not exist
    """
    if FUNCTION_LEVEL.fullmatch(level):
        return True
    module, _, name = level.rpartition(":")
    if not module or _REGISTERED_LEVEL.search(name):
        return False
    return _is_function_environment(import_level(level))


def import_level(level: str) -> Any:
    """The class or function of a level. :param level: ``module:name`` or ``path/to/file.py:name``

    :raises CoachError: if the module does not exist, or imports a package that is not installed
    """
    with _naming_missing_modules(level):
        return short_dynamic_import(level)


def _is_function_environment(made: Any) -> bool:
    """True if an object, or a class, has gymnax' ``reset(key, params)`` and ``step(key, state, action, params)``. The
    names of the parameters do not matter. The ``step`` of Gymnasium has only one parameter."""
    return _takes(made, "reset", 2) and _takes(made, "step", 4)


def _takes(made: Any, name: str, count: int) -> bool:
    """True if a method can be called with ``count`` values."""
    function = getattr(made, name, None)
    if not callable(function):
        return False
    has_self = inspect.isclass(made) and inspect.isfunction(inspect.getattr_static(made, name))
    try:
        parameters = list(inspect.signature(function).parameters.values())[int(has_self) :]
    except ValueError:  # written in C, without a signature
        return False
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [one for one in positional if one.default is one.empty]
    return len(needed) <= count <= len(positional)


def _unfit_parameters(level: str, error: TypeError) -> str:
    return f"level '{level}': {error}; env_params.additional_simulator_parameters become its constructor's arguments"


def _make_registered(name: str, parameters: dict[str, Any], frame_skip: int, render_mode: str | None) -> Any:
    try:
        specification = find_specification(name)
    except UnknownLevelError:
        simulator = _make_with_old_gym(name, parameters, render_mode)
        if simulator is None:
            raise
        return simulator
    if is_arcade(specification) and frame_skip > 1:
        if "frameskip" in parameters:
            raise CoachError(f"level '{name}': env_params.frame_skip sets the frame skip; leave out 'frameskip'")
        specification.kwargs["frameskip"] = 1
    try:
        return _make(specification, parameters, render_mode)
    except ImportError as error:
        newest = _newest_version(specification.id)
        if newest is None or newest.id == specification.id:
            if isinstance(error, ModuleNotFoundError):
                raise _missing_import(name, error) from error
            raise CoachError(f"level '{name}': {error}") from error
    simulator = _make(_bare(newest), parameters, render_mode)
    say_once(f"level '{name}' no longer runs; using '{newest.id}'{_difference(newest.name, simulator)}")
    return simulator


def _difference(name: str, simulator: Any) -> str:
    """Note for the user that the current level has longer or shorter observations; empty without a known difference."""
    if name not in _OBSERVATION_LENGTHS:
        return ""
    (length,) = simulator.observation_space.shape
    return f", whose observations have {length} numbers instead of {_OBSERVATION_LENGTHS[name]}"


def _make_with_old_gym(name: str, parameters: dict[str, Any], render_mode: str | None) -> Any:
    """The environment from the registry of gym, the predecessor of gymnasium; None if gym does not have the level."""
    if importlib.util.find_spec("gym") is None:
        return None
    with contextlib.redirect_stderr(io.StringIO()):  # gym prints a warning that it is no longer maintained
        import gym
    from gymnasium.wrappers import TimeLimit

    from rl_coach.environments.gym_wrappers import OldApiEnvironment

    try:
        specification = gym.spec(name)
    except gym.error.Error:
        return None
    if render_mode is not None:
        parameters = {"render_mode": render_mode, **parameters}
    # Without gym's wrappers: they support only one form of steps, and need an old NumPy.
    simulator: Any = OldApiEnvironment(gym.make(name, **parameters).unwrapped)
    simulator.spec = specification
    say_once(f"level '{name}' is registered with gym, which is no longer maintained")
    limit = specification.max_episode_steps
    return simulator if limit is None else TimeLimit(simulator, limit)


def is_arcade(specification: Any) -> bool:
    """True if a level of Gymnasium's registry is an Atari game."""
    return str(specification.entry_point).startswith("ale_py")


def _make(specification: Any, parameters: dict[str, Any], render_mode: str | None) -> Any:
    import gymnasium

    if render_mode == "rgb_array" and "mujoco" in _installation_of(specification):
        draw_without_display()
    try:
        with warnings.catch_warnings(), _refusing_unfit_parameters(specification):
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="gymnasium")
            return gymnasium.make(specification, render_mode=render_mode, **parameters)
    except gymnasium.error.DependencyNotInstalled as error:
        newest = _newest_version(specification.id)
        if newest is not None and newest.id != specification.id:
            raise ImportError(str(error)) from error
        command = _installation_of(specification)
        advice = f": {command}" if command else ""
        raise CoachError(
            f"level '{specification.id}' needs a package that is not installed{advice} ({error})"
        ) from error
    except gymnasium.error.Error as error:
        raise CoachError(f"level '{specification.id}' cannot be created: {error}") from error


@contextlib.contextmanager
def _refusing_unfit_parameters(specification: Any) -> Iterator[None]:
    """Inside this context, a constructor refuses unknown arguments with a ``CoachError``."""
    try:
        yield
    except TypeError as error:
        if "keyword argument" not in str(error):
            raise
        raise CoachError(_unfit_parameters(specification.id, error)) from error


def find_registered_specification(level: str) -> Any:
    """The specification of any level, as ``find_specification`` returns it; None if Gymnasium does not have the
    level."""
    module, _, name = level.rpartition(":")
    if FUNCTION_LEVEL.fullmatch(level) or module == ENVPOOL or (module and not _REGISTERED_LEVEL.search(name)):
        return None
    if module:
        _import(module, level)
    try:
        return find_specification(name)
    except UnknownLevelError:
        return None


def make_registered_vector(specification: Any, count: int) -> Any:
    """The vector environment of a level in Gymnasium's registry.

    :param specification: its ``kwargs`` are the constructor's arguments
    :param count: number of environments
    :raises CoachError: if the vector environment does not accept these arguments
    """
    import gymnasium

    with _refusing_unfit_parameters(specification):
        return gymnasium.make_vec(specification, count, "vector_entry_point")


def _installation_of(specification: Any) -> str:
    """The command that installs the packages a level needs; empty if that is not known."""
    entry_point = str(specification.entry_point)
    for beginning, extra in _EXTRA_OF_ENTRY_POINT.items():
        if entry_point.startswith(beginning):
            return install_command(extra)
    for extra in _EXTRAS_OF_GYMNASIUM:
        if entry_point.startswith(f"gymnasium.envs.{extra.replace('-', '_')}"):
            return pip_install(f"gymnasium[{extra}]")
    return ""


def find_specification(name: str) -> Any:
    """A copy of Gymnasium's ``EnvSpec`` for the name of a level. The name may be an old one.

    :raises UnknownLevelError: if the level does not exist; the message suggests similar ones
    :raises CoachError: if the package that registers it is not installed
    """
    import gymnasium

    if name == "CartPole-v0":
        specification = _bare(gymnasium.spec("CartPole-v1"))
        specification.max_episode_steps = 200
        specification.reward_threshold = 195.0
        say_once("level 'CartPole-v0': using 'CartPole-v1' limited to 200 steps per episode (Gymnasium removed v0)")
        return specification
    arcade = _ARCADE_LEVEL.fullmatch(name)
    if arcade and arcade["game"] in _ARCADE_GAMES:
        return _arcade_specification(name, arcade)
    _import_plugin(name)
    if name in gymnasium.registry:
        return _bare(gymnasium.registry[name])
    newest = _newest_version(name)
    if newest is not None:
        say_once(f"level '{name}': using its current version '{newest.id}'")
        return _bare(newest)
    raise UnknownLevelError(_no_such_level(name, list(gymnasium.registry)))


def _no_such_level(name: str, registered: list[str]) -> str:
    for beginning, advice in _WITHOUT_SUCCESSOR.items():
        if name.startswith(beginning):
            return f"level '{name}' is no longer maintained and has no successor; {advice}"
    arcade = [f"ALE/{game}-v5" for game in _ARCADE_GAMES]
    suggestion = did_you_mean(name, [*registered, *arcade, *atari_deterministic_v4.values(), *fetch_v1.values()])
    return f"no level '{name}'{suggestion or '; use a Gymnasium id, module:Class or file.py:Class'}"


def _bare(specification: Any) -> Any:
    """A copy without the wrappers that only check how the environment is used."""
    specification = copy.deepcopy(specification)
    specification.order_enforce = False
    specification.disable_env_checker = True
    return specification


def _import_plugin(name: str) -> None:
    import gymnasium

    if name in gymnasium.registry:
        return
    for beginning, (module, extra) in _PLUGINS.items():
        if not name.startswith(beginning):
            continue
        try:
            gymnasium.register_envs(importlib.import_module(module))
        except ImportError as error:
            raise CoachError(f"level '{name}' needs {module}: {install_command(extra)}") from error


def _newest_version(name: str) -> Any:
    """The specification with the highest version above the version in ``name``; None if there is no higher version."""
    import gymnasium
    from gymnasium.envs.registration import parse_env_id

    try:
        namespace, base, version = parse_env_id(name)
    except gymnasium.error.Error:
        return None
    versions = {
        specification.version: specification
        for specification in gymnasium.registry.values()
        if specification.namespace == namespace and specification.name == base and specification.version is not None
    }
    newest = max(versions, default=None)
    return None if newest is None or version is None or version > newest else versions[newest]


def _arcade_specification(name: str, match: re.Match) -> Any:
    """The current specification for an older id of an Atari game. In version 0, the last action is repeated with
    probability 0.25; in version 4, never. An action is held for 4 frames (``Deterministic``), 1 frame
    (``NoFrameskip``), or 2 to 4 frames at random (other names)."""
    import gymnasium

    current = f"ALE/{match['game']}-v5"
    _import_plugin(current)
    specification = _bare(gymnasium.registry[current])
    frameskip = {"Deterministic": 4, "NoFrameskip": 1, None: (2, 5)}[match["skip"]]
    sticky = 0.25 if match["version"] == "0" else 0.0
    specification.kwargs.update(
        frameskip=frameskip, repeat_action_probability=sticky, full_action_space=False,
        obs_type="ram" if match["ram"] else "rgb",
    )  # fmt: skip
    say_once(f"level '{name}': using '{current}' with repeat_action_probability {sticky}")
    return specification
