"""The export of a network made of array operations to ONNX."""

from __future__ import annotations

import numpy as np

from rl_coach.architectures.array_components.layers import Pass
from rl_coach.architectures.array_components.network import ArrayNetwork
from rl_coach.architectures.array_components.onnx_ops import BATCH, OnnxOps
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.onnx_model import hoist_transposes
from rl_coach.architectures.onnx_predictor import ExportedNetwork


def export(network: NetworkFunction) -> ExportedNetwork:
    """Return an ONNX graph that computes the network's public outputs and new recurrent state.

    The graph has opset 18 and a batch of any size. Its inputs are the weights ``weight_<i>``, the buffers
    ``buffer_<i>``, and the observations by name.
    """
    if not isinstance(network, ArrayNetwork):
        raise TypeError(f"{network!r} is not a network of array operations")
    ops = OnnxOps()
    weights = [ops.input(f"weight_{i}", array.shape) for i, array in enumerate(network.initial_weights())]
    buffers: list = network.initial_buffers()
    # the other buffers are states of random generators, which acting does not use
    positions = [position for position, array in enumerate(buffers) if array.dtype == np.float32]
    for i, position in enumerate(positions):
        buffers[position] = ops.input(f"buffer_{i}", buffers[position].shape)
    names = [tensor.name for tensor in [*weights, *(buffers[position] for position in positions)]]
    shapes = network.input_shapes | {name: (size,) for name, size in network.recurrent_sizes.items()}
    inputs = {name: ops.input(name, (BATCH, *shape)) for name, shape in shapes.items()}
    heads, recurrent = network.run(
        Pass(ops, network.rng, weights, buffers, single_step=True, parts=network.parts), inputs
    )
    outputs = {f"output_{head}_{name}": heads[head][name] for head, name in network.public_outputs}
    outputs |= {f"next_{name}": tensor for name, tensor in recurrent.items()}
    model = ops.model(outputs)
    axes = hoist_transposes(model, names[: len(weights)])
    output_shapes = {name: tensor.shape[1:] for name, tensor in outputs.items()}
    return ExportedNetwork(model.SerializeToString(), names, shapes, output_shapes, axes)
