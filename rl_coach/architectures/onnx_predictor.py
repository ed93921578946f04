"""Predictions with ONNX Runtime. The weights are inputs of the graph.

Predictions do not need the training framework. A 256 x 512 network predicts for one observation in about 15
microseconds. The graph is exported once. After an update, the new weights are copied into the arrays that the session
reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

import numpy as np
import onnxruntime

OPSET = 18  # from 18 on, reductions take their axes as an input, and Split has num_outputs
# each batch size has its own arrays, so their number needs a limit
MAX_BOUND_BATCH_SIZES = 8


@dataclass(frozen=True)
class ExportedNetwork:
    """A network as an ONNX graph. The inputs of the graph are the weights, then the observations.

    :param model: the serialised ``ModelProto``
    :param weight_names: the names of the inputs for the weights, in the order of the weights
    :param input_shapes: the shape of each observation without the batch, by name
    :param output_shapes: the shape of each output without the batch, by name, in order
    :param weight_axes: the axes for ``numpy.transpose`` of each weight that the graph expects in transposed form
    """

    model: bytes
    weight_names: list[str]
    input_shapes: dict[str, tuple[int, ...]]
    output_shapes: dict[str, tuple[int, ...]]
    weight_axes: dict[str, tuple[int, ...]]

    def arranged(self, weights: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Views of the weights in the form that the graph expects. :param weights: in the order of ``weight_names``"""
        if not self.weight_axes:
            return weights
        named = zip(self.weight_names, weights)
        return [array.transpose(self.weight_axes.get(name, range(array.ndim))) for name, array in named]

    def disarranged(self, arranged: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Views of the result of ``arranged`` in the original form of the weights."""
        named = zip(self.weight_names, arranged)
        return [array.transpose(np.argsort(self.weight_axes.get(name, range(array.ndim)))) for name, array in named]


class _BoundBatch:
    """Arrays for the inputs and outputs of one batch size. They are bound to the session once."""

    def __init__(self, session: Any, exported: ExportedNetwork, weights: list[np.ndarray], size: int):
        self.inputs = {name: np.zeros((size, *shape), np.float32) for name, shape in exported.input_shapes.items()}
        self.outputs = {name: np.zeros((size, *shape), np.float32) for name, shape in exported.output_shapes.items()}
        # the session reads and writes at the addresses of these arrays: fill them in place, do not replace them
        self.binding = session.io_binding()
        known = {graph_input.name for graph_input in session.get_inputs()}
        for name, array in [*zip(exported.weight_names, weights), *self.inputs.items()]:
            if name in known:
                self.binding.bind_input(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
        for name, array in self.outputs.items():
            self.binding.bind_output(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)


class OnnxPredictor:
    """Computes the outputs of a network with ONNX Runtime.

    :param exported: the graph
    :param weights: float32 arrays in the order of ``exported.weight_names``
    :param num_threads: number of threads; 1 is best for small networks, because they finish before a second thread
        starts
    """

    def __init__(self, exported: ExportedNetwork, weights: list[np.ndarray], num_threads: int = 1):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = num_threads
        options.inter_op_num_threads = 1
        # idle threads must not spin, because spinning takes processor time from the training step
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        self.exported, self._num_threads = exported, num_threads
        # contiguous copies, because the session gets only an address and a shape
        self.weights = [np.array(array, order="C") for array in exported.arranged(weights)]
        # views in the framework's form: set_weights writes through them into self.weights
        self._own_form = exported.disarranged(self.weights)
        self.session = onnxruntime.InferenceSession(exported.model, options, providers=["CPUExecutionProvider"])
        self._bound: dict[int, _BoundBatch] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Support copies, also in another process. A copy makes a new session, because sessions cannot be copied."""
        return OnnxPredictor, (self.exported, self._own_form, self._num_threads)

    def set_weights(self, weights: Sequence[np.ndarray]) -> None:
        """Copy the given weights and use them for predictions. If only the first weights are given, the others do not
        change.
        """
        for bound, array in zip(self._own_form, weights):
            np.copyto(bound, array)

    def __call__(self, inputs: dict[str, Any]) -> list[np.ndarray]:
        """Compute the outputs [B, ...], in order. :param inputs: [B, ...] by name"""
        size = len(next(iter(inputs.values())))
        bound = self._bound.get(size)
        if bound is None:
            if len(self._bound) >= MAX_BOUND_BATCH_SIZES:
                self._bound.pop(next(iter(self._bound)))  # remove the batch size that was added first
            bound = self._bound[size] = _BoundBatch(self.session, self.exported, self.weights, size)
        for name, buffer in bound.inputs.items():
            buffer[...] = inputs[name]
        self.session.run_with_iobinding(bound.binding)
        # copies, because the next prediction overwrites the arrays
        return [output.copy() for output in bound.outputs.values()]
