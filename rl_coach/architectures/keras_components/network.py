"""A network that is built with Keras, and called as a pure function of its weights."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, Sequence

import keras
import numpy as np
from keras import ops

from rl_coach.architectures.keras_components.layers import KerasLayers, LSTMSequences, NoisyDense, UnitDense
from rl_coach.architectures.network_function import NetworkParts, Outputs
from rl_coach.architectures.network_structure import StructuredNetwork
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


class KerasNetwork(StructuredNetwork):
    """A network as one Keras model; see ``StructuredNetwork``. The weights are arguments of each call: the weights of
    the Keras model are not used.

    :cvar layers_class: the class that makes the model's layers
    """

    layers_class: type[KerasLayers] = KerasLayers

    def __init__(self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator):
        super().__init__(parameters, spaces, name, rng)
        self._made: list[keras.layers.Layer] = []
        self.model = self._build()
        layers = list(self.model._flatten_layers())
        self._lstm_layers = [layer for layer in layers if isinstance(layer, LSTMSequences)]
        self._noisy_layers = [layer for layer in layers if isinstance(layer, NoisyDense)]
        self._weights = self.model.trainable_variables
        unit_kernels = {id(layer.kernel) for layer in layers if isinstance(layer, UnitDense)}
        self.unit_columns = [index for index, weight in enumerate(self._weights) if id(weight) in unit_kernels]
        convolutions = {
            id(v) for one in layers if isinstance(one, keras.layers.Conv2D) for v in one.trainable_variables
        }
        self.convolution_weights = [index for index, weight in enumerate(self._weights) if id(weight) in convolutions]
        # id(): == of Keras variables would compare their values
        self._buffers = [v for v in self.model.variables if not any(v is w for w in self._weights)]
        noise = {id(buffer) for layer in self._noisy_layers for buffer in (layer.noise_in, layer.noise_out)}
        floats = [buffer for buffer in self._buffers if _is_float(buffer)]
        self.noise_buffers = [index for index, buffer in enumerate(floats) if id(buffer) in noise]
        self.order = {"weights": self._places(self._weights), "buffers": self._places(self._buffers)}

    def _places(self, variables: Sequence[keras.Variable]) -> list[int]:
        """The position of each variable in the order of the layers. The state of a layer's random generator comes
        before its other variables. An LSTM never uses its random generator, which has the position -1.
        """
        made = [v for one in self._made for v in sorted(one.variables, key=_is_float)]
        unused = {id(v) for one in self._lstm_layers for v in one.non_trainable_variables}
        wanted = {id(v) for v in variables} - unused
        places = {key: place for place, key in enumerate(dict.fromkeys(id(v) for v in made if id(v) in wanted))}
        return [places.get(id(v), -1) for v in variables]

    def __call__(
        self, weights: Sequence, buffers: Sequence, inputs: dict[str, Any], training: bool, single_step: bool = False,
        draws_noise: bool = False,
    ) -> tuple[Outputs, dict[str, Any], list]:  # fmt: skip
        inputs = self._given(ops, inputs)
        # set as attributes, because a Keras model does not pass these arguments to its layers
        for layer in self._lstm_layers:
            layer.single_step = single_step
        for noisy in self._noisy_layers:
            noisy.draws_noise = draws_noise
        mapping = list(zip(self._weights, weights)) + list(zip(self._buffers, buffers))
        # in this scope, the model uses the given values, and its own variables do not change
        with keras.StatelessScope(state_mapping=mapping) as scope:
            outputs = self.model({_tensor_name(name): value for name, value in inputs.items()}, training=training)
            new_buffers = [scope.get_current_value(buffer) for buffer in self._buffers]
        return outputs["heads"], outputs["recurrent"], new_buffers

    def in_parts(self, weights: Sequence) -> NetworkParts:
        embed, advance, heads = self._part_models

        def run(model: keras.Model, inputs: Any) -> Any:
            with keras.StatelessScope(state_mapping=list(zip(self._weights, weights))):
                # no layer depends on ``training`` here: ``_require_parts`` refuses batch normalisation and dropout
                return model(inputs)

        return NetworkParts(
            lambda states: run(embed, [ops.cast(states[name], "float32") for name in self.input_shapes]),
            lambda embedding, state: run(advance, [embedding, *(state[name] for name in self.recurrent_sizes)]),
            lambda number, features: run(heads[number], [features]),
        )

    @cached_property
    def _part_models(self) -> tuple[keras.Model, keras.Model, list[keras.Model]]:
        self._require_parts()
        embedding, features, *heads = self._passed
        recurrent = self.model.output["recurrent"]
        before = [self.model.input[_tensor_name(name)] for name in self.recurrent_sizes]
        observed = [self.model.input[_tensor_name(name)] for name in self.input_shapes]
        return (
            keras.Model(observed, embedding),
            keras.Model([embedding, *before], (features, recurrent)),
            [keras.Model([features], head) for head in heads],
        )

    def summary(self) -> str:
        lines: list[str] = []
        self.model.summary(print_fn=lambda line, **_: lines.append(line))
        return "\n".join(lines)

    def _build(self) -> keras.Model:
        shapes = self.input_shapes | {name: (size,) for name, size in self.recurrent_sizes.items()}
        given = {name: keras.Input(shape, name=_tensor_name(name)) for name, shape in shapes.items()}
        # the identity: a Keras model cannot return an input itself as an output
        inputs = given | {name: keras.layers.Identity()(given[name]) for name in self.input_shapes}
        self._passed: list[Any] = []  # symbolic tensors between the parts
        make_layers = partial(self.layers_class, self.rng, made=self._made)
        heads, recurrent = self.outputs(make_layers, inputs, self._passed.append)
        self._name_outputs(heads)
        named = {_tensor_name(name): tensor for name, tensor in given.items()}
        return keras.Model(named, {"heads": heads, "recurrent": recurrent}, name=self.name)


def _is_float(variable: keras.Variable) -> bool:
    return keras.backend.is_float_dtype(variable.dtype)


def _tensor_name(name: str) -> str:
    """The name of an input for Keras. The slash in names of nested observations is replaced, because Keras does not
    allow it.
    """
    return name.replace("/", ".")
