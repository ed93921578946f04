"""Input embedders, the first part of a network, written once for all frameworks."""

from __future__ import annotations

from typing import Any

from rl_coach.architectures.components import component_class, is_torch_module
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Layers
from rl_coach.architectures.network_inputs import NetworkInput


class InputEmbedder:
    """Base class of embedders. It stacks the layers of its scheme.

    :param parameters: its ``InputEmbedderParameters``
    :param given: the input to embed
    """

    def __init__(self, parameters: InputEmbedderParameters, given: NetworkInput):
        self.parameters = parameters
        self.given = given

    def __call__(self, layers: Layers, x: Any) -> Any:
        """The input [B, ...] rescaled as its parameters say, then embedded."""
        return self.embed(layers, self.given.normalized(layers.ops, x, self.parameters))

    def embed(self, layers: Layers, x: Any) -> Any:
        """[B, F] (or [B, ...] where ``flatten`` is off), the embedding. :param x: [B, ...], rescaled"""
        if self.given.kind == "vector" and len(x.shape) > 2:
            x = layers.flatten(x)
        for layer in self.given.layers(self.parameters):
            x = layers.apply(layer, x)
        return layers.flatten(x) if self.parameters.flatten and len(x.shape) > 2 else x


class TeamEmbedder(InputEmbedder):
    """Embeds the observations [B, N, F] of a team as B * N rows, so that all N players share its weights."""

    def embed(self, layers: Layers, x: Any) -> Any:
        return super().embed(layers, layers.ops.reshape(x, (-1, x.shape[-1])))


class ModuleEmbedder(InputEmbedder):
    """An embedder that is a module of PyTorch; see ``Layers.module``."""

    def __init__(self, parameters: InputEmbedderParameters, given: NetworkInput, module_class: Any):
        super().__init__(parameters, given)
        self.module_class = module_class

    def embed(self, layers: Layers, x: Any) -> Any:
        return layers.module(self.module_class, x)


EMBEDDERS: dict[str, type[InputEmbedder]] = {"InputEmbedder": InputEmbedder, "TeamEmbedder": TeamEmbedder}


def make_embedder(parameters: InputEmbedderParameters, given: NetworkInput) -> InputEmbedder:
    """The embedder that ``parameters.path`` names."""
    found = component_class(parameters.path, EMBEDDERS, InputEmbedder)
    return ModuleEmbedder(parameters, given, found) if is_torch_module(found) else found(parameters, given)
