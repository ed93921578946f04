"""Update of C51: the projection of the distributional Bellman target onto the support (Bellemare et al. 2017, "A
distributional perspective on reinforcement learning")."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.rules.q_learning import SelectActions, allowed_values
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    select_rows,
    weighted_mean,
)


def projected(ops: Any, returns: Any, probabilities: Any, support: np.ndarray) -> Any:
    """[B, N], the projection of a distribution over ``returns`` [B, N] onto the support [N] (algorithm 1). The
    probability of each return is split between its two neighbours in the support; the nearer neighbour gets more.
    Returns outside the support count as the nearest end of the support.
    """
    step = float(support[1] - support[0])
    clipped = ops.clip(returns, float(support[0]), float(support[-1]))
    distances = ops.abs(clipped[:, :, None] - ops.convert_to_tensor(support))
    shares = ops.maximum(1.0 - distances / step, 0.0)
    return ops.sum(probabilities[:, :, None] * shares, axis=1)


def categorical_rule(
    support: np.ndarray,
    mask_name: str | None,
    select_actions: SelectActions,
    needs_online: bool,
    loss_weight: float = 1.0,
) -> UpdateRule:
    """The loss of C51: the cross-entropy between two distributions. The first is the distribution of r + discount_t
    Z_target(s', a'), projected onto the support. The second is Z(s, a) (algorithm 1).

    The errors are the Kullback-Leibler divergences of the two distributions, which Rainbow uses as priorities (Hessel
    et al. 2018, section 4).

    :param support: [N], the returns of the distributions, evenly spaced
    :param mask_name: the observation that masks actions, if there is one
    :param select_actions: as for ``q_learning_rule``, with the means of the distributions as values
    """
    support = support.astype(np.float32)

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, actions=batch.actions, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        main = networks["main"]
        z_tm1 = main.online(batch.states)[0]
        z_t = main.target(batch.next_states)[0]
        assert_rank(3, z_t=z_t["distribution"])
        q_t_online = main.online(batch.next_states)[0]["q"] if needs_online else z_t["q"]
        q_t, q_t_online = (allowed_values(ops, q, batch.next_states, mask_name) for q in (z_t["q"], q_t_online))
        a_t = select_actions(ops, q_t_online, q_t, batch)
        returns = batch.rewards[:, None] + batch.discounts[:, None] * ops.convert_to_tensor(support)
        target = ops.stop_gradient(projected(ops, returns, select_rows(ops, z_t["distribution"], a_t), support))
        cross_entropy = -ops.sum(target * select_rows(ops, z_tm1["log_distribution"], batch.actions), axis=-1)
        entropy = -ops.sum(target * ops.log(ops.maximum(target, 1e-30)), axis=-1)
        loss = loss_weight * weighted_mean(ops, cross_entropy, batch.weights)
        return Update({"main": loss}, errors=cross_entropy - entropy)

    return rule
