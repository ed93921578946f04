"""The export of a Keras network on TensorFlow to ONNX."""

from __future__ import annotations

import logging
from typing import Any

import tensorflow as tf

from rl_coach.architectures.acting_function import ActingFunction
from rl_coach.architectures.native_messages import quiet_native_code
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.onnx_predictor import OPSET, ExportedNetwork


@quiet_native_code()
def export(network: NetworkFunction) -> ExportedNetwork:
    """Export a network to an ONNX graph with the inputs and outputs of ``ActingFunction``, for batches of any size."""
    import tf2onnx  # imported here because the import is slow

    logging.getLogger("tf2onnx").setLevel(logging.ERROR)
    acting = ActingFunction(network)

    def predict(arrays: list, inputs: dict[str, Any]) -> list:
        return [tf.identity(output) for output in acting(arrays, inputs)]

    signature = (
        [tf.TensorSpec(shape, tf.float32, name=name) for name, shape in acting.weight_shapes.items()],
        {name: tf.TensorSpec((None, *shape), tf.float32, name=name) for name, shape in acting.input_shapes.items()},
    )
    model, _ = tf2onnx.convert.from_function(
        tf.function(predict, autograph=False), input_signature=signature, opset=OPSET
    )
    # tf2onnx numbers the outputs, but predictors need their names
    new_names = {output.name: name for output, name in zip(model.graph.output, acting.output_shapes)}
    for output in model.graph.output:
        output.name = new_names[output.name]
    for node in model.graph.node:
        node.input[:] = [new_names.get(name, name) for name in node.input]
        node.output[:] = [new_names.get(name, name) for name in node.output]
    return acting.exported(model)
