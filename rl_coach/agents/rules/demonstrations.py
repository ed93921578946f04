"""The update of deep Q-learning from demonstrations (Hester et al. 2018)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rl_coach.agents.rules.q_learning import allowed_values
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    select,
    weighted_mean,
)


def demonstration_rule(
    rule: UpdateRule,
    n_step_weight: float,
    supervised_weight: float,
    margin: float,
    mask_name: str | None,
    loss_weight: float = 1.0,
) -> UpdateRule:
    """The loss J = J_1 + n_step_weight * J_n + supervised_weight * J_E (equation 2). Regularisation is a setting of the
    network.

    J_1 and J_n are the one-step and the n-step loss of Q-learning. Only demonstrations have the large margin loss J_E
    (equation 1).

    ``extra['rewards_ahead']`` [B] are the discounted sums of n rewards, ``extra['state_ahead/NAME']`` are the states
    after them, and ``extra['discounts_ahead']`` [B] are the weights of the values of these states.
    ``extra['is_demonstration']`` [B] is 0 or 1.

    :param rule: gives the loss of network ``main``
    :param n_step_weight: lambda_1
    :param supervised_weight: lambda_2
    :param margin: the demonstrated action's value should exceed all other values by this number
    :param mask_name: the observation that masks actions, if there is one
    """

    def from_demonstrations(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        extra = batch.extra
        assert_rank(1, **{name: extra.get(name) for name in ("rewards_ahead", "discounts_ahead", "is_demonstration")})
        ahead = replace(
            batch,
            rewards=extra["rewards_ahead"],
            discounts=extra["discounts_ahead"],
            next_states={name: extra[f"state_ahead/{name}"] for name in batch.next_states},
        )
        one_step, n_step = rule(ops, networks, batch), rule(ops, networks, ahead)
        q = allowed_values(ops, networks["main"].online(batch.states)[0]["q"], batch.states, mask_name)
        lacks = margin_losses(ops, q, batch.actions, margin) * extra["is_demonstration"]
        supervised = loss_weight * weighted_mean(ops, lacks, batch.weights)
        losses = {
            "main": one_step.losses["main"] + n_step_weight * n_step.losses["main"] + supervised_weight * supervised
        }
        signals = {
            "One Step Loss": one_step.losses["main"],
            "N Step Loss": n_step.losses["main"],
            "Margin Loss": supervised,
            "Demonstrations": weighted_mean(ops, extra["is_demonstration"], ops.ones_like(batch.weights)),
        }
        return replace(one_step, losses=losses, signals={**one_step.signals, **signals})

    return from_demonstrations


def margin_losses(ops: Any, q: Any, actions: Any, margin: float) -> Any:
    """The large margin losses [B]: max_a (Q(s, a) + margin 1[a != a_E]) - Q(s, a_E) (equation 1). The loss is 0 if the
    value of the demonstrated action exceeds the others by the margin.

    :param q: [B, A]
    :param actions: [B], a_E
    """
    is_other = 1.0 - ops.one_hot(actions, q.shape[-1], dtype="float32")
    return ops.max(q + margin * is_other, axis=-1) - select(ops, q, actions)
