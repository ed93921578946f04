"""The state of one network in JAX arrays."""

from __future__ import annotations

from typing import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from keras import ops

from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.network_state import CompiledNetworkState


class JaxNetworkState(CompiledNetworkState):
    """See ``CompiledNetworkState``.

    No two variables share memory, because the training step takes over the memory of all.
    """

    def __init__(self, function: NetworkFunction, has_target: bool):
        super().__init__(ops, function, has_target)

    def _hold(self, array: np.ndarray) -> jax.Array:
        return jnp.array(array)

    def _read(self, index: int) -> np.ndarray:
        return np.asarray(self.variables[index])

    def _write(self, index: int, value: np.ndarray) -> None:
        self.variables[index] = jnp.array(value)

    def _compile(self, change: Callable[[Sequence], list]) -> Callable[[], None]:
        changed = jax.jit(change, donate_argnums=0)

        def call() -> None:
            self.variables = changed(self.variables)

        return call
