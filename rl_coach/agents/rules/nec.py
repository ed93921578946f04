"""Update of neural episodic control (Pritzel et al. 2017, "Neural episodic control")."""

from __future__ import annotations

from typing import Any

from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    huber,
    weighted_mean,
)
from rl_coach.memories.non_episodic.differentiable_neural_dictionary import looked_up


def neural_episodic_control_rule(delta: float, is_huber: bool, loss_weight: float = 1.0) -> UpdateRule:
    """The loss: the squared errors between values from the dictionaries and n-step returns (algorithm 1).

    ``extra`` has ``keys`` [B, k, F] and ``values`` [B, k] of the nearest entries, and ``returns`` [B].
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        extra = batch.extra
        assert_rank(1, returns=extra.get("returns"), weights=batch.weights)
        embeddings = networks["main"].online(batch.states)[0]["embedding"]
        errors = extra["returns"] - looked_up(ops, embeddings, extra["keys"], extra["values"], delta)
        losses = huber(ops, errors) if is_huber else errors * errors
        return Update({"main": loss_weight * weighted_mean(ops, losses, batch.weights)}, errors=errors)

    return rule
