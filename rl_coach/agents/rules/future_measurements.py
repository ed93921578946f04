"""Prediction of future measurements (Dosovitskiy & Koltun 2017, "Learning to act by predicting the future")."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    select_rows,
    weighted_mean,
)


def offsets(count: int) -> np.ndarray:
    """[K] the steps ahead that are predicted: 1, 2, 4, ... (section 4, "Network")."""
    return 2 ** np.arange(count)


def steps_ahead(steps: np.ndarray, last_steps: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The positions of the steps with the outcomes at K offsets ahead.

    The outcome of step t is the state at t + 1, so for offset 1 the position is t itself.

    :param steps: [B] positions in a memory
    :param last_steps: [B] the position of the last step of the same episode
    :param count: K
    :return: [B, K] positions, limited to the last position of the episode; and [B, K], True if the episode does not end
        before the offset
    """
    ahead = steps[:, None] + offsets(count) - 1
    return np.minimum(ahead, last_steps[:, None]), ahead <= last_steps[:, None]


def values_for_goal(predictions: np.ndarray, goal: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[B, A], the objective u(f; g) of each action: equation 1 with the weights of the offsets from section 4.

    :param predictions: [B, A, K * M] changes of M measurements at K offsets; all measurements of the first offset come
        first
    :param goal: [M] weights of the measurements
    :param weights: [W] weights of the last W of the K offsets; earlier offsets have weight 0
    """
    by_offset = predictions.reshape(*predictions.shape[:2], -1, len(goal))
    return by_offset[:, :, -len(weights) :] @ goal @ weights


def future_measurements_rule(loss_weight: float = 1.0) -> UpdateRule:
    """The loss is the mean over the batch of the squared errors of the predictions for the actions taken (equation 5).

    ``extra['future_measurements']`` [B, K, M] are the targets, and ``extra['is_known']`` [B, K] is 0 for offsets that
    are not learned.
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(3, future_measurements=batch.extra.get("future_measurements"))
        assert_rank(2, is_known=batch.extra.get("is_known"))
        targets, is_known = batch.extra["future_measurements"], batch.extra["is_known"]
        predicted = select_rows(ops, networks["main"].online(batch.states)[0]["measurements"], batch.actions)
        errors = (targets - ops.reshape(predicted, (-1, *targets.shape[1:]))) * is_known[:, :, None]
        losses = ops.sum(errors * errors, axis=(1, 2))
        return Update({"main": loss_weight * weighted_mean(ops, losses, batch.weights)})

    return rule
