"""Environments of Gymnasium, TensorForce and RLgraph with the same methods, and the loop of an agent in them."""

from __future__ import annotations

import functools
import logging
import time
from dataclasses import dataclass, field
from typing import Any, Sequence

import numpy as np

from rl_coach.environments.gym_probe import ACTION_MASK
from rl_coach.own_loop.agent import Agent
from rl_coach.own_loop.spec_agent import SpecAgent
from rl_coach.space_values import one_number, truth
from rl_coach.utilities.overrides import users_classes
from rl_coach.utilities.spec_fields import shown
from rl_coach.utils import CoachError

logger = logging.getLogger("rl_coach")

TRUNCATED = "TimeLimit.truncated"
"""Key of the info that is True if a limit ended the episode, in environments without a flag ``truncated``."""


def gymnasium_environment(level: str, visualize: bool) -> Any:
    """The environment of a Gymnasium level, made as for presets. Old names of levels are accepted.

    :param visualize: show it in a window
    :raises CoachError: if the level does not exist, or a package is missing
    """
    from rl_coach.environments.vector_levels import make_simulator

    return make_simulator(level, {}, 1, "human" if visualize else None)


class PlayedEnvironment:
    """An environment of Gymnasium, TensorForce or RLgraph.

    :param environment: a Gymnasium environment; or an object with ``reset() -> state`` and ``execute(action) -> (state,
        terminal, reward)``; or an object with ``state_space``, ``reset() -> state`` and ``step(action) -> (state,
        reward, terminal, info)``
    :param seed: the seed of the first episode, if the environment can be seeded
    :raises CoachError: if the environment has neither ``step`` nor ``execute``

    :ivar frames: number of actions that the environment has executed, repetitions included
    :ivar info: the newest info; empty if the environment has no infos
    """

    def __init__(self, environment: Any, seed: int):
        self.frames = 0
        self.info: dict[str, Any] = {}
        self._environment, self._seed = environment, iter([seed])
        self._has_execute = hasattr(environment, "execute")
        self._is_of_rlgraph = hasattr(environment, "state_space")
        if not self._has_execute and not hasattr(environment, "step"):
            raise CoachError(
                f"{type(environment).__name__} has no method step or execute: give an environment of Gymnasium, "
                f"TensorForce or RLgraph"
            )

    def reset(self) -> Any:
        """Begin an episode. :return: its first state"""
        seed = next(self._seed, None)
        if not self._has_execute and not self._is_of_rlgraph:
            state, info = _parts("state, info", self._environment.reset(seed=seed), "reset")
            self.info = info or {}
            return state
        if seed is not None and hasattr(self._environment, "seed"):
            self._environment.seed(seed)
        return self._environment.reset()

    def step(self, action: Any, repetitions: int = 1) -> tuple[Any, float, bool, bool]:
        """Execute an action several times, or until the episode ends.

        :return: next state, sum of the rewards, terminated, truncated
        """
        total, terminated, truncated, state = 0.0, False, False, None
        for _ in range(repetitions):
            state, reward, terminated, truncated = self._answer(action)
            self.frames += 1
            total += one_number(reward, "the reward of the environment")
            if terminated or truncated:
                break
        return state, total, terminated, truncated

    def _answer(self, action: Any) -> tuple[Any, Any, bool, bool]:
        if self._has_execute:
            state, terminal, reward = _parts("state, terminal, reward", self._environment.execute(action))
            refuse_swapped(terminal, reward)
            return state, reward, truth(terminal, "the terminal of the environment"), False
        if self._is_of_rlgraph:
            state, reward, terminal, info = _parts("state, reward, terminal, info", self._environment.step(action))
            self.info = info or {}
            is_over = truth(terminal, "the terminal of the environment")
            is_cut = is_over and bool(self.info.get(TRUNCATED))
            return state, reward, is_over and not is_cut, is_cut
        names = "state, reward, terminated, truncated, info"
        state, reward, *ends, info = _parts(names, self._environment.step(action))
        self.info = info or {}
        terminated, truncated = (truth(end, "an end of the environment's episode") for end in ends)
        return state, reward, terminated, truncated


def _parts(names: str, answer: Any, to: str = "an action") -> tuple[Any, ...]:
    """The values of an environment's answer. :raises CoachError: if there are more or fewer values"""
    if not isinstance(answer, (tuple, list)) or len(answer) != len(names.split(", ")):
        raise CoachError(f"the environment must answer {to} with {names}, not {shown(answer)}")
    return tuple(answer)


def refuse_swapped(terminal: Any, reward: Any) -> None:
    """Refuse a terminal and a reward in the order of older versions of TensorForce.

    :raises CoachError: if the reward is true or false, and the terminal is a float
    """
    if isinstance(reward, (bool, np.bool_)) and isinstance(terminal, (float, np.floating)):
        raise CoachError(f"the terminal is {terminal!r} and the reward is {reward!r}: exchange them")


@dataclass
class Episode:
    """An episode in an environment.

    :param state: the current state
    :param reward: the reward of the last action
    :param total: the sum of the rewards
    :param timesteps: number of actions
    :param is_over: True if the episode has ended
    :param duration: seconds from the beginning of the episode to the last action
    """

    state: Any
    reward: float = 0.0
    total: float = 0.0
    timesteps: int = 0
    is_over: bool = False
    duration: float = 0.0
    _began: float = field(default_factory=time.perf_counter)

    def take(self, state: Any, reward: float, is_over: bool) -> None:
        """Add the environment's answer to an action."""
        self.state, self.reward, self.is_over = state, reward, is_over
        self.total += reward
        self.timesteps += 1
        self.duration = time.perf_counter() - self._began


class Loop:
    """The loop of an agent in several environments, which are stepped one after the other.

    :param agent: an agent with the same number of environments
    :param environments: see ``PlayedEnvironment``

    :ivar episodes: the episode of each environment; if it is over, the next step begins a new one
    """

    def __init__(self, agent: Agent, environments: Sequence[Any]):
        seed = agent.environment_seed
        self._agent = agent
        self._environments = [PlayedEnvironment(one, seed + number) for number, one in enumerate(environments)]
        self._has_warned = False
        self.episodes: list[Episode] = []
        # the observe of other systems has no argument for a truncated episode
        self._observe = functools.partial(Agent.observe, agent) if isinstance(agent, SpecAgent) else agent.observe
        for name in agent.not_called_in_loops if isinstance(agent, SpecAgent) else ():
            if any(name in vars(one) for one in users_classes(type(agent))):
                kind = type(agent).__name__
                logger.warning(
                    "Runner and SingleThreadedWorker do not call %s.%s: call it in your own loop", kind, name
                )

    @property
    def frames(self) -> int:
        """Number of actions that the environments have executed, repetitions included."""
        return sum(one.frames for one in self._environments)

    def begin(self) -> None:
        """Leave the episodes in progress. The next step begins new episodes."""
        self._agent.reset()
        self.episodes = []

    def step(self, longest: int | None = None, deterministic: bool = False, repetitions: int = 1) -> list[Episode]:
        """Act in each environment, and let the agent observe.

        :param longest: actions after which an episode is truncated; None for no limit
        :param deterministic: act without exploration
        :param repetitions: number of times that each action is executed; the rewards are summed
        :return: ``episodes``
        """
        environments, is_single = self._environments, len(self._environments) == 1
        before: Sequence[Episode | None] = self.episodes or [None] * len(environments)
        self.episodes = [
            Episode(environment.reset()) if one is None or one.is_over else one
            for one, environment in zip(before, environments)
        ]
        states = [one.state for one in self.episodes]
        mode, self._agent.autoreset_mode = self._agent.autoreset_mode, "disabled"  # this loop resets the environments
        try:
            chosen = self._agent.act(states[0] if is_single else states, deterministic=deterministic, **self._infos())
        finally:
            self._agent.autoreset_mode = mode
        answers = []
        for episode, environment, action in zip(self.episodes, environments, [chosen] if is_single else chosen):
            state, reward, terminated, truncated = environment.step(action, repetitions)
            truncated = truncated or (longest is not None and episode.timesteps + 1 >= longest)
            episode.take(state, reward, terminated or truncated)
            answers.append((reward, terminated, truncated and not terminated, state))
        self._observe(*(answers[0] if is_single else map(list, zip(*answers))), **self._infos())
        return self.episodes

    def _infos(self) -> dict[str, Any]:
        """The argument ``infos`` for an agent that needs masks; no argument for other agents."""
        infos = [one.info for one in self._environments]
        if self._agent.uses_masks_of_infos:
            return {"infos": infos[0] if len(infos) == 1 else infos}
        is_new = ACTION_MASK not in self._agent.graph_manager.get_agent().environment_spaces.state.sub_spaces
        if is_new and not self._has_warned and any(ACTION_MASK in one for one in infos):
            logger.warning("the infos have an action_mask that the agent does not use: make it with action_mask=True")
            self._has_warned = True
        return {}


def positive(name: str, value: int) -> int:
    """The number itself.

    :raises CoachError: if the number is below 1
    """
    if value < 1:
        raise CoachError(f"{name} must be 1 or more, not {value}")
    return value
