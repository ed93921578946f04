"""The part of agents with uniform replay in a compiled loop. The memory is a ring buffer of columns on the device.
``BatchLearning`` and ``ExperienceReplay`` do the same outside compiled loops.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence

import numpy as np

from rl_coach.agents.core.clock import TrainingClock
from rl_coach.agents.core.compiled_acting import ActsWithoutState, Exploration, why_exploration_is_not_compiled
from rl_coach.agents.core.compiled_columns import (
    CompiledPart,
    empty_columns,
    why_recurrent_networks_are_not_compiled,
    with_step,
)
from rl_coach.architectures.compiled_loop import Learned, Phase, PlannedPhase, PlayedStep, State
from rl_coach.architectures.learner import UpdateLayout
from rl_coach.core_types import EnvironmentSteps, TrainingSteps
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.spaces import ActionSpace

OwnColumns = Callable[[Any, dict[str, Any]], dict[str, Any]]
"""The columns [K, B, ...] that an agent's update rule needs. The arguments are a random key and the drawn columns. The
result has the same changes and additions as ``Agent.learning_columns``."""

_KEPT = ("states", "next_states", "actions", "rewards", "terminated")


class CompiledReplay(CompiledPart):
    """A ``CompiledAgent`` with uniform replay; see the docstring of the module.

    :param agent: the agent; its networks exist already
    :param random: the framework's random functions, with the names of ``jax.random``
    :param num_copies: N, the number of copies of the environment
    :param own_columns: changes and adds columns; None if the rule only needs the columns of the memory

    :ivar period: environment steps between two phases
    :ivar updates_per_phase: K, the largest number of updates in a training phase
    """

    def __init__(
        self,
        agent: Any,
        random: Any,
        num_copies: int,
        exploration: Exploration,
        own_columns: OwnColumns | None = None,
    ):
        super().__init__(agent, random, num_copies, ActsWithoutState(exploration))
        algorithm = agent.ap.algorithm
        self._own_columns, self._discount = own_columns, algorithm.discount
        self._targets_period = algorithm.num_steps_between_copying_online_weights_to_target
        self.period = algorithm.num_consecutive_playing_steps.num_steps
        # one step of all copies may make several phases due
        phases = max(1, num_copies // max(1, self.period))
        self.updates_per_phase = phases * algorithm.num_consecutive_training_steps
        # All copies write at once, so each place holds one step of every copy.
        self._capacity = max(1, agent.ap.memory.max_size[1] // num_copies)  # steps of each copy
        targets = [name for name, one in self._learner.networks.items() if "target_weights" in one.groups()]
        self._num_targets, self._periods = len(targets), self._update_loop.learning_periods
        rates = dict.fromkeys(targets, self._target_rate)
        self._layout = UpdateLayout(self._stages, rates, (), tuple(self._periods), tuple(targets))

    def memory(self, example: PlayedStep) -> Any:
        inputs, none = self._update_loop.input_names, self._ops.zeros((), dtype="int32")
        return {
            **empty_columns(self._ops, example, self._capacity, _KEPT, inputs),
            "stored": none,
            "next": none,
        }

    def remember(self, memory: Any, step: PlayedStep) -> Any:
        return {
            **with_step(self._ops, memory, step, memory["next"]),
            "stored": self._ops.minimum(memory["stored"] + 1, self._capacity),
            "next": (memory["next"] + 1) % self._capacity,
        }

    def cut(self, memory: Any) -> Any:
        """The memory, unchanged: each transition holds its next state, so no row refers to the next episode."""
        return memory

    def learn(self, key: Any, state: State, memory: Any, statistics: Any, phase: Phase) -> Learned:
        columns, statistics = self.columns(key, memory, statistics)

        def batch(k: Any) -> dict[str, Any]:
            return {name: column[k] for name, column in columns.items()}

        state, outputs = self._learner.updates_within(self._layout, state, batch, phase.scalars, phase.count)
        return Learned(state, memory, statistics, phase.count, outputs, {})

    def columns(self, key: Any, memory: Any, statistics: Any) -> tuple[dict[str, Any], Any]:
        """Columns [K, B, ...] of uniformly drawn rows. They are the columns of ``Agent.learning_columns``.

        :return: the columns, and the updated statistics of the pre-network filters
        """
        if self._own_columns is None:
            return self._drawn_columns(key, memory, statistics)
        of_rows, own = self._random.split(key)
        columns, statistics = self._drawn_columns(of_rows, memory, statistics)
        return self._own_columns(own, columns), statistics

    def _drawn_columns(self, key: Any, memory: Any, statistics: Any) -> tuple[dict[str, Any], Any]:
        ops = self._ops
        size = (self.updates_per_phase, self._update_loop.batch_size)
        stored = ops.cast(memory["stored"] * self._num_copies, "uint32")
        # not randint: its three draws cost as much as an update. The remainder of 32 bits prefers no row by more than
        # 1 in 1,000
        rows = ops.cast(self._random.bits(key, (size[0] * size[1],), "uint32") % stored, "int32")

        def drawn(column: Any) -> Any:
            return ops.take(ops.reshape(column, (-1, *column.shape[2:])), rows, axis=0)

        states = {name: drawn(column) for name, column in memory["states"].items()}
        states, statistics = self._filters.update_and_apply(statistics, states)
        following = {name: drawn(column) for name, column in memory["next_states"].items()}
        following = self._filters.apply(statistics, following)
        columns = {f"states/{name}": column for name, column in states.items()}
        columns |= {f"next_states/{name}": column for name, column in following.items()}
        columns["actions"] = drawn(memory["actions"])
        columns["rewards"] = self._filters.rewards(drawn(memory["rewards"]))
        # only termination ends the return: a truncated episode bootstraps from its next state
        columns["discounts"] = ops.where(drawn(memory["terminated"]), 0.0, self._discount)
        columns["weights"] = ops.ones_like(columns["rewards"])
        return {name: ops.reshape(column, (*size, *column.shape[1:])) for name, column in columns.items()}, statistics

    def plan(self, clock: TrainingClock, steps: int, updates_before: int, most: int | None) -> PlannedPhase:
        # clock.updates is read here, because _moves counts the updates of this phase
        count, moves, training_step = clock.start_phases(most), np.zeros(self.updates_per_phase, bool), clock.updates
        moves[:count] = self._moves(clock, count)
        return PlannedPhase(count, moves, steps, updates_before, training_step)

    def phases(self, planned: Sequence[PlannedPhase]) -> Phase:
        counts, moves, _, before, first = zip(*planned)
        counted = np.subtract(first, before)[:, None]
        numbers = np.asarray(first)[:, None] + np.arange(1, self.updates_per_phase + 1)  # updates of the run, from 1
        # at least 1, because bias corrections divide by 1 - beta^number
        taught = {name: np.maximum(numbers // period - counted // period, 1) for name, period in self._periods.items()}
        rows = self._learner.scalar_rows({}, self.updates_per_phase, before, taught=taught)
        masks = [numbers % period == 0 for period in self._periods.values()] + [np.array(moves)] * self._num_targets
        scalars = [rows, *(mask[..., None] for mask in masks)]
        return Phase(
            np.array(counts, np.int32), np.concatenate(scalars, axis=2, dtype=np.float32), np.any(moves, axis=1)
        )

    def _moves(self, clock: TrainingClock, count: int) -> np.ndarray:
        """[count] bool, True for updates that are followed by a target update, as in ``UpdateLoop.learn``."""
        moves = np.zeros(count, bool)
        if clock.updates_before_targets(count)[1]:
            moves[:] = True if (due := clock.target_updates(count)) is None else due
            clock.updates += count
            clock.targets_due()
            return moves
        by_updates = isinstance(self._targets_period, TrainingSteps)
        for k in range(count):
            clock.updates += 1
            # with a period in environment steps, the ordinary loop checks the targets only after the last update
            moves[k] = (by_updates or k == count - 1) and clock.targets_due()
        return moves

    def record(self, phases: Phase, outputs: np.ndarray, shown: dict[str, np.ndarray]) -> None:
        is_made = np.arange(self.updates_per_phase) < phases.count[:, None]
        # outputs have a row for each possible update, and a phase may make fewer
        made = outputs[is_made]
        masks = phases.scalars[is_made][:, phases.scalars.shape[2] - self._num_targets - len(self._periods) :] > 0
        learning = {name: masks[:, i].tolist() for i, name in enumerate(self._periods)}
        result = self._learner.result_of(self._stages, made, len(made), learning)
        result.wait()
        self._update_loop.record(result)
        if phases.moves_targets.any():
            self._update_loop.note_target_update()
        for count in phases.count.tolist():
            self._clock.updates += count
            self._update_loop.close_phase()


def why_replay_is_not_compiled(agent: Any, num_copies: int, actions: ActionSpace, *explorations: type) -> str | None:
    """The reason why an agent cannot explore or learn from replay in a compiled loop, None if it can.

    :param num_copies: the number of copies of the environment
    :param actions: the environment's action space
    :param explorations: the supported parameter classes of the exploration; see ``why_exploration_is_not_compiled``
    """
    why_not = why_exploration_is_not_compiled(agent.ap, actions, *explorations)
    return why_not or next(_reasons(agent, num_copies), None)


def _reasons(agent: Any, num_copies: int) -> Iterator[str]:
    algorithm, memory = agent.ap.algorithm, agent.ap.memory
    period: Any = algorithm.num_consecutive_playing_steps
    steps = period.num_steps
    # a compiled call draws all batches of a phase before its first update
    if agent.learns_one_by_one:
        yield "the agent asks its networks for the data of each update"
    if (why_not := why_recurrent_networks_are_not_compiled(agent.ap)) is not None:
        yield why_not
    if not isinstance(period, EnvironmentSteps) or steps < 1:
        yield "num_consecutive_playing_steps is not EnvironmentSteps(n) with n from 1"
    if steps % num_copies and num_copies % steps:
        yield (
            f"num_consecutive_playing_steps ({steps}) is neither a multiple nor a divisor of num_environments "
            f"({num_copies})"
        )
    if not isinstance(algorithm.num_steps_between_copying_online_weights_to_target, (EnvironmentSteps, TrainingSteps)):
        yield "targets are updated after episodes"
    if type(memory) is not ExperienceReplayParameters or not memory.allow_duplicates_in_batch_sampling:
        yield f"{type(memory).__name__} has no compiled form"
    if memory.load_memory_from_file_path or algorithm.load_memory_from_file_path:
        yield "the memory is filled from a file"
    if algorithm.n_step > 1:
        yield f"n_step is {algorithm.n_step}"
    if algorithm.act_for_full_episodes or algorithm.store_transitions_only_when_episodes_are_terminated:
        yield "the agent waits for whole episodes"
