"""Settings of input embedders, the first part of a network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rl_coach.architectures.layers import LAYERS
from rl_coach.base_parameters import EmbedderScheme, NetworkComponentParameters
from rl_coach.utilities.requirements import TEXT, dictionary_of, flags, limit, member, number, optional, pair, whole

INPUT_RESCALING = {"image": 255.0, "vector": 1.0, "tensor": 1.0}
INPUT_OFFSET = {"image": 0.0, "vector": 0.0, "tensor": 0.0}


@dataclass(eq=False, repr=False)
class InputEmbedderParameters(NetworkComponentParameters):
    """Settings of an embedder, which maps one input to a vector of features.

    :param activation_function: the activation after each layer of the scheme
    :param scheme: an ``EmbedderScheme`` or a list of layers
    :param batchnorm: True for batch normalisation after each layer
    :param dropout_rate: rate of the dropout after each layer; 0 for no dropout
    :param input_rescaling: divisor of the input, as a dict by kind of input; by default, images are divided by 255
    :param input_offset: offset that is subtracted after the division, as a dict by kind of input
    :param input_clipping: ``(low, high)`` limits that are applied last; None for no limits
    :param dense_layer: the class of fully connected layers; None for ``Dense``
    :param flatten: True to flatten the features to one vector for each row
    """

    constraints = {
        **flags("batchnorm", "is_training", "flatten"),
        "activation_function": optional(TEXT),
        "scheme": member(EmbedderScheme) | LAYERS,
        "dropout_rate": number(0, below=1),
        "name": TEXT,
        "input_rescaling": dictionary_of(number(above=0), "kind of input"),
        "input_offset": dictionary_of(number(), "kind of input"),
        "input_clipping": optional(pair(limit(-math.inf), limit(-math.inf), "(-5, 5)")),
    }

    activation_function: str = "relu"
    scheme: Any = EmbedderScheme.Medium
    batchnorm: bool = False
    dropout_rate: float = 0.0
    name: str = "embedder"
    input_rescaling: Any = None
    input_offset: Any = None
    input_clipping: tuple[float, float] | None = None
    dense_layer: Any = None
    is_training: bool = False
    flatten: bool = True

    def __post_init__(self) -> None:
        # the base class is not a dataclass, so nothing else calls its constructor
        super().__init__(self.dense_layer)
        self.input_rescaling = dict(INPUT_RESCALING) if self.input_rescaling is None else self.input_rescaling
        self.input_offset = dict(INPUT_OFFSET) if self.input_offset is None else self.input_offset

    @property
    def path(self) -> str:
        """The name of the embedder; ``'module:Class'`` in a subclass that names another embedder."""
        return "InputEmbedder"


class TeamEmbedderParameters(InputEmbedderParameters):
    """Settings of an embedder for the observations of a team. All players share the embedder's weights."""

    @property
    def path(self) -> str:
        return "TeamEmbedder"


@dataclass(eq=False, repr=False)
class ContextEmbedderParameters(InputEmbedderParameters):
    """Settings of an embedder for a stack of the last observations, followed by a transformer
    (``TransformerMiddlewareParameters``).

    :param steps: number of stacked observations, the same as in ``ObservationStackingFilter(steps)``
    """

    constraints = {"steps": whole(1)}

    steps: int = 4

    @property
    def path(self) -> str:
        return "ContextEmbedder"
