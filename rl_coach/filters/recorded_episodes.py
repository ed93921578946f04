"""Filtering of recorded episodes. First, the statistics of the whole data set are computed. Then all rows are filtered
with these statistics.

If the statistics changed during the filtering, the first rows would have another scale than the last rows.
"""

from __future__ import annotations

import copy
from typing import Any, Callable, Iterable, Sequence

import numpy as np

from rl_coach.core_types import Transition
from rl_coach.filters.filter import OVERRIDES as FILTER_OVERRIDES
from rl_coach.filters.filter import InputFilter, changes_nothing
from rl_coach.utils import CoachError

_RELATIVE, _ABSOLUTE = 1e-5, 1e-6  # equal states that were written with few digits may differ by these limits

ONE_BY_ONE = (
    "{} steps do not begin in the next state of the step before them: each begins a new episode, and the step before "
    "counts as truncated"
)

Rows = tuple[dict[str, Any], Any]
"""The observations [N, ...] of an episode by name, and the rewards [M]."""


def filter_recorded(episodes: Sequence[Sequence[Transition]], filters: InputFilter) -> list[list[Transition]]:
    """Filter the transitions of recorded episodes.

    :param episodes: the episodes; the state of a step must be the next state of the step before (see ``in_order``)
    :raises CoachError: if a filter does not support the data
    """
    if isinstance(filters, InputFilter) and changes_nothing(filters):
        return [list(episode) for episode in episodes]
    if not isinstance(filters, InputFilter) or FILTER_OVERRIDES.is_replaced(filters, "is_empty"):
        return [_filtered_by_users(episode, filters) for episode in episodes]
    learn_statistics(filters, lambda: (_rows(episode) for episode in episodes))
    return [_filtered(episode, filters) for episode in episodes]


def in_order(
    episodes: Sequence[Sequence[Transition]], filters: InputFilter | None
) -> tuple[list[list[Transition]], int]:
    """Cut episodes at steps that do not begin in the next state of the step before.

    The last step of each piece counts as truncated.

    :return: the pieces, and the number of cuts
    :raises CoachError: if there are cuts, but a filter needs the previous steps
    """
    pieces: list[list[Transition]] = []
    for episode in episodes:
        begin = 0
        for last in np.flatnonzero(~_go_on(episode)).tolist():
            pieces.append([*episode[begin:last], _as_last(episode[last])])
            begin = last + 1
        pieces.append(list(episode[begin:]))
    cuts = len(pieces) - len(episodes)
    if cuts and isinstance(filters, InputFilter) and any(member.remembers_episode for _, member in filters._members()):
        raise CoachError(
            f"{cuts} recorded steps do not begin in the next state of the step before, so the steps are not in order. "
            f"The agent's input_filter needs the previous steps, for example to stack frames: give whole episodes"
        )
    return pieces, cuts


def learn_statistics(filters: InputFilter, read: Callable[[], Iterable[Rows]], reads_episodes: bool = True) -> None:
    """Compute the statistics of filters from the whole data set, one filter after the other. The input of a filter is
    the output of the filters before it, which have their final statistics.

    :param read: a function that returns all data from the beginning
    :param reads_episodes: False if the data is not divided into episodes; statistics of returns are then not computed
    """
    for name, members in filters.observation_filters.items():
        for place, member in enumerate(members.values()):
            if not member.has_statistics:
                continue
            before = list(members.values())[:place]
            for observations, _ in read():
                if name in observations:
                    filters.reset()
                    member.filter_batch(_through(before, observations[name]), True)
    for place, reward_filter in enumerate(filters.reward_filters.values()):
        if reward_filter.has_statistics and (reads_episodes or not reward_filter.remembers_episode):
            before_it = list(filters.reward_filters.values())[:place]
            for _, rewards in read():
                filters.reset()
                rewards = _rewards_through(before_it, rewards)
                # one by one, for statistics of returns
                for piece in rewards if reward_filter.remembers_episode else [rewards]:
                    reward_filter.filter(piece, True)


def has_statistics(filters: InputFilter) -> bool:
    """True if a filter of the chain has statistics over several episodes."""
    return any(member.has_statistics for _, member in filters._members())


def _through(members: Iterable[Any], column: Any) -> Any:
    for member in members:
        # only filters without statistics update their state here: they store data of the episode, or they have no state
        column = member.filter_batch(column, not member.has_statistics)
    return column


def _rewards_through(members: Iterable[Any], rewards: Any) -> np.ndarray:
    for member in members:
        rewards = [member.filter(reward, not member.has_statistics) for reward in rewards]
    return np.asarray(rewards)


def _rows(episode: Sequence[Any]) -> Rows:
    """The observations and rewards of an episode. There is one more observation than steps."""
    observations = {name: [step.state[name] for step in episode] for name in episode[0].state}
    for name, column in observations.items():
        column.append(episode[-1].next_state[name])
    return observations, [step.reward for step in episode]


def _filtered_by_users(episode: Sequence[Transition], filters: Any) -> list[Transition]:
    """Filter an episode with a user's chain that overrides ``filter``."""
    filters.reset()
    return filters.filter(list(episode), deep_copy=False)


def _filtered(episode: Sequence[Any], filters: InputFilter) -> list[Transition]:
    filters.reset()
    observations, rewards = _rows(episode)
    for name, members in filters.observation_filters.items():
        if name in observations:
            observations[name] = _through(members.values(), observations[name])
    rewards = _rewards_through(filters.reward_filters.values(), rewards) if filters.reward_filters else rewards
    found = []
    for number, step in enumerate(episode):
        transition = copy.copy(step)
        transition.state = {name: observations[name][number] for name in step.state}
        transition.next_state = {name: observations[name][number + 1] for name in step.next_state}
        transition.reward = rewards[number]
        found.append(transition)
    return found


def _go_on(episode: Sequence[Any]) -> np.ndarray:
    """[N - 1] bool, True where the next state of a step equals the state of the following step."""
    goes_on = np.ones(len(episode) - 1, bool)
    for name in episode[0].state if len(episode) > 1 else ():
        ends, begins = [step.next_state[name] for step in episode[:-1]], [step.state[name] for step in episode[1:]]
        if any(one is not other for one, other in zip(ends, begins)):
            is_same = np.isclose(np.asarray(ends), np.asarray(begins), _RELATIVE, _ABSOLUTE, equal_nan=True)
            goes_on &= is_same.reshape(len(goes_on), -1).all(axis=1)
    return goes_on


def _as_last(transition: Transition) -> Transition:
    last = copy.copy(transition)
    last.game_over = True
    return last
