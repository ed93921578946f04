"""The base of all filters of rewards."""

from __future__ import annotations

from typing import Any, Callable

from rl_coach.filters.base_filter import Filter
from rl_coach.spaces import RewardSpace


class RewardFilter(Filter):
    """Changes the reward, a number or an array [B] of them."""

    def filter(self, reward: Any, update_internal_state: bool = True) -> Any:
        """The reward changed: a number for a number, an array for an array."""
        raise NotImplementedError(f"{type(self).__name__} does not filter")

    def pure(self, ops: Any) -> Callable[[Any], Any] | None:
        """The filter as a pure function of rewards [B], for a loop that is compiled as a whole; None if the filter has
        no pure form.

        :param ops: array operations with the names of ``keras.ops``
        """
        return None

    def get_filtered_reward_space(self, input_reward_space: RewardSpace) -> RewardSpace:
        """The space of the changed rewards; its success threshold still refers to unchanged rewards."""
        return input_reward_space
