"""Updates of imitation: maximum likelihood of demonstrated actions, and squared errors of a branch for each command."""

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


def imitation_rule(loss_weight: float = 1.0) -> UpdateRule:
    """The mean of -log pi(a|s) over demonstrated actions (Pomerleau 1991, "Efficient training of artificial neural
    networks for autonomous navigation"; as a likelihood: Osa et al. 2018, section 3.2).

    :param loss_weight: weight of the head's loss
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        policy = networks["main"].online(batch.states)[0]
        losses = -log_probability(ops, policy, batch.actions)
        return Update({"main": loss_weight * weighted_mean(ops, losses, batch.weights)})

    return rule


def branched_imitation_rule(is_huber: bool, loss_weight: float = 1.0) -> UpdateRule:
    """The mean squared difference between the demonstrated action and the action of the branch for the row's command
    (Codevilla et al. 2018, equation 4 with the squared loss of section IV).

    ``extra['commands']`` is [B] int32. Each head of network ``main`` is a branch.

    :param is_huber: Huber instead of squared errors
    :param loss_weight: weight of the head's loss
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
