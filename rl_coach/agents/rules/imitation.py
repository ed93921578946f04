"""The update of behavioural cloning: maximum likelihood of demonstrated actions."""

from __future__ import annotations

from typing import Any

from rl_coach.architectures.policies import log_probability
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, weighted_mean


def imitation_rule(loss_weight: float = 1.0) -> UpdateRule:
    """The mean of -log pi(a|s) over demonstrated actions (Pomerleau 1991, "Efficient training of artificial neural
    networks for autonomous navigation"; as a likelihood: Osa et al. 2018, section 3.2).

    :param loss_weight: the head's
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        policy = networks["main"].online(batch.states)[0]
        losses = -log_probability(ops, policy, batch.actions)
        return Update({"main": loss_weight * weighted_mean(ops, losses, batch.weights)})

    return rule
