"""Levels that are vector environments: functions that make a vector environment, and ids of Gymnasium with only a
vector entry point."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Mapping

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from rl_coach.environments.gym_levels import (
    ENVPOOL,
    FUNCTION_LEVEL,
    draw_without_display,
    find_registered_specification,
    import_level,
    make_ordinary_simulator,
    make_registered_vector,
)
from rl_coach.environments.gym_probe import ACTION_MASK
from rl_coach.installation import install_command, is_installed
from rl_coach.space_values import rows_at
from rl_coach.utilities.raw_actions import together
from rl_coach.utils import CoachError

MakeVector = Callable[[int], Any]
"""Function that makes a vector environment. Its argument is the number of copies."""


def make_simulator(level: str, parameters: dict[str, Any], frame_skip: int, render_mode: str | None) -> Any:
    """The Gymnasium environment of a level. A vector environment is made with a single copy.

    :param level: a level of ``make_ordinary_simulator`` or of ``vector_maker``; see there for the other parameters
    :raises CoachError: if the level does not exist, a package is missing, or the parameters do not fit
    """
    if render_mode == "rgb_array" and ":" in level:  # before its module is imported, which may import MuJoCo
        draw_without_display()
    make_vector = vector_maker(level, parameters)
    if make_vector is None:
        return make_ordinary_simulator(level, parameters, frame_skip, render_mode)
    if frame_skip > 1:
        raise CoachError(
            f"level '{level}' is a vector environment, which skips no frames: set env_params.frame_skip to 1"
        )
    return VectorOfOne(make_vector(1))


def vector_maker(level: str, parameters: dict[str, Any]) -> MakeVector | None:
    """The function that makes the vector environment of a level; None if the level is an ordinary environment.

    :param level: ``envpool:ID``; ``module:function`` or ``path/to/file.py:function`` with an argument ``num_envs``; or
        an id that is registered with a ``vector_entry_point`` only
    :param parameters: keyword arguments for the constructor
    """
    module, _, name = level.rpartition(":")
    if module == ENVPOOL:
        return checked(level, _envpool_maker(level, name, parameters))
    specification = find_registered_specification(level)
    if specification is not None:
        if specification.entry_point is not None or specification.vector_entry_point is None:
            return None
        specification.kwargs = {**specification.kwargs, **parameters}
        return checked(level, lambda count: make_registered_vector(specification, count))
    if not module or FUNCTION_LEVEL.fullmatch(level) or not name.isidentifier():
        return None
    made = import_level(level)
    if not callable(made) or "num_envs" not in inspect.signature(made).parameters:
        return None
    return checked(level, lambda count: made(num_envs=count, **parameters))


def checked(level: str, make: MakeVector) -> MakeVector:
    """The function ``make`` with a check of its result.

    :raises CoachError: if the result is not a vector environment, or has another number of copies
    """

    def make_checked(count: int) -> Any:
        made = make(count)
        if not hasattr(made, "single_observation_space"):
            raise CoachError(f"level '{level}': its function has an argument num_envs, but makes no vector environment")
        if made.num_envs != count:
            made.close()
            raise CoachError(
                f"level '{level}': its function made {made.num_envs} copies, but its argument num_envs was {count}: "
                "it must make num_envs copies"
            )
        return made

    return make_checked


def _envpool_maker(level: str, name: str, parameters: dict[str, Any]) -> MakeVector:
    if not is_installed(ENVPOOL):
        raise CoachError(f"level '{level}' needs EnvPool: {install_command(ENVPOOL)}")

    def make(count: int) -> Any:
        from rl_coach.environments.envpool_copies import EnvPoolCopies

        return EnvPoolCopies(name, count, parameters)

    return make


def autoreset_mode_of(simulator: VectorEnv) -> AutoresetMode:
    """The autoreset mode of a vector environment, which decides when the next episode of a copy begins.

    The result is DISABLED for Gymnasium's vector environments in the mode NEXT_STEP, because they can also reset single
    copies, and no action is then lost.
    """
    mode = simulator.metadata.get("autoreset_mode")
    kind: Any = type(simulator)
    if kind.reset in (gymnasium.vector.SyncVectorEnv.reset, gymnasium.vector.AsyncVectorEnv.reset):
        is_own_step = kind.step in (gymnasium.vector.SyncVectorEnv.step, gymnasium.vector.AsyncVectorEnv.step)
        mode = AutoresetMode.DISABLED if is_own_step and mode is AutoresetMode.NEXT_STEP else mode
    try:
        return AutoresetMode.DISABLED if mode is None else AutoresetMode(mode)
    except ValueError:
        names = ", ".join(str(one) for one in AutoresetMode)
        raise CoachError(
            f"{kind.__name__}: its metadata has the autoreset_mode {mode!r}; the modes of Gymnasium are {names}"
        ) from None


class VectorOfOne(gymnasium.Env):
    """The only copy of a vector environment as an ordinary environment, for evaluation.

    :param vector: a vector environment of one copy, in any autoreset mode
    """

    def __init__(self, vector: VectorEnv):
        self.vector = vector
        self.observation_space, self.action_space = vector.single_observation_space, vector.single_action_space
        self.spec = getattr(vector, "spec", None)
        self._is_same_step = autoreset_mode_of(vector) is AutoresetMode.SAME_STEP

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        # a checkpoint has only the state of this generator, and the next episodes of a resumed run depend on it
        observations, infos = self.vector.reset(seed=int(self.np_random.integers(2**31)))
        return rows_at(observations, 0), row_of_infos(infos, 0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        actions = together([action])
        if not isinstance(action, (tuple, dict)):
            actions = actions.astype(self.vector.single_action_space.dtype)
        observations, rewards, terminated, truncated, infos = self.vector.step(actions)
        info = row_of_infos(infos, 0)
        if self._is_same_step and (terminated[0] or truncated[0]):
            observation, info = final_of(infos, 0)
        else:
            observation = rows_at(observations, 0)
        return observation, float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def close(self) -> None:
        self.vector.close()


def final_of(infos: Mapping[str, Any], index: int) -> tuple[Any, dict[str, Any]]:
    """The last observation and info of an episode, if the same step also began the copy's next episode.

    :param infos: the infos of the vector environment
    :raises CoachError: if the infos have no ``final_obs``
    """
    if "final_obs" not in infos:
        raise CoachError(
            "the vector environment begins the next episode in the step that ends one (SAME_STEP), but its infos have "
            "no 'final_obs': let step return the last observations of these episodes as infos['final_obs']"
        )
    return rows_at(infos["final_obs"], index), row_of_infos(infos.get("final_info", {}), index)


def row_of_infos(infos: Any, index: int) -> dict[str, Any]:
    """The info of one copy: its row of each array. The array ``_NAME`` is True for copies with a ``NAME``."""
    infos = with_joined_masks(infos)
    return {
        name: column[index]
        for name, column in infos.items()
        if isinstance(column, np.ndarray)
        and not (name.startswith("_") and name[1:] in infos)
        and name != "final_obs"
        and (f"_{name}" not in infos or infos[f"_{name}"][index])
    }


def with_joined_masks(infos: Any) -> Any:
    """The infos of a vector environment with its action masks as one array [N, S]. In the given infos, the masks may be
    a list with a mask for each copy, or a tuple of [N, A] with the masks of each part of the actions. Other infos are
    returned unchanged."""
    masks = infos.get(ACTION_MASK) if isinstance(infos, Mapping) else None
    if isinstance(masks, tuple):
        return {**infos, ACTION_MASK: np.concatenate(masks, axis=1)}
    if isinstance(masks, list):
        whole = [np.concatenate(mask) if isinstance(mask, tuple) else mask for mask in masks]
        return {**infos, ACTION_MASK: np.stack(whole)}
    return infos


def info_of(infos: Any, index: int) -> dict[str, Any]:
    """The info of one copy.

    :param infos: the dict of a vector environment, a list with one info for each copy, or None
    """
    if not infos:
        return {}
    return row_of_infos(infos, index) if isinstance(infos, dict) else infos[index] or {}
