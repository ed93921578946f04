"""A network built with Keras from its parameters, and called as a pure function of its weights."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from rl_coach.architectures import schemes
from rl_coach.architectures.keras_components.heads import make_head
from rl_coach.architectures.keras_components.layers import LayerFactory, LSTMSequences, NoisyDense, ScaleGradient
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.architectures.network_inputs import NetworkInput, embedded_names, merged
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import CoachError, force_list

Outputs = list[dict[str, Any]]


class KerasNetwork:
    """Embedders, middleware and heads as one Keras model.

    The model is only structure: weights are handed in at each call, so that one model serves the online and the target
    network on every framework that Keras runs on. ``weights`` are trained; ``buffers`` are not (batch normalisation's
    statistics, noise, the state of random generators) and come back from a call with their new values.

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
        self.input_shapes: dict[str, tuple[int, ...]] = {}
        self.recurrent_cells = 0
        self.public_outputs: list[tuple[int, str]] = []
        self._lstm_layers: list[LSTMSequences] = []
        self._inputs: dict[str, Any] = {}
        self.model = self._build()
        self._noisy_layers = [layer for layer in self.model._flatten_layers() if isinstance(layer, NoisyDense)]
        self._variables = self.model.trainable_variables
        self._buffers = [v for v in self.model.variables if not any(v is w for w in self._variables)]
        # only kernels are decayed, as is usual; biases and scales are vectors
        self.is_decayed = [len(variable.shape) > 1 for variable in self._variables]

    def initial_weights(self) -> list[np.ndarray]:
        """The trained weights as they were drawn."""
        return [np.array(variable) for variable in self._variables]

    def initial_buffers(self) -> list[np.ndarray]:
        """The untrained state as it begins."""
        return [np.array(buffer) for buffer in self._buffers]

    @property
    def noise_buffers(self) -> list[int]:
        """Which buffers hold NoisyNet's noise, by their position among the float buffers."""
        noise = {id(buffer) for layer in self._noisy_layers for buffer in (layer.noise_in, layer.noise_out)}
        floats = [buffer for buffer in self._buffers if keras.backend.is_float_dtype(buffer.dtype)]
        return [index for index, buffer in enumerate(floats) if id(buffer) in noise]

    def with_random_state(self, buffers: list, source: list) -> list:
        """The buffers with the state of random generators taken from other ones."""
        floats = [keras.backend.is_float_dtype(buffer.dtype) for buffer in self._buffers]
        return [own if is_float else other for own, other, is_float in zip(buffers, source, floats)]

    def __call__(
        self,
        weights: list,
        buffers: list,
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
        inputs = {name: ops.cast(inputs[name], "float32") for name in self.input_shapes} | self._recurrent(inputs)
        for layer in self._lstm_layers:
            layer.single_step = single_step
        for noisy in self._noisy_layers:
            noisy.draws_noise = draws_noise
        mapping = list(zip(self._variables, weights)) + list(zip(self._buffers, buffers))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            outputs = self.model({_tensor_name(name): value for name, value in inputs.items()}, training=training)
            new_buffers = [scope.get_current_value(buffer) for buffer in self._buffers]
        return outputs["heads"], outputs["recurrent"], new_buffers

    def summary(self) -> str:
        """The layers with their shapes and numbers of parameters, as text."""
        lines: list[str] = []
        self.model.summary(print_fn=lambda line, **_: lines.append(line))
        return "\n".join(lines)

    def _recurrent(self, inputs: dict[str, Any]) -> dict[str, Any]:
        if not self.recurrent_cells:
            return {}
        zeros = ops.zeros((1, self.recurrent_cells), dtype="float32")
        return {name: inputs.get(name, zeros) for name in ("lstm_h", "lstm_c")}

    def _build(self) -> keras.Model:
        heads_parameters = force_list(self.parameters.heads_parameters)
        if not heads_parameters:
            raise CoachError(f"network '{self.name}' has no heads: set heads_parameters")
        heads: list[dict[str, Any]] = []
        recurrent: dict[str, Any] = {}
        shared = None
        for head_parameters in heads_parameters:
            for _ in range(head_parameters.num_output_head_copies):
                if shared is None or self.parameters.use_separate_networks_per_head:
                    shared = self._body(recurrent)
                heads.append(self._head(head_parameters, shared, len(heads)))
        inputs = {_tensor_name(name): tensor for name, tensor in self._inputs.items()}
        return keras.Model(inputs, {"heads": heads, "recurrent": recurrent}, name=self.name)

    def _head(self, parameters: Any, features: Any, index: int) -> dict[str, Any]:
        if parameters.rescale_gradient_from_head_by_factor != 1:
            features = ScaleGradient(parameters.rescale_gradient_from_head_by_factor)(features)
        factory = LayerFactory(self.rng, parameters.dense_layer)
        if parameters.parameterized_class_name == "SACQHead":
            self._input("action")
        head = make_head(parameters, self.spaces, factory, self.parameters.softmax_temperature)
        outputs = head(features, self._inputs)
        self.public_outputs += [(index, name) for name in head.public if name in outputs]
        return outputs

    def _body(self, recurrent: dict[str, Any]) -> Any:
        embeddings = [self._embed(name) for name in embedded_names(self.parameters, self.name)]
        features = merged(self.parameters, embeddings, keras.layers.concatenate, keras.layers.add)
        return self._middleware(features, recurrent)

    def _middleware(self, x: Any, recurrent: dict[str, Any]) -> Any:
        parameters = self.parameters.middleware_parameters
        factory = LayerFactory(self.rng, parameters.dense_layer)
        for layer in schemes.resolve_layers(parameters, schemes.MIDDLEWARE):
            x = factory.apply(layer, x)
        if not isinstance(parameters, LSTMMiddlewareParameters):
            return x
        if self._lstm_layers:
            raise CoachError(f"network '{self.name}': separate networks per head cannot each have an LSTM")
        self.recurrent_cells = parameters.number_of_lstm_cells
        for name in ("lstm_h", "lstm_c"):
            self._inputs[name] = keras.Input((self.recurrent_cells,), name=name)
        self._lstm_layers.append(LSTMSequences(self.recurrent_cells, self.rng))
        x, recurrent["lstm_h"], recurrent["lstm_c"] = self._lstm_layers[0](
            x, self._inputs["lstm_h"], self._inputs["lstm_c"]
        )
        return x

    def _embed(self, name: str) -> Any:
        parameters = self.parameters.input_embedders_parameters[name]
        given = self._described(name)
        factory = LayerFactory(self.rng, parameters.dense_layer)
        x = given.normalized(ops, keras.layers.Identity()(self._input(name)), parameters)
        if given.kind == "vector" and len(x.shape) > 2:
            x = keras.layers.Flatten()(x)
        for layer in given.layers(parameters):
            x = factory.apply(layer, x)
        return keras.layers.Flatten()(x) if parameters.flatten and len(x.shape) > 2 else x

    def _input(self, name: str) -> Any:
        if name not in self._inputs:
            self.input_shapes[name] = self._described(name).shape
            self._inputs[name] = keras.Input(self.input_shapes[name], name=_tensor_name(name))
        return self._inputs[name]

    def _described(self, name: str) -> NetworkInput:
        return NetworkInput.named(name, self.spaces, self.name)


def _tensor_name(name: str) -> str:
    """A name without the slash of nested observations, which Keras does not allow."""
    return name.replace("/", ".")
