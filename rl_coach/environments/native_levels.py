"""Levels that have a vector environment of their own: those with a vector entry point in Gymnasium's registry."""

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
from rl_coach.environments.native_copies import NativeCopies
from rl_coach.filters.filter import InputFilter
from rl_coach.utils import CoachError

_TOLD_WHEN_TO_BEGIN = {
    "gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv": "rl_coach.environments.cart_pole_copies:CartPoleCopies"
}
"""Vector environments by their entry points, and a class of ours that begins episodes when it is told."""


def make_native_copies(parameters: Any, make: Callable[[], GymEnvironment], input_filter: InputFilter) -> NativeCopies:
    """Copies of an environment that are one vector environment.

    :param parameters: the environment's; ``num_environments`` is the number of copies
    :param make: builds an ordinary environment with these parameters
    :param input_filter: the agent's
    :raises CoachError: the level has no vector environment, or none with these parameters
    """
    level, count = str(parameters.level), parameters.num_environments
    is_of_gymnasium = parameters.path == GymEnvironmentParameters().path
    specification = find_registered_specification(level) if is_of_gymnasium else None
    if specification is None or specification.vector_entry_point is None:
        raise _refusal(level, "it has no vector environment of its own")
    example = make()
    if is_arcade(specification):
        specification.kwargs = ale_settings(parameters, specification.kwargs, example, input_filter)
        games = make_registered_vector(specification, count)
        return AtariGames(example, games, parameters.life_loss_ends_training_episode)
    if parameters.frame_skip > 1:
        raise _refusal(level, "its vector environment skips no frames, and env_params.frame_skip is not 1")
    specification.kwargs = {**specification.kwargs, **parameters.additional_simulator_parameters}
    return NativeCopies(example, _make(specification, level, count))


def _make(specification: Any, level: str, count: int) -> VectorEnv:
    specification = copy.deepcopy(specification)
    entry_point = specification.vector_entry_point
    specification.vector_entry_point = _TOLD_WHEN_TO_BEGIN.get(entry_point, entry_point)
    simulator = make_registered_vector(specification, count)
    if simulator.metadata.get("autoreset_mode") is not AutoresetMode.DISABLED:
        simulator.close()
        raise _refusal(level, "its vector environment begins episodes by itself (its autoreset mode is not DISABLED)")
    return simulator


def _refusal(level: str, reason: str) -> CoachError:
    return CoachError(f"level '{level}': {reason}: set env_params.vectorization to 'sync' or 'async'")
