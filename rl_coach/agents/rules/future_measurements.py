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
    """The steps with the measurements of K offsets ahead as their outcomes.

    The outcome of step t is the state at t + 1, so the measurement one step ahead of t is the outcome of step t.

    :param steps: [B] positions in a memory
    :param last_steps: [B] the last position of the episode that each is in
    :param count: K
    :return: [B, K] positions, the episode's last where it ends earlier; and [B, K], True where it does not
    """
    ahead = steps[:, None] + offsets(count) - 1
    return np.minimum(ahead, last_steps[:, None]), ahead <= last_steps[:, None]


def values_for_goal(predictions: np.ndarray, goal: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[B, A] the objective u(f; g) of each action, equation 1 with section 4's weights of the offsets.

    :param predictions: [B, A, K * M] changes of M measurements at K offsets, offset by offset
    :param goal: [M] weights of the measurements
    :param weights: [W] weights of the last W of the K offsets; those before count for nothing
    """
    by_offset = predictions.reshape(*predictions.shape[:2], -1, len(goal))
    return by_offset[:, :, -len(weights) :] @ goal @ weights


def future_measurements_rule(loss_weight: float = 1.0) -> UpdateRule:
    """The mean over the batch of the squared errors of the predictions for the actions taken, equation 5.

    ``extra['future_measurements']`` [B, K, M] are the targets, and ``extra['is_known']`` [B, K] is 0 for offsets that
    are not learned.

    :param loss_weight: the head's
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
