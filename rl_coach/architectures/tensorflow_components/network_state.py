"""The state of one network in TensorFlow variables."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from rl_coach.architectures.keras_components.network import KerasNetwork
from rl_coach.architectures.update import Optimizer


class TensorFlowNetworkState:
    """Weights, buffers, optimizer slots and, with a target, the target's weights and buffers.

    :param function: the network
    :param has_target: keep a target network, equal to the online one at first
    :ivar updates: how many updates the weights have had, whichever learner made them; the optimizer's schedules and
        bias corrections follow from it
    :ivar version: changes whenever a value does
    """

    def __init__(self, function: KerasNetwork, has_target: bool):
        self.function = function
        weights, buffers = function.initial_weights(), function.initial_buffers()
        slots = [np.zeros_like(w) for _ in range(Optimizer(function.parameters).num_slots) for w in weights]
        arrays = {"weights": weights, "buffers": buffers, "slots": slots}
        if has_target:
            arrays |= {"target_weights": weights, "target_buffers": buffers}
        self.variables = {name: [tf.Variable(array) for array in group] for name, group in arrays.items()}
        self.updates = 0
        self.version = 0
        self._published: dict[str, list] = {}

    def read(self) -> dict[str, list]:
        """The state as tensors; within a traced step the variables' values then."""
        return {name: [variable.value() for variable in group] for name, group in self.variables.items()}

    def assign(self, state: dict[str, list], old: dict[str, list]) -> None:
        """Take the values that a step changed."""
        for name, group in self.variables.items():
            for variable, value, before in zip(group, state[name], old[name]):
                if value is not before:
                    variable.assign(value)

    def publish(self, values: dict[str, list]) -> None:
        """Remember the values that a step returned beside its results, which cost less to read than variables."""
        self._published = values

    def arrays(self, group: str) -> list[np.ndarray]:
        """The values of one group, such as ``'target_weights'``, not to be written to."""
        if group in self._published:
            return [tensor._numpy() for tensor in self._published[group]]
        return [variable.numpy() for variable in self.variables[group]]

    def set_arrays(self, group: str, values: list[np.ndarray]) -> None:
        """Replace the values of one group.

        :raises ValueError: their number or a shape does not fit
        """
        variables = self.variables[group]
        if len(values) != len(variables):
            raise ValueError(f"'{group}' has {len(variables)} arrays, got {len(values)}")
        for variable, value in zip(variables, values):
            if tuple(variable.shape) != np.shape(value):
                raise ValueError(f"an array of '{group}' has shape {tuple(variable.shape)}, got {np.shape(value)}")
            variable.assign(value)
        self._published.pop(group, None)
        self.version += 1

    def follow(self, rate: float) -> None:
        """Move the target's weights towards the online ones; a rate of 1 copies them."""
        for target, online in (("target_weights", "weights"), ("target_buffers", "buffers")):
            for old, new in zip(self.variables[target], self.variables[online]):
                old.assign(new if rate == 1 or target == "target_buffers" else old + rate * (new - old))
        self.version += 1

    def groups(self) -> list[str]:
        """The names of the groups."""
        return list(self.variables)
