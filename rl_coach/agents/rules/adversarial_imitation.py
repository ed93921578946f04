"""The update of generative adversarial imitation learning (Ho and Ermon 2016)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rl_coach.architectures.policies import over_parts
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    select,
    weighted_mean,
)


def adversarial_imitation_rule(rule: UpdateRule) -> UpdateRule:
    """Add the loss of network ``discriminator`` to a policy's rule. The loss is the mean of -log D(s, a) over
    demonstrations plus the mean of -log(1 - D(s, a)) over the agent's steps. Here, D is the probability that a step
    comes from a demonstration. In the paper (algorithm 1, line 4), D is the probability that the step comes from the
    agent.

    ``extra['demonstrated_states/NAME']`` [B, ...] and ``extra['demonstrated_actions']`` are demonstrations, one for
    each step of the agent.

    :param rule: gives the losses of the other networks
    """

    def adversarial(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(len(batch.actions.shape), demonstrated_actions=batch.extra.get("demonstrated_actions"))
        update, discriminator = rule(ops, networks, batch), networks["discriminator"]
        demonstrated = {name: batch.extra[f"demonstrated_states/{name}"] for name in batch.states}
        actions = ops.cast(batch.extra["demonstrated_actions"], batch.actions.dtype)
        of_demonstrations = logits(ops, discriminator, demonstrated, actions)
        of_own = logits(ops, discriminator, batch.states, batch.actions)
        # -log D and -log(1 - D) of D = 1 / (1 + exp(-logit))
        losses = ops.softplus(-of_demonstrations) + ops.softplus(of_own)
        loss = weighted_mean(ops, losses, batch.weights)
        signals = {
            "Discriminator Loss": loss,
            "Logits of Demonstrations": weighted_mean(ops, of_demonstrations, batch.weights),
            "Logits of Own Steps": weighted_mean(ops, of_own, batch.weights),
        }
        return replace(update, losses={**update.losses, "discriminator": loss}, signals={**update.signals, **signals})

    return adversarial


def logits(ops: Any, discriminator: NetworkView, states: dict[str, Any], actions: Any) -> Any:
    """[B], log D / (1 - D): the network's logit for a state and an action. If actions have several parts, it is the sum
    over the parts.

    :param states: [B, ...] by name
    :param actions: [B] discrete, [B, K] of K discrete parts, or [B, A] continuous
    """
    outputs = discriminator.online({**states, "action": actions})[0]
    return outputs["v"] if "v" in outputs else over_parts(ops, select(ops, outputs["values"], actions))
