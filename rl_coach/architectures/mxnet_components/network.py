"""A network as a pure function of its weights, over MXNet's array operations or those that record an ONNX graph."""

from __future__ import annotations

import operator
from functools import partial, reduce
from typing import Any, Sequence

import numpy as np

from rl_coach.architectures import schemes
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.architectures.mxnet_components import ops
from rl_coach.architectures.mxnet_components.compatible_mxnet import numpy_semantics
from rl_coach.architectures.mxnet_components.heads import make_head
from rl_coach.architectures.mxnet_components.layers import DrawingPass, Layers, Pass
from rl_coach.architectures.network_inputs import NetworkInput, embedded_names, merged
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import CoachError, force_list

Outputs = list[dict[str, Any]]
RECURRENT_INPUTS = ("lstm_h", "lstm_c")


class MXNetNetwork:
    """Embedders, middleware and heads.

    ``weights`` are trained; ``buffers`` are not (batch normalisation's statistics, noise, the state of random
    generators, which stays on the host) and come back from a call with their new values.

    :param parameters: the network's parameters
    :param spaces: the spaces of its agent
    :param name: its name, for messages
    :param rng: where initial weights come from
    """

    def __init__(self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator):
        self.parameters = parameters
        self.spaces = spaces
        self.name = name
        self.rng = rng
        self._inputs: dict[str, NetworkInput] = {}
        middleware = parameters.middleware_parameters
        is_recurrent = isinstance(middleware, LSTMMiddlewareParameters)
        self.recurrent_cells = middleware.number_of_lstm_cells if is_recurrent else 0
        self._head_parameters = [
            head for head in force_list(parameters.heads_parameters) for _ in range(head.num_output_head_copies)
        ]
        if not self._head_parameters:
            raise CoachError(f"network '{name}' has no heads: set heads_parameters")
        if is_recurrent and parameters.use_separate_networks_per_head and len(self._head_parameters) > 1:
            raise CoachError(f"network '{name}': separate networks per head cannot each have an LSTM")
        self._heads = [make_head(head, spaces, parameters.softmax_temperature) for head in self._head_parameters]
        drawing, outputs = self._draw()
        self.input_shapes = {name: given.shape for name, given in self._inputs.items()}
        self._weights, self._buffers, self.noise_buffers = drawing.drawn, drawing.initial_buffers, drawing.noise
        self.public_outputs = [
            (index, name) for index, head in enumerate(self._heads) for name in head.public if name in outputs[index]
        ]
        # only kernels are decayed, as is usual; biases and scales are vectors
        self.is_decayed = [weight.ndim > 1 for weight in self._weights]

    def initial_weights(self) -> list[np.ndarray]:
        """The trained weights as they were drawn."""
        return [weight.copy() for weight in self._weights]

    def initial_buffers(self) -> list[np.ndarray]:
        """The untrained state as it begins."""
        return [buffer.copy() for buffer in self._buffers]

    def with_random_state(self, buffers: list, source: list) -> list:
        """The buffers with the state of random generators taken from other ones."""
        return [other if own.dtype == np.uint32 else own for own, other in zip(buffers, source)]

    @numpy_semantics
    def __call__(
        self,
        weights: Sequence,
        buffers: Sequence,
        inputs: dict[str, Any],
        training: bool,
        single_step: bool = False,
        draws_noise: bool = False,
    ) -> tuple[Outputs, dict[str, Any], list]:
        """The outputs for given weights.

        :param inputs: [B, ...] by name, of any dtype; a recurrent network's state, ``lstm_h`` and ``lstm_c``, starts at
            zero if it is not among them
        :param training: batch normalisation over the batch, and dropout
        :param single_step: each row is a sequence of its own with one step
        :param draws_noise: NoisyNet layers draw new noise; otherwise they use that of the buffers
        :return: a dict of outputs for each head, the new recurrent state, the new buffers
        """
        values = [ops.convert_to_tensor(weight) for weight in weights]
        # what is no float serves random generators, on the host
        state = [buffer if buffer.dtype == np.uint32 else ops.convert_to_tensor(buffer) for buffer in buffers]
        run = Pass(ops, self.rng, values, state, training, single_step, draws_noise)
        given = {name: ops.cast(inputs[name], "float32") for name in self.input_shapes}
        heads, recurrent = self.outputs(run, given | self._recurrent(inputs))
        return heads, recurrent, run.buffers

    def outputs(self, run: Pass, inputs: dict[str, Any]) -> tuple[Outputs, dict[str, Any]]:
        """What one pass computes, over the array operations that it brings.

        :param inputs: all of ``input_shapes`` and, for a recurrent network, its state
        :return: a dict of outputs for each head, and the new recurrent state
        """
        recurrent: dict[str, Any] = {}
        features, outputs = None, []
        for parameters, head in zip(self._head_parameters, self._heads):
            if features is None or self.parameters.use_separate_networks_per_head:
                features = self._features(run, inputs, recurrent)
            layers = Layers(run, parameters.dense_layer)
            scaled = layers.scale_gradient(features, parameters.rescale_gradient_from_head_by_factor)
            outputs.append(head(layers, scaled, inputs))
        return outputs, recurrent

    def summary(self) -> str:
        """The weights' shapes and the number of parameters, as text."""
        lines = [f"network '{self.name}' on MXNet"]
        lines += [f"  weight_{i:<4} {'x'.join(map(str, weight.shape))}" for i, weight in enumerate(self._weights)]
        return "\n".join([*lines, f"  {sum(weight.size for weight in self._weights):,} parameters"])

    @numpy_semantics
    def _draw(self) -> tuple[DrawingPass, Outputs]:
        """The first pass, over one row of zeros."""
        embedded = embedded_names(self.parameters, self.name)
        critics = any(parameters.parameterized_class_name == "SACQHead" for parameters in self._head_parameters)
        for name in dict.fromkeys([*embedded, *(["action"] if critics else [])]):
            self._inputs[name] = NetworkInput.named(name, self.spaces, self.name)
        zeros = {name: ops.zeros((1, *given.shape)) for name, given in self._inputs.items()}
        run = DrawingPass(ops, self.rng)
        outputs, _ = self.outputs(run, zeros | self._recurrent({}))
        return run, outputs

    def _recurrent(self, inputs: dict[str, Any]) -> dict[str, Any]:
        if not self.recurrent_cells:
            return {}
        zeros = ops.zeros((1, self.recurrent_cells))
        return {name: ops.convert_to_tensor(inputs.get(name, zeros)) for name in RECURRENT_INPUTS}

    def _features(self, run: Pass, inputs: dict[str, Any], recurrent: dict[str, Any]) -> Any:
        embeddings = [self._embed(run, name, inputs) for name in embedded_names(self.parameters, self.name)]
        concatenate, add = partial(run.ops.concatenate, axis=-1), partial(reduce, operator.add)
        return self._middleware(run, merged(self.parameters, embeddings, concatenate, add), inputs, recurrent)

    def _middleware(self, run: Pass, x: Any, inputs: dict[str, Any], recurrent: dict[str, Any]) -> Any:
        parameters = self.parameters.middleware_parameters
        layers = Layers(run, parameters.dense_layer)
        for layer in schemes.resolve_layers(parameters, schemes.MIDDLEWARE):
            x = layers.apply(layer, x)
        if self.recurrent_cells:
            h, c = (inputs[name] for name in RECURRENT_INPUTS)
            x, recurrent["lstm_h"], recurrent["lstm_c"] = layers.lstm(x, h, c, self.recurrent_cells)
        return x

    def _embed(self, run: Pass, name: str, inputs: dict[str, Any]) -> Any:
        parameters = self.parameters.input_embedders_parameters[name]
        layers = Layers(run, parameters.dense_layer)
        given = self._inputs[name]
        x = given.normalized(run.ops, inputs[name], parameters)
        if given.kind == "vector" and len(x.shape) > 2:
            x = layers.flatten(x)
        for layer in given.layers(parameters):
            x = layers.apply(layer, x)
        return layers.flatten(x) if parameters.flatten and len(x.shape) > 2 else x
