"""A network built with Keras from its parameters, and called as a pure function of its weights."""

from __future__ import annotations

from functools import partial
from typing import Any, Sequence

import keras
import numpy as np
from keras import ops

from rl_coach.architectures.keras_components.layers import KerasLayers, LSTMSequences, NoisyDense
from rl_coach.architectures.network_structure import NetworkStructure, Outputs
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


class KerasNetwork:
    """Embedders, middleware and heads as one Keras model.

    The model is only structure: weights are handed in at each call, so that one model serves the online and the target
    network on every framework that Keras runs on. ``weights`` are trained; ``buffers`` are not (batch normalisation's
    statistics, noise, the state of random generators) and come back from a call with their new values.

    :param parameters: the network's parameters
    :param spaces: the spaces of its agent
    :param name: its name, for messages
    :param rng: the source of initial weights
    """

    def __init__(self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator):
        self.parameters = parameters
        self.spaces = spaces
        self.name = name
        self.rng = rng
        structure = NetworkStructure(parameters, spaces, name)
        self.input_shapes = structure.input_shapes
        self.recurrent_sizes = structure.recurrent_sizes
        self.model, outputs = self._build(structure)
        self.public_outputs = structure.public_outputs(outputs)
        self.head_outputs: list[tuple[str, ...]] | None = [tuple(head) for head in outputs]
        layers = list(self.model._flatten_layers())
        self._lstm_layers = [layer for layer in layers if isinstance(layer, LSTMSequences)]
        self._noisy_layers = [layer for layer in layers if isinstance(layer, NoisyDense)]
        self._variables = self.model.trainable_variables
        self._buffers = [v for v in self.model.variables if not any(v is w for w in self._variables)]
        self.kept_names: tuple[str, ...] = ()
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
        """The buffers that hold NoisyNet's noise, by their position among the float buffers."""
        noise = {id(buffer) for layer in self._noisy_layers for buffer in (layer.noise_in, layer.noise_out)}
        floats = [buffer for buffer in self._buffers if keras.backend.is_float_dtype(buffer.dtype)]
        return [index for index, buffer in enumerate(floats) if id(buffer) in noise]

    def with_random_state(self, buffers: list, source: list) -> list:
        """The buffers with the state of random generators taken from other ones."""
        floats = [keras.backend.is_float_dtype(buffer.dtype) for buffer in self._buffers]
        return [own if is_float else other for own, other, is_float in zip(buffers, source, floats)]

    def __call__(
        self,
        weights: Sequence,
        buffers: Sequence,
        inputs: dict[str, Any],
        training: bool,
        single_step: bool = False,
        draws_noise: bool = False,
    ) -> tuple[Outputs, dict[str, Any], list]:
        """See ``NetworkFunction``."""
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
        return {
            name: inputs[name] if name in inputs else ops.zeros((1, size), dtype="float32")
            for name, size in self.recurrent_sizes.items()
        }

    def _build(self, structure: NetworkStructure) -> tuple[keras.Model, Outputs]:
        shapes = self.input_shapes | {name: (size,) for name, size in self.recurrent_sizes.items()}
        given = {name: keras.Input(shape, name=_tensor_name(name)) for name, shape in shapes.items()}
        # an input may be an output too, which a Keras model cannot have
        inputs = given | {name: keras.layers.Identity()(given[name]) for name in self.input_shapes}
        heads, recurrent = structure.outputs(partial(KerasLayers, self.rng), inputs)
        named = {_tensor_name(name): tensor for name, tensor in given.items()}
        return keras.Model(named, {"heads": heads, "recurrent": recurrent}, name=self.name), heads


def _tensor_name(name: str) -> str:
    """A name without the slash of nested observations, which Keras does not allow."""
    return name.replace("/", ".")
