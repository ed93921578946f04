"""Distributions over actions, with masks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from rl_coach.agents.rules.q_learning import allowed_values
from rl_coach.architectures.policies import MASKED_LOGIT, allows, log_probabilities, masked

MASKS = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]], np.int8)


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


OPS = SimpleNamespace(
    where=np.where,
    max=np.max,
    ones_like=np.ones_like,
    softmax=softmax,
    log_softmax=lambda x: np.log(softmax(x) + 1e-30),
)


def test_a_mask_that_allows_nothing_masks_nothing():
    np.testing.assert_array_equal(allows(OPS, MASKS), [[1, 0, 1], [1, 1, 1], [1, 1, 1]])


def test_values_of_forbidden_actions_are_low_and_those_of_a_waiting_player_are_kept():
    q = np.array([[1.0, 2.0, 3.0]] * 3, np.float32)
    values = allowed_values(OPS, q, {"action_mask": MASKS}, "action_mask")
    np.testing.assert_array_equal(values, [[1, MASKED_LOGIT, 3], [1, 2, 3], [1, 2, 3]])


def test_a_policy_is_renormalised_over_allowed_actions_and_kept_without_any():
    probabilities = np.array([[0.2, 0.3, 0.5]] * 3)
    policy = {"probabilities": probabilities, "log_probabilities": np.log(probabilities)}
    found = masked(OPS, policy, MASKS)["probabilities"]
    np.testing.assert_allclose(found, [[0.2 / 0.7, 0, 0.5 / 0.7], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]], atol=1e-12)


def test_log_probabilities_are_those_of_the_renormalised_policy():
    probabilities = np.array([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [0.0, 1.0, 0.0]], np.float32)
    found = log_probabilities([probabilities], np.array([2, 2, 0]), np.array([[1, 0, 1], [0, 0, 0], [1, 0, 1]]) > 0)
    np.testing.assert_allclose(found, np.log([0.5 / 0.7, 0.5, 0.5]), rtol=1e-6)
    for mask in (None, np.array([[0, 1, 1]] * 3) > 0):
        assert np.isfinite(log_probabilities([probabilities], np.array([0, 0, 0]), mask)).all()
