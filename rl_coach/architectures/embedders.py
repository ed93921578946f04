"""Input embedders, the first part of a network, written once for all frameworks."""

from __future__ import annotations

import math
from typing import Any

from rl_coach.architectures.components import component_class, is_torch_module
from rl_coach.architectures.embedder_parameters import ContextEmbedderParameters, InputEmbedderParameters
from rl_coach.architectures.initializers import Constant
from rl_coach.architectures.layers import Layers
from rl_coach.architectures.network_inputs import NetworkInput
from rl_coach.utils import CoachError


class InputEmbedder:
    """Base class of embedders. It applies the layers of the scheme in its parameters.

    :param parameters: the embedder's ``InputEmbedderParameters``
    :param given: the input to embed
    """

    def __init__(self, parameters: InputEmbedderParameters, given: NetworkInput):
        self.parameters = parameters
        self.given = given

    def __call__(self, layers: Layers, x: Any) -> Any:
        """Rescale the input [B, ...] with the settings of the parameters, then embed it."""
        return self.embed(layers, self.given.normalized(layers.ops, x, self.parameters))

    def embed(self, layers: Layers, x: Any) -> Any:
        """The embedding [B, F], or [B, ...] without ``flatten``. :param x: the rescaled input [B, ...]"""
        if self.given.kind == "vector" and len(x.shape) > 2:
            x = layers.flatten(x)
        for layer in self.given.layers(self.parameters):
            x = layers.apply(layer, x)
        return layers.flatten(x) if self.parameters.flatten and len(x.shape) > 2 else x


class TeamEmbedder(InputEmbedder):
    """Embeds the observations [B, N, F] of a team as B * N rows, so that all N players share its weights."""

    def embed(self, layers: Layers, x: Any) -> Any:
        return super().embed(layers, layers.ops.reshape(x, (-1, x.shape[-1])))


class ContextEmbedder(InputEmbedder):
    """Embeds each of the last K observations with the same layers, and adds learned position embeddings. The result is
    [B, K, F]. The input is a stack of ``ObservationStackingFilter(K)``, with the steps on the last axis or in one long
    vector.
    """

    parameters: ContextEmbedderParameters

    def embed(self, layers: Layers, x: Any) -> Any:
        ops, steps = layers.ops, self.parameters.steps
        shape = self._shape_of_step()
        by_step = ops.transpose(ops.reshape(x, (-1, math.prod(shape), steps)), (0, 2, 1))
        features = super().embed(layers, ops.reshape(by_step, (-1, *shape)))
        size = int(features.shape[-1])
        x = ops.reshape(features, (-1, steps, size))
        return x + layers.trained_row(x, steps * size, Constant(0.0), lambda row: ops.reshape(row, (1, steps, size)))

    def _shape_of_step(self) -> tuple[int, ...]:
        given, steps = self.given, self.parameters.steps
        if given.shape[-1] % steps or (given.kind != "vector" and given.shape[-1] != steps):
            raise CoachError(
                f"a ContextEmbedder of {steps} steps does not fit an input of the shape {given.shape}: add an "
                f"ObservationStackingFilter({steps}) as the last filter of the observation"
            )
        return (given.shape[-1] // steps,) if given.kind == "vector" else (*given.shape[:-1], 1)


class ModuleEmbedder(InputEmbedder):
    """An embedder that calls a user's PyTorch module; see ``Layers.module``."""

    def __init__(self, parameters: InputEmbedderParameters, given: NetworkInput, module_class: Any):
        super().__init__(parameters, given)
        self.module_class = module_class

    def embed(self, layers: Layers, x: Any) -> Any:
        return layers.module(self.module_class, x)


EMBEDDERS: dict[str, type[InputEmbedder]] = {
    "ContextEmbedder": ContextEmbedder,
    "InputEmbedder": InputEmbedder,
    "TeamEmbedder": TeamEmbedder,
}


def make_embedder(parameters: InputEmbedderParameters, given: NetworkInput) -> InputEmbedder:
    """Make the embedder with the name or class ``parameters.path``."""
    found = component_class(parameters.path, EMBEDDERS, InputEmbedder)
    return ModuleEmbedder(parameters, given, found) if is_torch_module(found) else found(parameters, given)
