"""Updates of trust region policy optimisation (Schulman et al. 2015)."""

from __future__ import annotations

from typing import Any

from rl_coach.agents.rules.proximal_policy import behaviour_policy, log_ratio_of
from rl_coach.architectures.policies import entropy, kl_divergence, mask_of, masked
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank, weighted_mean


def surrogate_rule(mask_name: str | None) -> UpdateRule:
    """The loss -E[pi(a|s) / mu(a|s) A] of the network ``actor``: the negative objective of equation 14.

    ``extra`` holds ``advantages`` [B] and ``behaviour_log_probs`` [B], the log probability under the policy mu that
    played.
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        names = ("advantages", "behaviour_log_probs")
        assert_rank(1, weights=batch.weights, **{name: batch.extra.get(name) for name in names})
        policy = masked(ops, networks["actor"].online(batch.states)[0], mask_of(batch, mask_name))
        objective = ops.exp(log_ratio_of(ops, policy, batch)) * batch.extra["advantages"]
        loss = -weighted_mean(ops, objective, batch.weights)
        signals = {"Policy Loss": loss, "Entropy": weighted_mean(ops, entropy(ops, policy), batch.weights)}
        return Update({"actor": loss}, signals=signals)

    return rule


def divergence_rule(mask_name: str | None) -> UpdateRule:
    """The mean of KL(mu(.|s) || pi(.|s)), the constraint of equation 14, for the network ``actor``.

    ``extra`` holds the policy mu that played: ``behaviour_probabilities`` [B, A], or ``behaviour_mean`` and
    ``behaviour_standard_deviation`` [B, D].
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        mask = mask_of(batch, mask_name)
        policy = masked(ops, networks["actor"].online(batch.states)[0], mask)
        old = masked(ops, behaviour_policy(ops, batch), mask)
        return Update({"actor": weighted_mean(ops, kl_divergence(ops, old, policy), batch.weights)})

    return rule


def value_rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
    """The loss E[(V - R)^2] of the network ``critic``. ``extra['returns']`` [B] holds R."""
    assert_rank(1, weights=batch.weights, returns=batch.extra.get("returns"))
    errors = networks["critic"].online(batch.states)[0]["v"] - batch.extra["returns"]
    loss = weighted_mean(ops, errors * errors, batch.weights)
    return Update({"critic": loss}, signals={"Value Loss": loss})
