"""The penalty of conservative Q-learning (Kumar et al. 2020, "Conservative Q-learning for offline reinforcement
learning")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rl_coach.architectures.update import NetworkView, Update

ALPHA = "alpha"
"""The name of the network with the value ``log_alpha``, if alpha is learned."""
_LARGEST_LOG = 13.8  # the bound of log alpha: alpha is at most about a million, as in the authors' code


@dataclass(frozen=True)
class ConservativeSettings:
    """Settings of the penalty alpha * gap.

    :param alpha: the weight of the gap; the squared error has the weight 1/2
    :param gap_threshold: None keeps alpha constant. With a number, alpha is learned, and grows while the gap is larger
        than this number
    """

    alpha: float
    gap_threshold: float | None = None


def with_penalty(
    ops: Any,
    networks: dict[str, NetworkView],
    update: Update,
    name: str,
    gap: Any,
    settings: ConservativeSettings,
    scale: float = 1.0,
    count: int = 1,
) -> Update:
    """The update with the penalty added to the loss of network ``name``.

    With a threshold, alpha is a Lagrange multiplier (equation 30 of appendix F). The network minimizes alpha * (gap -
    threshold), and alpha maximizes it.

    :param name: the network with the critics
    :param gap: the sum of the gaps of the network's critics, a number
    :param scale: multiplies the penalty
    :param count: number of critics
    """
    signals, losses = {**update.signals, "Conservative Gap": gap}, dict(update.losses)
    alpha: Any = settings.alpha
    if settings.gap_threshold is not None:
        learned = ops.exp(ops.minimum(networks[ALPHA].online({})[0]["log_alpha"], _LARGEST_LOG))
        losses[ALPHA] = -learned * ops.stop_gradient(gap / count - settings.gap_threshold)
        alpha = signals["Conservative Weight"] = ops.stop_gradient(learned)
    losses[name] = update.losses[name] + scale * alpha * gap
    return replace(update, losses=losses, signals=signals)
