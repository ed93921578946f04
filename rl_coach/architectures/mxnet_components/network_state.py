"""The state of one network in MXNet arrays."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from rl_coach.architectures.mxnet_components import ops
from rl_coach.architectures.mxnet_components.compatible_mxnet import numpy_semantics
from rl_coach.architectures.mxnet_components.pieces import Pieces
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.network_state import NetworkState, initial_groups

BUFFERS = ("buffers", "target_buffers")


class MXNetNetworkState(NetworkState):
    """See ``NetworkState``. Nothing is ever under way: MXNet's updates are made when the call returns.

    :ivar variables: arrays by group, which nobody writes to: an update replaces them
    """

    def __init__(self, function: NetworkFunction, has_target: bool):
        groups = initial_groups(function, has_target)
        super().__init__(function, groups)
        self.variables: dict[str, Any] = {name: self._held(name, group) for name, group in groups.items()}

    def arrays(self, group: str) -> list[np.ndarray]:
        held = self.variables[group]
        if isinstance(held, Pieces):
            return held.numpy()
        return [value if isinstance(value, np.ndarray) else value.asnumpy() for value in held]

    @numpy_semantics
    def update_target(self, rate: float) -> None:
        self.replace(with_updated_target(self.variables, rate))

    def replace(self, variables: dict[str, Any]) -> None:
        """Take the values that an update computed."""
        self.variables = variables
        self.version += 1

    def _replace(self, group: str, arrays: list[np.ndarray]) -> None:
        self.variables[group] = self._held(group, arrays)

    @numpy_semantics
    def _held(self, group: str, arrays: Sequence[np.ndarray]) -> Any:
        """The arrays on MXNet; the state of random generators, which is no float, stays on the host."""
        if group in BUFFERS:
            return [np.array(array) if array.dtype == np.uint32 else ops.convert_to_tensor(array) for array in arrays]
        return Pieces.of(arrays, tuple(shape for shape, _ in self._forms["weights"]))


def with_updated_target(groups: dict[str, Any], rate: float) -> dict[str, Any]:
    """The groups after the target moved towards the online weights, all of them at once."""
    online, target = groups["weights"], groups["target_weights"]
    vector = online.vector if rate == 1 else target.vector + rate * (online.vector - target.vector)
    return {**groups, "target_weights": Pieces([vector], online.shapes), "target_buffers": groups["buffers"]}
