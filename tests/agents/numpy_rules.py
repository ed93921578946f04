"""Calls an update rule on fixed outputs of networks, and what is needed to compute the same with NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.update import LearningBatch, Update, UpdateRule

ops = pytest.importorskip("keras", reason="the operations of Keras 3 compute the numbers").ops


class FixedNetwork:
    """A network that gives the same outputs whatever the weights: for states, for next states and as a target.

    :param online: the outputs for ``states``, one dict for each head
    :param next_online: the outputs for ``next_states``
    :param target: the target network's outputs for ``next_states``
    """

    def __init__(self, online: Any, next_online: Any = None, target: Any = None):
        self.outputs = {"states": online, "next_states": next_online}
        self.target_outputs = target

    def online(self, states: dict[str, Any], training: bool = True) -> Any:
        return self.outputs[states["which"]]

    def target(self, states: dict[str, Any]) -> Any:
        assert states["which"] == "next_states"
        return self.target_outputs


def batch(**columns: Any) -> LearningBatch:
    """A batch; columns not given are None, weights are ones."""
    rows = len(next(iter(columns.values())))
    defaults: dict[str, Any] = dict.fromkeys(("actions", "rewards", "discounts"))
    defaults |= {"weights": np.ones(rows), "extra": {}, "scalars": {}, "states": {}, "next_states": {}}
    found = {**defaults, **columns}
    for which in ("states", "next_states"):
        found[which] = {**found[which], "which": which}
    return LearningBatch(**{name: _as_learned_from(name, value) for name, value in found.items()})


def _as_learned_from(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_learned_from(key, item) for key, item in value.items()}
    if isinstance(value, (str, type(None))):
        return value
    value = np.asarray(value)
    return value.astype(np.int32 if name == "actions" and value.dtype.kind == "i" else np.float32)


def run(rule: UpdateRule, networks: dict[str, Any], learning_batch: LearningBatch) -> Update:
    """The rule's update, its numbers as NumPy arrays."""
    update = rule(ops, networks, learning_batch)
    losses = {name: np.asarray(loss) for name, loss in update.losses.items()}
    signals = {name: np.asarray(signal) for name, signal in update.signals.items()}
    return Update(losses, None if update.errors is None else np.asarray(update.errors), signals)


def softmax_policy(logits: Any) -> dict[str, np.ndarray]:
    """The outputs of a discrete policy head."""
    logits = np.asarray(logits, np.float32)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    return {"probabilities": probabilities, "log_probabilities": np.log(probabilities)}


def gaussian_density(x: Any, mean: Any, deviation: Any) -> np.ndarray:
    """[B], the density of independent Gaussians, straight from its definition."""
    one = np.exp(-((np.asarray(x) - mean) ** 2) / (2 * np.square(deviation))) / (np.sqrt(2 * np.pi) * deviation)
    return one.prod(axis=-1)
