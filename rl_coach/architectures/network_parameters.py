"""Parameters of networks of a common form."""

from __future__ import annotations

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import HeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import NetworkParameters


class FullyConnectedParameters(NetworkParameters):
    """A network that embeds the observation and has a fully connected middleware.

    :param heads: its heads
    :param activation_function: the activation of embedder and middleware
    """

    def __init__(self, *heads: HeadParameters, activation_function: str = "relu") -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(activation_function)}
        self.middleware_parameters = FCMiddlewareParameters(activation_function)
        self.heads_parameters = list(heads)
