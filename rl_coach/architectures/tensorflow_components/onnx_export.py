"""A Keras network on TensorFlow as an ONNX graph."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import tensorflow as tf

from rl_coach.architectures.keras_components.network import KerasNetwork
from rl_coach.architectures.onnx_predictor import ExportedNetwork

OPSET = 18


def export(network: KerasNetwork) -> ExportedNetwork:
    """The network's public outputs (and its recurrent state) as a function of weights and observations.

    The graph has opset 18, a dynamic batch, weights named ``weight_<i>`` and ``buffer_<i>`` and observations by name.
    """
    import tf2onnx  # slow to import, and needed only here

    logging.getLogger("tf2onnx").setLevel(logging.ERROR)
    weights, all_buffers = network.initial_weights(), network.initial_buffers()
    buffers = [buffer for buffer in all_buffers if buffer.dtype == np.float32]
    shapes = dict(network.input_shapes)
    if network.recurrent_cells:
        shapes |= dict.fromkeys(("lstm_h", "lstm_c"), (network.recurrent_cells,))
    output_shapes: dict[str, tuple[int, ...]] = {}

    def predict(weights: list, buffers: list, inputs: dict[str, Any]) -> list:
        given = iter(buffers)
        # the state of random generators is no float; nothing is drawn when acting
        complete = [next(given) if buffer.dtype == np.float32 else tf.constant(buffer) for buffer in all_buffers]
        heads, recurrent, _ = network(weights, complete, inputs, training=False, single_step=True)
        outputs = {f"output_{head}_{name}": heads[head][name] for head, name in network.public_outputs}
        outputs |= {f"next_{name}": tensor for name, tensor in recurrent.items()}
        output_shapes.update({name: tuple(tensor.shape[1:]) for name, tensor in outputs.items()})
        return [tf.identity(tensor) for tensor in outputs.values()]

    signature = (
        [tf.TensorSpec(w.shape, tf.float32, name=f"weight_{i}") for i, w in enumerate(weights)],
        [tf.TensorSpec(b.shape, tf.float32, name=f"buffer_{i}") for i, b in enumerate(buffers)],
        {name: tf.TensorSpec((None, *shape), tf.float32, name=name) for name, shape in shapes.items()},
    )
    model, _ = tf2onnx.convert.from_function(
        tf.function(predict, autograph=False), input_signature=signature, opset=OPSET
    )
    _rename_outputs(model, list(output_shapes))
    names = [f"weight_{i}" for i in range(len(weights))] + [f"buffer_{i}" for i in range(len(buffers))]
    return ExportedNetwork(model.SerializeToString(), names, shapes, output_shapes)


def _rename_outputs(model: Any, names: list[str]) -> None:
    """Give the graph's outputs, which are in order, names that say what they are."""
    new_names = {output.name: name for output, name in zip(model.graph.output, names)}
    for output in model.graph.output:
        output.name = new_names[output.name]
    for node in model.graph.node:
        node.input[:] = [new_names.get(name, name) for name in node.input]
        node.output[:] = [new_names.get(name, name) for name in node.output]
