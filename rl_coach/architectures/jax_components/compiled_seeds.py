"""The compiled loops of several seeds as one program on JAX."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from rl_coach.architectures.compiled_loop import Plan, Played
from rl_coach.architectures.jax_components.compiled_loop import Carry, JaxCompiledLoop, data_of, rows_where, with_data
from rl_coach.architectures.jax_components.device_mesh import DeviceMesh
from rl_coach.architectures.learner import OutputNames


class JaxPlayedSeeds:
    """The records of a call, one for each seed.

    :param played: the records on the device; the arrays have a row for each seed
    """

    def __init__(self, played: Played):
        self._played = played
        self._read: Any = None

    @property
    def is_ready(self) -> bool:
        """True if ``of`` returns without waiting."""
        return all(leaf.is_ready() for leaf in jax.tree.leaves(self._played))

    def of(self, row: int) -> Played:
        """Wait until the call is done. Return the record of a seed as NumPy arrays."""
        if self._read is None:
            # one transfer for the rows of all seeds
            self._read = jax.device_get(self._played)
        return jax.tree.map(lambda leaf: leaf[row], self._read)


class JaxCompiledSeeds:
    """Plays, stores steps and learns for several seeds in one call. Each array has a row for each seed.

    The number of devices is the largest number that divides both the number of seeds and the number of JAX's devices.
    The results of a seed do not depend on the other seeds. They differ in the last digits from the results of a loop
    with one seed.

    :param loop: the loop of one seed
    :param num_seeds: R, the number of seeds
    """

    def __init__(self, loop: JaxCompiledLoop, num_seeds: int):
        # the devices divide the seeds, so all copies of one seed are on one device
        self._loop, self._num_seeds = loop.on_one_device(), num_seeds
        self.num_devices = math.gcd(num_seeds, len(jax.devices()))
        self._rows = DeviceMesh(self.num_devices).divided()
        # all seeds share one plan, so that the number of steps in a loop is the same for all seeds
        self._together = jax.jit(
            jax.vmap(self._loop.compute, in_axes=(0, 0, None)),
            donate_argnums=(0, 1),
            out_shardings=(self._rows, self._rows, None),
        )
        self._merged = jax.jit(
            lambda old, new, kept: jax.tree.map(partial(rows_where, kept), old, new),
            donate_argnums=0,
            out_shardings=self._rows,
        )
        self._replaced = jax.jit(
            lambda rows, row, new: jax.tree.map(lambda old, own: old.at[row].set(own), rows, new),
            donate_argnums=0,
            out_shardings=self._rows,
        )
        self._variables = self._repeated(self._loop.learner.variables)
        self._carries: Any = None

    def begin(self, row: int, seed: int, updates: Mapping[str, int]) -> None:
        """Set the first carry of a seed (the state of its loop): an empty memory, and the beginning of an episode in
        each copy of the environment.

        :param updates: number of updates of the seed's networks so far, by name
        """
        self._set_carry(row, self._loop.begin(seed, updates))

    def begin_episodes(self, row: int) -> None:
        """Begin an episode in each copy of a seed's environment. Episodes in progress are cut off."""
        self._set_carry(row, self._loop.begin_episodes(self._carry(row)))

    def set_variables(self, row: int, variables: Mapping[str, list[np.ndarray]]) -> None:
        """Replace the variables of a seed's networks."""
        self._variables = self._replaced(self._variables, row, dict(variables))

    def run(self, plan: Plan, waiting: Iterable[int]) -> JaxPlayedSeeds:
        """Start the planned steps and updates. The seeds in the rows ``waiting`` do not change."""
        kept = np.zeros(self._num_seeds, np.bool_)
        kept[list(waiting)] = True
        before = (self._variables, self._carries)
        # always all rows: with fewer rows, the last digits of the numbers would change
        # a copy if some seeds wait: the call donates its arguments, and ``before`` is read afterwards
        given = jax.tree.map(jnp.copy, before) if kept.any() else before
        self._variables, self._carries, played = self._together(*given, plan)
        if kept.any():
            self._variables, self._carries = self._merged(before, (self._variables, self._carries), kept)
        return JaxPlayedSeeds(played)

    def results(self, row: int) -> tuple[dict[str, list[np.ndarray]], Any]:
        """The variables of a seed's networks, and the statistics of its pre-network filters."""
        statistics = self._carries["statistics"]
        return jax.tree.map(lambda leaf: np.asarray(leaf[row]), (self._variables, statistics))

    def output_names(self, row: int) -> OutputNames:
        """The names of the outputs of an update. They are the same for all seeds."""
        return self._loop.learner.output_names

    def leaves(self, row: int) -> list[np.ndarray]:
        """The arrays of a seed's carry (the state of its loop), for a checkpoint."""
        return self._loop.leaves(self._carry(row))

    def set_leaves(self, row: int, leaves: list[np.ndarray]) -> None:
        """Replace the arrays of a seed's carry. :raises ValueError: if their number or a shape does not fit"""
        self._set_carry(row, self._loop.with_leaves(self._carry(row), leaves))

    def _carry(self, row: int) -> Carry:
        # not bound to a device, so that JAX may use the row on any device
        return jax.tree.map(lambda rows: with_data(rows, np.asarray(data_of(rows)[row])), self._carries)

    def _set_carry(self, row: int, carry: Carry) -> None:
        if self._carries is None:
            # the other seeds have no carry yet: copies of this one give their rows the right shapes
            self._carries = self._repeated(carry)
        self._carries = self._replaced(self._carries, row, carry)

    def _repeated(self, row: Any) -> Any:
        """Arrays with an equal row for each seed."""
        rows = jax.tree.map(lambda leaf: jnp.stack([leaf] * self._num_seeds), row)
        return jax.device_put(rows, self._rows)
