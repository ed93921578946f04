"""The sequential doubly robust estimate of recorded episodes."""

from __future__ import annotations

from typing import Sequence

from rl_coach.core_types import Episode
from rl_coach.off_policy_evaluators.estimators import sequential_doubly_robust
from rl_coach.off_policy_evaluators.recorded_episodes import ACTION_VALUES, VALUE, padded, recorded, taken, with_steps


class SequentialDoublyRobust:
    """The estimate of ``estimators.sequential_doubly_robust``."""

    @staticmethod
    def evaluate(evaluation_dataset_as_episodes: Sequence[Episode], discount_factor: float) -> float:
        """The value of the target policy, from episodes that an ``OpeManager`` has evaluated."""
        episodes = with_steps(evaluation_dataset_as_episodes)
        columns = recorded(episodes, discount_factor)
        values = padded(episodes, columns.mask, lambda transition: transition.info[VALUE])
        action_values = padded(episodes, columns.mask, taken(ACTION_VALUES))
        return sequential_doubly_robust(
            columns.log_ratios, columns.rewards, columns.mask, values, action_values, discount_factor
        )
