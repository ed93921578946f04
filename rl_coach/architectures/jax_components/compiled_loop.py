"""The compiled loop on JAX: environment, acting, memory and learning as one program."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Mapping, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rl_coach.architectures.compiled_loop import CompiledAgent, Plan, Played, PlayedStep
from rl_coach.architectures.jax_components import loop_random
from rl_coach.architectures.jax_components.device_mesh import DeviceMesh
from rl_coach.architectures.jax_components.layers import inside_loop
from rl_coach.architectures.jax_components.learner import JaxLearner
from rl_coach.filters.pure import PureFilters
from rl_coach.space_values import observation_name
from rl_coach.utils import CoachError

Carry = dict[str, Any]
"""The carry: all values that pass from one step to the next, except for the networks, as nested dicts of arrays.

``key``: the random key of the seed. ``step``: the number of the step. ``environments``: the state of each copy.
``states``: [N, ...] by name. ``recurrent``: the state of the agent's recurrent network in each copy. ``episodes``:
totals of the episodes in progress. ``memory``: the agent's memory. ``statistics``: of the pre-network filters.
"""
_OF_COPIES = ("environments", "states", "recurrent", "episodes")  # each array [N, ...]


class _Keys(NamedTuple):
    """The random keys for all steps of a call. They are made together, because making them one by one would cost as
    much time as the steps.

    :param act: [S], for the actions
    :param play: [S, N], for the steps of the environment's copies
    :param begin: [S, N], for the episodes that begin after a step
    :param learn: [S], for a training phase before the step
    """

    act: Any
    play: Any
    begin: Any
    learn: Any


def _mesh_for(num_copies: int, chosen: DeviceMesh | None) -> DeviceMesh:
    """The chosen devices. Without a choice, all devices if their number divides the number of copies, otherwise one
    device.

    :raises CoachError: if the number of the chosen devices does not divide the number of copies
    """
    if chosen is None:
        number = len(jax.devices())
        return DeviceMesh(number if num_copies % number == 0 else 1)
    if num_copies % chosen.num_devices:
        raise CoachError(
            f"num_devices is {chosen.num_devices}, which does not divide the {num_copies} environments of the compiled "
            "loop: change num_devices or env_params.num_environments"
        )
    return chosen


class JaxCompiledLoop:
    """Plays, stores steps and learns. Each call makes many steps.

    The results do not depend on how the steps are divided into calls. If JAX has several devices and their number
    divides the number of copies, each device gets an equal part of the copies and of the memory, and all networks.
    ``TaskParameters.num_devices`` selects another number of devices.

    :param environment: a ``FunctionEnvironment``
    :param shapes: shapes of the agent's observations, by name
    :param bounds: the lowest and the highest action, for clipping; None for discrete actions
    :param agent: acts, stores steps and learns
    :param learner: the learner of the agent's networks
    :param input_filters: filters of observations and rewards at each step; they have no statistics
    :param network_filters: the pre-network filters of observations
    :param discount: the discount of the logged return
    :param num_copies: N, the number of copies of the environment
    :param most_steps: S, the largest number of steps of each copy in one call
    :param most_phases: P, the largest number of phases in one call
    :raises CoachError: if the chosen number of devices does not divide the number of copies
    """

    random = loop_random

    def __init__(
        self, environment: Any, shapes: Mapping[str, tuple[int, ...]], bounds: tuple[np.ndarray, np.ndarray] | None,
        agent: CompiledAgent, learner: JaxLearner, input_filters: PureFilters, network_filters: PureFilters,
        discount: float, num_copies: int, most_steps: int, most_phases: int,
    ):  # fmt: skip
        self._environment, self._shapes, self._bounds = environment, shapes, bounds
        self._agent, self.learner, self._discount = agent, learner, discount
        self._input_filters, self._network_filters = input_filters, network_filters
        self._num_copies, self._most_steps, self._most_phases = num_copies, most_steps, most_phases
        self._mesh = _mesh_for(num_copies, learner.mesh)
        self.num_devices = self._mesh.num_devices
        # donated: XLA writes the new values into the old arrays. No code may read the old arrays after the call
        self._compiled = jax.jit(self.compute, donate_argnums=(0, 1))
        self._begun = jax.jit(self._begin_episodes)
        self._cut = jax.jit(agent.cut)

    def on_one_device(self) -> JaxCompiledLoop:
        """The same loop, with all copies on JAX's first device."""
        # a shallow copy: both loops have the same networks
        loop = copy.copy(self)
        loop.num_devices = 1
        return loop

    def agreed_steps(self, steps: int, place: int) -> int:
        """The number of steps that the next call makes: ``steps``. (``LoopOfSeeds`` may agree on fewer steps.)

        :param place: number of steps of the run before this call
        """
        return steps

    def begin(self, seed: int, updates: Mapping[str, int] | None = None) -> Carry:
        """The first carry, with an empty memory and the beginning of an episode in each copy.

        :param updates: number of updates of the networks so far, by name; None uses the numbers of this loop's learner
        """
        for name, number in (updates or {}).items():
            self.learner.networks[name].updates = number
        carry = {"key": jax.random.key_data(jax.random.key(seed)), "step": jnp.uint32(0)}
        if self.num_devices > 1:
            for network in self.learner.networks.values():
                # each device needs the networks to act in its part of the copies
                network.variables = jax.device_put(network.variables, self._mesh.everywhere)
        episodes, level = self._begun(carry), self._agent.levels(0, 1)[0]
        # this computes only shapes and no step
        played = jax.eval_shape(
            lambda carry: self._played(
                self.learner.views(self.learner.unpacked(self.learner.variables)), carry, level, self._keys(carry, 1), 0
            )[0],
            {**carry, **episodes, "statistics": self._network_filters.state()},
        )
        memory, statistics = self._agent.memory(played), self._network_filters.state()
        # step 1, because the keys of step 0 were used to begin the episodes
        return self._own({**carry, **episodes, "step": jnp.uint32(1), "memory": memory, "statistics": statistics})

    def begin_episodes(self, carry: Carry) -> Carry:
        """Begin an episode in each copy. Episodes in progress are cut off."""
        # the next step gets a new number, because the keys of a step may be used only once
        episodes, step = self._begun({"key": carry["key"], "step": carry["step"]}), carry["step"] + np.uint32(1)
        return self._own({**carry, **episodes, "step": step, "memory": self._cut(carry["memory"])})

    def run(self, carry: Carry, plan: Plan) -> tuple[Carry, Played]:
        """Start the planned steps and updates. JAX may still compute them when this method returns.

        :param carry: the carry before the call; its memory is reused, so the caller must not use it afterwards
        :return: the carry after the call, and an object for ``read``
        """
        variables, carry, played = self._compiled(self.learner.variables, carry, plan)
        for name, network in self.learner.networks.items():
            network.finish()
            network.variables = variables[name]  # the old arrays were donated and have no values any more
            # a new version, so that the next prediction reads the new arrays
            network.version += 1
        return carry, played

    @staticmethod
    def read(played: Played) -> Played:
        """Wait until a call is done. Return its record as NumPy arrays."""
        return jax.device_get(played)

    def take_results(self, carry: Carry) -> None:
        """Copy the statistics of the carry into the filters, for evaluations and checkpoints."""
        if carry["statistics"]:
            self._network_filters.take(jax.device_get(carry["statistics"]))

    @staticmethod
    def leaves(carry: Carry) -> list[np.ndarray]:
        """The arrays of a carry (the state of the loop), for a checkpoint."""
        # a checkpoint contains the numbers of random keys, because NumPy has no dtype for keys
        return [np.asarray(data_of(leaf)) for leaf in jax.tree.leaves(carry)]

    def with_leaves(self, carry: Carry, leaves: list[np.ndarray]) -> Carry:
        """The carry with the arrays ``leaves``. :raises ValueError: if their number or a shape does not fit"""
        old, tree = jax.tree.flatten(carry)
        if [np.shape(data_of(leaf)) for leaf in old] != [np.shape(leaf) for leaf in leaves]:
            raise ValueError(
                "the stored state of the compiled loop has other shapes than this environment and agent need"
            )
        return self._own(jax.tree.unflatten(tree, [with_data(one, new) for one, new in zip(old, leaves)]))

    def _own(self, carry: Carry) -> Carry:
        """A copy of the carry on the chosen devices. No two arrays share memory, because a call reuses the memory of
        each array for its result.

        No dtype of the copy is weak. JAX gives an array that is made from a Python number a weak dtype, but a call
        returns strong dtypes only. With weak dtypes, the loop would be compiled twice.
        """
        copied = jax.tree.map(lambda leaf: jnp.array(leaf, leaf.dtype, copy=True), carry)
        return copied if self.num_devices == 1 else jax.device_put(copied, self._places(copied))

    def _places(self, carry: Carry) -> Carry:
        """The sharding of each array. The axis of the copies is divided: the first axis or, in the memory, the
        second.
        """

        def divided(leaf: Any, axis: int) -> jax.sharding.NamedSharding:
            return self._mesh.divided(axis) if np.ndim(leaf) > axis else self._mesh.everywhere

        whole = jax.tree.map(lambda leaf: self._mesh.everywhere, carry)
        of_copies = {name: jax.tree.map(partial(divided, axis=0), carry[name]) for name in _OF_COPIES}
        return {**whole, **of_copies, "memory": jax.tree.map(partial(divided, axis=1), carry["memory"])}

    # the functions below are compiled

    def compute(self, variables: dict[str, list], carry: Carry, plan: Plan) -> tuple[dict[str, list], Carry, Played]:
        """Make the planned steps and updates, as a pure function.

        :return: the new variables and carry, and the record
        """
        with inside_loop():
            state = self.learner.unpacked(variables)
            # one more key: a training phase after the last step uses the key of the step that would follow
            keys = self._keys(carry, self._most_steps + 1)
            played, step = self._empty(state, carry, plan, keys), jnp.int32(0)
            # the number of phases is data, so that plans with fewer phases use the same compilation
            state, carry, played, step = jax.lax.fori_loop(
                0, plan.num_phases, partial(self._phase, plan, keys), (state, carry, played, step)
            )
            carry, played, _ = self._play(plan, keys, plan.rest, state, carry, played, step)
            variables = self.learner.packed(state)
            if self.num_devices > 1:  # the shardings that the next call expects
                carry = jax.lax.with_sharding_constraint(carry, self._places(carry))
                variables = jax.lax.with_sharding_constraint(variables, self._mesh.everywhere)
            return variables, carry, played

    def _phase(self, plan: Plan, keys: _Keys, p: Any, carried: tuple) -> tuple:
        state, carry, played, step = carried
        carry, played, step = self._play(plan, keys, plan.lengths[p], state, carry, played, step)
        phase = jax.tree.map(lambda rows: rows[p], plan.phases)
        learned = self._learn(keys.learn[step], state, carry, phase)
        shown = {name: rows.at[p].set(learned.shown[name]) for name, rows in played.shown.items()}
        counts, outputs = played.counts.at[p].set(learned.count), played.outputs.at[p].set(learned.outputs)
        played = played._replace(counts=counts, outputs=outputs, shown=shown)
        carry = {**carry, "memory": learned.memory, "statistics": learned.statistics}
        return learned.state, carry, played, step

    def _learn(self, key: Any, state: Any, carry: Carry, phase: Any) -> Any:
        return self._agent.learn(key, state, carry["memory"], carry["statistics"], phase)

    def _keys(self, carry: Carry, count: int) -> _Keys:
        """The keys of the next ``count`` steps. The keys of a step depend only on its number and the seed's key."""
        seed, numbers = jax.random.wrap_key_data(carry["key"]), carry["step"] + jnp.arange(count, dtype=jnp.uint32)
        act, play, begin, learn = jax.vmap(lambda number: jax.random.split(jax.random.fold_in(seed, number), 4))(
            numbers
        ).T
        of_copies = jax.vmap(partial(jax.random.split, num=self._num_copies))
        return _Keys(act, of_copies(play), of_copies(begin), learn)

    def _empty(self, state: Any, carry: Carry, plan: Plan, keys: _Keys) -> Played:
        """Empty arrays for the record of a call."""
        first = jax.tree.map(lambda rows: rows[0], plan.phases)
        # this computes only the shapes of the record
        learned = jax.eval_shape(self._learn, keys.learn[0], state, carry, first)

        def rows(shape: Any, dtype: Any = jnp.float32) -> Any:
            return jnp.zeros(shape, dtype)

        def of_phases(one: Any) -> Any:
            return rows((self._most_phases, *one.shape), one.dtype)

        # the sizes of the largest call, because XLA fixes all shapes when it compiles the loop
        shape = (self._most_steps, self._num_copies)
        return Played(
            rows(shape, jnp.bool_), rows(shape), rows(shape), rows(shape), rows(shape, jnp.int32),
            rows(shape, jnp.int32),
            of_phases(learned.count), of_phases(learned.outputs),
            {name: of_phases(one) for name, one in learned.shown.items()},
        )  # fmt: skip

    def _play(
        self, plan: Plan, keys: _Keys, count: Any, state: Any, carry: Carry, played: Played, first: Any
    ) -> tuple[Carry, Played, Any]:
        """Play ``count`` steps. :return: the new carry and record, and the total number of steps"""

        def body(i: Any, carried: tuple[Carry, Played]) -> tuple[Carry, Played]:
            carry, played = carried
            number = first + i
            step, after, sources = self._played(self.learner.views(state), carry, plan.levels[number], keys, number)
            carry = {**after, "memory": self._agent.remember(carry["memory"], step)}
            played = played._replace(sources=played.sources.at[number].set(sources))
            return self._with_next_episodes(carry, step, played, keys, number)

        # ``count`` is data, so that phases of all lengths use the same compilation
        return *jax.lax.fori_loop(0, count, body, (carry, played)), first + count

    def _played(self, networks: Any, carry: Carry, level: Any, keys: _Keys, i: Any) -> tuple[PlayedStep, Carry, Any]:
        """Play a step in each copy. Return the step, the carry after the step, and [N] the sources of numbers that are
        not finite (see ``Played``). The memory in the carry does not change.
        """
        states = self._network_filters.apply(carry["statistics"], carry["states"])
        before = carry["recurrent"]
        actions, after = self._agent.act(keys.act[i], networks, states, before, level)
        taken = actions if self._bounds is None else jnp.clip(actions, *self._bounds)
        outcome = jax.vmap(self._environment.step)(keys.play[i], carry["environments"], taken)
        rewards = outcome.reward.astype(jnp.float32)
        terminated = outcome.terminated.astype(jnp.bool_)
        shaped, ended = self._input_filters.rewards(rewards), terminated | outcome.truncated.astype(jnp.bool_)
        next_states = self._read(outcome.observation)
        # the memory gets the action before clipping, because the stored probability belongs to this action
        step = PlayedStep(carry["states"], actions, shaped, next_states, terminated, ended, before)
        totals, discounts = carry["episodes"], carry["episodes"]["discount"]
        episodes = {
            "reward": totals["reward"] + rewards,
            "shaped": totals["shaped"] + shaped,
            "return": totals["return"] + discounts * shaped,
            "discount": discounts * self._discount,
            "length": totals["length"] + 1,
        }
        new = {"environments": outcome.state, "states": next_states, "recurrent": after, "episodes": episodes}
        named = _named(outcome.observation)
        sources = self._first_source([
            *step.states.values(), actions, *(named[name] for name in self._shapes), *next_states.values(), rewards,
            shaped,
        ])  # fmt: skip
        return step, {**carry, **new}, sources

    def _first_source(self, columns: list[Any]) -> Any:
        """[N] int32, 1 + the position of the first column with a number that is not finite; 0 if all numbers are
        finite.

        :param columns: [N, ...] each, in the order of ``sources_of``
        """
        found = jnp.zeros(self._num_copies, jnp.int32)
        # from the last column to the first, so that the position of the first wrong column remains
        for place, column in reversed(list(enumerate(columns, 1))):
            if jnp.issubdtype(jnp.result_type(column), jnp.floating):
                is_finite = jnp.isfinite(jnp.reshape(column, (self._num_copies, -1))).all(axis=1)
                found = jnp.where(is_finite, found, place)
        return found

    def _with_next_episodes(
        self, carry: Carry, step: PlayedStep, played: Played, keys: _Keys, i: Any
    ) -> tuple[Carry, Played]:
        """Record the episodes that have ended, and begin new episodes in their copies."""
        totals = carry["episodes"]
        played = played._replace(
            ended=played.ended.at[i].set(step.ended),
            rewards=played.rewards.at[i].set(totals["reward"]),
            shaped_rewards=played.shaped_rewards.at[i].set(totals["shaped"]),
            returns=played.returns.at[i].set(totals["return"]),
            lengths=played.lengths.at[i].set(totals["length"]),
        )
        old = {name: carry[name] for name in _OF_COPIES}

        def with_fresh() -> Carry:
            return jax.tree.map(partial(rows_where, step.ended), self._episodes_of(keys.begin[i]), old)

        chosen = jax.lax.cond(jnp.any(step.ended), with_fresh, lambda: old)  # most steps end no episode
        return {**carry, **chosen, "step": carry["step"] + np.uint32(1)}, played

    def _begin_episodes(self, carry: Carry) -> Carry:
        """Begin an episode in all copies. Return the environments, states, recurrent states and totals."""
        return self._episodes_of(self._keys(carry, 1).begin[0])

    def _episodes_of(self, keys: Any) -> Carry:
        """Begin episodes as ``_begin_episodes``. :param keys: [N], a random key for each copy"""
        observations, environments = jax.vmap(self._environment.reset)(keys)
        recurrent = {
            name: jnp.zeros((self._num_copies, size), jnp.float32) for name, size in self._agent.recurrent_sizes.items()
        }
        none = jnp.zeros(self._num_copies, jnp.float32)
        episodes = {"reward": none, "shaped": none, "return": none, "discount": none + 1.0}
        episodes["length"] = jnp.zeros(self._num_copies, jnp.int32)
        states = self._read(observations)
        return {"environments": environments, "states": states, "recurrent": recurrent, "episodes": episodes}

    def _read(self, observations: Any) -> dict[str, Any]:
        return states_of(observations, self._shapes, self._num_copies, self._input_filters)


def states_of(
    observations: Any, shapes: Mapping[str, tuple[int, ...]], count: int, filters: PureFilters
) -> dict[str, Any]:
    """[count, ...] by name: the filtered observations for the agent.

    :param observations: the observations of ``count`` copies of an environment, or of one copy without an axis for the
        copies
    """
    named = _named(observations)
    states = {name: jnp.reshape(named[name], (count, *shape)) for name, shape in shapes.items()}
    return filters.apply(filters.state(), states)


def _named(observations: Any, path: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Nested observations as a flat dict, with the names that ``StateReader`` uses."""
    if isinstance(observations, tuple):
        observations = dict(enumerate(observations))
    if not isinstance(observations, Mapping):
        return {observation_name(path): observations}
    return {n: leaf for name, part in observations.items() for n, leaf in _named(part, (*path, name)).items()}


def rows_where(condition: Any, one: Any, other: Any) -> Any:
    """The N rows of ``one`` where ``condition`` is True, else of ``other``, in the dtype of ``other``."""
    other = jnp.asarray(other) if not isinstance(other, jax.Array) else other
    shaped = condition.reshape(-1, *[1] * (other.ndim - 1))
    return jnp.where(shaped, in_dtype_of(other, one), other)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def in_dtype_of(old: Any, new: Any) -> Any:
    """``new`` in the dtype of ``old``. Random keys are returned unchanged."""
    return new if _is_key(old) else jnp.asarray(new, old.dtype)


def data_of(leaf: Any) -> Any:
    """The numbers of an array or of a random key."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def with_data(old: Any, new: np.ndarray) -> Any:
    """The numbers ``new`` as an array or as random keys, like ``old``."""
    if _is_key(old):
        return jax.random.wrap_key_data(jnp.asarray(new), impl=jax.random.key_impl(old))
    return jnp.asarray(new, old.dtype)
