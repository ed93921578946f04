"""A watch for numbers that are not finite, so that a loss that becomes NaN can be traced to where they came from."""

from __future__ import annotations

import math
from typing import Any, Mapping

import numpy as np

from rl_coach.core_types import EnvResponse

ADVICE = "try a smaller learning_rate, clip_gradients, or rescaled rewards"


class FiniteWatch:
    """Remembers where the first number came from that is not finite. The run goes on: what nobody learns from is no
    fault.

    :ivar source: who gave it, and when, as text; None while all numbers are finite
    """

    def __init__(self) -> None:
        self.source: str | None = None

    def is_finite(self, states: Mapping[str, np.ndarray], rewards: np.ndarray) -> bool:
        """True if there is nothing to ``look`` for: the source is known, or all numbers are finite.

        :param states: [N, ...] by name, of several actors
        :param rewards: [N]
        """
        if self.source is not None:
            return True
        floats = [value.ravel() for value in states.values() if value.dtype.kind == "f"]
        return math.isfinite(sum([np.vdot(value, value) for value in (rewards, *floats)]))

    def look(self, response: EnvResponse, filtered: EnvResponse, step: int, episode: int, action: Any = None) -> None:
        """Look at a step of an episode.

        :param response: the environment's answer
        :param filtered: what the agent's input filter made of it
        :param step: the number of the step within the episode
        :param episode: the number of the episode
        :param action: what the environment answers; None at the start of an episode
        """
        if self.source is not None:
            return
        # a sum of squares is finite only if each number is, and takes a third of a microsecond, a third of np.isfinite
        squares = [
            np.vdot(value, value)
            for value in filtered.next_state.values()
            if type(value) is np.ndarray and value.dtype.kind == "f"
        ]
        reward = filtered.reward
        if math.isfinite(sum(squares)) and (math.isfinite(reward) if type(reward) is float else _is_finite(reward)):
            return
        when = f"in step {step} of episode {episode}"
        if isinstance(action, np.ndarray) and not _is_finite(action):
            self.source = f"the action that the network chose {when} has {_first_of(action)}: {ADVICE}"
        self.compare(response.next_state, filtered.next_state, "input filter", when)
        if self.source is None and not _is_finite(reward):
            gave = "input filter made of a finite one" if _is_finite(response.reward) else "environment gave"
            self.source = f"the reward that the {gave} {when} is {_first_of(reward)}"

    def compare(self, before: Mapping[str, Any], after: Mapping[str, Any], filter_name: str, when: str) -> None:
        """Look at observations before and after a filter, [...] by name."""
        if self.source is not None:
            return
        for name, value in after.items():
            if not _is_finite(value):
                gave = f"{filter_name} made of a finite one" if _is_finite(before[name]) else "environment gave"
                self.source = f"the observation '{name}' that the {gave} {when} has {_first_of(value)}"
                return

    def explain(self, columns: Mapping[str, np.ndarray]) -> str:
        """The reason why a loss is not finite, as far as it is known.

        :param columns: [N, ...] by name, what the update learned from; see ``Learner.train``
        """
        if self.source is not None:
            return self.source
        bad = [name for name, column in columns.items() if not _is_finite(column)]
        if not bad:
            return f"all that it learned from is finite: {ADVICE}"
        name, value = bad[0], _first_of(columns[bad[0]])
        if name.startswith("extra/") or name == "actions":
            return f"'{name}', which the networks gave for finite observations, has {value}: {ADVICE}"
        return f"'{name}' has {value} in what another process or a recording gave"


def _is_finite(value: Any) -> bool:
    array = np.asarray(value)
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _first_of(value: Any) -> Any:
    array = np.asarray(value)
    return array[~np.isfinite(array)][0]
