"""``coach check-env``: play an environment at random, and report errors in its answers."""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any, Iterator

import gymnasium as gym

from rl_coach.environments.environment_checks import (
    OLD_STEP,
    Finding,
    line,
    mask_findings,
    observation_findings,
    step_findings,
)
from rl_coach.environments.gym_probe import action_mask_of
from rl_coach.environments.gym_spaces import action_space_of
from rl_coach.environments.gym_wrappers import OldApiEnvironment
from rl_coach.space_values import mask_space_of, read_masks
from rl_coach.spaces import ActionSpace
from rl_coach.utilities.user_code import environment_error
from rl_coach.utils import CoachError

NUM_STEPS, NUM_EPISODES = 10_000, 5
"""Limits of the check: it ends after this number of steps or this number of episodes."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def check_level(level: str, num_steps: int = NUM_STEPS, seed: int = 0) -> LevelCheck:
    """Play random actions in an environment and check all its answers; then run Gymnasium's own checker.

    :param level: an id of Gymnasium, ``module:Class`` or ``path/to/file.py:Class``
    :param num_steps: largest number of steps; an episode must end within this number
    :raises CoachError: if the level does not exist or cannot be made
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
        environment = make_simulator(level, {}, 1, None).unwrapped
        if check.masked.has_masks:
            _take_allowed_actions(environment, level)
        check.notes, failure = _ask_gymnasium(environment)
        if failure is not None:
            check.add(Finding("gymnasium", f"Gymnasium's checker: {failure}"), of_a_step=False)
    return check


class MaskedActions:
    """Random actions that an environment's action mask allows.

    :param space: Gymnasium's space of the actions
    :param level: the level's name, for messages
    """

    def __init__(self, space: gym.Space, level: str, seed: int):
        self._level, self._seed, self._raw_space = level, seed, space
        self._space: ActionSpace | None = None

    @property
    def has_masks(self) -> bool:
        """True if a state had a mask."""
        return self._space is not None

    def action_for(self, observation: Any, info: dict[str, Any]) -> Any:
        """An action that the mask of a state allows; None without a mask.

        :raises CoachError: if the mask does not fit the actions
        """
        mask = action_mask_of(observation, info)
        if mask is None:
            return None
        if self._space is None:
            self._space, _ = action_space_of(self._raw_space, self._level)
            self._space.seed(self._seed)
        masks = mask_space_of(self._space)
        if masks is None:
            raise CoachError(f"the actions {self._raw_space} cannot be masked: only discrete actions can")
        return self._space.to_raw(self._space.sample_with_info(read_masks(masks, mask, "the action mask")).action)


class LevelCheck:
    """Check of an environment, with its findings.

    :ivar findings: a line for each kind of fault
    :ivar notes: advice of Gymnasium's checker
    :ivar num_steps: number of steps played
    :ivar num_episodes: number of episodes that ended
    :ivar masked: the actions, which obey the environment's masks
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
        self.masked = MaskedActions(self.env.action_space, level, seed)

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
            action = self.masked.action_for(observation, info)
            answer = self.env.step(self.env.action_space.sample() if action is None else action)
            self._add_all(step_findings(self.env.observation_space, answer))
            observation, _, terminated, truncated, info = answer
            has_ended = terminated or truncated
        self.num_episodes += has_ended
        if self.env.steps_are_of_old_gym:
            self.add(Finding("old step", OLD_STEP), of_a_step=False)

    def _add_all(self, findings: Iterator[Finding]) -> None:
        for finding in findings:
            self.add(finding)


def _take_allowed_actions(environment: Any, level: str) -> None:
    """Replace each action of an environment by an allowed action. Gymnasium's checker does not know masks, and an
    environment may refuse a forbidden action."""
    masked, reset, step = MaskedActions(environment.action_space, level, 0), environment.reset, environment.step
    state: list[Any] = [None, {}]

    @functools.wraps(reset)
    def reset_masked(**options: Any) -> Any:
        answer = reset(**options)
        if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict):
            state[:] = answer
        return answer

    @functools.wraps(step)
    def step_masked(action: Any) -> Any:
        allowed = masked.action_for(*state)
        answer = step(action if allowed is None else allowed)
        if isinstance(answer, tuple) and isinstance(answer[-1], dict):
            state[:] = answer[0], answer[-1]
        return answer

    environment.reset, environment.step = reset_masked, step_masked


def _ask_gymnasium(environment: Any) -> tuple[list[str], str | None]:
    """Advice of Gymnasium's checker, and the error with which the checker fails; None without an error."""
    from gymnasium.utils.env_checker import check_env

    failure = None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            check_env(environment, skip_render_check=True)
        except Exception as error:
            failure = _plain(f"{type(error).__name__}: {error}")
    return [_plain(str(one.message)) for one in warned if issubclass(one.category, UserWarning)], failure


def _plain(text: str) -> str:
    """A text without colours, in one line."""
    return " ".join(_COLOURS.sub("", text).removeprefix("WARN: ").split())
