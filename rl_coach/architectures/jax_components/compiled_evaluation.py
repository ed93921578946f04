"""Evaluation episodes as compiled functions, on JAX."""

from __future__ import annotations

from typing import Any, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from rl_coach.architectures.compiled_loop import CompiledActing, Evaluated
from rl_coach.architectures.jax_components.compiled_loop import Carry, in_dtype_of, states_of
from rl_coach.architectures.jax_components.layers import inside_loop
from rl_coach.architectures.learner import Learner
from rl_coach.filters.pure import PureFilters


class JaxCompiledEvaluation:
    """Plays an evaluation episode in one copy of an environment. Each call plays many steps.

    The environment gets the same random numbers as a ``FunctionSimulator``. The random numbers of an action come from a
    separate key and the number of the step. The parameters are the same as in ``JaxCompiledLoop``, except:

    :param agent: chooses the actions
    :param recurrent_sizes: size of each part of the recurrent network's state; empty for none
    """

    def __init__(
        self, environment: Any, shapes: Mapping[str, tuple[int, ...]], bounds: tuple[np.ndarray, np.ndarray] | None,
        agent: CompiledActing, recurrent_sizes: Mapping[str, int], learner: Learner, input_filters: PureFilters,
        network_filters: PureFilters,
    ):  # fmt: skip
        self._environment, self._shapes, self._bounds = environment, shapes, bounds
        self._agent, self._recurrent_sizes, self._learner = agent, recurrent_sizes, learner
        self._input_filters, self._network_filters = input_filters, network_filters
        # no argument is donated, because training reads the same variables again
        self._compiled = jax.jit(self._played)

    def begin(self, beginning: Any, seed: int) -> Carry:
        """The state of the loop (the carry) at the beginning of an episode. ``play`` takes a carry and returns the next
        carry.

        :param beginning: the ``Beginning`` of the episode
        :param seed: the seed of the random numbers in the agent's actions
        """
        sizes = self._recurrent_sizes.items()
        carry = {
            "observation": beginning.observation, "environment": beginning.state,
            "recurrent": {name: np.zeros((1, size), np.float32) for name, size in sizes},
            "steps": np.int32(0), "reward": np.float32(0), "shaped_reward": np.float32(0),
            "terminated": np.False_, "truncated": np.False_,
        }  # fmt: skip
        keys = {"play": beginning.key, "act": jax.random.key_data(jax.random.key(seed))}
        # with fixed (not weak) dtypes, as a call returns them: a weak dtype would compile the function twice
        return {**keys, **jax.tree.map(lambda leaf: jnp.array(leaf, leaf.dtype), carry)}

    def play(self, carry: Carry, most_steps: int) -> tuple[Carry, Evaluated]:
        """Play at most ``most_steps`` more steps. :return: the new carry, and the progress of the episode"""
        carry = self._compiled(self._learner.variables, self._network_filters.state(), carry, np.int32(most_steps))
        return carry, Evaluated(*jax.device_get([carry[name] for name in Evaluated._fields]))

    def _played(self, variables: dict[str, list], statistics: Any, carry: Carry, most_steps: Any) -> Carry:
        last = carry["steps"] + most_steps
        with inside_loop():
            networks = self._learner.views(self._learner.unpacked(variables))

            def goes_on(carry: Carry) -> Any:
                return (carry["steps"] < last) & ~(carry["terminated"] | carry["truncated"])

            def step(carry: Carry) -> Carry:
                return self._step(networks, statistics, carry)

            return jax.lax.while_loop(goes_on, step, carry)

    def _step(self, networks: Any, statistics: Any, carry: Carry) -> Carry:
        number = carry["steps"] + 1
        # a key for each step number, so that the number of steps in a call does not change the actions
        key = jax.random.fold_in(jax.random.wrap_key_data(carry["act"]), number)
        states = states_of(carry["observation"], self._shapes, 1, self._input_filters)
        states = self._network_filters.apply(statistics, states)
        actions, after = self._agent.evaluate(key, networks, states, carry["recurrent"])
        taken = actions if self._bounds is None else jnp.clip(actions, *self._bounds)
        outcome = self._environment.step_number(number, carry["play"], carry["environment"], taken[0])
        reward = outcome.reward.astype(jnp.float32)
        new = {
            "observation": outcome.observation, "environment": outcome.state, "recurrent": after, "steps": number,
            "reward": carry["reward"] + reward,
            "shaped_reward": carry["shaped_reward"] + self._input_filters.rewards(reward[None])[0],
            "terminated": outcome.terminated, "truncated": outcome.truncated,
        }  # fmt: skip
        # a loop of XLA must return each array in the dtype that it got
        return {**carry, **jax.tree.map(in_dtype_of, {name: carry[name] for name in new}, new)}
