"""The export of a network made of array operations to ONNX."""

from __future__ import annotations

from typing import Any

from rl_coach.architectures.acting_function import ActingFunction
from rl_coach.architectures.array_components.layers import Pass
from rl_coach.architectures.array_components.network import ArrayNetwork
from rl_coach.architectures.array_components.onnx_ops import BATCH, OnnxOps
from rl_coach.architectures.network_function import NetworkFunction, Outputs
from rl_coach.architectures.onnx_predictor import ExportedNetwork


def export(network: NetworkFunction) -> ExportedNetwork:
    """Export a network to an ONNX graph with the inputs and outputs of ``ActingFunction``, for batches of any size."""
    if not isinstance(network, ArrayNetwork):
        raise TypeError(f"{network!r} is not a network of array operations")
    ops = OnnxOps()

    def compute(weights: list, buffers: list, inputs: dict[str, Any]) -> tuple[Outputs, dict[str, Any]]:
        run = Pass(ops, network.rng, weights, buffers, single_step=True, parts=network.parts)
        return network.run(run, inputs)

    acting = ActingFunction(network, compute)
    arrays = [ops.input(name, shape) for name, shape in acting.weight_shapes.items()]
    inputs = {name: ops.input(name, (BATCH, *shape)) for name, shape in acting.input_shapes.items()}
    outputs = acting(arrays, inputs)
    return acting.exported(ops.model(dict(zip(acting.output_shapes, outputs))))
