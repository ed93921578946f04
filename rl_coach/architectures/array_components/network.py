"""A network as a pure function of its weights, made of the array operations of a framework or of ONNX."""

from __future__ import annotations

from functools import partial
from typing import Any, Sequence

import numpy as np

from rl_coach.architectures.array_components.layers import CONVOLUTION, UNIT_COLUMNS, ArrayLayers, DrawingPass, Pass
from rl_coach.architectures.network_function import NetworkParts, Outputs
from rl_coach.architectures.network_structure import MakeLayers, StructuredNetwork
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


class ArrayNetwork(StructuredNetwork):
    """Base class of networks whose outputs are computed with a ``Pass``; see ``StructuredNetwork``.

    :cvar ops: the framework's array operations: functions of ``keras.ops`` under the same names, and ``conv``,
        ``buffer``, ``dropout_mask``, ``factorised_noise`` and ``piece``
    """

    ops: Any
    layers_class: type[ArrayLayers] = ArrayLayers

    def __init__(self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator):
        super().__init__(parameters, spaces, name, rng)
        self._ends: list[int] = []  # the number of weights up to the end of each part
        drawing = self._draw()
        self._weights, self._buffers, self.noise_buffers = drawing.drawn, drawing.initial_buffers, drawing.noise
        self.order = {"weights": list(range(len(self._weights))), "buffers": list(range(len(self._buffers)))}
        self.parts = drawing.parts
        self.unit_columns, self.convolution_weights = drawing.kinds[UNIT_COLUMNS], drawing.kinds[CONVOLUTION]

    def __call__(
        self, weights: Sequence, buffers: Sequence, inputs: dict[str, Any], training: bool, single_step: bool = False,
        draws_noise: bool = False,
    ) -> tuple[Outputs, dict[str, Any], list]:  # fmt: skip
        ops = self.ops
        values, state = [ops.convert_to_tensor(weight) for weight in weights], [ops.buffer(one) for one in buffers]
        run = Pass(ops, self.rng, values, state, training, single_step, draws_noise, self.parts)
        heads, recurrent = self.run(run, self._given(ops, inputs))
        return heads, recurrent, run.buffers

    def in_parts(self, weights: Sequence) -> NetworkParts:
        self._require_parts()
        ops, ends = self.ops, self._ends
        values = [ops.convert_to_tensor(weight) for weight in weights]

        def layers_from(start: int) -> MakeLayers:
            # no buffers are needed: ``_require_parts`` refuses networks that have buffers
            return partial(self.layers_class, Pass(ops, self.rng, values[start:], []))

        return NetworkParts(
            lambda states: self._embedding(
                layers_from(0), {name: ops.cast(states[name], "float32") for name in self.input_shapes}
            ),
            lambda embedding, state: self._features(layers_from(ends[0]), embedding, state),
            lambda number, features: self._outputs_of(self._heads[number], layers_from(ends[number + 1]), features, {}),
        )

    def run(self, run: Pass, inputs: dict[str, Any]) -> tuple[Outputs, dict[str, Any]]:
        """The outputs of one pass, computed with the array operations of the pass.

        :param inputs: an array for each name in ``input_shapes`` and, for a recurrent network, the recurrent state
        :return: a dict of outputs for each head, and the new recurrent state
        """
        return self.outputs(partial(self.layers_class, run), inputs)

    def _draw(self) -> DrawingPass:
        """Make the first pass, with one row of zeros as input."""
        # the values do not matter: only shapes and the order of the layers do
        zeros = {name: self.ops.zeros((1, *shape)) for name, shape in self.input_shapes.items()}
        run = DrawingPass(self.ops, self.rng)
        make_layers = partial(self.layers_class, run)
        given = self._given(self.ops, zeros)
        self._name_outputs(self.outputs(make_layers, given, lambda _: self._ends.append(len(run.drawn)))[0])
        return run
