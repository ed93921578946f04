"""Heads that networks end in, written once for all frameworks."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.architectures.components import component_class
from rl_coach.architectures.initializers import Constant, Initializer, NormalizedColumns, output_bias
from rl_coach.architectures.layers import Layers
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, SpacesDefinition
from rl_coach.utils import CoachError


class Head:
    """Base of heads: maps features to named outputs.

    Those listed in ``public`` are what ``predict`` returns, in that order; the others serve update rules, which want
    logarithms where people want probabilities.

    :param parameters: its ``HeadParameters``
    :param spaces: the agent's spaces
    :param temperature: divides a policy's logits
    :cvar public: the names of the outputs that ``predict`` returns
    :cvar inputs: inputs of the network that the head reads besides the features, such as ``'action'``
    :raises CoachError: the action space is none of ``supported_actions``
    """

    public: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    supported_actions: tuple[type, ...] = (DiscreteActionSpace, BoxActionSpace)

    def __init__(self, parameters: Any, spaces: SpacesDefinition, temperature: float = 1.0):
        self.parameters = parameters
        self.spaces = spaces
        self.temperature = temperature
        if not isinstance(spaces.action, self.supported_actions):
            known = " or ".join(space.__name__ for space in self.supported_actions)
            raise CoachError(
                f"a {type(self).__name__} needs a {known}, not a {type(spaces.action).__name__}: "
                f"choose another agent, or an output filter that maps the actions"
            )

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        """The outputs by name, of any one framework's arrays.

        :param layers: makes layers, and has the framework's array operations as ``layers.ops``
        :param features: [B, F], what the middleware gives
        :param inputs: all inputs of the network by name
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what it computes")

    @property
    def is_discrete(self) -> bool:
        """True for discrete actions."""
        return isinstance(self.spaces.action, DiscreteActionSpace)

    @property
    def num_actions(self) -> int:
        """The number of discrete actions, or of elements of a continuous one."""
        action = self.spaces.action
        return action.num_actions if isinstance(action, DiscreteActionSpace) else action.num_elements


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


class PPOVHead(Head):
    """``v`` [B]: V(s)."""

    public = ("v",)
    supported_actions = (object,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        bias = output_bias(self.parameters.output_bias_initializer)
        return {"v": layers.ops.squeeze(layers.dense(features, 1, self._kernel(layers), bias), -1)}

    def _kernel(self, layers: Layers) -> Initializer | None:
        return None


class VHead(PPOVHead):
    """``v`` [B]: V(s), from a kernel that begins as its parameters say."""

    def _kernel(self, layers: Layers) -> Initializer | None:
        return None if self.parameters.initializer == "xavier" else NormalizedColumns(layers.rng)


class PolicyHead(Head):
    """A policy. Discrete: ``probabilities`` [B, A] and ``log_probabilities``. Continuous: ``mean`` and
    ``standard_deviation`` [B, A], the mean squashed into the action space where that is bounded."""

    public = ("probabilities", "mean", "standard_deviation")

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        if self.is_discrete:
            logits = layers.dense(features, self.num_actions) / self.temperature
            return {"probabilities": layers.ops.softmax(logits), "log_probabilities": layers.ops.log_softmax(logits)}
        mean = self._mean(layers, features)
        return {"mean": mean, "standard_deviation": self._standard_deviation(layers, features)}

    def _mean(self, layers: Layers, features: Any) -> Any:
        mean = layers.dense(features, self.num_actions)
        low, high = self.spaces.action.low, self.spaces.action.high
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
            return mean
        centre, radius = layers.constant((high + low) / 2), layers.constant((high - low) / 2)
        return layers.ops.tanh(mean) * radius + centre

    def _small_dense(self, layers: Layers, features: Any) -> Any:
        """An output for each action that starts near zero."""
        return layers.dense(features, self.num_actions, NormalizedColumns(layers.rng, 0.01))

    def _standard_deviation(self, layers: Layers, features: Any) -> Any:
        return layers.ops.softplus(self._small_dense(layers, features)) + 1e-5


class PPOHead(PolicyHead):
    """PPO's policy: the mean is not squashed and the standard deviation depends on no state (Schulman et al. 2017,
    section 6.1)."""

    def _mean(self, layers: Layers, features: Any) -> Any:
        return self._small_dense(layers, features)

    def _standard_deviation(self, layers: Layers, features: Any) -> Any:
        return layers.trained_row(features, self.num_actions, Constant(0.0), layers.ops.exp)


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
    inputs = ("action",)
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
    "PPOVHead": PPOVHead,
    "PolicyHead": PolicyHead,
    "PPOHead": PPOHead,
    "SACPolicyHead": SACPolicyHead,
    "SACQHead": SACQHead,
}


def make_head(parameters: Any, spaces: SpacesDefinition, temperature: float) -> Head:
    """The head that ``parameters.path`` names: one of ``HEADS``, ``'module:Class'`` or a subclass of ``Head``."""
    return component_class(parameters.path, HEADS, Head)(parameters, spaces, temperature)


class ACERPolicyHead(PolicyHead):
    """``probabilities`` [B, A] and ``log_probabilities``: a policy over discrete actions (Wang et al. 2017)."""

    supported_actions = (DiscreteActionSpace,)


HEADS["ACERPolicyHead"] = ACERPolicyHead
