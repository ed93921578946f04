"""Environments of other systems, played by one pair of methods."""

from __future__ import annotations

from typing import Any

from rl_coach.utils import CoachError

TRUNCATED = "TimeLimit.truncated"
"""Key of the info of an environment that answers with one flag: its episode was cut by a limit."""


def gymnasium_environment(level: str, visualize: bool) -> Any:
    """A level of Gymnasium's, as presets make it: older names are those of today's with the same meaning.

    :param visualize: show it in a window
    :raises CoachError: there is none, or a package is missing
    """
    from rl_coach.environments.vector_levels import make_simulator

    return make_simulator(level, {}, 1, "human" if visualize else None)


class PlayedEnvironment:
    """An environment of Gymnasium, TensorForce or RLgraph.

    :param environment: of Gymnasium; or an object with ``reset() -> state`` and
        ``execute(action) -> (state, terminal, reward)``; or an object with ``state_space``, ``reset() -> state`` and
        ``step(action) -> (state, reward, terminal, info)``
    :raises CoachError: it has neither ``step`` nor ``execute``

    :ivar frames: number of actions that it has executed, repetitions included
    """

    def __init__(self, environment: Any):
        self.frames = 0
        self._environment = environment
        self._has_execute = hasattr(environment, "execute")
        self._is_of_rlgraph = hasattr(environment, "state_space")
        if not self._has_execute and not hasattr(environment, "step"):
            raise CoachError(f"an environment has step or execute, and {type(environment).__name__} has neither")

    def reset(self, seed: int | None = None) -> Any:
        """Begin an episode.

        :param seed: of its random numbers, for an environment that can be seeded; None goes on with them
        :return: its first state
        """
        if not self._has_execute and not self._is_of_rlgraph:
            return self._environment.reset(seed=seed)[0]
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
            total += float(reward)
            if terminated or truncated:
                break
        return state, total, bool(terminated), bool(truncated)

    def _answer(self, action: Any) -> tuple[Any, Any, Any, Any]:
        if self._has_execute:
            state, terminal, reward = self._environment.execute(action)
            return state, reward, terminal, False
        if self._is_of_rlgraph:
            state, reward, terminal, info = self._environment.step(action)
            is_cut = terminal and bool((info or {}).get(TRUNCATED))
            return state, reward, terminal and not is_cut, is_cut
        state, reward, terminated, truncated, _ = self._environment.step(action)
        return state, reward, terminated, truncated
