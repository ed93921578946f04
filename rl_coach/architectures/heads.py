"""Heads, the last part of a network, written once for all frameworks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rl_coach.architectures.components import component_class
from rl_coach.architectures.initializers import Constant, Initializer, NormalizedColumns, output_bias
from rl_coach.architectures.layers import BatchnormActivationDropout, Dense, Layers
from rl_coach.architectures.policies import MASKED_LOGIT
from rl_coach.architectures.schemes import with_activations
from rl_coach.spaces import (
    BoxActionSpace,
    DiscreteActionSpace,
    MultiDiscreteActionSpace,
    SpacesDefinition,
    TeamActionSpace,
)
from rl_coach.utils import CoachError


class Head:
    """Base class of heads. A head maps features to named outputs.

    ``predict`` returns the outputs listed in ``public``, in that order. Update rules read the other outputs, for
    example logarithms of probabilities.

    :param parameters: the head's ``HeadParameters``
    :param spaces: the agent's spaces
    :param temperature: divisor of a policy's logits
    :cvar public: the names of the outputs that ``predict`` returns
    :cvar inputs: inputs of the network that the head reads besides the features, such as ``'action'``
    :cvar takes_streams: the head receives a list of [B, F], the features of a middleware with several streams
    :raises CoachError: if the type of the action space is not in ``supported_actions``
    """

    public: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    takes_streams = False
    HIDDEN_UNITS = 512
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
        """Compute the outputs by name.

        :param layers: makes the layers; ``layers.ops`` are the framework's array operations
        :param features: [B, F], the output of the middleware
        :param inputs: all inputs of the network by name
        """
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")

    def _hidden_and_output(self, layers: Layers, features: Any, units: int) -> Any:
        """[B, units], the output of two new layers: a hidden layer of ``HIDDEN_UNITS`` and an output layer."""
        hidden = layers.dense(features, self.HIDDEN_UNITS)
        return layers.dense(layers.activate(self.parameters.activation_function, hidden), units)

    def _per_action(self, layers: Layers, x: Any, size: int) -> Any:
        """Reshape [B, A * size] to [B, A, size]."""
        return layers.ops.reshape(x, (-1, self.num_actions, size))

    def _dueling(self, layers: Layers, features: Any, size: int) -> Any:
        """[B, A, size], numbers of the state, plus the difference of each action from the mean over the actions (Wang
        et al. 2016, equation 9). Both terms have ``HIDDEN_UNITS``.
        """
        value = layers.ops.reshape(self._hidden_and_output(layers, features, size), (-1, 1, size))
        advantage = self._per_action(layers, self._hidden_and_output(layers, features, self.num_actions * size), size)
        # without the mean, a number common to all actions could be in either of the two terms
        return value + advantage - layers.ops.mean(advantage, axis=1, keepdims=True)

    def _in_bounds(self, layers: Layers, squashed: Any) -> Any:
        """Scale numbers from -1 to 1 to the bounds of the actions."""
        low, high = self.spaces.action.low, self.spaces.action.high
        centre, radius = layers.constant((high + low) / 2), layers.constant((high - low) / 2)
        return squashed * radius + centre

    def _noise_of_state(self, layers: Layers, features: Any) -> tuple[Any, dict[str, Any]]:
        """Generalised state-dependent exploration: the noise is z(s) E with a random matrix E, and the standard
        deviation of each element of E is trained (Raffin et al. 2022, equation 6).

        :param features: [B, F], z
        :return: the variance [B, A] of the noise, and the outputs that the exploration policy needs to draw noise:
            ``features`` [B, F], and ``noise_scales`` [B, F * A], the same in each row
        """
        ops, shape = layers.ops, (features.shape[-1], self.num_actions)
        initial = Constant(self.parameters.initial_log_scale)
        scales = layers.trained_row(features, shape[0] * shape[1], initial, ops.exp)
        # the standard deviation must not train the features, which belong to the mean
        features = ops.stop_gradient(features)
        variance = ops.matmul(ops.square(features), ops.square(ops.reshape(scales[0], shape)))
        # features of 0 give a variance of 0; there, the logarithm and the slope of the square root are infinite
        return variance + 1e-6, {"features": features, "noise_scales": scales}

    def require_streams(self, network: str) -> None:
        """Check that the head supports a middleware with several streams.

        :param network: the network's name, for messages
        :raises CoachError: if the head takes the features of one stream only
        """
        if not self.takes_streams:
            raise CoachError(
                f"network '{network}' has several streams, but a {type(self).__name__} supports only one: "
                f"set num_streams of its middleware_parameters to 1, or give it a TD3VHeadParameters"
            )

    @property
    def is_discrete(self) -> bool:
        """True for discrete actions."""
        return isinstance(self.spaces.action, (DiscreteActionSpace, MultiDiscreteActionSpace))

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

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        value, advantage = (self._hidden_and_output(layers, features, units) for units in (1, self.num_actions))
        # without the mean, many pairs of V and A would give the same Q (Wang et al. 2016, section 3)
        return {"q": value + advantage - layers.ops.mean(advantage, axis=1, keepdims=True)}


class CategoricalQHead(Head):
    """``distribution`` [B, A, N]: the probabilities of N returns for each action; ``log_distribution``: their
    logarithms; ``q`` [B, A]: the mean return (Bellemare et al. 2017, section 4). The returns are evenly spaced from
    ``v_min`` to ``v_max`` of the parameters.
    """

    public = ("distribution", "q")
    supported_actions = (DiscreteActionSpace,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        parameters, ops = self.parameters, layers.ops
        logits = self._logits(layers, features)
        distribution = ops.softmax(logits)
        support = layers.constant(np.linspace(parameters.v_min, parameters.v_max, parameters.atoms))
        return {
            "distribution": distribution,
            # not the logarithm of the softmax: a very small probability would give -inf
            "log_distribution": ops.log_softmax(logits),
            "q": ops.sum(distribution * support, axis=-1),
        }

    def _logits(self, layers: Layers, features: Any) -> Any:
        """The logits [B, A, N] of the distribution."""
        bias = output_bias(self.parameters.output_bias_initializer)
        atoms = self.parameters.atoms
        return self._per_action(layers, layers.dense(features, self.num_actions * atoms, bias=bias), atoms)


class RainbowQHead(CategoricalQHead):
    """A categorical head with dueling logits: value of the state + advantage of the action - mean advantage. Value and
    advantages have 512 hidden units each (Hessel et al. 2018, section 3).
    """

    def _logits(self, layers: Layers, features: Any) -> Any:
        return self._dueling(layers, features, self.parameters.atoms)


class QuantileRegressionQHead(Head):
    """``quantiles`` [B, A, N] of the return of each action, and ``q`` [B, A], their mean (Dabney et al. 2018)."""

    public = ("quantiles", "q")
    supported_actions = (DiscreteActionSpace,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        atoms, bias = self.parameters.atoms, output_bias(self.parameters.output_bias_initializer)
        quantiles = self._per_action(layers, layers.dense(features, self.num_actions * atoms, bias=bias), atoms)
        return {"quantiles": quantiles, "q": layers.ops.mean(quantiles, axis=-1)}


class DNDQHead(Head):
    """``embedding`` [B, F]: the features themselves. The agent looks up Q(s, a) for this embedding in its dictionary of
    embeddings and values (Pritzel et al. 2017).
    """

    public = ("embedding",)
    supported_actions = (DiscreteActionSpace,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"embedding": features}


class NAFHead(Head):
    """``mean`` [B, D]: the best action; ``v`` [B]: the value of this action; ``factor`` [B, D, D]: the lower-triangular
    L in Q(s, a) = v - |L^T (a - mean)|^2 / 2. L has a positive diagonal (Gu et al. 2016, section 4).
    """

    public = ("mean", "v")
    supported_actions = (BoxActionSpace,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        value = layers.ops.squeeze(layers.dense(features, 1), -1)
        squashed = layers.activate(self.parameters.activation_function, layers.dense(features, self.num_actions))
        return {"mean": self._in_bounds(layers, squashed), "v": value, "factor": self._factor(layers, features)}

    def _factor(self, layers: Layers, features: Any) -> Any:
        size = self.num_actions
        rows, columns = np.tril_indices(size)
        place = np.zeros((len(rows), size * size))
        place[np.arange(len(rows)), rows * size + columns] = 1.0
        on_diagonal = layers.constant(rows == columns)
        entries = layers.dense(features, len(rows))
        # masked before the exponential: otherwise an entry off the diagonal could overflow, and inf * 0 is NaN
        diagonal = layers.ops.exp(self._exponent(layers, entries * on_diagonal))
        entries = diagonal * on_diagonal + entries * (1.0 - on_diagonal)
        # a product with a constant matrix, because the export to ONNX has no scatter
        return layers.ops.reshape(layers.ops.matmul(entries, layers.constant(place)), (-1, size, size))

    def _exponent(self, layers: Layers, x: Any) -> Any:
        if self.parameters.diagonal_bounds is None:
            return x
        low, high = (math.log(bound) for bound in self.parameters.diagonal_bounds)
        # tanh has the slope 1 at the centre, so small exponents hardly change
        centre, radius = (high + low) / 2, (high - low) / 2
        return centre + radius * layers.ops.tanh(x / radius)


class PPOVHead(Head):
    """``v`` [B]: V(s)."""

    public: tuple[str, ...] = ("v",)
    supported_actions = (object,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        bias = output_bias(self.parameters.output_bias_initializer)
        return {"v": layers.ops.squeeze(layers.dense(features, 1, self._kernel(layers), bias), -1)}

    def _kernel(self, layers: Layers) -> Initializer | None:
        return None


class VHead(PPOVHead):
    """``v`` [B]: V(s). The setting ``initializer`` selects the initial weights."""

    def _kernel(self, layers: Layers) -> Initializer | None:
        return None if self.parameters.initializer == "xavier" else NormalizedColumns(layers.rng)


class DDPGVHead(VHead):
    """``q`` [B]: Q(s, a) of a network with the action as an input, within the ``value_bounds`` of the parameters."""

    public: tuple[str, ...] = ("q",)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        value = super().__call__(layers, features, inputs)["v"]
        if self.parameters.value_bounds is None:
            return {"q": value}
        low, high = self.parameters.value_bounds
        return {"q": low + (high - low) * layers.ops.sigmoid(value)}


class TD3VHead(DDPGVHead):
    """``critics`` [B, streams]: Q(s, a) of each stream; ``q`` [B]: the smallest of them; ``first`` [B]: Q(s, a) of the
    first stream, with a gradient for this stream only.
    """

    public = ("critics", "q")
    takes_streams = True

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        streams = features if isinstance(features, list) else [features]
        each = [super(TD3VHead, self).__call__(layers, one, inputs)["q"] for one in streams]
        critics = layers.ops.stack(each, -1)
        # ``first`` is separate, so that the loss of TD3's policy does not compute the other critics
        return {"critics": critics, "q": layers.ops.min(critics, axis=-1), "first": each[0]}


class DDPGActor(Head):
    """``action`` [B, A]: the action of a deterministic policy, within the bounds of the action space;
    ``pre_activation`` [B, A]: the action before the activation function (Lillicrap et al. 2016, section 7).
    """

    public = ("action", "features")
    supported_actions = (BoxActionSpace,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        pre_activation = layers.dense(features, self.num_actions)
        normalized = layers.batchnorm(pre_activation) if self.parameters.batchnorm else pre_activation
        action = self._in_bounds(layers, layers.activate(self.parameters.activation_function, normalized))
        outputs = {"action": action, "pre_activation": pre_activation}
        return {**outputs, "features": features} if self.parameters.state_dependent_noise else outputs


class PolicyHead(Head):
    """A policy. Discrete: ``probabilities``, ``log_probabilities`` and ``logits`` [B, A], or [B, K, M] for actions of K
    parts with at most M choices each. Continuous: ``mean`` and ``standard_deviation`` [B, A]; if the action space is
    bounded, the mean is squashed into it.

    With ``state_dependent_noise``, ``_noise_of_state`` gives the standard deviation and more outputs.
    """

    public = ("probabilities", "mean", "standard_deviation", "features", "noise_scales")
    supported_actions: tuple[type, ...] = (DiscreteActionSpace, MultiDiscreteActionSpace, BoxActionSpace)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        if self.is_discrete:
            logits, ops = self._logits(layers, features) / self.temperature, layers.ops
            return {
                "probabilities": ops.softmax(logits), "log_probabilities": ops.log_softmax(logits), "logits": logits,
            }  # fmt: skip
        mean = self._mean(layers, features)
        if self.parameters.state_dependent_noise:
            variance, drawn_with = self._noise_of_state(layers, features)
            return {"mean": mean, "standard_deviation": layers.ops.sqrt(variance), **drawn_with}
        return {"mean": mean, "standard_deviation": self._standard_deviation(layers, features)}

    def _logits(self, layers: Layers, features: Any) -> Any:
        """The logits [B, A], or [B, K, M] for actions of K parts. ``MASKED_LOGIT`` is added to entries that are not a
        choice of a part.
        """
        action = self.spaces.action
        if not isinstance(action, MultiDiscreteActionSpace):
            return layers.dense(features, self.num_actions)
        is_choice = action.is_choice
        logits = layers.ops.reshape(layers.dense(features, is_choice.size), (-1, *is_choice.shape))
        return logits + layers.constant(np.where(is_choice, 0.0, MASKED_LOGIT))

    def _mean(self, layers: Layers, features: Any) -> Any:
        mean = layers.dense(features, self.num_actions)
        if not self.spaces.action.is_bounded:
            return mean  # a mean cannot be squashed into infinite bounds
        return self._in_bounds(layers, layers.ops.tanh(mean))

    def _small_dense(self, layers: Layers, features: Any) -> Any:
        """A dense layer with an output for each action. The initial outputs are near zero."""
        return layers.dense(features, self.num_actions, NormalizedColumns(layers.rng, 0.01))

    def _standard_deviation(self, layers: Layers, features: Any) -> Any:
        # above 0, because a standard deviation of 0 gives no finite log probabilities
        return layers.ops.softplus(self._small_dense(layers, features)) + 1e-5


class PPOHead(PolicyHead):
    """PPO's policy. The mean is not squashed, and the standard deviation does not depend on the state (Schulman et al.
    2017, section 6.1).
    """

    def _mean(self, layers: Layers, features: Any) -> Any:
        return self._small_dense(layers, features)

    def _standard_deviation(self, layers: Layers, features: Any) -> Any:
        return layers.trained_row(features, self.num_actions, Constant(0.0), layers.ops.exp)


class TeamHead(Head):
    """Base class of heads with an output for each action of each player of a team. The players share the weights.

    :cvar inputs: ``present`` [B, N]; the outputs of a player that is not present are 0
    """

    inputs = ("present",)
    supported_actions = (TeamActionSpace,)

    def _by_player(self, layers: Layers, features: Any, inputs: dict[str, Any], **initializers: Any) -> Any:
        """[B, N, A], the outputs for features [B * N, F]."""
        action: Any = self.spaces.action
        rows = layers.dense(features, action.most_choices, **initializers)
        # with values of 0, players that have left do not change the sum of VDN and QMIX
        present = layers.ops.reshape(inputs["present"], (-1, self.num_actions, 1))
        return layers.ops.reshape(rows, (-1, self.num_actions, rows.shape[-1])) * present


class TeamPolicyHead(TeamHead):
    """``probabilities``, ``log_probabilities`` and ``logits`` [B, N, A]: the policy that N players of a team share."""

    public = ("probabilities",)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        ops, kernel = layers.ops, NormalizedColumns(layers.rng, 0.01)
        logits = self._by_player(layers, features, inputs, kernel=kernel) / self.temperature
        return {"probabilities": ops.softmax(logits), "log_probabilities": ops.log_softmax(logits), "logits": logits}


class TeamQHead(TeamHead):
    """``q`` [B, N, A]: Q(s, a) of each player of a team."""

    public = ("q",)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        bias = output_bias(self.parameters.output_bias_initializer)
        return {"q": self._by_player(layers, features, inputs, bias=bias)}


class MixingHead(Head):
    """The weights of QMIX's mixing network for N players, as functions of the state: ``weights_1`` [B, N, E],
    ``offsets_1`` [B, E], ``weights_2`` [B, E] and ``offset_2`` [B]. The update rule uses the absolute values of the
    weights (Rashid et al. 2018, section 4.1)."""

    public = ("weights_1", "offsets_1", "weights_2", "offset_2")
    supported_actions = (TeamActionSpace,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        units, players = self.parameters.units, self.num_actions  # an action space with one part for each player
        # at first, Q_tot rises by about 1 with a player's value: larger weights would multiply errors of bootstraps
        kernel = NormalizedColumns(layers.rng, units**-0.5)
        hidden = layers.activate(self.parameters.activation_function, layers.dense(features, units))
        return {
            "weights_1": layers.ops.reshape(layers.dense(features, players * units, kernel), (-1, players, units)),
            "offsets_1": layers.dense(features, units),
            "weights_2": layers.dense(features, units, kernel),
            "offset_2": layers.ops.squeeze(layers.dense(hidden, 1), -1),
        }


class ACERPolicyHead(PolicyHead):
    """``probabilities`` [B, A] and ``log_probabilities``: a policy over discrete actions (Wang et al. 2017)."""

    supported_actions = (DiscreteActionSpace,)


class SACPolicyHead(Head):
    """``mean`` and ``log_deviation`` [B, A]: mean and log standard deviation of the Gaussian before squashing (Haarnoja
    et al. 2018, appendix C).

    With ``state_dependent_noise``, ``_noise_of_state`` gives the standard deviation and more outputs.
    """

    public = ("mean", "log_deviation", "features", "noise_scales")
    supported_actions = (BoxActionSpace,)
    LOG_DEVIATION_LIMITS = (-20.0, 2.0)  # the limits of the authors' program

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        mean, limit = layers.dense(features, self.num_actions), self.parameters.mean_limit
        # the tanh of a very large mean is 1 for any noise of gSDE, so the agent would not explore
        mean = mean if limit is None else layers.ops.clip(mean, -limit, limit)
        if self.parameters.state_dependent_noise:
            variance, drawn_with = self._noise_of_state(layers, features)
            return {"mean": mean, "log_deviation": 0.5 * layers.ops.log(variance), **drawn_with}
        log_deviation = layers.dense(features, self.num_actions)
        return {"mean": mean, "log_deviation": layers.ops.clip(log_deviation, *self.LOG_DEVIATION_LIMITS)}


class SACQHead(Head):
    """``quantiles`` [B, critics, quantiles]: the quantiles of Q(s, a) of each critic; ``q1`` and ``q2`` [B]: the means
    of the first two critics. The critics share no layers.

    With ``num_atoms`` above 1, ``log_distribution`` [B, critics, atoms] contains the logarithms of the probabilities of
    returns from ``v_min`` to ``v_max``, and ``quantiles`` [B, critics, 1] contains the mean returns.
    """

    public = ("q1", "q2")
    inputs = ("action",)
    supported_actions = (BoxActionSpace,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        pair = layers.ops.concatenate([features, inputs["action"]], axis=-1)
        critics = [self._critic(layers, pair) for _ in range(self.parameters.num_critics)]
        if self.parameters.num_atoms > 1:
            return self._distributions(layers, critics)
        means = {name: layers.ops.mean(critic, axis=-1) for name, critic in zip(self.public, critics)}
        return {**means, "quantiles": layers.ops.stack(critics, axis=1)}

    def _distributions(self, layers: Layers, critics: list[Any]) -> dict[str, Any]:
        ops, parameters = layers.ops, self.parameters
        logarithms = [ops.log_softmax(logits) for logits in critics]
        support = layers.constant(np.linspace(parameters.v_min, parameters.v_max, parameters.num_atoms))
        means = [ops.sum(ops.exp(one) * support, axis=-1) for one in logarithms]
        quantiles = ops.stack(means, axis=1)[:, :, None]
        return {
            **dict(zip(self.public, means)), "quantiles": quantiles, "log_distribution": ops.stack(logarithms, axis=1),
        }  # fmt: skip

    def _critic(self, layers: Layers, x: Any) -> Any:
        parameters = self.parameters
        outputs = max(parameters.num_quantiles, parameters.num_atoms)
        if parameters.scheme is not None:
            for layer in parameters.scheme:
                x = layers.apply(layer, x)
            return layers.dense(x, outputs, bias=output_bias(parameters.output_bias_initializer))
        x = self._normalized(layers, x)
        for units in parameters.network_layers_sizes:
            x = layers.dense(x, units)
            x = layers.dropout(x, parameters.dropout_rate) if parameters.dropout_rate else x
            x = layers.layernorm(x) if parameters.layernorm else x
            x = layers.activate(parameters.activation_function, x)
            x = self._normalized(layers, x)
        return layers.dense(x, outputs, bias=output_bias(parameters.output_bias_initializer))

    def _normalized(self, layers: Layers, x: Any) -> Any:
        if not self.parameters.batchnorm:
            return x
        warm_up = self.parameters.batch_renorm_warm_up
        return layers.batchnorm(x) if warm_up is None else layers.batch_renorm(x, warm_up)


class RNDHead(Head):
    """``features`` [B, 512] of an observation (Burda et al. 2018, appendix A.3). The predictor has two more layers."""

    public = ("features",)
    UNITS = 512
    CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        x = features
        if len(x.shape) > 2:
            for filters, size, strides in self.CONVOLUTIONS:
                x = layers.activate("leaky_relu", layers.convolution(x, filters, size, strides))
            x = layers.flatten(x)
        for _ in range(2 if self.parameters.is_predictor else 0):
            x = layers.activate("relu", layers.dense(x, self.UNITS))
        return {"features": layers.dense(x, self.UNITS)}


class ClassificationHead(Head):
    """``probabilities`` and ``log_probabilities`` [B, A] of classes. There is one class for each discrete action."""

    public = ("probabilities",)
    supported_actions = (DiscreteActionSpace,)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        logits = layers.dense(features, self.num_actions)
        return {"probabilities": layers.ops.softmax(logits), "log_probabilities": layers.ops.log_softmax(logits)}


class RegressionHead(Head):
    """``values`` [B, A]: a number for each discrete action or element of a continuous one; [B, K, M] for K parts of an
    action with at most M choices each."""

    public = ("values",)
    supported_actions = PolicyHead.supported_actions
    SCHEME = (Dense(256),)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        parameters = self.parameters
        scheme = list(self.SCHEME if parameters.scheme is None else parameters.scheme)
        activation = BatchnormActivationDropout(activation_function=parameters.activation_function)
        for layer in with_activations(scheme, activation, parameters.dense_layer):
            features = layers.apply(layer, features)
        bias = output_bias(parameters.output_bias_initializer)
        if not isinstance(self.spaces.action, MultiDiscreteActionSpace):
            return {"values": layers.dense(features, self.num_actions, bias=bias)}
        shape = self.spaces.action.is_choice.shape
        values = layers.dense(features, math.prod(shape), bias=bias)
        return {"values": layers.ops.reshape(values, (-1, *shape))}


class MeasurementsPredictionHead(Head):
    """``measurements`` [B, A, offsets * M]: the predicted change of M measurements after each of several offsets in
    time, for each action (Dosovitskiy & Koltun 2017, section 3).

    The prediction is the mean over the actions plus the difference of each action from this mean. Both terms have 256
    hidden units. In the last axis, the M measurements of one offset are next to each other.
    """

    public = ("measurements",)
    supported_actions = (DiscreteActionSpace,)
    HIDDEN_UNITS = 256
    MEASUREMENTS = "measurements"

    def __init__(self, parameters: Any, spaces: SpacesDefinition, temperature: float = 1.0):
        super().__init__(parameters, spaces, temperature)
        if self.MEASUREMENTS not in spaces.state:
            raise CoachError(
                f"a {type(self).__name__} predicts the observation '{self.MEASUREMENTS}', which the environment does "
                f"not have: choose another agent or environment"
            )

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        size = int(np.prod(self.spaces.state[self.MEASUREMENTS].shape)) * self.parameters.num_predicted_steps_ahead
        return {"measurements": self._dueling(layers, features, size)}


_OWN_HEADS = (
    QHead, DuelingQHead, CategoricalQHead, RainbowQHead, QuantileRegressionQHead, DNDQHead, NAFHead, VHead, PPOVHead,
    DDPGVHead, TD3VHead, DDPGActor, RNDHead, PolicyHead, PPOHead, SACPolicyHead, ACERPolicyHead, SACQHead,
    ClassificationHead, RegressionHead, MeasurementsPredictionHead, TeamPolicyHead, TeamQHead, MixingHead,
)  # fmt: skip
HEADS: dict[str, type[Head]] = {
    **{head.__name__: head for head in _OWN_HEADS},
    "WolpertingerActorHead": DDPGActor,
}


def make_head(parameters: Any, spaces: SpacesDefinition, temperature: float) -> Head:
    """Make the head of ``parameters.path``: a name in ``HEADS``, ``'module:Class'`` or a subclass of ``Head``."""
    return component_class(parameters.path, HEADS, Head)(parameters, spaces, temperature)
