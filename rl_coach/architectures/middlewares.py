"""Middlewares, the part of a network between embedders and heads, written once for all frameworks."""

from __future__ import annotations

from typing import Any

from rl_coach.architectures import schemes
from rl_coach.architectures.components import component_class, is_torch_module
from rl_coach.architectures.layers import Layers
from rl_coach.architectures.middleware_parameters import MiddlewareParameters

State = dict[str, Any]


class Middleware:
    """Base class of middlewares. A middleware maps the joined features of all embedders to features for the heads.

    :param parameters: its ``MiddlewareParameters``
    :ivar recurrent_sizes: size of each part of the state that the network carries from step to step; empty for a
        middleware without memory
    """

    def __init__(self, parameters: Any):
        self.parameters = parameters
        self.recurrent_sizes: dict[str, int] = {}

    def __call__(self, layers: Layers, x: Any, state: State) -> tuple[Any, State]:
        """The features for the heads, [B, F] or a list of [B, F] for several streams, and the new state.

        :param x: [B, F], the output of the embedders
        :param state: [N, size] for each of ``recurrent_sizes``; B is a multiple of N
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what it computes")


class FCMiddleware(Middleware):
    """A stack of layers, or several parallel stacks: with ``num_streams`` above 1 the features are a list of [B, F]."""

    def __call__(self, layers: Layers, x: Any, state: State) -> tuple[Any, State]:
        if self.parameters.num_streams == 1:
            return self._stack(layers, x), {}
        return [self._stack(layers, x) for _ in range(self.parameters.num_streams)], {}

    def _stack(self, layers: Layers, x: Any) -> Any:
        for layer in schemes.resolve_layers(self.parameters, schemes.MIDDLEWARE):
            x = layers.apply(layer, x)
        return x


class LSTMMiddleware(FCMiddleware):
    """A stack of layers with an LSTM cell after it."""

    def __init__(self, parameters: Any):
        super().__init__(parameters)
        self.recurrent_sizes = dict.fromkeys(("lstm_h", "lstm_c"), parameters.number_of_lstm_cells)

    def __call__(self, layers: Layers, x: Any, state: State) -> tuple[Any, State]:
        h, c = state["lstm_h"], state["lstm_c"]
        x, h, c = layers.lstm(self._stack(layers, x), h, c, self.parameters.number_of_lstm_cells)
        return x, {"lstm_h": h, "lstm_c": c}


class ModuleMiddleware(Middleware):
    """A middleware that is a module of PyTorch; see ``Layers.module``."""

    def __init__(self, parameters: Any, module_class: Any):
        super().__init__(parameters)
        self.module_class = module_class

    def __call__(self, layers: Layers, x: Any, state: State) -> tuple[Any, State]:
        return layers.module(self.module_class, x), {}


MIDDLEWARES: dict[str, type[Middleware]] = {"FCMiddleware": FCMiddleware, "LSTMMiddleware": LSTMMiddleware}


def make_middleware(parameters: MiddlewareParameters) -> Middleware:
    """The middleware that ``parameters.path`` names."""
    found = component_class(parameters.path, MIDDLEWARES, Middleware)
    return ModuleMiddleware(parameters, found) if is_torch_module(found) else found(parameters)
