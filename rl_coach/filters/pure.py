"""Filters as pure functions of arrays, for compiled loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, TypeVar

import numpy as np

from rl_coach.filters.filter import InputFilter
from rl_coach.utilities.overrides import OverrideTable, why_not_on_fast_path

OVERRIDES = OverrideTable({"pure": ("filter", "filter_batch")})
ALLOWED = frozenset({
    "get_filtered_observation_space", "get_filtered_reward_space", "pure", "validate_input_observation_space",
})  # fmt: skip
"""Methods of a filter that a user's subclass may override. The pure form stays valid, because compiled loops call these
methods too."""

Arrays = dict[str, Any]
Form = TypeVar("Form")


@dataclass(frozen=True)
class PureFilter:
    """A filter of observations as pure functions.

    :param state: returns the current statistics of the filter as arrays; empty for a filter without statistics
    :param update: a function of statistics and a batch [B, ...] that returns the new statistics
    :param apply: a function of statistics and a batch that returns the filtered batch [B, ...]
    :param take: stores statistics in the filter
    """

    state: Callable[[], Arrays]
    update: Callable[[Arrays, Any], Arrays]
    apply: Callable[[Arrays, Any], Any]
    take: Callable[[Arrays], None]


def stateless(apply: Callable[[Any], Any]) -> PureFilter:
    """Make a filter without statistics. :param apply: a function of a batch that returns the filtered batch"""
    return PureFilter(dict, lambda state, batch: state, lambda state, batch: apply(batch), lambda state: None)


class PureFilters:
    """All filters of a chain as pure functions. No filter stores data of an episode, and reward filters have no
    statistics.

    :param chain: the filters; each must have a pure form
    :param ops: array operations with the names of ``keras.ops``
    """

    def __init__(self, chain: InputFilter, ops: Any):
        self._filters: dict[str, dict[str, PureFilter]] = {
            name: {key: _found(member.pure(ops)) for key, member in filters.items()}
            for name, filters in chain.observation_filters.items()
        }
        self._reward_filters = [_found(member.pure(ops)) for member in chain.reward_filters.values()]

    def state(self) -> dict[str, dict[str, Arrays]]:
        """The statistics of each filter, by the names of the observation and the filter."""
        return {name: {key: one.state() for key, one in own.items()} for name, own in self._filters.items()}

    @property
    def learn(self) -> bool:
        """True if at least one filter has statistics."""
        return any(state for own in self.state().values() for state in own.values())

    def take(self, state: dict[str, dict[str, Arrays]]) -> None:
        """Store statistics in the filters."""
        for name, own in self._filters.items():
            for key, one in own.items():
                one.take(state[name][key])

    def apply(self, state: Any, observations: Arrays) -> Arrays:
        """Filter observations [B, ...] by name."""
        return self._filtered(state, observations, False)[0]

    def update_and_apply(self, state: Any, observations: Arrays) -> tuple[Arrays, Any]:
        """Add observations to the statistics, then filter them. Return the filtered observations and the new
        statistics.
        """
        return self._filtered(state, observations, True)

    def rewards(self, rewards: Any) -> Any:
        """Filter rewards [B]."""
        for one in self._reward_filters:
            rewards = one(rewards)
        return rewards

    def _filtered(self, state: Any, observations: Arrays, updates: bool) -> tuple[Arrays, Any]:
        filtered, after = dict(observations), dict[str, dict[str, Arrays]]()
        for name, own in self._filters.items():
            after[name] = state[name] if name not in filtered else {}  # no such observation: nothing changes
            for key, one in own.items() if name in filtered else ():
                known = state[name][key]
                after[name][key] = one.update(known, filtered[name]) if updates else known
                filtered[name] = one.apply(after[name][key], filtered[name])
        return filtered, after


def _found(form: Form | None) -> Form:
    assert form is not None
    return form


def without_pure_form(chain: InputFilter) -> str | None:
    """The reason why a chain has no pure form; None if it has one. The reason is the class of the first filter without
    a pure form, or ``Class.method`` for an overridden method that the pure form would ignore.
    """
    if (override := why_not_on_fast_path(chain, ())) is not None:
        return override
    observations = [one for filters in chain.observation_filters.values() for one in filters.values()]
    members: list[Any] = [*observations, *chain.reward_filters.values()]
    for one in members:
        if (override := why_not_on_fast_path(one, ALLOWED, "pure")) is not None:
            return override
        if OVERRIDES.is_replaced(one, "pure") or one.pure(np) is None:
            return type(one).__name__
    return None
