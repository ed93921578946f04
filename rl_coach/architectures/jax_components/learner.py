"""Training steps compiled by JAX: all updates of a training phase in one call, which returns before they are made."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from keras import ops

from rl_coach.architectures.jax_components.network_state import JaxNetworkState
from rl_coach.architectures.learner import CompiledStep, Learner, StepLayout
from rl_coach.architectures.update import TrainingStep


class JaxLearner(Learner):
    """See ``Learner``."""

    networks: dict[str, JaxNetworkState]

    def __init__(self, step: TrainingStep, networks: dict[str, JaxNetworkState]):
        super().__init__(ops, step, networks)

    def _compile(self, layout: StepLayout) -> CompiledStep:
        compiled = jax.jit(partial(self.all_updates, layout), donate_argnums=0)

        def call(vector: np.ndarray, large: list[np.ndarray], indices: np.ndarray | None) -> jax.Array:
            variables = {name: network.variables for name, network in self.networks.items()}
            variables, outputs = compiled(variables, vector, large, indices)
            for name, network in self.networks.items():
                network.variables = variables[name]
            return outputs

        return call

    def _gradients(self, function: Callable, weights: dict[str, list]) -> tuple[dict[str, list], Any]:
        losses, pull_back, auxiliary = jax.vjp(function, weights, has_aux=True)
        found = {}
        for name in losses:
            # one backward pass for each loss; of each, XLA keeps only what leads to the network's own weights
            cotangents = {other: jnp.asarray(float(other == name), loss.dtype) for other, loss in losses.items()}
            found[name] = pull_back(cotangents)[0][name]
        return found, auxiliary

    def _loop(self, update: Callable, state: dict, num_updates: int, count: Any) -> tuple[dict, Any]:
        _, row = jax.eval_shape(update, jnp.int32(0), state)
        outputs = jnp.zeros((num_updates, *row.shape), row.dtype)

        def body(k: Any, carried: tuple) -> tuple:
            state, outputs = carried
            state, row = update(k, state)
            return state, outputs.at[k].set(row)

        return jax.lax.fori_loop(0, jnp.minimum(count, num_updates), body, (state, outputs))
