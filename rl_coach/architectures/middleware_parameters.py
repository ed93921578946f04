"""Settings of middlewares, the part of a network between embedders and heads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from rl_coach.architectures.layers import LAYERS
from rl_coach.base_parameters import Frameworks, MiddlewareScheme, NetworkComponentParameters
from rl_coach.utilities.requirements import TEXT, exactly, flags, member, number, optional, whole


@dataclass(eq=False, repr=False)
class MiddlewareParameters(NetworkComponentParameters):
    """Settings that all middlewares have.

    :param parameterized_class_name: the name of the middleware, or a subclass of ``middlewares.Middleware``
    :param activation_function: the activation after each layer of the scheme
    :param scheme: a ``MiddlewareScheme`` or a list of layers

    :cvar frameworks: the frameworks that can train the middleware; None for all
    :cvar sequence_length: for recurrent middlewares; see ``LSTMMiddlewareParameters``, also for ``burn_in``
    """

    frameworks: ClassVar[tuple[Frameworks, ...] | None] = None
    sequence_length = 16
    burn_in = 8
    constraints = {
        **flags("batchnorm", "is_training"),
        "activation_function": optional(TEXT),
        "scheme": member(MiddlewareScheme) | LAYERS,
        "dropout_rate": number(0, below=1),
        "name": TEXT,
    }

    parameterized_class_name: str
    activation_function: str = "relu"
    scheme: Any = MiddlewareScheme.Medium
    batchnorm: bool = False
    dropout_rate: float = 0.0
    name: str = "middleware"
    dense_layer: Any = None
    is_training: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.dense_layer)

    @property
    def path(self) -> str:
        """The name of the middleware, or ``'module:Class'`` for a middleware that you wrote."""
        return self.parameterized_class_name


@dataclass(eq=False, repr=False)
class FCMiddlewareParameters(MiddlewareParameters):
    """Settings of a stack of fully connected layers.

    :param num_streams: number of parallel stacks with separate weights
    """

    constraints = {"num_streams": whole(1)}

    # a factory: with a plain default, a field without an argument would not be an attribute of the object,
    # and only attributes of the object can be set and shown
    parameterized_class_name: str = field(default_factory=lambda: "FCMiddleware", init=False)
    name: str = "middleware_fc_embedder"
    num_streams: int = 1


class LSTMMiddlewareParameters(MiddlewareParameters):
    """Settings of a stack of fully connected layers, followed by an LSTM cell.

    :ivar sequence_length: number of steps in each sequence from which PPO and value agents learn. With 1, the network
        cannot learn to remember. Actor-critic and policy gradients ignore this setting: they learn from segments
    :ivar burn_in: number of steps before each sequence. Value agents do not learn from these steps: they only use them
        to update the stored recurrent state (Kapturowski et al. 2019). 0 uses the stored state unchanged
    """

    constraints = {"number_of_lstm_cells": whole(1), "sequence_length": whole(1), "burn_in": whole(0)}

    def __init__(
        self, activation_function: str = "relu", number_of_lstm_cells: int = 256, scheme: Any = MiddlewareScheme.Medium,
        batchnorm: bool = False, dropout_rate: float = 0.0, name: str = "middleware_lstm_embedder",
        dense_layer: Any = None, is_training: bool = False,
    ):  # fmt: skip
        super().__init__(
            "LSTMMiddleware", activation_function, scheme, batchnorm, dropout_rate, name, dense_layer, is_training
        )
        self.number_of_lstm_cells = number_of_lstm_cells
        self.sequence_length = type(self).sequence_length
        self.burn_in = type(self).burn_in


class TransformerMiddlewareParameters(MiddlewareParameters):
    """Settings of a causal transformer over the last steps. The network needs ``ContextEmbedderParameters``, which
    embed each step as a token.

    :param width: the size of each token
    :param heads: number of attention heads; ``width`` must be a multiple of it
    :param blocks: number of blocks; a block has attention and two layers
    :param dropout_rate: the share of elements that are set to zero in training, after the embedding and in each block;
        0 for no dropout
    :param activation_function: the activation in the layers of a block, which have ``4 * width`` units
    """

    frameworks = (Frameworks.jax, Frameworks.tensorflow, Frameworks.torch)
    constraints = {
        "width": whole(1),
        "heads": whole(1),
        "blocks": whole(1),
        "scheme": exactly(MiddlewareScheme.Empty),
        "batchnorm": exactly(False),
    }

    def __init__(
        self, width: int = 64, heads: int = 1, blocks: int = 1, dropout_rate: float = 0.0,
        activation_function: str = "relu", name: str = "middleware_transformer",
    ):  # fmt: skip
        super().__init__(
            "TransformerMiddleware", activation_function, MiddlewareScheme.Empty, False, dropout_rate, name
        )
        self.width, self.heads, self.blocks = width, heads, blocks
