"""Middlewares, the part of a network between embedders and heads, written once for all frameworks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rl_coach.architectures import schemes
from rl_coach.architectures.components import component_class, is_torch_module
from rl_coach.architectures.layers import Layers
from rl_coach.architectures.middleware_parameters import MiddlewareParameters
from rl_coach.utils import CoachError

State = dict[str, Any]
_MASKED_SCORE = -1e9


class Middleware:
    """Base class of middlewares. A middleware maps the joined features of all embedders to features for the heads.

    :param parameters: the middleware's ``MiddlewareParameters``
    :ivar recurrent_sizes: size of each part of the recurrent state, by name; empty if there is no recurrent state
    """

    def __init__(self, parameters: Any):
        self.parameters = parameters
        self.recurrent_sizes: dict[str, int] = {}

    def __call__(self, layers: Layers, x: Any, state: State) -> tuple[Any, State]:
        """Compute the features for the heads, and the new recurrent state. The features are [B, F], or a list of [B, F]
        for several streams.

        :param x: [B, F], the output of the embedders
        :param state: the recurrent state, [N, size] for each entry of ``recurrent_sizes``; B is a multiple of N
        """
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


class FCMiddleware(Middleware):
    """A stack of layers. With ``num_streams`` above 1, several parallel stacks; the features are then a list of [B,
    F].
    """

    def __call__(self, layers: Layers, x: Any, state: State) -> tuple[Any, State]:
        if self.parameters.num_streams == 1:
            return self._stack(layers, x), {}
        return [self._stack(layers, x) for _ in range(self.parameters.num_streams)], {}

    def _stack(self, layers: Layers, x: Any) -> Any:
        for layer in schemes.resolve_layers(self.parameters, schemes.MIDDLEWARE):
            x = layers.apply(layer, x)
        return x


class LSTMMiddleware(FCMiddleware):
    """A stack of layers, followed by an LSTM cell."""

    def __init__(self, parameters: Any):
        super().__init__(parameters)
        self.recurrent_sizes = dict.fromkeys(("lstm_h", "lstm_c"), parameters.number_of_lstm_cells)

    def __call__(self, layers: Layers, x: Any, state: State) -> tuple[Any, State]:
        h, c = state["lstm_h"], state["lstm_c"]
        x, h, c = layers.lstm(self._stack(layers, x), h, c, self.parameters.number_of_lstm_cells)
        return x, {"lstm_h": h, "lstm_c": c}


def causal_attention(layers: Layers, queries: Any, keys: Any, values: Any, heads: int) -> Any:
    """Causal attention, [B, T, D]: for each token, a weighted mean of the values of this token and the earlier tokens.
    In each head of size d = D / heads, the weights are softmax(q k / sqrt(d)) (Vaswani et al. 2017, equation 1).

    :param queries: [B, T, D]; ``keys`` and ``values`` have the same shape
    """
    ops, (count, size) = layers.ops, queries.shape[1:]
    size //= heads

    def by_head(x: Any) -> Any:
        # rows and heads are joined to one axis: with four axes and one head, PyTorch's compiler fails
        split = ops.transpose(ops.reshape(x, (-1, count, heads, size)), (0, 2, 1, 3))
        return ops.reshape(split, (-1, count, size))

    scores = ops.matmul(by_head(queries), ops.transpose(by_head(keys), (0, 2, 1))) / math.sqrt(size)
    is_later = layers.constant(np.triu(np.full((count, count), _MASKED_SCORE), 1))
    mixed = ops.reshape(ops.matmul(ops.softmax(scores + is_later), by_head(values)), (-1, heads, count, size))
    return ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), (-1, count, heads * size))


class TransformerMiddleware(Middleware):
    """Blocks of causal self-attention over the tokens of the last steps. Each block normalises its input first (Radford
    et al. 2019, "Language models are unsupervised multitask learners", section 2.3). The last token gives the features.
    """

    def __init__(self, parameters: Any):
        super().__init__(parameters)
        if parameters.width % parameters.heads:
            raise CoachError(
                f"the width {parameters.width} of a transformer is not a multiple of its {parameters.heads} heads: "
                f"change width or heads of middleware_parameters"
            )

    def __call__(self, layers: Layers, x: Any, state: State) -> tuple[Any, State]:
        if len(x.shape) != 3:
            raise CoachError(
                f"{type(self).__name__} needs a sequence of steps, not one vector: set the embedders of its network "
                f"to ContextEmbedderParameters(steps)"
            )
        if x.shape[-1] != self.parameters.width:
            x = layers.dense(x, self.parameters.width)
        x = self._dropped(layers, x)
        for _ in range(self.parameters.blocks):
            x = self._block(layers, x)
        return self.read(layers, layers.layernorm(x)), {}

    def read(self, layers: Layers, x: Any) -> Any:
        """Compute the features [B, width] from the tokens ``x`` [B, T, width] after all blocks."""
        # a slice and no index, because the operations that record ONNX graphs support only slices here
        return layers.ops.squeeze(x[:, x.shape[1] - 1 :], axis=1)

    def _block(self, layers: Layers, x: Any) -> Any:
        parameters, width = self.parameters, self.parameters.width
        queries, keys, values = layers.ops.split(layers.dense(layers.layernorm(x), 3 * width), 3, axis=-1)
        mixed = causal_attention(layers, queries, keys, values, parameters.heads)
        x = x + self._dropped(layers, layers.dense(mixed, width))
        hidden = layers.dense(layers.layernorm(x), 4 * width)
        return x + self._dropped(layers, layers.dense(layers.activate(parameters.activation_function, hidden), width))

    def _dropped(self, layers: Layers, x: Any) -> Any:
        rate = self.parameters.dropout_rate
        return layers.dropout(x, rate) if rate else x


class ModuleMiddleware(Middleware):
    """A middleware that calls a user's PyTorch module; see ``Layers.module``."""

    def __init__(self, parameters: Any, module_class: Any):
        super().__init__(parameters)
        self.module_class = module_class

    def __call__(self, layers: Layers, x: Any, state: State) -> tuple[Any, State]:
        return layers.module(self.module_class, x), {}


MIDDLEWARES: dict[str, type[Middleware]] = {
    "FCMiddleware": FCMiddleware,
    "LSTMMiddleware": LSTMMiddleware,
    "TransformerMiddleware": TransformerMiddleware,
}


def make_middleware(parameters: MiddlewareParameters) -> Middleware:
    """Make the middleware with the name or class ``parameters.path``."""
    found = component_class(parameters.path, MIDDLEWARES, Middleware)
    return ModuleMiddleware(parameters, found) if is_torch_module(found) else found(parameters)
