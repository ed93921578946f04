"""Functions of policies (distributions over actions) for update rules, written once for all frameworks."""

from __future__ import annotations

import math
from typing import Any, Mapping, Sequence

import numpy as np

from rl_coach.architectures.update import LearningBatch, assert_rank, select

MASKED_LOGIT = -1e9  # the value or log probability of a masked action, so low that the action is not chosen


def mask_of(batch: LearningBatch, name: str | None) -> Any:
    """The observation [B, A] with the given name, which masks actions; None without a name."""
    return None if name is None else batch.states[name]


def allows(ops: Any, mask: Any) -> Any:
    """[B, A] bool, True for each action that a mask [B, A] of 0 and 1 allows. If a row allows no action, all its
    actions are True. A player that waits for its turn has such a row. The agent learns from the row if another player
    ends the episode.
    """
    return ops.where(ops.max(mask, axis=-1, keepdims=True) > 0, mask, ops.ones_like(mask)) > 0


def masked(ops: Any, policy: dict[str, Any], mask: Any) -> dict[str, Any]:
    """A discrete policy, renormalised over the actions that a mask [B, A] allows. Without a mask, the policy is
    returned unchanged.
    """
    if mask is None:
        return policy
    # log probabilities are used as logits: the softmax renormalises them over the allowed actions
    logits = ops.where(allows(ops, mask), policy["log_probabilities"], MASKED_LOGIT)
    return {"probabilities": ops.softmax(logits), "log_probabilities": ops.log_softmax(logits)}


def log_probability(ops: Any, policy: dict[str, Any], actions: Any) -> Any:
    """[B], log pi(a|s).

    :param policy: the outputs of a policy head, by name
    :param actions: discrete actions [B], actions of K parts [B, K], or continuous actions [B, D] of a diagonal Gaussian
    """
    if "log_probabilities" in policy:
        chosen = policy["log_probabilities"]
        assert_rank(len(chosen.shape) - 1, actions=actions)
        return over_parts(ops, select(ops, chosen, actions))
    assert_rank(2, actions=actions)
    mean, deviation = policy["mean"], policy["standard_deviation"]
    return gaussian_log_probability(ops, actions, mean, ops.log(deviation))


def drawn_action(ops: Any, policy: Mapping[str, Any], random: Any) -> Any:
    """Draw N actions from a policy: [N], or [N, A] for continuous actions.

    :param random: numbers from 0 to 1 [N, 1]; for continuous actions, standard normal numbers [N, A]"""
    if "mean" in policy:
        return policy["mean"] + policy["standard_deviation"] * random
    # without the last sum: rounding may leave it below 1, and an action that does not exist would be drawn
    is_above = random >= ops.cumsum(policy["probabilities"], axis=-1)[:, :-1]
    return ops.sum(ops.cast(is_above, "int32"), axis=-1)


def over_parts(ops: Any, values: Any) -> Any:
    """[B], the sum of values [B, K] over the K parts of an action; values [B] are returned unchanged."""
    return values if len(values.shape) == 1 else ops.sum(values, axis=-1)


def gaussian_log_probability(ops: Any, values: Any, mean: Any, log_deviation: Any) -> Any:
    """[B], the log density of values [B, D] under a diagonal Gaussian."""
    return _standardised_log_probability(ops, (values - mean) / ops.exp(log_deviation), log_deviation)


def _standardised_log_probability(ops: Any, standardised: Any, log_deviation: Any) -> Any:
    return -0.5 * ops.sum(standardised * standardised + 2.0 * log_deviation + math.log(2 * math.pi), axis=-1)


def log_probabilities(policy: Sequence[np.ndarray], actions: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """[B] float32, log pi(a|s) of the policy that acted. This is ``log_probability`` for NumPy arrays.

    :param policy: probabilities [B, A], or [B, K, M] of K parts; or mean and standard deviation [B, D] of a Gaussian
    :param mask: True for allowed actions, in the shape of the probabilities; None if all actions are allowed. See
        ``allows`` for rows without an allowed action
    """
    if len(policy) == 1:
        # the probability of a random action from the heatup may round to 0, and so may those of all allowed actions
        probabilities, smallest = policy[0], np.finfo(np.float32).tiny
        if mask is not None:
            probabilities = np.maximum(probabilities, smallest) * allows(np, mask)
            probabilities = probabilities / probabilities.sum(axis=-1, keepdims=True)
        chosen = np.take_along_axis(probabilities, actions[..., None].astype(np.int64), axis=-1)[..., 0]
        logarithms = np.log(np.maximum(chosen, smallest)).astype(np.float32)
        return logarithms if logarithms.ndim == 1 else logarithms.sum(axis=1)
    mean, deviation = policy
    return _standardised_log_probability(np, (actions - mean) / deviation, np.log(deviation)).astype(np.float32)


def entropy(ops: Any, policy: dict[str, Any]) -> Any:
    """[B], the entropy of a discrete policy or of a diagonal Gaussian, in nats."""
    if "log_probabilities" in policy:
        return -over_parts(ops, ops.sum(policy["probabilities"] * policy["log_probabilities"], axis=-1))
    constant = 0.5 * math.log(2 * math.pi * math.e)
    return ops.sum(ops.log(policy["standard_deviation"]) + constant, axis=-1)


def kl_divergence(ops: Any, old: dict[str, Any], new: dict[str, Any]) -> Any:
    """[B], KL(old || new) of two discrete policies or of two diagonal Gaussians, in nats."""
    if "log_probabilities" in new:
        each = ops.sum(old["probabilities"] * (old["log_probabilities"] - new["log_probabilities"]), axis=-1)
        return over_parts(ops, each)
    old_deviation, deviation = old["standard_deviation"], new["standard_deviation"]
    squares = ops.square(old_deviation) + ops.square(old["mean"] - new["mean"])
    elements = ops.log(deviation / old_deviation) + squares / (2.0 * ops.square(deviation)) - 0.5
    return ops.sum(elements, axis=-1)
