"""Blueprints: a network as plain data, from which one that only acts is built without a training framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

import numpy as np

from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.onnx_predictor import ExportedNetwork

Shape = tuple[int, ...]


@dataclass(frozen=True, repr=False)
class NetworkBlueprint:
    """A network but for the values of its weights.

    :param exported: the ONNX graph, whose inputs are weights and float buffers, then observations
    :param weight_shapes: of the trained weights, in order
    :param buffer_shapes: of the float buffers, in order; the state of random generators serves learning alone
    :param public_outputs: what ``predict`` returns, as numbers of heads and names of their outputs
    :param recurrent_sizes: how many numbers each part of the state has that the network carries from step to step
    :param noise_buffers: which buffers hold NoisyNet's noise
    """

    exported: ExportedNetwork
    weight_shapes: tuple[Shape, ...]
    buffer_shapes: tuple[Shape, ...]
    public_outputs: tuple[tuple[int, str], ...]
    recurrent_sizes: dict[str, int]
    noise_buffers: tuple[int, ...]

    @classmethod
    def of(cls, function: NetworkFunction, exported: ExportedNetwork) -> NetworkBlueprint:
        """The blueprint of a network on any framework."""
        buffers = [array for array in function.initial_buffers() if array.dtype == np.float32]
        return cls(
            exported,
            tuple(array.shape for array in function.initial_weights()),
            tuple(array.shape for array in buffers),
            tuple(function.public_outputs),
            dict(function.recurrent_sizes),
            tuple(function.noise_buffers),
        )

    def plain(self) -> dict[str, Any]:
        """The blueprint as bytes, strings, numbers, lists and dicts."""
        exported = self.exported
        return {
            "model": exported.model,
            "weight_names": list(exported.weight_names),
            "input_shapes": {name: list(shape) for name, shape in exported.input_shapes.items()},
            "output_shapes": {name: list(shape) for name, shape in exported.output_shapes.items()},
            "weight_axes": {name: list(axes) for name, axes in exported.weight_axes.items()},
            "weight_shapes": [list(shape) for shape in self.weight_shapes],
            "buffer_shapes": [list(shape) for shape in self.buffer_shapes],
            "public_outputs": [[head, name] for head, name in self.public_outputs],
            "recurrent_sizes": dict(self.recurrent_sizes),
            "noise_buffers": list(self.noise_buffers),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> NetworkBlueprint:
        """The blueprint that ``plain`` gave.

        :raises KeyError: something is missing
        """
        exported = ExportedNetwork(
            plain["model"],
            list(plain["weight_names"]),
            _shapes(plain["input_shapes"]),
            _shapes(plain["output_shapes"]),
            _shapes(plain["weight_axes"]),
        )
        return cls(
            exported,
            tuple(tuple(shape) for shape in plain["weight_shapes"]),
            tuple(tuple(shape) for shape in plain["buffer_shapes"]),
            tuple((int(head), str(name)) for head, name in plain["public_outputs"]),
            dict(plain["recurrent_sizes"]),
            tuple(plain["noise_buffers"]),
        )

    def __repr__(self) -> str:
        return f"NetworkBlueprint({list(self.exported.input_shapes)} to {list(self.exported.output_shapes)})"


def _shapes(plain: Mapping[str, Any]) -> dict[str, Shape]:
    return {name: tuple(shape) for name, shape in plain.items()}
