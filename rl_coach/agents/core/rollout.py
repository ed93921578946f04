"""Steps of several actors side by side. They are kept until an update learns from them, once."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from rl_coach.core_types import Batch
from rl_coach.utilities import plain_data

Columns = dict[str, np.ndarray]


class Rollout:
    """The steps that all actors have taken since the last update, in order of time.

    One step of all actors is a set of arrays ``[N, ...]``, without an object for each transition. The arrays are joined
    only once, when an update learns from them.

    :ivar num_episodes: the number of episodes that ended in these steps
    """

    def __init__(self) -> None:
        self._steps: list[Batch] = []
        self._acted: list[np.ndarray] = []
        self.num_episodes = self._length = 0

    def __len__(self) -> int:
        """The number of transitions."""
        return self._length

    @property
    def num_actors(self) -> int:
        """The number of actors; 0 as long as there are no steps."""
        return len(self._steps[0]) if self._steps else 0

    def add(self, step: Batch, acting: np.ndarray | None = None) -> None:
        """Keep one step of all actors. Nothing is copied: the arrays must not change afterwards.

        :param step: [N, ...], always of the same actors in the same order
        :param acting: [K] the actors that acted, None for all; the other rows are ignored
        """
        # rows of actors that did not act stay in the arrays, so that each step has the same shape
        acted = np.ones(len(step), np.bool_)
        if acting is not None:
            acted[:] = False
            acted[acting] = True
        self._steps.append(step)
        self._acted.append(acted)
        self._length += len(step) if acting is None else len(acting)
        self.num_episodes += int(np.count_nonzero(step.game_over_column & acted))

    def cut(self, actors: np.ndarray) -> None:
        """Let the open episodes of ``actors`` [K] count as truncated, because these actors begin other episodes."""
        for time in reversed(range(len(self._steps))):
            acted, step = self._acted[time][actors], self._steps[time]
            cut = actors[acted & ~step.game_over_column[actors].astype(np.bool_)]
            if len(cut):
                over = step.game_over_column.copy()
                over[cut] = True
                self._steps[time] = Batch.from_columns(**{**_plain(step), "game_overs": over})
                self.num_episodes += len(cut)
            actors = actors[~acted]
            if not len(actors):
                return

    def take(self) -> Batch:
        """Return all transitions and forget them. Each episode is one block of rows. The episodes that ended come
        first, in the order of their ends. The open episodes follow, in the order of the actors.

        An open episode counts as truncated at its last step: ``game_over`` is True and ``terminated`` is False, so
        returns bootstrap from the critic.

        :return: [B, ...]
        """
        steps, acted = self._steps, np.stack(self._acted)
        self.clear()
        over = np.stack([step.game_over_column for step in steps]) & acted
        order, last = _episode_by_episode(over, acted)
        # the last step of an open episode: game_over without terminated is a truncation
        over.ravel()[last] = True

        batch = RolloutBatch(Batch.joined(steps)[order])
        batch.game_over_column = over.ravel()[order]
        # float32, as in a batch of single transitions, so that both ways give equal results
        batch.reward_column = batch.reward_column.astype(np.float32, copy=False)
        batch.order, batch.shape = order, over.shape
        return batch

    def clear(self) -> None:
        """Forget all steps."""
        self._steps, self._acted, self.num_episodes, self._length = [], [], 0, 0

    def get_state(self) -> dict[str, Any]:
        """The steps as plain data; an empty dict without steps."""
        steps = zip(self._steps, self._acted)
        return plain_data.numbered({**_plain(step), "acted": acted} for step, acted in steps)

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that ``get_state`` returned."""
        self.clear()
        for saved in plain_data.in_order(state):
            step = dict(saved)
            acted = step.pop("acted")
            self.add(Batch.from_columns(**step), None if acted.all() else np.flatnonzero(acted))


class RolloutBatch(Batch):
    """The transitions that ``Rollout.take`` returns.

    :ivar order: [B], the number ``t * N + n`` of each row, where t is its step and n its actor
    :ivar shape: (T, N): the numbers of steps and of actors
    """

    order: np.ndarray
    shape: tuple[int, ...]

    def by_time(self, column: np.ndarray) -> np.ndarray:
        """A column [T, N] from one number for each row [B]; 0 if an actor did not act in a step."""
        found = np.zeros(math.prod(self.shape), column.dtype)
        found[self.order] = column
        return found.reshape(self.shape)


def _episode_by_episode(over: np.ndarray, acted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of rows in the result of ``Rollout.take``.

    :param over: [T, N] True where an episode ended
    :param acted: [T, N] False for rows that do not count
    :return: [B] the places ``t * N + n``; [O] the places of the last rows of the open episodes
    """
    num_actors = over.shape[1]
    rows = [np.flatnonzero(column) * num_actors + actor for actor, column in enumerate(acted.T)]
    parts, begins = [], [0] * num_actors
    places = np.cumsum(acted, axis=0)  # after each step, the number of rows of each actor
    for time, actor in np.argwhere(over).tolist():  # in order of time
        end = int(places[time, actor])
        parts.append(rows[actor][begins[actor] : end])
        begins[actor] = end
    open_parts = [of_actor[begin:] for of_actor, begin in zip(rows, begins) if begin < len(of_actor)]
    return np.concatenate(parts + open_parts), np.array([part[-1] for part in open_parts], int)


def _plain(step: Batch) -> dict[str, Any]:
    return {
        "states": step.state_columns,
        "next_states": step.next_state_columns,
        "actions": step.action_column,
        "rewards": step.reward_column,
        "game_overs": step.game_over_column,
        "terminateds": step.terminated_column,
        "info": step.info_columns,
    }


class ArrayOperations:
    """The operations of ``keras.ops`` that the estimates of several copies need, on NumPy arrays. They round as
    ``n_step_returns`` does: with float32 rewards, the sums are float32, and the result is float64."""

    zeros_like, logical_and = np.zeros_like, np.logical_and

    @staticmethod
    def where(condition: np.ndarray, one: Any, other: Any) -> np.ndarray:
        """See ``keras.ops.where``."""
        return np.where(condition, one, other).astype(np.float32, copy=False)

    @staticmethod
    def scan(step: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, reverse: bool = False) -> tuple[Any, Any]:
        """See ``keras.ops.scan``."""
        carry, found = init, []
        for row in reversed(list(zip(*xs))) if reverse else zip(*xs):
            carry, one = step(carry, row)
            found.append(one)
        return carry, np.stack(found[::-1] if reverse else found).astype(np.float64)


def estimates_of_rollout(
    estimate: Callable[..., tuple[Any, Any]],
    batch: RolloutBatch,
    values: np.ndarray,
    ends: np.ndarray,
    following: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and returns [B] of a rollout, in one backward pass over all actors.

    :param estimate: one of the estimates of copies in ``rules/advantages.py``
    :param values: [B], the values of the states
    :param ends: [E] the last row of each episode
    :param following: [E] the value of the state after each of these rows, 0 if the episode terminated
    """
    # within an episode, the next row's value is the value of the next state
    next_values = np.append(values[1:], values[:1])
    # this also replaces the wrapped value in the last row, which is the end of an episode
    next_values[ends] = following
    columns = (batch.reward_column, values, next_values, batch.terminated_column, batch.game_over_column)
    advantages, returns = estimate(*map(batch.by_time, columns))
    return advantages.ravel()[batch.order], returns.ravel()[batch.order]
