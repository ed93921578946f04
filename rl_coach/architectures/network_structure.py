"""The parts of a network and how they are joined, the same on every framework."""

from __future__ import annotations

import operator
from functools import partial, reduce
from typing import Any, Callable

from rl_coach.architectures.embedders import make_embedder
from rl_coach.architectures.heads import make_head
from rl_coach.architectures.initializers import initial_weights
from rl_coach.architectures.layers import Layers, LayerSettings
from rl_coach.architectures.middlewares import make_middleware
from rl_coach.architectures.network_inputs import NetworkInput, embedded_names, merged
from rl_coach.base_parameters import NetworkComponentParameters, NetworkParameters
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import CoachError, force_list

EMBEDDING = "embedding"
Outputs = list[dict[str, Any]]
MakeLayers = Callable[[LayerSettings], Layers]


class NetworkStructure:
    """Embedders, middleware and heads of one network.

    :param parameters: the network's parameters
    :param spaces: the spaces of its agent
    :param name: its name, for messages
    :ivar inputs: the inputs, by name; a recurrent network's state comes besides
    :ivar recurrent_sizes: size of each part of the state that the network carries from step to step
    :raises CoachError: the network has no heads or inputs, or a part of it does not exist or fit
    """

    def __init__(self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str):
        self.parameters = parameters
        heads = [head for head in force_list(parameters.heads_parameters) for _ in range(head.num_output_head_copies)]
        if not heads:
            raise CoachError(f"network '{name}' has no heads: set heads_parameters")
        self._heads = [make_head(head, spaces, parameters.softmax_temperature) for head in heads]
        embedded = embedded_names(parameters, name)
        names = dict.fromkeys([*embedded, *(wanted for head in self._heads for wanted in head.inputs)])
        self.inputs = {one: NetworkInput.named(one, spaces, name) for one in names}
        self._embedders = {
            one: make_embedder(parameters.input_embedders_parameters[one], self.inputs[one]) for one in embedded
        }
        self._middleware = make_middleware(parameters.middleware_parameters)
        if getattr(parameters.middleware_parameters, "num_streams", 1) > 1:
            for head in self._heads:
                head.require_streams(name)
        self.recurrent_sizes = self._middleware.recurrent_sizes
        self._has_several_bodies = parameters.use_separate_networks_per_head and len(heads) > 1
        if self.recurrent_sizes and self._has_several_bodies:
            raise CoachError(
                f"network '{name}': separate networks per head cannot each have an LSTM: "
                f"set use_separate_networks_per_head to False"
            )

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of one row of each input."""
        return {name: given.shape for name, given in self.inputs.items()}

    def outputs(self, make_layers: MakeLayers, inputs: dict[str, Any]) -> tuple[Outputs, dict[str, Any]]:
        """A dict of outputs for each head, and the new recurrent state.

        :param make_layers: makes the layers of a part with given settings
        :param inputs: [B, ...] by name, all of ``inputs`` and of ``recurrent_sizes``
        """
        outputs: Outputs = []
        features: Any = None
        state: dict[str, Any] = {}
        for head in self._heads:
            is_new = features is None or self._has_several_bodies
            if is_new:
                features, state = self._features(make_layers, inputs)
            layers = make_layers(self._settings(head.parameters))
            scale = partial(layers.scale_gradient, factor=head.parameters.rescale_gradient_from_head_by_factor)
            has_streams = isinstance(features, list)
            outputs.append(head(layers, [scale(one) for one in features] if has_streams else scale(features), inputs))
            if is_new and self.parameters.output_embedding:
                outputs[-1] = {**outputs[-1], EMBEDDING: layers.ops.stack(features, 1) if has_streams else features}
        return outputs, state

    def public_outputs(self, outputs: Outputs) -> list[tuple[int, str]]:
        """The outputs that ``predict`` returns, as numbers of heads and names of their outputs."""
        return [
            (index, name)
            for index, head in enumerate(self._heads)
            for name in dict.fromkeys((*head.public, EMBEDDING))
            if name in outputs[index]
        ]

    def _features(self, make_layers: MakeLayers, inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        embeddings = [
            embedder(make_layers(self._settings(embedder.parameters)), inputs[name])
            for name, embedder in self._embedders.items()
        ]
        middleware = self._middleware
        layers = make_layers(self._settings(middleware.parameters))
        concatenate, add = partial(layers.ops.concatenate, axis=-1), partial(reduce, operator.add)
        state = {name: inputs[name] for name in self.recurrent_sizes}
        return middleware(layers, merged(self.parameters, embeddings, concatenate, add), state)

    def _settings(self, part: NetworkComponentParameters) -> LayerSettings:
        own = part.initial_weights
        wanted = self.parameters.initial_weights if own is None else own
        return LayerSettings(part.dense_layer, initial_weights(wanted), replaces_kernels=own is not None)
