"""A network's state in JAX arrays, and the compiled training steps that change it: all updates of a training phase in
one call, which returns before JAX has computed them.
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
    """See ``CompiledNetworkState``.

    No two variables share memory, because the training step donates the memory of all variables.
    """

    ops = ops

    def _hold(self, array: np.ndarray) -> jax.Array:
        # a copy: on CPUs, jnp.asarray may use the memory of the NumPy array, and a donated array is overwritten
        return jnp.array(array)

    def _read(self, index: int) -> np.ndarray:
        # waits until JAX has computed the value
        return np.asarray(self.variables[index])

    def _write(self, index: int, value: np.ndarray) -> None:
        self.variables[index] = jnp.array(value)

    def _compile(self, change: Callable[[Sequence], list]) -> Callable[[], None]:
        # donated as in a training step: the new values need no other memory
        changed = jax.jit(change, donate_argnums=0)

        def call() -> None:
            # no wait: JAX runs this after the updates that compute its arguments
            self.variables = changed(self.variables)

        return call


class JaxLearner(Learner):
    """See ``Learner``.

    :param mesh: the devices that share each batch; each has all weights. None computes on JAX's first device
    """

    networks: dict[str, JaxNetworkState]

    def __init__(
        self, step: TrainingStep, networks: dict[str, JaxNetworkState], published: tuple[str, ...] = (),
        mesh: DeviceMesh | None = None,
    ):  # fmt: skip
        super().__init__(ops, step, networks)  # all weights cost little to read, also unpublished ones
        self.mesh = mesh

    def _compile(self, layout: StepLayout, compute: Callable[..., tuple[Variables, list]]) -> CompiledStep:
        # donated: XLA writes the new values over the old ones. No code may read the old ones after the call
        compiled = jax.jit(partial(compute, layout), donate_argnums=0, **self._places(layout))

        def call(vector: np.ndarray, large: list[np.ndarray], indices: np.ndarray | None) -> list[jax.Array]:
            variables = {name: network.variables for name, network in self.networks.items()}
            variables, results = compiled(variables, vector, large, indices)
            for name, network in self.networks.items():
                network.variables = variables[name]
            return results

        return call

    def _places(self, layout: StepLayout) -> dict[str, Any]:
        """The places of a step's arguments and results, as ``jax.jit`` takes them.

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
        # one line in a run, not one for each shape of batches
        if self.num_compilations == 1 and mesh.num_devices > 1:
            screen.log(f"batches of {size} rows are divided between {mesh.num_devices} devices")
        # the rows of several updates may be mixed: a device needs all of them
        is_one_batch = layout.packing.num_updates == 1 and not layout.is_indexed
        large = mesh.divided() if is_one_batch else mesh.everywhere
        places = (mesh.everywhere, mesh.everywhere, large, mesh.everywhere)
        return {"in_shardings": places, "out_shardings": mesh.everywhere}

    def _columns(self, layout: StepLayout, rows: Any, large: dict[str, Any], k: Any, indices: Any) -> dict[str, Any]:
        columns = super()._columns(layout, rows, large, k, indices)
        return columns if self.mesh is None else jax.lax.with_sharding_constraint(columns, self.mesh.divided())

    def _gradients(self, function: Callable, weights: dict[str, list]) -> tuple[dict[str, list], Any]:
        # One forward pass, and for each loss a backward pass. A single backward pass with a mask over the losses would
        # also compute the gradients of the masked ones: they are zeros, but XLA does not know this. XLA leaves out the
        # gradients of other networks' weights, which nobody reads. They must be traced: ``LoopedDense`` can only be
        # transposed, not evaluated.
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

        # layers then take the forms that are fast in a loop of XLA
        with inside_loop():
            _, row = jax.eval_shape(update, jnp.int32(0), state)
            outputs = jnp.zeros((num_updates, *row.shape), row.dtype)
            return jax.lax.fori_loop(0, jnp.minimum(count, num_updates), body, (state, outputs))
