"""A network as a pure function of its weights, over MXNet's array operations or those that record an ONNX graph."""

from __future__ import annotations

from functools import partial
from typing import Any, Sequence

import numpy as np

from rl_coach.architectures.mxnet_components import ops
from rl_coach.architectures.mxnet_components.compatible_mxnet import numpy_semantics
from rl_coach.architectures.mxnet_components.network_layers import DrawingPass, MXNetLayers, Pass
from rl_coach.architectures.network_function import Outputs
from rl_coach.architectures.network_structure import StructuredNetwork
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


class MXNetNetwork(StructuredNetwork):
    """A network as a pass over its layers; see ``StructuredNetwork``. Random generators' state stays on the host."""

    def __init__(self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator):
        super().__init__(parameters, spaces, name, rng)
        drawing = self._draw()
        self._weights, self._buffers, self.noise_buffers = drawing.drawn, drawing.initial_buffers, drawing.noise

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
        values = [ops.convert_to_tensor(weight) for weight in weights]
        # what is no float serves random generators, on the host
        state = [buffer if buffer.dtype == np.uint32 else ops.convert_to_tensor(buffer) for buffer in buffers]
        run = Pass(ops, self.rng, values, state, training, single_step, draws_noise)
        given = {name: ops.cast(inputs[name], "float32") for name in self.input_shapes}
        heads, recurrent = self.run(run, given | self._recurrent(inputs))
        return heads, recurrent, run.buffers

    def run(self, run: Pass, inputs: dict[str, Any]) -> tuple[Outputs, dict[str, Any]]:
        """The outputs of one pass, over the array operations that it brings.

        :param inputs: all of ``input_shapes`` and, for a recurrent network, its state
        :return: a dict of outputs for each head, and the new recurrent state
        """
        return self.outputs(partial(MXNetLayers, run), inputs)

    @numpy_semantics
    def _draw(self) -> DrawingPass:
        """The first pass, over one row of zeros."""
        zeros = {name: ops.zeros((1, *shape)) for name, shape in self.input_shapes.items()}
        run = DrawingPass(ops, self.rng)
        self._name_outputs(self.run(run, zeros | self._recurrent({}))[0])
        return run

    def _recurrent(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {
            name: ops.convert_to_tensor(inputs[name]) if name in inputs else ops.zeros((1, size))
            for name, size in self.recurrent_sizes.items()
        }
