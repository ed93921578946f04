"""The export of a Keras network on JAX to ONNX."""

from __future__ import annotations

import jax
import numpy as np
from onnx import TensorProto, helper

from rl_coach.architectures.acting_function import ActingFunction
from rl_coach.architectures.jax_components.onnx_graph import OnnxGraph, Value
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.onnx_predictor import ExportedNetwork


def export(network: NetworkFunction) -> ExportedNetwork:
    """Export a network to an ONNX graph with the inputs and outputs of ``ActingFunction``, for batches of any size.

    :raises CoachError: if the network uses an operation that cannot be exported
    """
    acting = ActingFunction(network)
    (batch,) = jax.export.symbolic_shape("batch")
    weights = dict(acting.weight_shapes)
    inputs = {name: (batch, *shape) for name, shape in acting.input_shapes.items()}
    traced = jax.jit(acting).trace(
        [jax.ShapeDtypeStruct(shape, np.float32) for shape in weights.values()],
        {name: jax.ShapeDtypeStruct(shape, np.float32) for name, shape in inputs.items()},
    )
    graph = OnnxGraph(next(iter(inputs)))
    # JAX flattens dicts in the order of their keys
    arguments = weights | {name: inputs[name] for name in sorted(inputs)}
    values = [Value(name, shape) for name, shape in arguments.items()]
    outputs = graph.add(traced.jaxpr.jaxpr, traced.jaxpr.consts, values)
    model = graph.model(
        [_info(name, shape) for name, shape in (weights | inputs).items()],
        [(_info(name, ("batch", *acting.output_shapes[name])), v) for name, v in zip(acting.output_shapes, outputs)],
    )
    return acting.exported(model)


def _info(name: str, shape: tuple) -> object:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [n if isinstance(n, int) else "batch" for n in shape])
