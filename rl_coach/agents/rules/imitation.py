"""Updates of imitation: maximum likelihood of demonstrated actions, with equal weights or weighted by advantages, and
squared errors of a branch for each command."""

from __future__ import annotations

from typing import Any

from rl_coach.architectures.policies import log_probability
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    huber,
    select_rows,
    weighted_mean,
)

NORMALISER = "normaliser"
"""The name of the network that keeps the mean squared advantage of ``weighted_imitation_rule``."""
_LARGEST_EXPONENT = 20.0  # with much larger weights, squared gradients overflow float32


def imitation_rule(loss_weight: float = 1.0) -> UpdateRule:
    """The loss is the mean of -log pi(a|s) over demonstrated actions (Pomerleau 1991, "Efficient training of artificial
    neural networks for autonomous navigation"; as a likelihood: Osa et al. 2018, section 3.2).
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        policy = networks["main"].online(batch.states)[0]
        losses = -log_probability(ops, policy, batch.actions)
        return Update({"main": loss_weight * weighted_mean(ops, losses, batch.weights)})

    return rule


def weighted_imitation_rule(
    beta: float, rate: float, policy_weight: float = 1.0, value_weight: float = 1.0
) -> UpdateRule:
    """The policy's loss is the mean of -exp(beta A / c) log pi(a|s) with A = R - V(s). The loss of V is the mean of (R
    - V(s))^2 / 2 (Wang et al. 2018, "Exponentially Weighted Imitation Learning for Batched Historical Data", algorithm
    1).

    ``extra['returns']`` R is [B], the discounted rewards up to the episode's end. ``mean_squared_advantage`` of network
    ``normaliser`` is c^2, which moves by ``rate`` towards the batch's mean of A^2 before c is used. No gradient of the
    policy reaches V. Exponents are 20 at most. Network ``main`` is the policy, and network ``value`` is V.

    :param beta: the weight of the advantages; with 0, the policy learns as by ``imitation_rule``
    :param rate: the rate of c^2, from 0 to 1
    :param policy_weight: the loss weight of the policy head; ``value_weight`` is the loss weight of the value head
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        returns = batch.extra.get("returns")
        assert_rank(1, returns=returns, weights=batch.weights)
        policy, value = (networks[name].online(batch.states)[0] for name in ("main", "value"))
        errors = returns - value["v"]
        squares = weighted_mean(ops, errors * errors, batch.weights)
        old = networks[NORMALISER].online({})[0]["mean_squared_advantage"]
        normaliser = ops.stop_gradient(old + rate * (squares - old))
        networks[NORMALISER].keep(mean_squared_advantage=normaliser)
        advantages = ops.stop_gradient(errors) / (ops.sqrt(normaliser) + 1e-8)
        counts = ops.exp(ops.minimum(beta * advantages, _LARGEST_EXPONENT))
        losses = -log_probability(ops, policy, batch.actions)
        # a factor of 1 would let a compiler round in another order than in imitation_rule
        counted = losses if beta == 0 else counts * losses
        policy_loss = policy_weight * weighted_mean(ops, counted, batch.weights)
        value_loss = value_weight * 0.5 * squares
        signals = {
            "Policy Loss": policy_loss,
            "Value Loss": value_loss,
            "Advantages": weighted_mean(ops, errors, batch.weights),
            "Largest Count": ops.max(counts),
        }
        return Update({"main": policy_loss, "value": value_loss}, signals=signals)

    return rule


def branched_imitation_rule(is_huber: bool, loss_weight: float = 1.0) -> UpdateRule:
    """The loss is the mean squared difference between the demonstrated action and the action of the branch for the
    row's command (Codevilla et al. 2018, equation 4 with the squared loss of section IV).

    ``extra['commands']`` is [B] int32. Each head of network ``main`` is a branch.

    :param is_huber: True: Huber loss. False: squared error
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        commands = batch.extra.get("commands")
        assert_rank(1, commands=commands, weights=batch.weights)
        assert_rank(2, actions=batch.actions)
        branches = ops.stack([head["values"] for head in networks["main"].online(batch.states)], axis=1)  # [B, K, A]
        errors = batch.actions - select_rows(ops, branches, ops.cast(commands, "int32"))
        losses = ops.mean(huber(ops, errors) if is_huber else errors * errors, axis=-1)
        return Update({"main": loss_weight * weighted_mean(ops, losses, batch.weights)}, errors=losses)

    return rule
