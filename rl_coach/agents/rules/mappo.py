"""The update of MAPPO (Yu et al. 2022, "The surprising effectiveness of PPO in cooperative multi-agent games")."""

from __future__ import annotations

from typing import Any

from rl_coach.agents.rules.proximal_policy import (
    LARGEST_LOG,
    behaviour_policy,
    clipped_policy_loss,
    clipped_value_loss,
)
from rl_coach.architectures.policies import masked
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    select,
    weighted_mean,
)


def mappo_rule(
    epsilon: float,
    beta_entropy: float,
    policy_weight: float,
    value_weight: float,
    mask_name: str,
    value_epsilon: float | None,
) -> UpdateRule:
    """The losses of actor and critic. Actor: -policy_weight E[min(r_i A, clip(r_i, 1 - e, 1 + e) A)] - beta E[H(pi_i)],
    the mean over steps and over the players i that are ``present``. r_i is the ratio of the player's own action
    (appendix A). Critic: value_weight (V - R)^2 of the state, clipped as in ``clipped_ppo_rule``.

    ``extra`` holds ``advantages`` and ``returns`` [B], which all players share, and ``behaviour_probabilities``
    [B, N, A]; ``actions`` is [B, N]. ``scalars['clipping_decay']`` multiplies epsilon.

    :param mask_name: the observation [B, N, A] that says which actions are allowed
    :param value_epsilon: the clipping of values; None does not clip
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, weights=batch.weights, advantages=batch.extra["advantages"], returns=batch.extra["returns"])
        assert_rank(2, actions=batch.actions, present=batch.states["present"])
        mask = batch.states[mask_name]
        policy = masked(ops, networks["actor"].online(batch.states)[0], mask)
        log_probabilities = policy["log_probabilities"]
        old = masked(ops, behaviour_policy(ops, batch), mask)
        log_ratio = select(ops, log_probabilities, batch.actions) - select(ops, old["log_probabilities"], batch.actions)
        weights, limit = batch.weights[:, None] * batch.states["present"], epsilon * batch.scalars["clipping_decay"]
        policy_loss, signals = clipped_policy_loss(
            ops, ops.minimum(log_ratio, LARGEST_LOG), batch.extra["advantages"][:, None], limit, weights
        )
        entropies = -ops.sum(policy["probabilities"] * log_probabilities, axis=-1)
        mean_entropy = weighted_mean(ops, entropies, weights)
        value_loss = clipped_value_loss(ops, networks["critic"].online(batch.states)[0]["v"], batch, value_epsilon)
        signals |= {"Value Loss": value_loss, "Entropy": mean_entropy}
        losses = {
            "actor": policy_weight * policy_loss - beta_entropy * mean_entropy,
            "critic": value_weight * value_loss,
        }
        return Update(losses, signals=signals)

    return rule
