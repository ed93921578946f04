"""Estimates that treat each recorded step separately."""

from __future__ import annotations

from typing import Any

from rl_coach.off_policy_evaluators import estimators
from rl_coach.utils import CoachError


class DoublyRobust:
    """The estimates of ``estimators.doubly_robust``, ``inverse_propensity_score`` and ``direct_method``."""

    @staticmethod
    def evaluate(ope_shared_stats: Any) -> tuple[float, float, float]:
        """Three estimates of the target policy's mean reward per step: inverse propensity score, direct method, doubly
        robust.

        :param ope_shared_stats: an ``OpeSharedStats``
        :raises CoachError: if there is no step
        """
        stats = ope_shared_stats
        if not len(stats.all_rewards):
            raise CoachError("there is no recorded step to evaluate a policy with: use a data set that is not empty")
        ratios = estimators.log_ratios(stats.new_policy_prob, stats.all_old_policy_probs)
        model, probabilities = stats.all_reward_model_rewards, stats.all_policy_probs
        return (
            estimators.inverse_propensity_score(ratios, stats.all_rewards),
            estimators.direct_method(probabilities, model),
            estimators.doubly_robust(ratios, stats.all_rewards, stats.all_actions, probabilities, model),
        )
