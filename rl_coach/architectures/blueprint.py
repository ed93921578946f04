"""Blueprints: a network as plain data. Acting needs only this data and no training framework."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Mapping

import numpy as np

from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.onnx_predictor import ExportedNetwork

Shape = tuple[int, ...]


@dataclass(frozen=True, repr=False)
class NetworkBlueprint(ExportedNetwork):
    """An exported network with all data that acting needs, except the values of its weights.

    :param weight_shapes: shapes of the trained weights, in order
    :param buffer_shapes: shapes of the float buffers, in order; acting does not need the other buffers, the states of
        random generators
    :param public_outputs: the outputs of ``predict``; each is the number of a head and the name of one output of this
        head
    :param recurrent_sizes: size of each part of the recurrent state, by name; empty for none
    :param noise_buffers: positions in ``buffer_shapes`` of the noise of NoisyNet layers
    """

    weight_shapes: list[Shape]
    buffer_shapes: list[Shape]
    public_outputs: list[tuple[int, str]]
    recurrent_sizes: dict[str, int]
    noise_buffers: list[int]

    @classmethod
    def of(cls, function: NetworkFunction, exported: ExportedNetwork) -> NetworkBlueprint:
        """The blueprint of a network on any framework."""
        return cls(
            **{field.name: getattr(exported, field.name) for field in fields(ExportedNetwork)},
            weight_shapes=[array.shape for array in function.initial_weights()],
            buffer_shapes=[array.shape for array in function.initial_buffers() if array.dtype == np.float32],
            public_outputs=function.public_outputs,
            recurrent_sizes=function.recurrent_sizes,
            noise_buffers=function.noise_buffers,
        )

    def plain(self) -> dict[str, Any]:
        """The blueprint as bytes, strings, numbers, lists and dicts."""
        return dict(vars(self))

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> NetworkBlueprint:
        """The blueprint from the result of ``plain``. :raises KeyError: if a key is missing"""
        return cls(**{field.name: plain[field.name] for field in fields(cls)})

    def __repr__(self) -> str:
        return f"NetworkBlueprint({list(self.input_shapes)} to {list(self.output_shapes)})"
