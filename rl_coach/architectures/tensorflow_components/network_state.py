"""The state of one network in TensorFlow variables."""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np
import tensorflow as tf
from keras import ops

from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.network_state import CompiledNetworkState


class TensorFlowNetworkState(CompiledNetworkState):
    """See ``CompiledNetworkState``."""

    def __init__(self, function: NetworkFunction, has_target: bool):
        super().__init__(ops, function, has_target)

    def read(self) -> list[tf.Tensor]:
        """The variables' values as tensors; within a traced step those that they have then."""
        return [variable.value() for variable in self.variables]

    def assign(self, values: Sequence, old: Sequence) -> None:
        """Take the values that a step changed."""
        for variable, value, before in zip(self.variables, values, old):
            if value is not before:
                variable.assign(value)

    def _hold(self, array: np.ndarray) -> tf.Variable:
        return tf.Variable(array)

    def _read(self, index: int) -> np.ndarray:
        return self.variables[index].numpy()

    def _write(self, index: int, value: np.ndarray) -> None:
        tensor = tf.constant(value)
        self.variables[index].assign(tensor)
        self.published[index] = tensor._numpy()

    def _compile(self, change: Callable[[Sequence], list]) -> Callable[[], None]:
        @tf.function(autograph=False)
        def changed() -> None:
            before = self.read()
            self.assign(change(before), before)

        def call() -> None:
            changed()
            self.published = {}

        return call
