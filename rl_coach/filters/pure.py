"""Filters as pure functions over arrays, for loops that are compiled as a whole."""

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
"""The methods of a filter that a user may override without a new pure form: a compiled loop calls them too."""

Arrays = dict[str, Any]
Form = TypeVar("Form")


@dataclass(frozen=True)
class PureFilter:
    """A filter of observations as pure functions.

    :param state: returns the filter's present statistics as arrays; empty for a filter that learns nothing
    :param update: the statistics after a batch [B, ...], from the statistics before it and the batch
    :param apply: the filtered batch [B, ...], from the statistics and a batch
    :param take: stores statistics in the filter
    """

    state: Callable[[], Arrays]
    update: Callable[[Arrays, Any], Arrays]
    apply: Callable[[Arrays, Any], Any]
    take: Callable[[Arrays], None]


def stateless(apply: Callable[[Any], Any]) -> PureFilter:
    """A filter that learns nothing. :param apply: returns the filtered batch of a batch"""
    return PureFilter(dict, lambda state, batch: state, lambda state, batch: apply(batch), lambda state: None)


class PureFilters:
    """All filters of a chain as pure functions. No filter may remember an episode; reward filters learn nothing.

    :param chain: the filters; all must have a pure form
    :param ops: array operations with the names of ``keras.ops``
    """

    def __init__(self, chain: InputFilter, ops: Any):
        self._filters: dict[str, dict[str, PureFilter]] = {
            name: {key: _found(member.pure(ops)) for key, member in filters.items()}
            for name, filters in chain.observation_filters.items()
        }
        self._reward_filters = [_found(member.pure(ops)) for member in chain.reward_filters.values()]

    def state(self) -> dict[str, dict[str, Arrays]]:
        """The filters' statistics: for each observation the state of each filter."""
        return {name: {key: one.state() for key, one in own.items()} for name, own in self._filters.items()}

    @property
    def learn(self) -> bool:
        """True if a filter has statistics."""
        return any(state for own in self.state().values() for state in own.values())

    def take(self, state: dict[str, dict[str, Arrays]]) -> None:
        """Store statistics in the filters."""
        for name, own in self._filters.items():
            for key, one in own.items():
                one.take(state[name][key])

    def apply(self, state: Any, observations: Arrays) -> Arrays:
        """Filtered observations [B, ...] by name."""
        return self._filtered(state, observations, False)[0]

    def update_and_apply(self, state: Any, observations: Arrays) -> tuple[Arrays, Any]:
        """Filtered observations, and the new statistics. All observations count before the first is filtered."""
        return self._filtered(state, observations, True)

    def rewards(self, rewards: Any) -> Any:
        """Filtered rewards [B]."""
        for one in self._reward_filters:
            rewards = one(rewards)
        return rewards

    def _filtered(self, state: Any, observations: Arrays, updates: bool) -> tuple[Arrays, Any]:
        filtered, after = dict(observations), dict[str, dict[str, Arrays]]()
        for name, own in self._filters.items():
            after[name] = {}
            for key, one in own.items():
                known = state[name][key]
                after[name][key] = one.update(known, filtered[name]) if updates else known
                filtered[name] = one.apply(after[name][key], filtered[name])
        return filtered, after


def _found(form: Form | None) -> Form:
    assert form is not None
    return form


def without_pure_form(chain: InputFilter) -> str | None:
    """The class of the first filter without a pure form, or ``Class.method`` of an override that a pure form would
    ignore; None if the whole chain has a pure form."""
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
