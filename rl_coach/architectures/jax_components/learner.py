"""A network's state in JAX arrays, and the compiled training steps that change this state. One call makes all updates
of a training phase. The call returns before JAX has computed the updates.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from keras import ops

from rl_coach.architectures.jax_components.device_mesh import DeviceMesh
from rl_coach.architectures.jax_components.layers import inside_loop
from rl_coach.architectures.learner import CompiledStep, Learner, StepLayout, Variables
from rl_coach.architectures.network_state import CompiledNetworkState
from rl_coach.architectures.update import TrainingStep
from rl_coach.logger import screen
from rl_coach.utils import CoachError


class JaxNetworkState(CompiledNetworkState):
    """The state of a network on JAX; see ``CompiledNetworkState``.

    No two variables share memory, because a training step reuses the memory of each variable for its new value.
    """

    ops = ops

    def _hold(self, array: np.ndarray) -> jax.Array:
        # a copy: on CPUs, jnp.asarray may use the memory of the NumPy array, which an update would then overwrite
        return jnp.array(array)

    def _read(self, index: int) -> np.ndarray:
        # waits until JAX has computed the value
        return np.asarray(self.variables[index])

    def _write(self, index: int, value: np.ndarray) -> None:
        self.variables[index] = jnp.array(value)

    def _compile(self, change: Callable[[Sequence], list]) -> Callable[[], None]:
        # donated, so that the new values use the memory of the old values
        changed = jax.jit(change, donate_argnums=0)

        def call() -> None:
            # no wait: JAX runs this after the updates that compute its arguments
            self.variables = changed(self.variables)

        return call


class JaxLearner(Learner):
    """The learner on JAX; see ``Learner``.

    :param mesh: the devices that share each batch; each device has all weights. None for JAX's first device
    """

    networks: dict[str, JaxNetworkState]

    def __init__(
        self, step: TrainingStep, networks: dict[str, JaxNetworkState], published: tuple[str, ...] = (),
        mesh: DeviceMesh | None = None,
    ):  # fmt: skip
        super().__init__(ops, step, networks)  # without published: reading all weights costs little
        self.mesh = mesh

    def _compile(self, layout: StepLayout, compute: Callable[..., tuple[Variables, list]]) -> CompiledStep:
        # donated: XLA writes the new values into the old arrays. No code may read the old arrays after the call
        compiled = jax.jit(partial(compute, layout), donate_argnums=0, **self._places(layout))

        def call(vector: np.ndarray, large: list[np.ndarray], indices: np.ndarray | None) -> list[jax.Array]:
            variables, results = compiled(self.variables, vector, large, indices)
            for name, network in self.networks.items():
                network.variables = variables[name]
            return results

        return call

    def _places(self, layout: StepLayout) -> dict[str, Any]:
        """The shardings of a step's arguments and results, as arguments of ``jax.jit``.

        :raises CoachError: if the number of devices does not divide the batch
        """
        mesh, size = self.mesh, layout.batch_size
        if mesh is None:
            return {}
        if size % mesh.num_devices:
            raise CoachError(
                f"num_devices is {mesh.num_devices}, which does not divide a batch of {size} rows: change num_devices "
                "or the batch size"
            )
        # log this once in a run, not for each shape of batches
        if self.num_compilations == 1 and mesh.num_devices > 1:
            screen.log(f"batches of {size} rows are divided between {mesh.num_devices} devices")
        # a device needs all rows if the rows of several updates are mixed
        is_one_batch = layout.packing.num_updates == 1 and not layout.is_indexed
        large = mesh.divided() if is_one_batch else mesh.everywhere
        places = (mesh.everywhere, mesh.everywhere, large, mesh.everywhere)
        return {"in_shardings": places, "out_shardings": mesh.everywhere}

    def _columns(self, layout: StepLayout, rows: Any, large: dict[str, Any], k: Any, indices: Any) -> dict[str, Any]:
        columns = super()._columns(layout, rows, large, k, indices)
        return columns if self.mesh is None else jax.lax.with_sharding_constraint(columns, self.mesh.divided())

    def _gradients(self, function: Callable, weights: dict[str, list]) -> tuple[dict[str, list], Any]:
        # One forward pass, and a backward pass for each loss. A single backward pass with a mask over the losses
        # would also compute the gradients of the masked losses: they are zeros, but XLA does not know this. Nobody
        # reads the gradients for the weights of other networks, and XLA leaves them out. They must be traced
        # nevertheless, because ``TransposingDense`` can only be transposed, not evaluated.
        losses, slope, auxiliary = jax.linearize(function, weights, has_aux=True)
        found = {}
        for name, loss in losses.items():

            def own_slope(moved: dict[str, list], name: str = name) -> Any:
                return slope(moved)[name]

            (of_all,) = jax.linear_transpose(own_slope, weights)(jnp.ones_like(loss))
            found[name] = of_all[name]
        return found, auxiliary

    def _loop(self, update: Callable, state: dict, num_updates: int, count: Any) -> tuple[dict, Any]:
        def body(k: Any, carried: tuple) -> tuple:
            state, outputs = carried
            state, row = update(k, state)
            return state, outputs.at[k].set(row)

        # in this context, layers use forms that are fast in a loop of XLA
        with inside_loop():
            _, row = jax.eval_shape(update, jnp.int32(0), state)
            outputs = jnp.zeros((num_updates, *row.shape), row.dtype)
            return jax.lax.fori_loop(0, jnp.minimum(count, num_updates), body, (state, outputs))
