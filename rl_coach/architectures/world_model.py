"""Parts of a world model with categorical states (Hafner et al. 2023, "Mastering diverse domains through world
models").

A recurrent state-space model is one network: the embedders encode the observation, the middleware is the sequence model
and the posterior, and the heads read ``features``: the deterministic state, the sampled categories and the
probabilities that they were drawn from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Iterator

import numpy as np

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.embedders import InputEmbedder
from rl_coach.architectures.head_parameters import HeadParameters
from rl_coach.architectures.heads import Head
from rl_coach.architectures.initializers import Constant, FanInNormal
from rl_coach.architectures.layers import Layers, SameConv2d
from rl_coach.architectures.middleware_parameters import MiddlewareParameters
from rl_coach.architectures.middlewares import Middleware, State
from rl_coach.architectures.network_inputs import NetworkInput
from rl_coach.core_types import LAST_ACTION
from rl_coach.spaces import ActionMaskSpace, BoxActionSpace, DiscreteActionSpace

VARIABLES = 32
BLOCKS = 8
UNIMIX = 0.01
RETURN_BINS = 255
_CONVOLUTIONS, _KERNEL = (2, 3, 4, 4), 5
_LEAST_DEVIATION, _LARGEST_DEVIATION = 0.1, 1.0


@dataclass(frozen=True)
class ModelSize:
    """A size of a world model; ``SIZES`` has those of the paper.

    :param deter: numbers of the deterministic state
    :param hidden: units of the layers of the sequence model
    :param classes: categories of each of the 32 variables
    :param units: of the layers of encoder, decoder and heads
    :param depth: filters of convolutions, times 2, 3, 4 and 4
    """

    deter: int
    hidden: int
    classes: int
    units: int
    depth: int

    @property
    def stoch(self) -> int:
        """Numbers of the categorical state."""
        return VARIABLES * self.classes

    @property
    def latent(self) -> int:
        """Numbers of the whole state."""
        return self.deter + self.stoch


SIZES = {
    "size1m": ModelSize(512, 64, 4, 64, 4),
    "size12m": ModelSize(2048, 256, 16, 256, 16),
    "size25m": ModelSize(3072, 384, 24, 384, 24),
    "size50m": ModelSize(4096, 512, 32, 512, 32),
    "size100m": ModelSize(6144, 768, 48, 768, 48),
    "size200m": ModelSize(8192, 1024, 64, 1024, 64),
}


def model_size(wanted: str | ModelSize) -> ModelSize:
    """The size of that name, or the size itself."""
    return SIZES[wanted] if isinstance(wanted, str) else wanted


def symlog(ops: Any, x: Any) -> Any:
    """sign(x) ln(|x| + 1), which keeps large numbers small (equation 9)."""
    return ops.sign(x) * ops.log(ops.abs(x) + 1.0)


def unimixed(ops: Any, logits: Any) -> Any:
    """[..., C], the softmax with a share of 1 % of the uniform distribution."""
    return (1.0 - UNIMIX) * ops.softmax(logits) + UNIMIX / logits.shape[-1]


def sampled(ops: Any, probabilities: Any, uniform: Any) -> Any:
    """One-hot categories [B, V, C], drawn by the inverse of the cumulative distribution; the gradient passes straight
    through to the probabilities.

    :param probabilities: [B, V, C]
    :param uniform: [B, V] from 0 to 1; 0 takes the most probable category
    """
    variables, classes = probabilities.shape[1:]
    u = ops.reshape(uniform, (-1, variables, 1))
    is_above = ops.cast(u >= ops.cumsum(probabilities, axis=-1)[:, :, : classes - 1], "float32")
    edge = ops.zeros_like(probabilities[:, :, :1])
    drawn = ops.concatenate([edge + 1.0, is_above], axis=-1) - ops.concatenate([is_above, edge], axis=-1)
    best = ops.cast(probabilities >= ops.max(probabilities, axis=-1, keepdims=True), "float32")
    is_best = ops.cast(edge >= u, "float32")
    chosen = ops.stop_gradient(drawn + is_best * (best - drawn))
    return chosen + (probabilities - ops.stop_gradient(probabilities))


def _hidden(layers: Layers, x: Any, units: int, count: int = 1) -> Any:
    for _ in range(count):
        x = _activated(layers, layers.dense(x, units))
    return x


def _activated(layers: Layers, x: Any) -> Any:
    x = layers.rmsnorm(x)
    return x * layers.ops.sigmoid(x)


class ModelEmbedder(InputEmbedder):
    """Vectors through three layers after ``symlog``; images through four convolutions, each halves the image."""

    def embed(self, layers: Layers, x: Any) -> Any:
        size, ops = self.parameters.size, layers.ops
        if self.given.kind != "image":
            flat = layers.flatten(x) if len(x.shape) > 2 else x
            return _hidden(layers, symlog(ops, flat), size.units, 3)
        for factor in _CONVOLUTIONS:
            x = SameConv2d(size.depth * factor, _KERNEL, 1).applied(layers, x)
            x = _activated(layers, _halved(ops, x))
        return layers.flatten(x)


def _halved(ops: Any, x: Any) -> Any:
    """The largest of each 2 x 2 pixels."""
    height, width, channels = x.shape[1:]
    for count, size in ((height // 2, width * channels), (height * width // 4, channels)):
        pairs = ops.reshape(x, (-1, count, 2 * size))
        x = ops.maximum(pairs[:, :, :size], pairs[:, :, size:])
    return ops.reshape(x, (-1, height // 2, width // 2, channels))


def _doubled(ops: Any, x: Any) -> Any:
    """Each pixel as 2 x 2 pixels."""
    height, width, channels = x.shape[1:]
    x = ops.reshape(ops.stack([x, x], axis=2), (-1, 2 * height, width, channels))
    return ops.reshape(ops.stack([x, x], axis=3), (-1, 2 * height, 2 * width, channels))


class StateSpaceMiddleware(Middleware):
    """A step of the recurrent state-space model with a block-diagonal GRU.

    The state before it is the state of the step before, the action after that step (``last_action``, encoded), and the
    uniform numbers that the categories are drawn with (``noise``; zeros take the most probable ones).
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
        # times 1: an output of a Keras model cannot be its input
        return features, {
            "deter": deter,
            "stoch": stoch,
            **{name: state[name] * 1.0 for name in (LAST_ACTION, "noise")},
        }

    def _sequence_model(self, layers: Layers, state: State) -> Any:
        """[B, deter], the next deterministic state."""
        size, ops, deter = self.parameters.size, layers.ops, state["deter"]
        action = state[LAST_ACTION]
        action = action / ops.stop_gradient(ops.maximum(ops.abs(action), 1.0))
        inputs = ops.concatenate(
            [_hidden(layers, one, size.hidden) for one in (deter, state["stoch"], action)], axis=-1
        )
        by_block = ops.reshape(deter, (-1, BLOCKS, size.deter // BLOCKS))
        x = ops.concatenate([by_block, ops.stack([inputs] * BLOCKS, axis=1)], axis=-1)
        x = layers.dense_blocks(x, size.deter // BLOCKS)
        x = _activated(layers, ops.reshape(x, (-1, size.deter)))
        gates = layers.dense_blocks(ops.reshape(x, (-1, *by_block.shape[1:])), 3 * size.deter // BLOCKS)
        reset, candidate, update = (ops.reshape(gate, (-1, size.deter)) for gate in ops.split(gates, 3, axis=-1))
        candidate = ops.tanh(ops.sigmoid(reset) * candidate)
        update = ops.sigmoid(update - 1.0)
        return update * candidate + (1.0 - update) * deter


class ModelHead(Head):
    """Base of the heads that read a latent state.

    :cvar num_layers: hidden layers
    """

    supported_actions = (DiscreteActionSpace, BoxActionSpace)
    num_layers = 1

    def _latent(self, features: Any) -> Any:
        return features[:, : self.parameters.size.latent]

    def _hidden(self, layers: Layers, features: Any) -> Any:
        return _hidden(layers, self._latent(features), self.parameters.size.units, self.num_layers)

    @staticmethod
    def _scaled(layers: Layers, x: Any, units: int, scale: float) -> Any:
        """An output layer with weights that start small."""
        return layers.dense(x, units, FanInNormal(layers.rng, scale) if scale else Constant(0.0))


class PriorHead(ModelHead):
    """``probabilities_of_state`` [B, 32, C] of the categories, from the deterministic state alone."""

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        size = self.parameters.size
        hidden = _hidden(layers, features[:, : size.deter], size.hidden, 2)
        logits = layers.ops.reshape(layers.dense(hidden, size.stoch), (-1, VARIABLES, size.classes))
        return {"probabilities_of_state": unimixed(layers.ops, logits)}


class DecoderHead(ModelHead):
    """For each observation by name, its ``symlog`` [B, ...], or an image between 0 and 1."""

    num_layers = 3

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        spaces = self.spaces.state.sub_spaces
        given = {
            name: NetworkInput.named(name, self.spaces, "main")
            for name, space in spaces.items()
            if not isinstance(space, ActionMaskSpace)
        }
        vectors = {name: one.shape for name, one in given.items() if one.kind != "image"}
        hidden = self._hidden(layers, features) if vectors else None
        decoded = {
            name: layers.ops.reshape(layers.dense(hidden, math.prod(shape)), (-1, *shape))
            for name, shape in vectors.items()
        }
        return decoded | {
            name: self._image(layers, features, one.shape) for name, one in given.items() if one.kind == "image"
        }

    def _image(self, layers: Layers, features: Any, shape: tuple[int, ...]) -> Any:
        size, ops, factor = self.parameters.size, layers.ops, 2 ** len(_CONVOLUTIONS)
        depths = [size.depth * one for one in _CONVOLUTIONS]
        cells = (-1, shape[0] // factor, shape[1] // factor, depths[-1])
        units = math.prod(cells[1:])
        from_deter = layers.block_dense(features[:, : size.deter], units, BLOCKS)
        from_deter = ops.reshape(from_deter, (-1, BLOCKS, *cells[1:3], depths[-1] // BLOCKS))
        from_deter = ops.reshape(ops.transpose(from_deter, (0, 2, 3, 1, 4)), cells)
        from_stoch = layers.dense(_hidden(layers, self._latent(features)[:, size.deter :], 2 * size.units), units)
        x = _activated(layers, from_deter + ops.reshape(from_stoch, cells))
        for depth in reversed(depths[:-1]):
            x = _activated(layers, SameConv2d(depth, _KERNEL, 1).applied(layers, _doubled(ops, x)))
        return ops.sigmoid(SameConv2d(shape[2], _KERNEL, 1).applied(layers, _doubled(ops, x)))


class OutcomeHead(ModelHead):
    """``reward_logits`` [B, 255] of the reward on the way to the state, and ``continue_logits`` [B]: of the discount, 0
    where the episode has terminated. Each has a layer of its own."""

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        rewards = self._scaled(layers, self._hidden(layers, features), RETURN_BINS, 0.0)
        continues = layers.dense(self._hidden(layers, features), 1)
        return {"reward_logits": rewards, "continue_logits": layers.ops.squeeze(continues, axis=-1)}


class ReturnHead(ModelHead):
    """``return_logits`` [B, 255] of the return from the state on."""

    num_layers = 3

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"return_logits": self._scaled(layers, self._hidden(layers, features), RETURN_BINS, 0.0)}


class ModelPolicyHead(ModelHead):
    """A policy. Discrete: ``probabilities`` and ``log_probabilities`` [B, A]. Continuous: ``mean`` and
    ``standard_deviation`` [B, D], a Gaussian with its mean within the bounds of the actions."""

    public = ("probabilities", "mean", "standard_deviation")
    num_layers = 3

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        ops, hidden = layers.ops, self._hidden(layers, features)
        outputs = self._scaled(layers, hidden, self.num_actions, 0.01)
        if self.is_discrete:
            probabilities = unimixed(ops, outputs)
            return {"probabilities": probabilities, "log_probabilities": ops.log(probabilities)}
        share = ops.sigmoid(self._scaled(layers, hidden, self.num_actions, 0.01) + 2.0)
        deviation = _LEAST_DEVIATION + (_LARGEST_DEVIATION - _LEAST_DEVIATION) * share
        radius = layers.constant((self.spaces.action.high - self.spaces.action.low) / 2)
        return {"mean": self._in_bounds(layers, ops.tanh(outputs)), "standard_deviation": deviation * radius}


class ModelEmbedderParameters(InputEmbedderParameters):
    """Settings of the encoder of one observation. :ivar size: the agent sets it"""

    def __init__(self) -> None:
        super().__init__(input_offset={"image": 0.5, "vector": 0.0, "tensor": 0.0})
        self.size: ModelSize = SIZES["size1m"]

    @property
    def path(self) -> str:
        return f"{__name__}:ModelEmbedder"


class StateSpaceMiddlewareParameters(MiddlewareParameters):
    """Settings of the recurrent state-space model.

    :ivar size: the agent sets it, and ``num_actions``: the size of an encoded action
    :ivar sequence_length: steps of each sequence that the model learns from
    :ivar burn_in: always 0
    """

    def __init__(self) -> None:
        super().__init__(f"{__name__}:StateSpaceMiddleware")
        self.size: ModelSize = SIZES["size1m"]
        self.num_actions = 1
        self.sequence_length, self.burn_in = 64, 0


class ModelHeadParameters(HeadParameters):
    """Settings of a head that reads a latent state.

    :param head: its class
    :ivar size: the agent sets it
    """

    def __init__(self, head: type[ModelHead]):
        super().__init__(f"{__name__}:{head.__name__}")
        self.size: ModelSize = SIZES["size1m"]


def set_size(network: Any, size: ModelSize, action: Any) -> None:
    """Set the size of all parts of a network. :param action: the action space"""
    parts = [*network.input_embedders_parameters.values(), network.middleware_parameters, *network.heads_parameters]
    for part in parts:
        part.size = size
    network.middleware_parameters.num_actions = action.encoded(np.asarray(action.default_action)[None]).shape[1]


def image_names(spaces: Any) -> list[str]:
    """The names of an agent's observations that are images."""
    names = [name for name, space in spaces.state.sub_spaces.items() if not isinstance(space, ActionMaskSpace)]
    return [name for name in names if NetworkInput.named(name, spaces, "main").kind == "image"]


def unmet_by_images(agent: str, spaces: Any) -> Iterator[str]:
    """The reason why a world model cannot encode images of an agent: four times, it halves them to 3 pixels at least.

    :param agent: the agent's name, for messages
    """
    step = 2 ** len(_CONVOLUTIONS)
    for name in image_names(spaces):
        height, width = spaces.state[name].shape[:2]
        if any(side % step or side < 3 * step for side in (height, width)):
            yield (
                f"agent '{agent}' encodes images of 64 x 64, or other multiples of {step} from {3 * step} on, and "
                f"'{name}' has {height} x {width}: add an ObservationRescaleToSizeFilter"
            )
