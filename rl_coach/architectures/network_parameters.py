"""Parameters of a common kind of network."""

from __future__ import annotations

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import HeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import NetworkParameters


class FullyConnectedParameters(NetworkParameters):
    """Settings of a network with one embedder for the observation and a fully connected middleware.

    :param heads: settings of the network's heads
    :param activation_function: the activation of the embedder and the middleware
    """

    def __init__(self, *heads: HeadParameters, activation_function: str = "relu") -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(activation_function)}
        self.middleware_parameters = FCMiddlewareParameters(activation_function)
        self.heads_parameters = list(heads)
