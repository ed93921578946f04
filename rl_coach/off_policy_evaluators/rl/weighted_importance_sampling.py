"""Weighted importance sampling of recorded episodes."""

from __future__ import annotations

from typing import Sequence

from rl_coach.core_types import Episode
from rl_coach.off_policy_evaluators.estimators import weighted_importance_sampling
from rl_coach.off_policy_evaluators.recorded_episodes import recorded, with_steps


class WeightedImportanceSampling:
    """The estimate of ``estimators.weighted_importance_sampling``."""

    @staticmethod
    def evaluate(evaluation_dataset_as_episodes: Sequence[Episode], discount_factor: float | None = None) -> float:
        """The value of the target policy, from episodes that an ``OpeManager`` has evaluated.

        :param discount_factor: discount of the returns; None uses the discount of the first episode
        """
        episodes = with_steps(evaluation_dataset_as_episodes)
        discount = episodes[0].discount if discount_factor is None else discount_factor
        columns = recorded(episodes, discount)
        return weighted_importance_sampling(columns.log_ratios, columns.rewards, columns.mask, discount)
