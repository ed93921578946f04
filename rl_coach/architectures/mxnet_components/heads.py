"""The heads that networks end in."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.architectures.heads import BaseHead
from rl_coach.architectures.initializers import Constant, GlorotUniform, NormalizedColumns, output_bias
from rl_coach.architectures.mxnet_components.layers import Layers
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, SpacesDefinition
from rl_coach.utils import CoachError, did_you_mean


class Head(BaseHead):
    """One head of a network; see ``BaseHead``."""

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        """:param features: [B, F]; :param inputs: all inputs of the network by name; :return: outputs by name"""
        raise NotImplementedError


class QHead(Head):
    """``q`` [B, A]: Q(s, a)."""

    public = ("q",)
    supported_actions = (DiscreteActionSpace,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        bias = output_bias(self.parameters.output_bias_initializer)
        return {"q": layers.dense(features, self.num_actions, bias=bias)}


class DuelingQHead(Head):
    """``q`` [B, A]: V(s) + A(s, a) - mean A(s, .), each from 512 hidden units (Wang et al. 2016, equation 9)."""

    public = ("q",)
    supported_actions = (DiscreteActionSpace,)
    HIDDEN_UNITS = 512

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        value, advantage = (self._stream(layers, features, units) for units in (1, self.num_actions))
        return {"q": value + advantage - layers.ops.mean(advantage, axis=1, keepdims=True)}

    def _stream(self, layers: Layers, features: Any, units: int) -> Any:
        hidden = layers.dense(features, self.HIDDEN_UNITS)
        return layers.dense(layers.activate(self.parameters.activation_function, hidden), units)


class VHead(Head):
    """``v`` [B]: V(s)."""

    public = ("v",)
    supported_actions = (object,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        rng = layers.run.rng
        xavier = getattr(self.parameters, "initializer", "xavier") == "xavier"
        kernel = GlorotUniform(rng) if xavier else NormalizedColumns(rng)
        bias = output_bias(self.parameters.output_bias_initializer)
        return {"v": layers.ops.squeeze(layers.dense(features, 1, kernel, bias), -1)}


class PolicyHead(Head):
    """A policy. Discrete: ``probabilities`` [B, A] and ``log_probabilities``. Continuous: ``mean`` and
    ``standard_deviation`` [B, A], the mean squashed into the action space where that is bounded."""

    public = ("probabilities", "mean", "standard_deviation")

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        if self.is_discrete:
            logits = layers.dense(features, self.num_actions) / self.temperature
            return {"probabilities": layers.ops.softmax(logits), "log_probabilities": layers.ops.log_softmax(logits)}
        mean = self._mean(layers, features)
        return {"mean": mean, "standard_deviation": self._standard_deviation(layers, features, mean)}

    def _mean(self, layers: Layers, features: Any) -> Any:
        mean = layers.dense(features, self.num_actions)
        low, high = self.spaces.action.low, self.spaces.action.high
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
            return mean
        centre, radius = (
            layers.ops.convert_to_tensor(part.astype(np.float32)) for part in ((high + low) / 2, (high - low) / 2)
        )
        return layers.ops.tanh(mean) * radius + centre

    def _small_dense(self, layers: Layers, features: Any) -> Any:
        """An output for each action that starts near zero."""
        return layers.dense(features, self.num_actions, NormalizedColumns(layers.run.rng, 0.01))

    def _standard_deviation(self, layers: Layers, features: Any, mean: Any) -> Any:
        return layers.ops.softplus(self._small_dense(layers, features)) + 1e-5


class PPOHead(PolicyHead):
    """PPO's policy: the mean is not squashed and the standard deviation depends on no state (Schulman et al. 2017,
    section 6.1)."""

    def _mean(self, layers: Layers, features: Any) -> Any:
        return self._small_dense(layers, features)

    def _standard_deviation(self, layers: Layers, features: Any, mean: Any) -> Any:
        log_deviation = layers.run.weight((self.num_actions,), Constant(0.0))
        return layers.ops.exp(log_deviation) + layers.ops.zeros_like(mean)


class SACPolicyHead(Head):
    """``mean`` and ``log_deviation`` [B, A] of the Gaussian before squashing (Haarnoja et al. 2018, appendix C)."""

    public = ("mean", "log_deviation")
    supported_actions = (BoxActionSpace,)
    LOG_DEVIATION_LIMITS = (-20.0, 2.0)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        mean, log_deviation = (layers.dense(features, self.num_actions) for _ in self.public)
        return {"mean": mean, "log_deviation": layers.ops.clip(log_deviation, *self.LOG_DEVIATION_LIMITS)}


class SACQHead(Head):
    """``q1`` and ``q2`` [B]: two critics of state and action that share nothing."""

    public = ("q1", "q2")
    supported_actions = (BoxActionSpace,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        pair = layers.ops.concatenate([features, inputs["action"]], axis=-1)
        return {name: self._critic(layers, pair) for name in self.public}

    def _critic(self, layers: Layers, x: Any) -> Any:
        for units in self.parameters.network_layers_sizes:
            x = layers.activate(self.parameters.activation_function, layers.dense(x, units))
        bias = output_bias(self.parameters.output_bias_initializer)
        return layers.ops.squeeze(layers.dense(x, 1, bias=bias), -1)


HEADS: dict[str, type[Head]] = {
    "QHead": QHead,
    "DuelingQHead": DuelingQHead,
    "VHead": VHead,
    "PPOVHead": VHead,
    "PolicyHead": PolicyHead,
    "PPOHead": PPOHead,
    "SACPolicyHead": SACPolicyHead,
    "SACQHead": SACQHead,
}


def make_head(parameters: Any, spaces: SpacesDefinition, temperature: float) -> Head:
    """The head that ``parameters`` describe: one of ``HEADS``, or a ``Head`` subclass given in place of a name."""
    wanted = parameters.parameterized_class_name
    if isinstance(wanted, type) and issubclass(wanted, Head):
        return wanted(parameters, spaces, temperature)
    if wanted not in HEADS:
        suggestion = did_you_mean(str(wanted), HEADS) or f": there are {', '.join(HEADS)}"
        raise CoachError(f"no head '{wanted}' on MXNet{suggestion}, or use -f tensorflow")
    return HEADS[wanted](parameters, spaces, temperature)
