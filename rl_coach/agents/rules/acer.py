"""The update rule of actor-critic with experience replay (Wang et al. 2017, "Sample efficient actor-critic with
experience replay"): Retrace targets, truncated importance weights with bias correction, and a trust region.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.architectures.policies import entropy, kl_divergence, mask_of, masked
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank, select

TINY = 1e-6


def retrace_targets(
    rewards: np.ndarray, values: np.ndarray, q_values: np.ndarray, ratios: np.ndarray, discount: float
) -> np.ndarray:
    """The Retrace targets [T]: Q^ret_t = r_t + discount (min(1, rho_{t+1}) (Q^ret_{t+1} - Q_{t+1}) + V_{t+1}) (equation
    5).

    :param rewards: [T]
    :param values: [T + 1]; the last number is the value after the segment: 0 if the episode terminated
    :param q_values: [T], the values of the actions taken
    :param ratios: [T], pi(a_t|s_t) / mu(a_t|s_t)
    """
    targets = np.empty(len(rewards))
    following = values[-1]
    for t in range(len(rewards) - 1, -1, -1):
        targets[t] = rewards[t] + discount * following
        following = min(1.0, ratios[t]) * (targets[t] - q_values[t]) + values[t]
    return targets


def acer_rule(
    truncation: float,
    reach: float | None,
    beta_entropy: float,
    q_weight: float,
    policy_weight: float,
    mask_name: str | None,
) -> UpdateRule:
    """The update of algorithm 2 of Wang et al. 2017. The critic's loss is q_weight (Q^ret - Q)^2 / 2. The policy's
    gradient g (equation 9) is with respect to the action probabilities, and includes the gradient of the entropy. The
    component of g along k = grad KL(average policy || pi) is reduced, so that the policy stays in the trust region
    (equation 12). Losses are sums over rows, weighted by the rows' weights.

    ``extra`` holds ``retrace`` [B] and ``behaviour`` [B, A], the probabilities of the policy that acted.

    :param truncation: c, the largest importance weight of the action taken
    :param reach: radius of the trust region around the average policy, in nats; None for no trust region
    :param beta_entropy: the weight of the policy's entropy
    :param q_weight: weight of the critic's loss
    :param policy_weight: weight of the policy's loss
    :param mask_name: the observation that says which actions are allowed
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, weights=batch.weights, actions=batch.actions, retrace=batch.extra.get("retrace"))
        assert_rank(2, behaviour=batch.extra.get("behaviour"))
        mask = mask_of(batch, mask_name)
        q, policy = networks["main"].online(batch.states)
        policy = masked(ops, policy, mask)
        average = masked(ops, networks["main"].target(batch.states)[1], mask)
        phi = policy["probabilities"]
        fixed_phi, fixed_q = ops.stop_gradient(phi), ops.stop_gradient(q["q"])
        value = ops.sum(fixed_phi * fixed_q, axis=-1)  # [B]
        ratios = fixed_phi / (batch.extra["behaviour"] + TINY)  # [B, A]
        taken = ops.one_hot(batch.actions, phi.shape[-1], dtype="float32")
        advantage = batch.extra["retrace"] - value
        truncated = ops.minimum(truncation, ops.sum(ratios * taken, axis=-1)) * advantage  # [B]
        correction = ops.maximum(0.0, 1.0 - truncation / (ratios + TINY)) * (fixed_q - value[:, None])  # [B, A]
        # gradient by phi: the derivative of log phi_a is 1 / phi_a. In the correction, the factor pi of its expectation
        # cancels 1 / phi_a
        g = truncated[:, None] * taken / (fixed_phi + TINY) + correction
        g = g - beta_entropy * (ops.log(fixed_phi + TINY) + 1.0)
        if reach is not None:
            k = -average["probabilities"] / (fixed_phi + TINY)
            excess = (ops.sum(k * g, axis=-1) - reach) / (ops.sum(k * k, axis=-1) + TINY)
            g = g - ops.maximum(0.0, excess)[:, None] * k
        policy_loss = -ops.sum(batch.weights * ops.sum(ops.stop_gradient(g) * phi, axis=-1))
        errors = batch.extra["retrace"] - select(ops, q["q"], batch.actions)
        q_loss = 0.5 * ops.sum(batch.weights * errors * errors)
        log_phi = ops.log(fixed_phi + TINY)
        corrections = ops.sum(fixed_phi * correction * log_phi, axis=-1)
        signals = {
            "Q Loss": q_loss,
            "Policy Loss": policy_loss,
            "Probability Loss": -ops.sum(batch.weights * truncated * ops.sum(taken * log_phi, axis=-1)),
            "Bias Correction Loss": -ops.sum(batch.weights * corrections),
            "KL Divergence": ops.sum(batch.weights * kl_divergence(ops, average, policy)),
            "Policy Entropy": ops.sum(batch.weights * entropy(ops, policy)),
        }
        return Update({"main": q_weight * q_loss + policy_weight * policy_loss}, signals=signals)

    return rule
