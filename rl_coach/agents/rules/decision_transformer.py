"""The update of Decision Transformer (Chen et al. 2021, "Decision Transformer: reinforcement learning via sequence
modeling"), as pure functions."""

from __future__ import annotations

from typing import Any

from rl_coach.architectures.policies import log_probability
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank, weighted_mean


def trajectory_rule(loss_weight: float = 1.0) -> UpdateRule:
    """The loss is the mean over all steps of all contexts. For discrete actions, it is the mean of -log pi(a_t | tokens
    up to s_t); for continuous actions, the mean squared error (section 3, "Training").

    Each row of the batch is a context of K steps: ``actions`` are [B, K] or [B, K, D], ``extra['is_step']`` [B, K] is 0
    for steps after the end of the episode. Network ``main`` has the outputs of each step.
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        is_step = batch.extra.get("is_step")
        assert_rank(2, is_step=is_step)
        assert_rank(1, weights=batch.weights)
        policy = {name: _rows(ops, output) for name, output in networks["main"].online(batch.states)[0].items()}
        actions, weights = _rows(ops, batch.actions), _rows(ops, is_step * batch.weights[:, None])
        if "log_probabilities" in policy:
            losses = -log_probability(ops, policy, actions)
        else:
            losses = ops.mean(ops.square(policy["mean"] - actions), axis=-1)
        return Update({"main": loss_weight * weighted_mean(ops, losses, weights)})

    return rule


def _rows(ops: Any, x: Any) -> Any:
    """Reshape [B, K, ...] to [B * K, ...]."""
    return ops.reshape(x, (-1, *x.shape[2:]))
