"""The state of one network in MXNet arrays."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from rl_coach.architectures.mxnet_components import ops
from rl_coach.architectures.mxnet_components.compatible_mxnet import numpy_semantics
from rl_coach.architectures.mxnet_components.network import MXNetNetwork
from rl_coach.architectures.mxnet_components.pieces import Pieces
from rl_coach.architectures.update import Optimizer

BUFFERS = ("buffers", "target_buffers")


class MXNetNetworkState:
    """Weights, buffers, optimizer slots and, with a target, the target's weights and buffers.

    :param function: the network
    :param has_target: keep a target network, equal to the online one at first
    :ivar variables: arrays by group, which nobody writes to: an update replaces them
    :ivar updates: how many updates the weights have had, whichever learner made them; the optimizer's schedules and
        bias corrections follow from it
    :ivar version: changes whenever a value does
    """

    def __init__(self, function: MXNetNetwork, has_target: bool):
        self.function = function
        weights, buffers = function.initial_weights(), function.initial_buffers()
        slots = [np.zeros_like(w) for _ in range(Optimizer(function.parameters).num_slots) for w in weights]
        groups = {"weights": weights, "buffers": buffers, "slots": slots}
        if has_target:
            groups |= {"target_weights": weights, "target_buffers": buffers}
        self._shapes = tuple(weight.shape for weight in weights)
        self.variables = {name: self._held(name, group) for name, group in groups.items()}
        self.updates = 0
        self.version = 0

    def groups(self) -> list[str]:
        """The names of the groups."""
        return list(self.variables)

    def arrays(self, group: str) -> list[np.ndarray]:
        """The values of one group, such as ``'target_weights'``, not to be written to."""
        held = self.variables[group]
        if isinstance(held, Pieces):
            return held.numpy()
        return [value if isinstance(value, np.ndarray) else value.asnumpy() for value in held]

    def set_arrays(self, group: str, values: Sequence[np.ndarray]) -> None:
        """Replace the values of one group.

        :raises ValueError: their number or a shape does not fit
        """
        old = self.arrays(group)
        if len(values) != len(old):
            raise ValueError(f"'{group}' has {len(old)} arrays, got {len(values)}")
        for before, value in zip(old, values):
            if before.shape != np.shape(value):
                raise ValueError(f"an array of '{group}' has shape {before.shape}, got {np.shape(value)}")
        self.variables[group] = self._held(
            group, [np.asarray(value, before.dtype) for before, value in zip(old, values)]
        )
        self.version += 1

    @numpy_semantics
    def follow(self, rate: float) -> None:
        """Move the target's weights towards the online ones; a rate of 1 copies them."""
        self.replace(followed(self.variables, rate))

    def replace(self, variables: dict[str, Any]) -> None:
        """Take the values that an update computed."""
        self.variables = variables
        self.version += 1

    def is_changed_by(self, check: Callable[[], None]) -> None:
        """Updates have been made. :param check: raises if they failed"""
        self.version += 1
        check()

    def finish(self) -> None:
        """Nothing is under way: MXNet's updates are made when the call returns."""

    @numpy_semantics
    def _held(self, group: str, arrays: Sequence[np.ndarray]) -> Any:
        """The arrays on MXNet; the state of random generators, which is no float, stays on the host."""
        if group in BUFFERS:
            return [np.array(array) if array.dtype == np.uint32 else ops.convert_to_tensor(array) for array in arrays]
        return Pieces.of(arrays, self._shapes)


def followed(groups: dict[str, Any], rate: float) -> dict[str, Any]:
    """The groups after the target moved towards the online weights, all of them at once."""
    online, target = groups["weights"], groups["target_weights"]
    vector = online.vector if rate == 1 else target.vector + rate * (online.vector - target.vector)
    return {**groups, "target_weights": Pieces([vector], online.shapes), "target_buffers": groups["buffers"]}
