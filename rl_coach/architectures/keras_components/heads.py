"""The heads that networks end in, as Keras graphs."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from rl_coach.architectures.heads import BaseHead
from rl_coach.architectures.initializers import Constant, GlorotUniform, NormalizedColumns, output_bias
from rl_coach.architectures.keras_components.layers import LayerFactory, activate
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, SpacesDefinition
from rl_coach.utils import CoachError, did_you_mean


class Head(BaseHead):
    """One head of a network; see ``BaseHead``.

    :param factory: makes its layers
    """

    def __init__(self, parameters: Any, spaces: SpacesDefinition, factory: LayerFactory, temperature: float = 1.0):
        super().__init__(parameters, spaces, temperature)
        self.factory = factory

    def __call__(self, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        """:param features: [B, F]; :param inputs: all inputs of the network by name; :return: outputs by name"""
        raise NotImplementedError


class QHead(Head):
    """``q`` [B, A]: Q(s, a)."""

    public = ("q",)
    supported_actions = (DiscreteActionSpace,)

    def __call__(self, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        bias = output_bias(self.parameters.output_bias_initializer)
        return {"q": self.factory.dense(self.num_actions, bias=bias)(features)}


class DuelingQHead(Head):
    """``q`` [B, A]: V(s) + A(s, a) - mean A(s, .), each from 512 hidden units (Wang et al. 2016, equation 9)."""

    public = ("q",)
    supported_actions = (DiscreteActionSpace,)
    HIDDEN_UNITS = 512

    def __call__(self, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        value = self.factory.dense(1)(self._hidden(features))
        advantage = self.factory.dense(self.num_actions)(self._hidden(features))
        return {"q": value + advantage - ops.mean(advantage, axis=1, keepdims=True)}

    def _hidden(self, features: Any) -> Any:
        return activate(self.parameters.activation_function, self.factory.dense(self.HIDDEN_UNITS)(features))


class VHead(Head):
    """``v`` [B]: V(s)."""

    public = ("v",)
    supported_actions = (object,)

    def __call__(self, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        rng = self.factory.rng
        xavier = getattr(self.parameters, "initializer", "xavier") == "xavier"
        kernel = GlorotUniform(rng) if xavier else NormalizedColumns(rng)
        bias = output_bias(self.parameters.output_bias_initializer)
        return {"v": ops.squeeze(self.factory.dense(1, kernel, bias)(features), -1)}


class PolicyHead(Head):
    """A policy. Discrete: ``probabilities`` [B, A] and ``log_probabilities``. Continuous: ``mean`` and
    ``standard_deviation`` [B, A], the mean squashed into the action space where that is bounded."""

    public = ("probabilities", "mean", "standard_deviation")

    def __call__(self, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        if self.is_discrete:
            return self._discrete(features)
        return {"mean": self._mean(features), "standard_deviation": self._standard_deviation(features)}

    def _discrete(self, features: Any) -> dict[str, Any]:
        logits = self.factory.dense(self.num_actions)(features) / self.temperature
        return {"probabilities": ops.softmax(logits), "log_probabilities": ops.log_softmax(logits)}

    def _mean(self, features: Any) -> Any:
        space = self.spaces.action
        mean = self.factory.dense(self.num_actions)(features)
        if not (np.all(np.isfinite(space.low)) and np.all(np.isfinite(space.high))):
            return mean
        centre, radius = (space.high + space.low) / 2, (space.high - space.low) / 2
        return ops.tanh(mean) * radius.astype("float32") + centre.astype("float32")

    def _small_dense(self, features: Any) -> Any:
        """An output for each action that starts near zero."""
        return self.factory.dense(self.num_actions, NormalizedColumns(self.factory.rng, 0.01))(features)

    def _standard_deviation(self, features: Any) -> Any:
        return ops.softplus(self._small_dense(features)) + 1e-5


class StateIndependentDeviation(keras.layers.Layer):
    """exp of one trained vector, repeated for each row."""

    def __init__(self, size: int):
        super().__init__()
        self.log_deviation = self.add_weight((size,), Constant(0.0), name="log_deviation")

    def call(self, x: Any) -> Any:
        return ops.exp(self.log_deviation) + ops.zeros_like(x[:, :1])


class PPOHead(PolicyHead):
    """PPO's policy: the mean is not squashed and the standard deviation depends on no state (Schulman et al. 2017,
    section 6.1)."""

    def _mean(self, features: Any) -> Any:
        return self._small_dense(features)

    def _standard_deviation(self, features: Any) -> Any:
        return StateIndependentDeviation(self.num_actions)(features)


class SACPolicyHead(Head):
    """``mean`` and ``log_deviation`` [B, A] of the Gaussian before squashing (Haarnoja et al. 2018, appendix C)."""

    public = ("mean", "log_deviation")
    supported_actions = (BoxActionSpace,)
    LOG_DEVIATION_LIMITS = (-20.0, 2.0)

    def __call__(self, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        mean = self.factory.dense(self.num_actions)(features)
        log_deviation = self.factory.dense(self.num_actions)(features)
        return {"mean": mean, "log_deviation": ops.clip(log_deviation, *self.LOG_DEVIATION_LIMITS)}


class SACQHead(Head):
    """``q1`` and ``q2`` [B]: two critics of state and action that share nothing."""

    public = ("q1", "q2")
    supported_actions = (BoxActionSpace,)

    def __call__(self, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        pair = keras.layers.Concatenate()([features, inputs["action"]])
        return {name: self._critic(pair) for name in self.public}

    def _critic(self, x: Any) -> Any:
        for units in self.parameters.network_layers_sizes:
            x = activate(self.parameters.activation_function, self.factory.dense(units)(x))
        bias = output_bias(self.parameters.output_bias_initializer)
        return ops.squeeze(self.factory.dense(1, bias=bias)(x), -1)


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


def make_head(parameters: Any, spaces: SpacesDefinition, factory: LayerFactory, temperature: float) -> Head:
    """The head that ``parameters`` describe: one of ``HEADS``, or a ``Head`` subclass given in place of a name."""
    wanted = parameters.parameterized_class_name
    if isinstance(wanted, type) and issubclass(wanted, Head):
        return wanted(parameters, spaces, factory, temperature)
    if wanted not in HEADS:
        raise CoachError(f"no head '{wanted}' for Keras networks{did_you_mean(str(wanted), HEADS)}")
    return HEADS[wanted](parameters, spaces, factory, temperature)
