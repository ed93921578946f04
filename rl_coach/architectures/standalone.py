"""A network, or a part of a network, that is built and called without an agent."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.framework import load_framework
from rl_coach.architectures.head_parameters import HeadParameters
from rl_coach.architectures.heads import Head
from rl_coach.architectures.layers import Layer, Layers
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters, MiddlewareParameters
from rl_coach.base_parameters import Frameworks, NetworkParameters
from rl_coach.spaces import SpacesDefinition


class Features(Head):
    """A head that outputs the features, to test an embedder or a middleware without other heads."""

    public = ("features",)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"features": features}


class FeaturesParameters(HeadParameters):
    """Settings of ``Features``."""

    def __init__(self) -> None:
        super().__init__("Features")

    @property
    def path(self) -> Any:
        return Features


PARTS_OF_NETWORKS = (Layer, InputEmbedderParameters, MiddlewareParameters, HeadParameters, NetworkParameters)


def network_of(part: Any) -> NetworkParameters:
    """Settings of a network with the given part. The other parts return their input unchanged."""
    if isinstance(part, NetworkParameters):
        return part
    network = NetworkParameters()
    embedder = InputEmbedderParameters("none", [part] if isinstance(part, Layer) else [])
    network.input_embedders_parameters = {
        "observation": part if isinstance(part, InputEmbedderParameters) else embedder
    }
    network.middleware_parameters = (
        part if isinstance(part, MiddlewareParameters) else FCMiddlewareParameters("none", [])
    )
    network.heads_parameters = [part if isinstance(part, HeadParameters) else FeaturesParameters()]
    return network


class BuiltNetwork:
    """A network, or a part of a network, with weights.

    :param part: a layer, or the parameters of a network, embedder, middleware or head
    :param spaces: the spaces of the input and the actions
    :param framework: the name of the framework
    :param seed: the seed of the initial weights
    """

    def __init__(self, part: Any, spaces: SpacesDefinition, framework: str, seed: int):
        parameters, chosen = network_of(part), load_framework(Frameworks[framework])
        function = chosen.make_function(parameters, spaces, "tested", np.random.default_rng(seed))
        self.state = chosen.hold(function, parameters.create_target_network)
        self._is_whole = isinstance(part, NetworkParameters)

    def outputs(self, observations: Any, training: bool = False) -> Any:
        """Compute the outputs of the part.

        :param observations: [B, ...], or a dict of such arrays by input
        :param training: True to use the batch's statistics in batch normalisation, and dropout
        :return: an array [B, ...] for a layer, an embedder or a middleware; a dict of arrays for a head; a list of
            dicts for a network
        """
        inputs = observations if isinstance(observations, Mapping) else {"observation": observations}
        arrays = {name: np.asarray(array, np.float32) for name, array in inputs.items()}
        state = self.state
        heads, _, _ = state.function(state.arrays("weights"), state.arrays("buffers"), arrays, training=training)
        found = [{name: as_numpy(output) for name, output in head.items()} for head in heads]
        return found if self._is_whole else found[0].get("features", found[0])

    def get_weights(self) -> list[np.ndarray]:
        """The weights, in the order of the network."""
        return [np.array(array) for array in self.state.arrays("weights")]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Replace the weights. :raises ValueError: if the number of arrays or a shape does not fit"""
        self.state.set_arrays("weights", [np.asarray(array, np.float32) for array in weights])


def as_numpy(array: Any) -> np.ndarray:
    """Convert an array of any framework to a NumPy array."""
    return array.asnumpy() if hasattr(array, "asnumpy") else np.asarray(array)
