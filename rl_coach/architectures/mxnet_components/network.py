"""A network as a pure function of its weights, over MXNet's array operations or those that record an ONNX graph."""

from __future__ import annotations

from functools import partial
from typing import Any, Sequence

import numpy as np

from rl_coach.architectures.mxnet_components import ops
from rl_coach.architectures.mxnet_components.compatible_mxnet import numpy_semantics
from rl_coach.architectures.mxnet_components.network_layers import DrawingPass, MXNetLayers, Pass
from rl_coach.architectures.network_structure import NetworkStructure, Outputs
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


class MXNetNetwork:
    """Embedders, middleware and heads.

    ``weights`` are trained; ``buffers`` are not (batch normalisation's statistics, noise, the state of random
    generators, which stays on the host) and come back from a call with their new values.

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
        self._structure = NetworkStructure(parameters, spaces, name)
        self.input_shapes = self._structure.input_shapes
        self.recurrent_sizes = self._structure.recurrent_sizes
        drawing, outputs = self._draw()
        self._weights, self._buffers, self.noise_buffers = drawing.drawn, drawing.initial_buffers, drawing.noise
        self.public_outputs = self._structure.public_outputs(outputs)
        self.head_outputs: list[tuple[str, ...]] | None = [tuple(head) for head in outputs]
        self.kept_names: tuple[str, ...] = ()
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
        """See ``NetworkFunction``."""
        values = [ops.convert_to_tensor(weight) for weight in weights]
        # what is no float serves random generators, on the host
        state = [buffer if buffer.dtype == np.uint32 else ops.convert_to_tensor(buffer) for buffer in buffers]
        run = Pass(ops, self.rng, values, state, training, single_step, draws_noise)
        given = {name: ops.cast(inputs[name], "float32") for name in self.input_shapes}
        heads, recurrent = self.outputs(run, given | self._recurrent(inputs))
        return heads, recurrent, run.buffers

    def outputs(self, run: Pass, inputs: dict[str, Any]) -> tuple[Outputs, dict[str, Any]]:
        """The outputs of one pass, over the array operations that it brings.

        :param inputs: all of ``input_shapes`` and, for a recurrent network, its state
        :return: a dict of outputs for each head, and the new recurrent state
        """
        return self._structure.outputs(partial(MXNetLayers, run), inputs)

    def summary(self) -> str:
        """The weights' shapes and the number of parameters, as text."""
        lines = [f"network '{self.name}' on MXNet"]
        lines += [f"  weight_{i:<4} {'x'.join(map(str, weight.shape))}" for i, weight in enumerate(self._weights)]
        return "\n".join([*lines, f"  {sum(weight.size for weight in self._weights):,} parameters"])

    @numpy_semantics
    def _draw(self) -> tuple[DrawingPass, Outputs]:
        """The first pass, over one row of zeros."""
        zeros = {name: ops.zeros((1, *shape)) for name, shape in self.input_shapes.items()}
        run = DrawingPass(ops, self.rng)
        outputs, _ = self.outputs(run, zeros | self._recurrent({}))
        return run, outputs

    def _recurrent(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {
            name: ops.convert_to_tensor(inputs[name]) if name in inputs else ops.zeros((1, size))
            for name, size in self.recurrent_sizes.items()
        }
