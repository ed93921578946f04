"""The base class of all filters of rewards."""

from __future__ import annotations

from typing import Any, Callable

from rl_coach.filters.base_filter import Filter
from rl_coach.spaces import RewardSpace


class RewardFilter(Filter):
    """Base class of filters of rewards. A filter changes a single reward or an array [B] of rewards."""

    def filter(self, reward: Any, update_internal_state: bool = True) -> Any:
        """Filter a reward. A number gives a number, and an array gives an array."""
        raise NotImplementedError(f"{type(self).__name__} does not define filter")

    def pure(self, ops: Any) -> Callable[[Any], Any] | None:
        """Return the filter as a pure function of rewards [B], for a compiled loop; None if the filter has no pure
        form.

        :param ops: array operations with the names of ``keras.ops``
        """
        return None

    def get_filtered_reward_space(self, input_reward_space: RewardSpace) -> RewardSpace:
        """Compute the space of the filtered rewards. Its success threshold still refers to unfiltered rewards."""
        return input_reward_space
