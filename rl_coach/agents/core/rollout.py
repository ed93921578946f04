"""Steps of several actors side by side, kept until they are learned from once."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.core_types import Batch

Columns = dict[str, np.ndarray]


class Rollout:
    """The steps that all actors have taken since the last update, in order of time.

    One step of all actors is one row of arrays ``[N, ...]``, and there is no object per transition. The arrays are kept
    as they come and are joined once, when they are learned from.

    :ivar num_episodes: the number of episodes that ended in it
    """

    def __init__(self) -> None:
        self._steps: list[Batch] = []
        self.num_episodes = 0

    def __len__(self) -> int:
        """The number of transitions."""
        return len(self._steps) * self.num_actors

    @property
    def num_actors(self) -> int:
        """The number of actors; 0 as long as there are no steps."""
        return len(self._steps[0]) if self._steps else 0

    def add(self, step: Batch) -> None:
        """Keep one step of all actors. Nothing is copied: the arrays must not change afterwards.

        :param step: [N, ...], always of the same actors in the same order
        """
        self._steps.append(step)
        self.num_episodes += int(np.count_nonzero(step.game_over_column))

    def take(self) -> Batch:
        """Return all transitions, one actor after the other, and forget them.

        An episode that goes on after an actor's last step counts as truncated there: ``game_over`` is True and
        ``terminated`` False, so returns bootstrap from the critic.

        :return: [N * T, ...]
        """
        steps = self._steps
        self.clear()
        first, over = steps[0], _actor_by_actor([step.game_over_column for step in steps])
        over[len(steps) - 1 :: len(steps)] = True
        batch = Batch.from_columns(
            {name: _actor_by_actor([step.state_columns[name] for step in steps]) for name in first.state_columns},
            _actor_by_actor([step.action_column for step in steps]),
            _actor_by_actor([step.reward_column for step in steps]).astype(np.float32, copy=False),
            over,
            {name: _actor_by_actor([s.next_state_columns[name] for s in steps]) for name in first.next_state_columns},
            _actor_by_actor([step.terminated_column for step in steps]),
            info={name: _actor_by_actor([step.info_columns[name] for step in steps]) for name in first.info_columns},
        )
        batch.num_actors = len(first)
        return batch

    def clear(self) -> None:
        """Forget all steps."""
        self._steps, self.num_episodes = [], 0

    def get_state(self) -> dict[str, Any]:
        """The steps as plain data; empty if there are none."""
        return {f"{number:06d}": _plain(step) for number, step in enumerate(self._steps)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from ``get_state``."""
        self.clear()
        for number in sorted(state):
            self.add(_from_plain(state[number]))


def _actor_by_actor(steps: list[np.ndarray]) -> np.ndarray:
    """[N * T, ...] of T arrays [N, ...]."""
    stacked = np.stack(steps, axis=1)
    return stacked.reshape(-1, *stacked.shape[2:])


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


def _from_plain(state: dict[str, Any]) -> Batch:
    return Batch.from_columns(**state)


class ArrayOperations:
    """The operations of ``keras.ops`` that estimates of copies need, on NumPy's arrays."""

    where, zeros_like, logical_and = np.where, np.zeros_like, np.logical_and

    @staticmethod
    def scan(step: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, reverse: bool = False) -> tuple[Any, Any]:
        """See ``keras.ops.scan``."""
        carry, found = init, []
        for row in reversed(list(zip(*xs))) if reverse else zip(*xs):
            carry, one = step(carry, row)
            found.append(one)
        return carry, np.stack(found[::-1] if reverse else found)


def estimates_of_rollout(
    estimate: Callable[..., tuple[Any, Any]], batch: Batch, values: np.ndarray, ends: np.ndarray, following: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and returns [N * T] of a rollout, in one backward pass over all actors.

    :param estimate: one of the estimates of copies in ``rules/advantages.py``
    :param batch: what ``Rollout.take`` returned
    :param values: [N * T], of the states
    :param ends: [E] the last row of each episode
    :param following: [E] the value of what follows each, 0 where it terminated
    """
    next_values = np.append(values[1:], 0.0).astype(np.float64)
    next_values[ends] = following
    rows = batch.reward_column.astype(np.float64), values.astype(np.float64), next_values
    flags = batch.terminated_column, batch.game_over_column
    by_time = [column.reshape(batch.num_actors, -1).T for column in (*rows, *flags)]
    advantages, returns = estimate(*by_time)
    return advantages.T.ravel(), returns.T.ravel()
