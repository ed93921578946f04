"""Checks of an environment's answers, in the first steps of a run and in ``coach check-env``.

Each finding is one line that names the environment and the step.
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Iterator, NamedTuple

import gymnasium as gym
import numpy as np

from rl_coach.environments.gym_probe import action_mask_of
from rl_coach.environments.gym_wrappers import present_space
from rl_coach.utils import CoachError

logger = logging.getLogger("rl_coach")

CHECKED_STEPS = 100
"""Number of checked steps in a run. Each takes about 20 us longer; later steps take no extra time."""

OLD_STEP = (
    "step returns four values, as in the older gym; Coach converts them: let step return observation, reward, "
    "terminated, truncated, info"
)
_TOLERANCE = 1e-5

READABLE = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiBinary, gym.spaces.MultiDiscrete)
"""The kinds of Gymnasium spaces with observations that can be converted to arrays."""

_ENDS_A_RUN = ("reward type",)
"""Kinds of findings that stop a run."""

_said: set[tuple[str, str]] = set()


class Finding(NamedTuple):
    """A fault in an environment's answer.

    :param kind: a text that is equal for the same fault in different steps
    :param text: description of the fault
    """

    kind: str
    text: str


def observation_findings(space: gym.Space, observation: Any, name: str = "observation") -> Iterator[Finding]:
    """Faults of an observation.

    :param space: the environment's space for it
    :param name: the observation's name, for the text
    """
    if isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        yield from _part_findings(space, observation, name)
        return
    fault = form_finding(space, observation, name) if isinstance(space, READABLE) else None
    if fault is not None:
        yield fault
    elif isinstance(space, gym.spaces.Box):
        yield from _number_findings(space, np.asarray(observation), name)
    elif not space.contains(observation):
        yield _outside(space, observation, name)


def form_finding(space: gym.Space, observation: Any, name: str) -> Finding | None:
    """The fault that makes an observation unreadable: it is not an array of numbers, its shape differs from its space,
    or its number is not in the space. None for a readable observation.

    :param space: one of ``READABLE``
    :param observation: an array, or a value that converts to one
    :param name: the observation's name, for the text
    """
    try:
        array = np.asarray(observation)
    except ValueError:  # lists of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        return Finding(f"type {name}", f"'{name}' is {short(observation)}, which is not an array of numbers")
    if array.shape != space.shape:
        return Finding(f"shape {name}", f"'{name}' has the shape {array.shape}, its space says {space.shape}")
    is_number = isinstance(space, (gym.spaces.Discrete, gym.spaces.MultiDiscrete))
    return _outside(space, observation, name) if is_number and not space.contains(array.astype(space.dtype)) else None


def missing(name: str) -> Finding:
    """The fault of an observation without one of its parts."""
    return Finding(f"missing {name}", f"'{name}' is missing, but the observation space has it")


def _outside(space: gym.Space, observation: Any, name: str) -> Finding:
    return Finding(f"space {name}", f"'{name}' is {short(observation)}, which is not in its space {space}")


def _part_findings(space: gym.spaces.Dict | gym.spaces.Tuple, observation: Any, name: str) -> Iterator[Finding]:
    kind = dict if isinstance(space, gym.spaces.Dict) else tuple
    if not isinstance(observation, kind):
        text = f"'{name}' is of the type {type(observation).__name__}, its space says {kind.__name__}"
        yield Finding(f"type {name}", text)
        return
    prefix = "" if name == "observation" else f"{name}/"
    given: Any = observation if kind is dict else dict(enumerate(observation))
    parts: Any = space.spaces if isinstance(space, gym.spaces.Dict) else dict(enumerate(space.spaces))
    for part, sub_space in parts.items():
        if part in given:
            yield from observation_findings(sub_space, given[part], f"{prefix}{part}")
        else:
            yield missing(f"{prefix}{part}")


def _number_findings(space: gym.spaces.Box, array: np.ndarray, name: str) -> Iterator[Finding]:
    if array.dtype != space.dtype:
        yield Finding(f"dtype {name}", f"'{name}' has the dtype {array.dtype}, its space says {space.dtype}")
    unusable = array.size - int(np.isfinite(array).sum())
    if unusable:
        yield Finding(f"finite {name}", f"'{name}' is NaN or infinite in {unusable} of {array.size} elements")
        return
    slack = _TOLERANCE * np.maximum(1.0, np.abs(array))
    outside = int(((array < space.low - slack) | (array > space.high + slack)).sum())
    if outside:
        yield Finding(f"bounds {name}", f"'{name}' is outside its space in {outside} of {array.size} elements")


def step_findings(space: gym.Space, answer: tuple) -> Iterator[Finding]:
    """Faults of the five values of a step's answer."""
    observation, reward, terminated, truncated, info = answer
    yield from observation_findings(space, observation)
    if isinstance(reward, np.ndarray):
        # Several rewards are not a fault: a reward filter may sum them.
        yield Finding("reward array", f"the reward is {short(reward)}, an array: return a number")
    try:
        if not np.isfinite(reward).all():
            yield Finding("reward", f"the reward is {reward}")
    except TypeError:
        yield Finding("reward type", f"the reward is {short(reward)}, which is not a number")
    for name, value in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(value, (bool, np.bool_)):
            yield Finding(f"flag {name}", f"{name} is {short(value)}, not True or False")
    if not (terminated or truncated):
        yield from mask_findings(observation, info)


def mask_findings(observation: Any, info: dict[str, Any]) -> Iterator[Finding]:
    """The fault of an action mask that allows no action."""
    mask = action_mask_of(observation, info)
    parts = mask if isinstance(mask, (tuple, list)) else [mask]  # the parts of a tuple have different lengths
    if mask is not None and not any(np.any(part) for part in parts):
        yield Finding("mask", "the action mask allows no action, so it has no effect")


def short(value: Any) -> str:
    """A value as text for a message, at most 60 characters long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class FirstSteps:
    """Check of the first steps of an environment in a run. Each finding is reported once. Findings that stop a run are
    errors, others are warnings.

    :param level: the environment's name
    :param step: the environment's own ``step``
    :param space: the observation space
    :param replace: function that removes this check. It is called after the last checked step, with the environment's
        own ``step``
    """

    def __init__(self, level: str, step: Callable[[Any], tuple], space: gym.Space, replace: Callable[[Any], None]):
        self._level = level
        self._own_step = step
        self._space = present_space(space)
        self._replace = replace
        self._num_steps = 0

    def check_reset(self, observation: Any, info: dict[str, Any], is_of_old_gym: bool) -> None:
        """Check the first answer of an episode.

        :param is_of_old_gym: True if a step of the environment returns four values
        """
        if is_of_old_gym:
            say_once(self._level, Finding("old step", OLD_STEP), None)
        self._say(observation_findings(self._space, observation))
        self._say(mask_findings(observation, info))

    def __call__(self, action: Any) -> tuple:
        """Do a step, and check its answer. :raises CoachError: if the reward is not a number"""
        answer = self._own_step(action)
        self._num_steps += 1
        if self._num_steps == CHECKED_STEPS:
            self._replace(self._own_step)
        self._say(step_findings(self._space, answer))
        return answer

    def _say(self, findings: Iterator[Finding]) -> None:
        for finding in findings:
            if finding.kind in _ENDS_A_RUN:
                raise CoachError(line(self._level, finding, self._num_steps))
            say_once(self._level, finding, self._num_steps)


def line(level: str, finding: Finding, step: int | None) -> str:
    """A finding as a line for the user. :param step: number of the step; None if the finding belongs to no step"""
    where = "" if step is None else ", reset" if step == 0 else f", step {step}"
    return f"level '{level}'{where}: {finding.text}"


def say_once(level: str, finding: Finding, step: int | None) -> None:
    """Warn of a finding, once for each kind in a process, because all copies of an environment have the same fault."""
    if (level, finding.kind) not in _said:
        _said.add((level, finding.kind))
        logger.warning("%s", line(level, finding, step))
