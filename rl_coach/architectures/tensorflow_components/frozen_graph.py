"""Conversion of an ONNX model to a frozen graph of TensorFlow: a ``GraphDef`` with constant weights that TensorFlow 1
can load."""

from __future__ import annotations

import functools
from typing import Any, Mapping

import numpy as np
import onnx
import tensorflow as tf

from rl_coach.architectures.native_messages import quiet_native_code
from rl_coach.architectures.onnx_model import keep_outputs
from rl_coach.utils import CoachError

_ELEMENTWISE = {
    "Abs": tf.abs, "Add": tf.add, "Div": tf.divide, "Elu": tf.nn.elu, "Erf": tf.math.erf, "Exp": tf.exp,
    "Log": tf.math.log, "MatMul": tf.matmul, "Mul": tf.multiply, "Neg": tf.negative, "Pow": tf.pow,
    "Reciprocal": tf.math.reciprocal, "Relu": tf.nn.relu, "Selu": tf.nn.selu, "Sigmoid": tf.sigmoid,
    "Softplus": tf.nn.softplus, "Sqrt": tf.sqrt, "Sub": tf.subtract, "Tanh": tf.tanh,
}  # fmt: skip
"""TensorFlow operations by their ONNX names. They have no attributes and the same arguments as in ONNX."""

_REDUCTIONS = {
    "ReduceMax": tf.reduce_max,
    "ReduceMean": tf.reduce_mean,
    "ReduceMin": tf.reduce_min,
    "ReduceSum": tf.reduce_sum,
}


@quiet_native_code()
def frozen_graph(model: bytes, scope: str, inputs: Mapping[str, str], output: str, output_names: list[str]) -> bytes:
    """Return a TensorFlow graph that computes one output of an ONNX model.

    :param model: the serialised ONNX model with its weights
    :param scope: the name scope of the operations between the inputs and the output
    :param inputs: the name of the placeholder for each input, by the input's name in the model. Placeholders have the
        shape [B, ...].
    :param output: the name of the output in the model
    :param output_names: names of this output in the graph; the graph gets an identity operation for each name
    :return: the serialised ``GraphDef``
    :raises CoachError: if an operation of the model cannot be converted
    """
    network = onnx.load_from_string(model).graph
    # only this output, because the conversion may not support the operations of other outputs
    keep_outputs(network, [output])
    graph = tf.Graph()
    with graph.as_default():
        values: dict[str, Any] = {one.name: onnx.numpy_helper.to_array(one) for one in network.initializer}
        for one in network.input:
            sizes = [dimension.dim_value for dimension in one.type.tensor_type.shape.dim][1:]
            values[one.name] = tf.compat.v1.placeholder(tf.float32, [None, *sizes], inputs[one.name])
        with tf.name_scope(f"{scope}/"):
            for node in network.node:
                values[node.output[0]] = _converted(node, [values[name] for name in node.input])
        for name in output_names:
            tf.identity(values[output], name)
        # stripped, because TensorFlow 1 does not know the attributes that later releases added
        definition = tf.compat.v1.train.export_meta_graph(strip_default_attrs=True).graph_def
    return bytes(definition.SerializeToString())


def _converted(node: Any, values: list[Any]) -> Any:
    """Convert a node. :param values: the node's inputs as tensors, or as arrays if they are constants"""
    kind = node.op_type
    attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    if kind in _ELEMENTWISE:
        return _ELEMENTWISE[kind](*values)
    if kind == "Identity":
        return values[0]
    if kind in ("Max", "Min"):
        return functools.reduce(tf.maximum if kind == "Max" else tf.minimum, values)
    if kind == "Softmax":
        return tf.nn.softmax(values[0], axis=attributes.get("axis", -1))
    if kind == "Concat":
        return tf.concat(values, attributes["axis"])
    if kind == "Transpose":
        return tf.transpose(values[0], attributes.get("perm"))
    if kind == "Conv" and _is_plain(attributes):
        return _convolution(attributes, *values)
    if all(isinstance(value, np.ndarray) for value in values[1:]):  # the other inputs are constants: axes or shapes
        if kind in _REDUCTIONS and len(values) == 2:
            return _REDUCTIONS[kind](values[0], axis=values[1], keepdims=bool(attributes.get("keepdims", 1)))
        if kind == "Squeeze":
            return tf.squeeze(values[0], *(axes.tolist() for axes in values[1:]))
        if kind == "Unsqueeze" and values[1].size == 1:
            return tf.expand_dims(values[0], int(values[1].item()))
        if kind == "Reshape" and 0 not in values[1]:  # a 0 would mean: keep this size
            return tf.reshape(values[0], values[1])
    raise CoachError(
        f"a frozen graph cannot contain the network's ONNX operation '{kind}': use the policy's model.onnx"
    )


def _is_plain(attributes: dict[str, Any]) -> bool:
    """True for a convolution over height and width, without groups and without automatic padding."""
    is_padded_otherwise = attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID")
    return len(attributes["strides"]) == 2 and attributes.get("group", 1) == 1 and not is_padded_otherwise


def _convolution(attributes: dict[str, Any], images: Any, kernel: Any, bias: Any = None) -> Any:
    """Convolve [B, C, H, W] with a kernel [C', C, h, w] to [B, C', H', W']. TensorFlow on CPUs needs the channels
    last.
    """
    top, left, bottom, right = attributes.get("pads", (0, 0, 0, 0))
    images = tf.transpose(images, (0, 2, 3, 1))
    if any((top, left, bottom, right)):
        images = tf.pad(images, ((0, 0), (top, bottom), (left, right), (0, 0)))
    # a constant kernel is transposed now, so that predictions need not transpose it
    transpose = np.transpose if isinstance(kernel, np.ndarray) else tf.transpose
    found = tf.nn.conv2d(
        images,
        transpose(kernel, (2, 3, 1, 0)),
        attributes["strides"],
        "VALID",
        dilations=attributes.get("dilations", (1, 1)),
    )
    return tf.transpose(found if bias is None else tf.nn.bias_add(found, bias), (0, 3, 1, 2))
