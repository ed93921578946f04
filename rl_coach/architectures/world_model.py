"""Parts of a world model with categorical states (Hafner et al. 2023, "Mastering diverse domains through world
models").

A recurrent state-space model is one network. The embedders encode the observation. The middleware is the sequence model
and the posterior. Its features are the deterministic state, the sampled categories, and the probabilities of these
categories. The heads predict from these features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.embedders import InputEmbedder
from rl_coach.architectures.head_parameters import HeadParameters
from rl_coach.architectures.heads import Head
from rl_coach.architectures.initializers import Constant, FanInNormal
from rl_coach.architectures.layers import Layers
from rl_coach.architectures.middleware_parameters import MiddlewareParameters
from rl_coach.architectures.middlewares import Middleware, State
from rl_coach.architectures.network_inputs import NetworkInput
from rl_coach.base_parameters import Frameworks
from rl_coach.core_types import LAST_ACTION
from rl_coach.spaces import ActionSpace, DiscreteActionSpace
from rl_coach.utilities.requirements import exactly, instance, whole
from rl_coach.utils import CoachError

VARIABLES, BLOCKS, UNIMIX, RETURN_BINS, FILTERS, SHRINKING = 32, 8, 0.01, 255, (2, 3, 4, 4), 16


@dataclass(frozen=True)
class ModelSize:
    """The size of a world model. The defaults are the smallest size of the paper.

    :param deter: size of the deterministic state
    :param hidden: units of the layers of the sequence model
    :param classes: number of categories of each of the 32 variables
    :param units: units of the layers of encoder, decoder and heads
    :param depth: the four convolutions have 2, 3, 4 and 4 times this number of filters
    """

    deter: int = 512
    hidden: int = 64
    classes: int = 4
    units: int = 64
    depth: int = 4

    @property
    def stoch(self) -> int:
        """The size of the categorical state."""
        return VARIABLES * self.classes

    @property
    def latent(self) -> int:
        """The size of the whole state, deterministic and categorical."""
        return self.deter + self.stoch


SIZES = {
    f"size{millions}m": ModelSize(128 * depth, 16 * depth, depth, 16 * depth, depth)
    for millions, depth in {1: 4, 12: 16, 25: 24, 50: 32, 100: 48, 200: 64, 400: 96}.items()
}
"""The sizes of the paper and of its published code. The names contain the number of parameters in millions."""
_SIZE = instance(ModelSize, "a ModelSize")


def symlog(ops: Any, x: Any) -> Any:
    """sign(x) ln(|x| + 1), which makes large numbers small (equation 9)."""
    return ops.sign(x) * ops.log(ops.abs(x) + 1.0)


def unimixed(ops: Any, logits: Any, axis: int = -1) -> Any:
    """99 % of the softmax over an axis of the logits, plus 1 % of the uniform distribution."""
    return (1.0 - UNIMIX) * ops.softmax(logits, axis) + UNIMIX / logits.shape[axis]


def sampled(ops: Any, probabilities: Any, uniform: Any) -> Any:
    """Draw categories by the inverse of the cumulative distribution. Return them one-hot, [B, V, C].

    The gradient passes straight through to the probabilities.

    :param probabilities: [B, V, C]
    :param uniform: [B, V], random numbers from 0 to 1; 0 selects the most probable category
    """
    # [B, C, V]: XLA vectorizes over the last dimension, and the 32 variables are there
    p, u = ops.transpose(probabilities, (0, 2, 1)), ops.reshape(uniform, (-1, 1, probabilities.shape[1]))
    # without the last sum: it may be rounded below u, and then no category would be drawn
    is_above = ops.cast(u >= ops.cumsum(p, axis=1)[:, :-1], "float32")
    edge = ops.zeros_like(u)
    drawn = ops.concatenate([edge + 1.0, is_above], axis=1) - ops.concatenate([is_above, edge], axis=1)
    best = ops.cast(p >= ops.max(p, axis=1, keepdims=True), "float32")
    is_best = ops.cast(edge >= u, "float32")
    chosen = ops.transpose(ops.stop_gradient(drawn + is_best * (best - drawn)), (0, 2, 1))
    return chosen + (probabilities - ops.stop_gradient(probabilities))


def _hidden(layers: Layers, x: Any, units: int, count: int = 1) -> Any:
    for _ in range(count):
        x = layers.rmsnorm_silu(layers.dense(x, units))
    return x


def _gated(ops: Any, gates: Any, before: Any) -> Any:
    """The state [B, 1, F] of a block of the GRU after a step. :param before: the state before the step"""
    reset, candidate, update = ops.split(gates, 3, axis=-1)
    candidate, update = ops.tanh(ops.sigmoid(reset) * candidate), ops.sigmoid(update - 1.0)
    return update * candidate + (1.0 - update) * before


class ModelEmbedder(InputEmbedder):
    """Embeds a vector with ``symlog`` and three layers, or an image with four convolutions. Each halves its sides."""

    parameters: ModelEmbedderParameters

    def embed(self, layers: Layers, x: Any) -> Any:
        if self.given.kind == "image":
            x = x - 0.5
            for filters in (self.parameters.size.depth * factor for factor in FILTERS):
                x = layers.rmsnorm_silu(layers.pooled_convolution(x, filters, 5))
            return layers.flatten(x)
        flat = layers.flatten(x) if len(x.shape) > 2 else x
        return _hidden(layers, symlog(layers.ops, flat), self.parameters.size.units, 3)


class StateSpaceMiddleware(Middleware):
    """A step of the recurrent state-space model with a block-diagonal GRU.

    The recurrent state consists of the model's last state (``deter`` and ``stoch``), the encoded action after it
    (``last_action``), and uniform random numbers for drawing the categories (``noise``; zeros select the most probable
    categories).
    """

    def __init__(self, parameters: Any):
        super().__init__(parameters)
        size = parameters.size
        self.recurrent_sizes = {
            "deter": size.deter, "stoch": size.stoch, LAST_ACTION: parameters.num_actions, "noise": VARIABLES
        }  # fmt: skip

    def __call__(self, layers: Layers, x: Any, state: State) -> tuple[Any, State]:
        size, ops = self.parameters.size, layers.ops
        deter = self._sequence_model(layers, state)
        hidden = _hidden(layers, ops.concatenate([deter, x], axis=-1), size.hidden)
        logits = ops.reshape(layers.dense(hidden, size.stoch), (-1, VARIABLES, size.classes))
        probabilities = unimixed(ops, logits)
        stoch = ops.reshape(sampled(ops, probabilities, state["noise"]), (-1, size.stoch))
        features = ops.concatenate([deter, stoch, ops.reshape(probabilities, (-1, size.stoch))], axis=-1)
        # times 1, because a Keras model cannot return an input itself as an output
        given = {name: state[name] * 1.0 for name in (LAST_ACTION, "noise")}
        return features, {"deter": deter, "stoch": stoch, **given}

    def _sequence_model(self, layers: Layers, state: State) -> Any:
        """[B, deter], the next deterministic state."""
        size, ops, deter = self.parameters.size, layers.ops, state["deter"]
        action = state[LAST_ACTION]
        action = action / ops.stop_gradient(ops.maximum(ops.abs(action), 1.0))
        inputs = [_hidden(layers, one, size.hidden) for one in (deter, state["stoch"], action)]
        by_block = ops.reshape(deter, (-1, BLOCKS, size.deter // BLOCKS))
        x = layers.dense_blocks(by_block, size.deter // BLOCKS, ops.concatenate(inputs, axis=-1))
        x = layers.rmsnorm_silu(ops.reshape(x, (-1, size.deter)))
        gates = layers.dense_blocks(ops.reshape(x, (-1, *by_block.shape[1:])), 3 * size.deter // BLOCKS)
        # one block after another: XLA does not vectorize this for all blocks together, and needs six times as long
        blocks = zip(ops.split(gates, BLOCKS, axis=1), ops.split(by_block, BLOCKS, axis=1))
        return ops.reshape(ops.concatenate([_gated(ops, *block) for block in blocks], axis=1), (-1, size.deter))


class ModelHead(Head):
    """Base class of heads that predict from the latent state with ``num_layers`` hidden layers."""

    num_layers = 1

    def _latent(self, features: Any) -> Any:
        return features[:, : self.parameters.size.latent]

    def _hidden(self, layers: Layers, features: Any) -> Any:
        return _hidden(layers, self._latent(features), self.parameters.size.units, self.num_layers)

    @staticmethod
    def _scaled(layers: Layers, x: Any, units: int, scale: float) -> Any:
        """An output layer with small initial weights. :param scale: factor of these weights"""
        return layers.dense(x, units, FanInNormal(layers.rng, scale) if scale else Constant(0.0))


class PriorHead(ModelHead):
    """``probabilities_of_state`` [B, 32, C]: the probabilities of the categories, from the deterministic state only."""

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        size, ops = self.parameters.size, layers.ops
        hidden = _hidden(layers, features[:, : size.deter], size.hidden, 2)
        logits = ops.reshape(layers.dense(hidden, size.stoch), (-1, VARIABLES, size.classes))
        # classes first, for the same reason as in ``sampled``; the middleware cannot: XLA on TensorFlow does not
        # differentiate a transposition inside a loop
        probabilities = unimixed(ops, ops.transpose(logits, (0, 2, 1)), 1)
        return {"probabilities_of_state": ops.transpose(probabilities, (0, 2, 1))}


class DecoderHead(ModelHead):
    """Observations [B, ...] by name: images with pixels from 0 to 1, and the ``symlog`` of other observations."""

    num_layers = 3

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        hidden, outputs = None, {}
        for name in self.spaces.state.sub_spaces:
            given = NetworkInput.named(name, self.spaces, "main")
            if given.kind == "image":
                outputs[name] = self._image(layers, features, given.shape)
            else:
                hidden = self._hidden(layers, features) if hidden is None else hidden
                outputs[name] = layers.ops.reshape(layers.dense(hidden, math.prod(given.shape)), (-1, *given.shape))
        return outputs

    def _image(self, layers: Layers, features: Any, shape: tuple[int, ...]) -> Any:
        """The decoded image [B, *shape]. Height and width are doubled before each of the four convolutions."""
        size, ops = self.parameters.size, layers.ops
        *fewer, filters = (size.depth * factor for factor in FILTERS)
        height, width = shape[0] // SHRINKING, shape[1] // SHRINKING
        cells = height * width * filters
        blocks = ops.reshape(features[:, : size.deter], (-1, BLOCKS, size.deter // BLOCKS))
        blocks = layers.dense_blocks(blocks, cells // BLOCKS)
        blocks = ops.transpose(ops.reshape(blocks, (-1, BLOCKS, height, width, filters // BLOCKS)), (0, 2, 3, 1, 4))
        stoch = _hidden(layers, self._latent(features)[:, size.deter :], 2 * size.units)
        x = ops.reshape(blocks, (-1, height, width, filters))
        x = x + ops.reshape(layers.dense(stoch, cells), (-1, height, width, filters))
        for count in (*reversed(fewer), shape[-1]):
            x = layers.doubled_convolution(layers.rmsnorm_silu(x), count, 5)
        return ops.sigmoid(x)


class OutcomeHead(ModelHead):
    """``reward_logits`` [B, 255]: logits of the reward of the step that led to the state; ``continue_logits`` [B]:
    logits of the discount, which is 0 if the episode has terminated. The two outputs share no layers.
    """

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        # initial weights of 0, so that an untrained model does not predict rewards
        rewards = self._scaled(layers, self._hidden(layers, features), RETURN_BINS, 0.0)
        continues = layers.dense(self._hidden(layers, features), 1)
        return {"reward_logits": rewards, "continue_logits": layers.ops.squeeze(continues, axis=-1)}


class ReturnHead(ModelHead):
    """``return_logits`` [B, 255]: logits of the return from the state on."""

    num_layers = 3

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"return_logits": self._scaled(layers, self._hidden(layers, features), RETURN_BINS, 0.0)}


class ModelPolicyHead(ModelHead):
    """A policy. Discrete actions: ``probabilities`` and ``log_probabilities`` [B, A]. Continuous actions: ``mean`` [B,
    A] within the bounds, and ``standard_deviation`` [B, A] from 0.1 to 1 times half the range between the bounds.
    """

    public = ("probabilities", "mean", "standard_deviation")
    num_layers = 3

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        ops, hidden, action = layers.ops, self._hidden(layers, features), self.spaces.action
        outputs = self._scaled(layers, hidden, self.num_actions, 0.01)
        if isinstance(action, DiscreteActionSpace):
            probabilities = unimixed(ops, outputs)
            return {"probabilities": probabilities, "log_probabilities": ops.log(probabilities)}
        share = 0.1 + 0.9 * ops.sigmoid(self._scaled(layers, hidden, self.num_actions, 0.01) + 2.0)
        mean = self._in_bounds(layers, ops.tanh(outputs))
        return {"mean": mean, "standard_deviation": share * layers.constant((action.high - action.low) / 2)}


HEADS = DecoderHead, PriorHead, OutcomeHead, ModelPolicyHead, ReturnHead
"""The heads of a world model, in the order of its outputs."""


class ModelEmbedderParameters(InputEmbedderParameters):
    """Settings of the encoder of one observation. :ivar size: the size of the model, set by the agent"""

    constraints = {"size": _SIZE}

    def __init__(self) -> None:
        super().__init__()
        self.size: ModelSize = ModelSize()

    @property
    def path(self) -> str:
        return f"{__name__}:ModelEmbedder"


class StateSpaceMiddlewareParameters(MiddlewareParameters):
    """Settings of the recurrent state-space model.

    :ivar size: the size of the model, set by the agent
    :ivar num_actions: number of discrete actions or of elements of a continuous action, set by the agent
    :ivar sequence_length: number of steps in each sequence from which the model learns
    :ivar burn_in: always 0
    """

    frameworks = (Frameworks.jax, Frameworks.tensorflow, Frameworks.torch)
    constraints = {"size": _SIZE, "num_actions": whole(1), "sequence_length": whole(1), "burn_in": exactly(0)}

    def __init__(self) -> None:
        super().__init__(f"{__name__}:StateSpaceMiddleware")
        self.size: ModelSize = ModelSize()
        self.num_actions, self.sequence_length, self.burn_in = 1, 64, 0


class ModelHeadParameters(HeadParameters):
    """Settings of a head that predicts from the latent state.

    :param head: the class of the head
    :ivar size: the size of the model, set by the agent
    """

    constraints = {"size": _SIZE}

    def __init__(self, head: type[ModelHead]):
        super().__init__(f"{__name__}:{head.__name__}")
        self.size: ModelSize = ModelSize()


def set_size(network: Any, size: ModelSize, action: ActionSpace) -> None:
    """Set the size of all parts of a network. :param action: the action space"""
    encoders, middleware = network.input_embedders_parameters.values(), network.middleware_parameters
    for part in (*encoders, middleware, *network.heads_parameters):
        if not hasattr(part, "size"):
            raise CoachError(f"{type(part).__name__} cannot be a part of a world model: keep the default parts")
        part.size = size
    middleware.num_actions = action.num_actions if isinstance(action, DiscreteActionSpace) else action.num_elements
