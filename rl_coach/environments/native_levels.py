"""Levels with their own vector environment: levels with a vector entry point in Gymnasium's registry."""

from __future__ import annotations

import copy
from typing import Any, Callable

from gymnasium.vector import AutoresetMode, VectorEnv

from rl_coach.environments.gym_environment import GymEnvironment, GymEnvironmentParameters
from rl_coach.environments.gym_levels import (
    find_registered_specification,
    is_arcade,
    make_registered_vector,
)
from rl_coach.environments.native_atari import AtariGames, ale_settings
from rl_coach.environments.native_copies import NativeCopies, NextStepCopies, RestorableVectorEnv, SameStepCopies
from rl_coach.environments.vector_levels import MakeVector, autoreset_mode_of, checked, vector_maker
from rl_coach.filters.filter import InputFilter
from rl_coach.utils import CoachError

_TOLD_WHEN_TO_BEGIN = {
    "gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv": "rl_coach.environments.cart_pole_copies:CartPoleCopies"
}
"""Coach's replacements of vector environments, by entry point. Their episodes begin only in ``reset``."""


def make_native_copies(parameters: Any, make: Callable[[], GymEnvironment], input_filter: InputFilter) -> NativeCopies:
    """Copies of an environment that are one vector environment.

    :param parameters: the parameters of the environment; ``num_environments`` is the number of copies
    :param make: function that builds an ordinary environment with these parameters
    :param input_filter: the agent's input filter
    :raises CoachError: if the level has no vector environment, or it does not support these parameters
    """
    level, count = str(parameters.level), parameters.num_environments
    is_of_gymnasium = parameters.path == GymEnvironmentParameters().path
    make_vector = _vector_maker_of(parameters) if is_of_gymnasium else None
    specification: Any = find_registered_specification(level) if is_of_gymnasium and make_vector is None else None
    if make_vector is None and (specification is None or specification.vector_entry_point is None):
        raise _refusal(level, "it has no vector environment of its own")
    example = make()
    if specification is not None and is_arcade(specification):
        specification.kwargs = ale_settings(parameters, specification.kwargs, example, input_filter)
        games = make_registered_vector(specification, count)
        return AtariGames(example, games, parameters.life_loss_ends_training_episode)
    if parameters.frame_skip > 1:
        raise _refusal(level, "its vector environment skips no frames, and env_params.frame_skip is not 1")
    if make_vector is not None:
        return _copies_of(example, make_vector(count))
    specification = copy.deepcopy(specification)
    specification.kwargs = {**specification.kwargs, **parameters.additional_simulator_parameters}
    entry_point = specification.vector_entry_point
    specification.vector_entry_point = _TOLD_WHEN_TO_BEGIN.get(entry_point, entry_point)
    return _copies_of(example, checked(level, lambda count: make_registered_vector(specification, count))(count))


def plays_the_same(parameters: Any) -> bool:
    """True if a level has a vector environment that plays exactly the episodes of its single environments.

    :param parameters: the parameters of the environment
    """
    if parameters.path != GymEnvironmentParameters().path or _vector_maker_of(parameters) is not None:
        return False
    specification = find_registered_specification(str(parameters.level))
    changes = (parameters.additional_simulator_parameters, parameters.random_initialization_steps)
    return (
        specification is not None
        and specification.vector_entry_point in _TOLD_WHEN_TO_BEGIN
        and parameters.frame_skip == 1
        and not any(changes)
    )


def is_vector_level(parameters: Any) -> bool:
    """True if a level has no single environment, so that its copies are always ``native``.

    :param parameters: the parameters of the environment
    :raises CoachError: if ``vectorization`` asks for something else
    """
    if parameters.path != GymEnvironmentParameters().path or _vector_maker_of(parameters) is None:
        return False
    if parameters.vectorization == "async":
        raise CoachError(
            f"level '{parameters.level}' is a vector environment, which steps its copies itself: leave out "
            "env_params.vectorization, or set it to 'native'"
        )
    return True


def _vector_maker_of(parameters: Any) -> MakeVector | None:
    return vector_maker(str(parameters.level), parameters.additional_simulator_parameters or {})


_BY_MODE: dict[AutoresetMode, type[NativeCopies]] = {
    AutoresetMode.DISABLED: NativeCopies,
    AutoresetMode.NEXT_STEP: NextStepCopies,
    AutoresetMode.SAME_STEP: SameStepCopies,
}


def _copies_of(example: GymEnvironment, simulator: VectorEnv) -> NativeCopies:
    gives_new_arrays = isinstance(simulator, RestorableVectorEnv)
    return _BY_MODE[autoreset_mode_of(simulator)](example, simulator, copies_arrays=not gives_new_arrays)


def _refusal(level: str, reason: str) -> CoachError:
    return CoachError(f"level '{level}': {reason}: set env_params.vectorization to 'sync' or 'async'")
