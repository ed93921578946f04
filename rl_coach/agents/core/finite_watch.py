"""A watch for numbers that are not finite. It finds the source of the number that makes a loss NaN."""

from __future__ import annotations

import math
from typing import Any, Mapping

import numpy as np

from rl_coach.core_types import EnvResponse

ADVICE = "try a smaller learning_rate, clip_gradients, or rescaled rewards"


class FiniteWatch:
    """Remembers the source of the first number that is not finite. The run continues, because such a number does no
    harm if no update learns from it.

    :ivar source: the source and the time of the number, as text; None while all numbers are finite
    """

    def __init__(self) -> None:
        self.source: str | None = None

    def is_finite(self, states: Mapping[str, np.ndarray], rewards: np.ndarray) -> bool:
        """True if ``look`` need not be called, because all numbers are finite or the source is known already.

        :param states: [N, ...] by name, of several actors
        :param rewards: [N]
        """
        if self.source is not None:
            return True
        floats = [value.ravel() for value in states.values() if value.dtype.kind == "f"]
        return math.isfinite(sum([np.vdot(value, value) for value in (rewards, *floats)]))

    def look(self, response: EnvResponse, filtered: EnvResponse, step: int, episode: int, action: Any = None) -> None:
        """Check a step of an episode.

        :param filtered: the answer after the agent's input filter
        :param step: the number of the step within the episode
        :param action: the action before this answer; None at the start of an episode
        """
        if self.source is not None:
            return
        # A sum of squares is finite only if each number is. It takes 0.3 us, a third of the time of np.isfinite. Each
        # step pays for it.
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
        # The action is checked first: the environment can answer a NaN action only with NaN.
        self.compare(response.next_state, filtered.next_state, "input filter", when)
        if self.source is None and not _is_finite(reward):
            gave = "input filter computed from finite numbers" if _is_finite(response.reward) else "environment gave"
            self.source = f"the reward that the {gave} {when} is {_first_of(reward)}"

    def compare(self, before: Mapping[str, Any], after: Mapping[str, Any], filter_name: str, when: str) -> None:
        """Check observations [...] by name, before and after a filter.

        :param filter_name: the name of the filter in the message
        :param when: the time in the message
        """
        if self.source is not None:
            return
        for name, value in after.items():
            if not _is_finite(value):
                gave = f"{filter_name} computed from finite numbers" if _is_finite(before[name]) else "environment gave"
                self.source = f"the observation '{name}' that the {gave} {when} has {_first_of(value)}"
                return

    def explain(self, columns: Mapping[str, np.ndarray]) -> str:
        """The most probable reason why a loss is not finite, as text.

        :param columns: [N, ...] by name, the columns of the update; see ``Learner.train``
        """
        if self.source is not None:
            return self.source
        bad = [name for name, column in columns.items() if not _is_finite(column)]
        if not bad:
            return f"all numbers of the update are finite: {ADVICE}"
        name, value = bad[0], _first_of(columns[bad[0]])
        if name.startswith("extra/") or name == "actions":
            return f"'{name}', which the networks computed from finite observations, has {value}: {ADVICE}"
        return f"'{name}' has {value} in data from another process or a recording"


def _is_finite(value: Any) -> bool:
    array = np.asarray(value)
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _first_of(value: Any) -> Any:
    array = np.asarray(value)
    return array[~np.isfinite(array)][0]
