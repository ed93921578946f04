"""A network's state as vectors: all weights of a network are one array, and so is each slot of the optimizer."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from rl_coach.architectures.array_components.pieces import Pieces
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.network_state import NetworkState, initial_groups

BUFFERS = ("buffers", "target_buffers")


class ArrayNetworkState(NetworkState):
    """See ``NetworkState``. Nothing is ever under way: updates are made when the call returns.

    :param ops: the framework's array operations; see ``ArrayNetwork``

    :ivar variables: arrays by group
    """

    def __init__(self, ops: Any, function: NetworkFunction, has_target: bool):
        groups = initial_groups(function, has_target)
        super().__init__(function, groups)
        self.ops = ops
        self.variables: dict[str, Any] = {name: self._held(name, group) for name, group in groups.items()}

    def arrays(self, group: str) -> list[np.ndarray]:
        held = self.variables[group]
        if isinstance(held, Pieces):
            return held.numpy()
        values = zip(held, self._forms[group])
        return [np.array(self.ops.convert_to_numpy(value), dtype) for value, (_, dtype) in values]

    def update_target(self, rate: float) -> None:
        self.variables = with_updated_target(self.variables, rate)
        self.version += 1

    def _replace(self, group: str, arrays: list[np.ndarray]) -> None:
        self.variables[group] = self._held(group, arrays)

    def _held(self, group: str, arrays: Sequence[np.ndarray]) -> Any:
        if group in BUFFERS:
            return [self.ops.buffer(np.array(array)) for array in arrays]
        return Pieces.of(self.ops, arrays, tuple(shape for shape, _ in self._forms["weights"]))


def with_updated_target(groups: dict[str, Any], rate: float) -> dict[str, Any]:
    """The groups after the target moved towards the online weights, all of them at once."""
    online, target = groups["weights"], groups["target_weights"]
    pairs = zip(online.vectors, target.vectors)
    vectors = online.vectors if rate == 1 else [old + rate * (new - old) for new, old in pairs]
    return {**groups, "target_weights": target.with_vectors(vectors), "target_buffers": groups["buffers"]}
