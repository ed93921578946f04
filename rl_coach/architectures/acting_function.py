"""The function that is exported to ONNX: the outputs that a network needs to act."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.onnx_model import hoist_transposes
from rl_coach.architectures.onnx_predictor import ExportedNetwork


class ActingFunction:
    """Computes the public outputs and the new recurrent state from float weights, float buffers and observations. The
    exported graph names the weights ``weight_<i>`` and the buffers ``buffer_<i>``.

    :param network: the network
    :param compute: a function of weights, buffers and observations that returns the outputs of each head, by name, and
        the new recurrent state; None calls the network
    """

    def __init__(self, network: NetworkFunction, compute: Callable[[list, list, dict[str, Any]], tuple] | None = None):
        self.network = network
        self._compute = compute
        weights, buffers = network.initial_weights(), network.initial_buffers()
        arrays = {f"weight_{i}": array for i, array in enumerate(weights)}
        # states of random generators are not floats; acting draws no random numbers
        arrays |= {f"buffer_{i}": array for i, array in enumerate(b for b in buffers if b.dtype == np.float32)}
        self._num_weights = len(weights)
        self._constants = [None if b.dtype == np.float32 else b for b in buffers]
        self.weight_shapes = {name: array.shape for name, array in arrays.items()}
        self.input_shapes = network.input_shapes | {name: (size,) for name, size in network.recurrent_sizes.items()}
        self.output_shapes: dict[str, tuple[int, ...]] = {}

    def __call__(self, arrays: list, inputs: dict[str, Any]) -> list:
        """Compute the outputs, in order. A framework traces this method.

        :param arrays: weights and float buffers, in the order of ``weight_shapes``
        :param inputs: [B, ...] by name
        """
        weights, given = arrays[: self._num_weights], iter(arrays[self._num_weights :])
        buffers = [next(given) if b is None else b for b in self._constants]
        if self._compute is None:
            heads, recurrent, _ = self.network(weights, buffers, inputs, training=False, single_step=True)
        else:
            heads, recurrent = self._compute(weights, buffers, inputs)
        outputs = {f"output_{head}_{name}": heads[head][name] for head, name in self.network.public_outputs}
        outputs |= {f"next_{name}": tensor for name, tensor in recurrent.items()}
        # only now, because the shapes are unknown before a framework traces this method
        self.output_shapes = {name: tuple(tensor.shape[1:]) for name, tensor in outputs.items()}
        return list(outputs.values())

    def exported(self, model: Any) -> ExportedNetwork:
        """The exported network, with the names and shapes of its inputs and outputs.

        :param model: a ``ModelProto`` of the traced function
        """
        weights = list(self.weight_shapes)
        axes = hoist_transposes(model, weights[: self._num_weights])
        return ExportedNetwork(model.SerializeToString(), weights, self.input_shapes, self.output_shapes, axes)
