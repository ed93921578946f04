"""Networks made of embedders, a middleware and heads. The structure is the same on all frameworks."""

from __future__ import annotations

import operator
from functools import partial, reduce
from typing import Any, Callable

import numpy as np

from rl_coach.architectures.embedders import make_embedder
from rl_coach.architectures.heads import make_head
from rl_coach.architectures.initializers import initial_weights
from rl_coach.architectures.layers import Layers, LayerSettings
from rl_coach.architectures.middlewares import make_middleware
from rl_coach.architectures.network_function import NetworkFunction, Outputs
from rl_coach.architectures.network_inputs import NetworkInput, embedded_names
from rl_coach.base_parameters import EmbeddingMergerType, NetworkComponentParameters, NetworkParameters
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import CoachError, force_list

EMBEDDING = "embedding"
MakeLayers = Callable[[LayerSettings], Layers]


class StructuredNetwork(NetworkFunction):
    """Base class of networks. It makes embedders, middleware and heads from the parameters, and connects them.

    :param parameters: the network's parameters
    :param spaces: the spaces of the agent
    :param name: the network's name, for messages
    :param rng: the source of initial weights
    :raises CoachError: if the network has no heads or no inputs, or a part does not exist or does not fit
    """

    def __init__(self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator):
        super().__init__(parameters, name)
        self.spaces = spaces
        self.rng = rng
        heads = [head for head in force_list(parameters.heads_parameters) for _ in range(head.num_output_head_copies)]
        if not heads:
            raise CoachError(f"network '{name}' has no heads: set heads_parameters")
        self._heads = [make_head(head, spaces, parameters.softmax_temperature) for head in heads]
        embedded = embedded_names(parameters, name)
        # the order of this dict decides which weights belong to which input
        names = dict.fromkeys([*embedded, *(wanted for head in self._heads for wanted in head.inputs)])
        inputs = {one: NetworkInput.named(one, spaces, name) for one in names}
        self.input_shapes = {one: given.shape for one, given in inputs.items()}
        self._embedders = {
            one: make_embedder(parameters.input_embedders_parameters[one], inputs[one]) for one in embedded
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

    def outputs(
        self, make_layers: MakeLayers, inputs: dict[str, Any], passed: Callable[[Any], None] = lambda _: None
    ) -> tuple[Outputs, dict[str, Any]]:
        """Compute a dict of outputs for each head, and the new recurrent state.

        :param make_layers: makes the layers of a part from the part's settings
        :param inputs: [B, ...] by name, for all names in ``input_shapes`` and ``recurrent_sizes``
        :param passed: called with the embedding, then with the features, then with each head's outputs
        """
        outputs: Outputs = []
        features: Any = None
        state: dict[str, Any] = {}
        for head in self._heads:
            is_new = features is None or self._has_several_bodies
            if is_new:
                embedding = self._embedding(make_layers, inputs)
                passed(embedding)
                features, state = self._features(make_layers, embedding, inputs)
                passed(features)
            outputs.append(self._outputs_of(head, make_layers, features, inputs))
            passed(outputs[-1])
            if is_new and self.parameters.output_embedding:
                has_streams = isinstance(features, list)
                ops = make_layers(self._settings(head.parameters)).ops
                outputs[-1] = {**outputs[-1], EMBEDDING: ops.stack(features, 1) if has_streams else features}
        return outputs, state

    def _outputs_of(self, head: Any, make_layers: MakeLayers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        layers = make_layers(self._settings(head.parameters))
        factor = head.parameters.rescale_gradient_from_head_by_factor
        if isinstance(factor, np.generic):  # a product of a NumPy number and a symbolic tensor fails
            factor = factor.item()
        scale = partial(layers.scale_gradient, factor=factor)
        has_streams = isinstance(features, list)
        return head(layers, [scale(one) for one in features] if has_streams else scale(features), inputs)

    def _require_parts(self) -> None:
        """Raise a ``CoachError`` if the network cannot be called in parts."""
        if self._buffers or self._has_several_bodies or any(head.inputs for head in self._heads):
            raise CoachError(
                f"network '{self.name}' cannot be called in parts: use one network for all heads, heads that read only "
                f"its features, and no batch normalisation, dropout or NoisyNet layers"
            )

    def _given(self, ops: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        """The inputs and the recurrent state as floats. A missing part of the recurrent state becomes zeros [1,
        size].
        """
        given = {name: ops.cast(inputs[name], "float32") for name in self.input_shapes}
        sizes = self.recurrent_sizes.items()
        return given | {
            name: ops.cast(inputs[name] if name in inputs else ops.zeros((1, size)), "float32") for name, size in sizes
        }

    def _name_outputs(self, outputs: Outputs) -> None:
        """Store the names of the heads' outputs. :param outputs: the outputs of any call, a dict for each head"""
        self.head_outputs = [tuple(head) for head in outputs]
        self.public_outputs = [
            (index, name)
            for index, head in enumerate(self._heads)
            # without duplicates: a DNDQHead outputs the embedding already
            for name in dict.fromkeys((*head.public, EMBEDDING))
            if name in outputs[index]
        ]

    def _embedding(self, make_layers: MakeLayers, inputs: dict[str, Any]) -> Any:
        embeddings = [
            embedder(make_layers(self._settings(embedder.parameters)), inputs[name])
            for name, embedder in self._embedders.items()
        ]
        if len(embeddings) > 1 and self.parameters.embedding_merger_type == EmbeddingMergerType.Concat:
            ops = make_layers(self._settings(self._middleware.parameters)).ops
            return ops.concatenate(embeddings, axis=-1)
        return reduce(operator.add, embeddings)

    def _features(self, make_layers: MakeLayers, embedding: Any, inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        middleware = self._middleware
        layers = make_layers(self._settings(middleware.parameters))
        return middleware(layers, embedding, {name: inputs[name] for name in self.recurrent_sizes})

    def _settings(self, part: NetworkComponentParameters) -> LayerSettings:
        own = part.initial_weights
        wanted = self.parameters.initial_weights if own is None else own
        return LayerSettings(part.dense_layer, initial_weights(wanted), replaces_kernels=own is not None)
