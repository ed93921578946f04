"""Checks of an environment's answers, in the first steps of a run and in ``coach check-env``.

Each finding is one line that names the environment and the step.
"""

from __future__ import annotations

import logging
import re
import warnings
from typing import Any, Callable, Iterator, NamedTuple

import gymnasium as gym
import numpy as np

from rl_coach.environments.gym_probe import action_mask_of
from rl_coach.environments.gym_wrappers import OldApiEnvironment, present_space
from rl_coach.utilities.user_code import environment_error
from rl_coach.utils import CoachError

logger = logging.getLogger("rl_coach")

CHECKED_STEPS = 100
"""Number of checked steps in a run. Each takes about 20 us longer; later steps take no extra time."""

NUM_STEPS, NUM_EPISODES = 10_000, 5
"""Limits of ``coach check-env``: it ends after this number of steps or this number of episodes."""

OLD_STEP = (
    "answers step with four values, as the older gym did: they are translated; return observation, reward, terminated, "
    "truncated, info"
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_TOLERANCE = 1e-5

READABLE = (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiBinary, gym.spaces.MultiDiscrete)
"""The spaces of observations that become arrays."""

_ENDS_A_RUN = ("reward type",)
"""Kinds of findings that stop a run."""

_said: set[tuple[str, str]] = set()


class Finding(NamedTuple):
    """A fault in an environment's answer.

    :param kind: a text that is equal for the same mistake in different steps
    :param text: description of the mistake
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
        return Finding(f"type {name}", f"'{name}' is {short(observation)}, which is no array of numbers")
    if array.shape != space.shape:
        return Finding(f"shape {name}", f"'{name}' has the shape {array.shape}, its space says {space.shape}")
    is_number = isinstance(space, (gym.spaces.Discrete, gym.spaces.MultiDiscrete))
    return _outside(space, observation, name) if is_number and not space.contains(array.astype(space.dtype)) else None


def missing(name: str) -> Finding:
    """The fault of an observation without one of its parts."""
    return Finding(f"missing {name}", f"'{name}' is missing, though its space names it")


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
    """The fault of an action mask that allows no action, in a state that needs one."""
    mask = action_mask_of(observation, info)
    if mask is not None and not np.any(mask):
        yield Finding("mask", "the action mask allows no action at all: it masks nothing")


def short(value: Any) -> str:
    """A value as text for a message, at most 60 letters long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class FirstSteps:
    """Check of the first steps of an environment in a run. Each finding is reported once. Findings that stop a run are
    errors, others are warnings.

    :param level: the environment's name
    :param step: the environment's own ``step``
    :param space: the observation space
    :param replace: function that is called after the last checked step; it puts its argument, the environment's own
        ``step``, in the place of this check
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
        """Do a step, and check its answer.

        :raises CoachError: the reward is not a number
        """
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


def check_level(level: str, num_steps: int = NUM_STEPS, seed: int = 0) -> LevelCheck:
    """Play random actions in an environment and check all its answers; then run Gymnasium's own checker.

    :param level: an id of Gymnasium, ``module:Class`` or ``path/to/file.py:Class``
    :param num_steps: largest number of steps; an episode must end within this number
    :raises CoachError: the level does not exist or cannot be made
    """
    from rl_coach.environments.vector_levels import make_simulator

    try:
        check = LevelCheck(level, make_simulator(level, {}, 1, None), seed)
    except CoachError:
        raise
    except Exception as error:
        raise CoachError(f"environment '{level}' cannot be made: {environment_error(error)}") from error
    try:
        check.play(num_steps)
    except Exception as error:
        check.add(Finding("raised", f"raised an error: {environment_error(error)}"))
    finally:
        check.env.close()
    if isinstance(check.env.unwrapped, gym.Env) and not check.findings.keys() & {"raised", "old step"}:
        check.notes, failure = _ask_gymnasium(make_simulator(level, {}, 1, None))
        if failure is not None:
            check.add(Finding("gymnasium", f"Gymnasium's checker: {failure}"), of_a_step=False)
    return check


class LevelCheck:
    """Check of an environment, with its findings.

    :ivar findings: a line for each kind of fault
    :ivar notes: advice of Gymnasium's checker
    :ivar num_steps: number of steps played
    :ivar num_episodes: number of episodes that ended
    """

    def __init__(self, level: str, simulator: Any, seed: int):
        self.level = level
        self.env = OldApiEnvironment(simulator)
        self.findings: dict[str, str] = {}
        self.notes: list[str] = []
        self.num_steps = self.num_episodes = 0
        self._step = 0
        self._seed: int | None = seed
        self.env.action_space.seed(seed)

    def add(self, finding: Finding, of_a_step: bool = True) -> None:
        self.findings.setdefault(finding.kind, line(self.level, finding, self._step if of_a_step else None))

    def play(self, num_steps: int) -> None:
        while self.num_steps < num_steps and self.num_episodes < NUM_EPISODES and "mask" not in self.findings:
            self._play_episode(num_steps)
        if self.num_episodes == 0 and self.num_steps >= num_steps:
            self.add(Finding("endless", f"the episode has not ended within {num_steps} steps: give it a limit"))

    def _play_episode(self, num_steps: int) -> None:
        self._step, has_ended = 0, False
        observation, info = self.env.reset(seed=self._seed)
        self._seed = None
        self._add_all(observation_findings(self.env.observation_space, observation))
        self._add_all(mask_findings(observation, info))
        while self.num_steps < num_steps and not has_ended and "mask" not in self.findings:
            self._step += 1
            self.num_steps += 1
            answer = self.env.step(self._random_action(observation, info))
            self._add_all(step_findings(self.env.observation_space, answer))
            observation, _, terminated, truncated, info = answer
            has_ended = terminated or truncated
        self.num_episodes += has_ended
        if self.env.steps_are_of_old_gym:
            self.add(Finding("old step", OLD_STEP), of_a_step=False)

    def _random_action(self, observation: Any, info: dict[str, Any]) -> Any:
        mask, space = action_mask_of(observation, info), self.env.action_space
        if mask is None or not isinstance(space, gym.spaces.Discrete):
            return space.sample()
        return space.sample(np.asarray(mask).astype(np.int8))

    def _add_all(self, findings: Iterator[Finding]) -> None:
        for finding in findings:
            self.add(finding)


def _ask_gymnasium(simulator: Any) -> tuple[list[str], str | None]:
    """Advice of Gymnasium's checker, and the error with which the checker fails; None without an error."""
    from gymnasium.utils.env_checker import check_env

    failure = None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            check_env(simulator.unwrapped, skip_render_check=True)
        except Exception as error:
            failure = _plain(f"{type(error).__name__}: {error}")
    return [_plain(str(one.message)) for one in warned if issubclass(one.category, UserWarning)], failure


def _plain(text: str) -> str:
    """A text without colours, in one line."""
    return " ".join(_COLOURS.sub("", text).removeprefix("WARN: ").split())
