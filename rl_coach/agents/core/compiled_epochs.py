"""The part of PPO, A2C and PQN in a compiled loop. In each phase, these agents play with fixed networks and then learn
in epochs of minibatches, as ``EpochLearning`` does. In this module, a phase is a training phase with the steps that it
learns from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Protocol, Sequence

import numpy as np

from rl_coach.agents.core.clock import TrainingClock
from rl_coach.agents.core.compiled_acting import ActsWithoutState, Exploration
from rl_coach.agents.core.compiled_columns import (
    CompiledPart,
    empty_columns,
    why_recurrent_networks_are_not_compiled,
    with_step,
)
from rl_coach.agents.core.epochs import DIVERGENCE, log_minibatches
from rl_coach.architectures.compiled_loop import (
    Arrays,
    CompiledActing,
    Learned,
    Networks,
    Phase,
    PlannedPhase,
    PlayedStep,
    State,
)
from rl_coach.architectures.learner import UpdateLayout
from rl_coach.architectures.policies import log_probability, masked
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.utils import Signal

Estimate = Callable[[Any, Any, Any, Any, Any], tuple[Any, Any]]
"""Advantages and returns [T, N]. The arguments are rewards, values, values of the next states, terminated and ended,
[T, N] each."""


class PlayedPhase(NamedTuple):
    """The T steps of N copies of an environment that a phase learns from.

    :param states: [T N, ...] by name, after the filters
    :param next_states: [T N, ...] by name, after the filters
    :param actions: [T N, ...]
    :param rewards: [T, N], filtered
    :param terminated: [T, N] bool
    :param ended: [T, N] bool, terminated, truncated, or cut at the end of the phase
    :param recurrent: [T N, size] for each part of the recurrent state before the action; empty if no network is
        recurrent
    """

    states: Arrays
    next_states: Arrays
    actions: Any
    rewards: Any
    terminated: Any
    ended: Any
    recurrent: Arrays


class Minibatches(NamedTuple):
    """The minibatches of a phase. Each of them is one update.

    :param count: [] int32, number of minibatches
    :param scalars: [K, S], the scalars of each update
    :param rows: returns the rows [B] of update k, and float32 [B], 1 for a real row and 0 for padding
    """

    count: Any
    scalars: Any
    rows: Callable[[Any], tuple[Any, Any]]


class EpochAlgorithm(CompiledActing, Protocol):
    """An algorithm that plays a phase with fixed networks and then learns from it in epochs."""

    def columns(self, networks: Networks, played: PlayedPhase) -> tuple[Arrays, Arrays]:
        """The columns [T N, ...] that the rule needs in addition to states, actions and weights; and the arrays
        to log."""


@dataclass(frozen=True)
class EpochSettings:
    """The settings of phases in epochs.

    :param steps: T, steps of each copy between two phases
    :param epochs: passes over the steps of a phase
    :param batch_size: rows of a minibatch
    :param weight: weight of each row in the loss
    :param has_minibatches: False if a phase makes one update on all its steps
    """

    steps: int
    epochs: int
    batch_size: int
    weight: float = 1.0
    has_minibatches: bool = True


class PolicyInEpochs:
    """PPO and A2C as an ``EpochAlgorithm``.

    :param ops: array operations with the names of ``keras.ops``
    :param random: the framework's random functions, with the names of ``jax.random``
    :param mask_name: the observation that masks impossible actions; None if all are possible
    :param evaluation_deviation: standard deviation of the noise of continuous actions in evaluations, [D] or a number;
        None for discrete actions
    :param behaviour: computes the rule's columns about the policy that played, from the critic's values [B] and the log
        probabilities of the actions [B]. With ``behaviour``, advantages are normalized. None for a rule without such
        columns
    """

    def __init__(
        self,
        ops: Any,
        random: Any,
        mask_name: str | None,
        evaluation_deviation: Any,
        estimate: Estimate,
        behaviour: Callable[[Any, Any], Arrays] | None = None,
    ):
        self._ops, self._random, self._mask_name = ops, random, mask_name
        self._evaluation_deviation = evaluation_deviation
        self._estimate, self._behaviour = estimate, behaviour

    def levels(self, ahead: int, steps: int) -> np.ndarray:
        """No levels: the policy's own distribution is the only exploration."""
        return np.zeros((steps, 0), np.float32)

    def act(self, key: Any, networks: Networks, states: Arrays, recurrent: Arrays, level: Any) -> tuple[Any, Arrays]:
        _, policy, after = self._outputs(networks, states, recurrent)
        if "log_probabilities" in policy:
            return self._random.categorical(key, policy["log_probabilities"]), after
        mean = policy["mean"]
        return mean + policy["standard_deviation"] * self._random.normal(key, mean.shape), after

    def evaluate(self, key: Any, networks: Networks, states: Arrays, recurrent: Arrays) -> tuple[Any, Arrays]:
        _, policy, after = self._outputs(networks, states, recurrent)
        if "log_probabilities" in policy:
            return self._ops.argmax(policy["log_probabilities"], axis=-1), after
        mean = policy["mean"]
        return mean + self._evaluation_deviation * self._random.normal(key, mean.shape), after

    def _outputs(self, networks: Networks, states: Arrays, recurrent: Arrays) -> tuple[Any, Arrays, Arrays]:
        """The critic's values [B], the policy over the possible actions, and the recurrent state after the states."""
        # as in acting, because the ordinary path gets these values from predictions
        (value, policy), after = networks["main"].step(states, recurrent)
        mask = None if self._mask_name is None else states[self._mask_name]
        return value["v"], masked(self._ops, policy, mask), after

    def _evaluated(self, networks: Networks, played: PlayedPhase) -> tuple[Any, Arrays, Any]:
        """The critic's values [T N] of the states, the policy, and the critic's values [T N] of the next states."""
        values, policy, _ = self._outputs(networks, played.states, {})
        return values, policy, self._outputs(networks, played.next_states, {})[0]

    def columns(self, networks: Networks, played: PlayedPhase) -> tuple[Arrays, Arrays]:
        ops, shape = self._ops, played.rewards.shape
        values, policy, next_values = self._evaluated(networks, played)
        next_values = ops.reshape(next_values, shape)
        estimates = self._estimate(
            played.rewards, ops.reshape(values, shape), next_values, played.terminated, played.ended
        )
        advantages, returns = (ops.reshape(one, (-1,)) for one in estimates)
        columns, shown = {"extra/returns": returns}, {"values": values, "advantages": advantages, "targets": returns}
        if self._behaviour is None:
            return {**columns, "extra/advantages": advantages}, shown
        # over the whole phase and not in each minibatch, as EpisodeColumns does
        columns["extra/advantages"] = (advantages - ops.mean(advantages)) / (ops.std(advantages) + 1e-8)
        columns |= self._behaviour(values, log_probability(ops, policy, played.actions))
        return columns, shown


class ValuesInEpochs(ActsWithoutState):
    """PQN as an ``EpochAlgorithm``.

    :param ops: array operations with the names of ``keras.ops``
    :param values: returns the values [B] of the best actions in states after the filters
    """

    def __init__(
        self,
        ops: Any,
        exploration: Exploration,
        values: Callable[[Networks, Arrays], Any],
        estimate: Estimate,
    ):
        super().__init__(exploration)
        self._ops, self._values, self._estimate = ops, values, estimate

    def columns(self, networks: Networks, played: PlayedPhase) -> tuple[Arrays, Arrays]:
        ops, shape = self._ops, played.rewards.shape
        values, following = (
            ops.reshape(self._values(networks, states), shape) for states in (played.states, played.next_states)
        )
        _, returns = self._estimate(played.rewards, values, following, played.terminated, played.ended)
        returns = ops.reshape(returns, (-1,))
        return {"extra/returns": returns}, {"targets": returns}


class CompiledEpochs(CompiledPart):
    """A ``CompiledAgent`` that learns in epochs; see the docstring of the module.

    :param agent: the agent; its networks exist already
    :param random: the framework's random functions, with the names of ``jax.random``
    :param num_copies: N, the number of copies of the environment
    :param algorithm: chooses actions, and makes the columns of the update rule
    :param signals: a dict from the name of a logged array to the signal that records this array
    :param scalars: returns the scalars of the rule for a phase, from the number of environment steps that are planned
        but not yet counted
    """

    def __init__(
        self,
        agent: Any,
        random: Any,
        num_copies: int,
        settings: EpochSettings,
        algorithm: EpochAlgorithm,
        signals: dict[str, Signal],
        scalars: Callable[[int], dict[str, float]] = lambda steps: {},
    ):
        super().__init__(agent, random, num_copies, algorithm)
        self._settings, self._algorithm = settings, algorithm
        self._scalars, self._signals = scalars, signals
        self._rows = self.period = settings.steps * num_copies
        # Rounded up: the last minibatch of an epoch is padded, so no row is left out.
        self._per_epoch = -(-self._rows // settings.batch_size)
        self.updates_per_phase = self._planned_updates = settings.epochs * self._per_epoch
        # no rates, because targets move before the updates of a phase and not after each update
        self._layout = UpdateLayout(self._stages, {}, tuple(scalars(0)))

    def memory(self, example: PlayedStep) -> Any:
        inputs = self._update_loop.input_names
        columns = empty_columns(self._ops, example, self._settings.steps, PlayedStep._fields, inputs)
        return {**columns, "position": self._ops.zeros((), dtype="int32")}

    def remember(self, memory: Any, step: PlayedStep) -> Any:
        position = memory["position"]
        return {**memory, **with_step(self._ops, memory, step, position), "position": position + 1}

    def cut(self, memory: Any) -> Any:
        # ended but not terminated: the return bootstraps from the value of the next state
        is_last = self._ops.arange(self._settings.steps) == memory["position"] - 1
        return {**memory, "ended": self._ops.logical_or(memory["ended"], is_last[:, None])}

    def learn(self, key: Any, state: State, memory: Any, statistics: Any, phase: Phase) -> Learned:
        # columns first, because they need the networks that played
        columns, shown, statistics = self.columns(self._learner.views(state), memory, statistics)
        state = self._with_moved_targets(state, phase)
        count, scalars, rows_of = self._minibatches(key, memory, phase)

        def batch(k: Any) -> Arrays:
            # gathered in each update: all minibatches at once would take the memory of the phase once for each epoch
            rows, weights = rows_of(k)
            taken = {name: self._ops.take(column, rows, axis=0) for name, column in columns.items()}
            return {**taken, "weights": self._settings.weight * weights}

        state, outputs = self._learner.updates_within(self._layout, state, batch, scalars, count)
        return Learned(state, self._emptied(memory, count), statistics, count, outputs, shown)

    def _emptied(self, memory: Any, count: Any) -> Any:
        """The memory after ``count`` updates. Only the position is reset: the next phase overwrites the rows."""
        return {**memory, "position": self._ops.zeros_like(memory["position"])}

    def columns(self, networks: Networks, memory: Any, statistics: Any) -> tuple[Arrays, Arrays, Any]:
        """The columns [T N, ...] of the steps of a phase, except the weights. They equal the columns of the ordinary
        path.

        :return: the columns; the arrays to log; the updated statistics of the pre-network filters
        """
        ops = self._ops

        def flat(column: Any) -> Any:
            return ops.reshape(column, (self._rows, *column.shape[2:]))

        states = {name: flat(column) for name, column in memory["states"].items()}
        # only states enter the statistics, as on the ordinary path
        states, statistics = self._filters.update_and_apply(statistics, states)
        following = {name: flat(column) for name, column in memory["next_states"].items()}
        following, actions = self._filters.apply(statistics, following), flat(memory["actions"])
        rewards = self._filters.rewards(memory["rewards"])
        before = {name: flat(column) for name, column in memory["recurrent"].items()}
        played = PlayedPhase(states, following, actions, rewards, memory["terminated"], memory["ended"], before)
        own, shown = self._algorithm.columns(networks, played)
        columns = {f"states/{name}": column for name, column in states.items()}
        return {**columns, "actions": actions, **own}, shown, statistics

    def _with_moved_targets(self, state: State, phase: Phase) -> State:
        """Update the target networks before the updates of the phase, as ``EpochLearning`` does."""
        step, ops = self._learner.step, self._ops
        rates = {name: self._target_rate for name, own in state.items() if "target_weights" in own}
        moving = dict.fromkeys(rates, ops.cast(phase.moves_targets, "float32"))
        return step.keep_targets(ops, state, step.update_targets(state, rates), moving)

    def _minibatches(self, key: Any, memory: Any, phase: Phase) -> Minibatches:
        indices, ops = self._indices(key), self._ops

        def rows(k: Any) -> tuple[Any, Any]:
            return ops.maximum(indices[k], 0), ops.cast(indices[k] >= 0, "float32")

        return Minibatches(phase.count, phase.scalars, rows)

    def _indices(self, key: Any) -> Any:
        """[K, B] int32, the rows of each update. -1 pads the last update of an epoch."""
        settings, ops = self._settings, self._ops
        if not settings.has_minibatches:
            return ops.reshape(ops.arange(self._rows, dtype="int32"), (1, self._rows))
        missing = self._per_epoch * settings.batch_size - self._rows
        full = ops.pad(self._orders(key), ((0, 0), (0, missing)), constant_values=-1)
        return ops.reshape(full, (self.updates_per_phase, settings.batch_size))

    def _orders(self, key: Any) -> Any:
        """[E, T N] int32, a random order of all rows for each epoch."""
        keys = self._random.split(key, self._settings.epochs)
        orders = [self._random.permutation(keys[epoch], self._rows) for epoch in range(len(keys))]
        return self._ops.cast(self._ops.stack(orders), "int32")

    def plan(self, clock: TrainingClock, steps: int, updates_before: int, most: int | None) -> PlannedPhase:
        clock.last_phase = clock.steps
        # targets first: the plan must have the count of updates before this phase, as in EpochLearning.learn
        planned = PlannedPhase(self.updates_per_phase, clock.targets_due(), steps, updates_before, clock.updates)
        clock.updates += 1
        return planned

    def phases(self, planned: Sequence[PlannedPhase]) -> Phase:
        counts, moves, steps, before, training_steps = zip(*planned)
        scalars = {name: [self._scalars(one)[name] for one in steps] for name in self._layout.scalar_names}
        rows = self._learner.scalar_rows(scalars, self._planned_updates, before, training_steps)
        return Phase(np.array(counts, np.int32), rows, np.array(moves))

    def record(self, phases: Phase, outputs: np.ndarray, shown: dict[str, np.ndarray]) -> None:
        clock = self._clock
        for m, count in enumerate(phases.count.tolist()):
            for name, signal in self._signals.items():
                signal.add_sample(shown[name][m])
            if phases.moves_targets[m]:
                self._update_loop.note_target_update()
            clock.minibatches += count if self._settings.has_minibatches else 0
            result = self._learner.result_of(self._stages, outputs[m], count)
            # raises an error here if a loss is not finite
            result.wait()
            self._update_loop.record(result)
            if DIVERGENCE in result.signal_names:
                log_minibatches(result, self._settings.epochs, self._update_loop.optimizer.learning_rate(clock.updates))
            clock.updates += 1
            self._update_loop.close_phase()


def why_epochs_are_not_compiled(
    parameters: AgentParameters, num_copies: int, heats_up: bool, learns_sequences: bool = False
) -> str | None:
    """The reason why an agent's phases cannot be part of a compiled loop, None if they can.

    :param num_copies: the number of copies of the environment
    :param heats_up: True if the run begins with a heatup
    :param learns_sequences: True if the agent can learn from sequences, so that its network may be recurrent
    """
    if (why_not := why_phases_are_not_compiled(parameters, heats_up, learns_sequences)) is not None:
        return why_not
    algorithm: Any = parameters.algorithm
    period = algorithm.num_consecutive_playing_steps
    if not isinstance(period, EnvironmentSteps):
        return "num_consecutive_playing_steps is not in EnvironmentSteps"
    # All copies step together, so a phase can end only after a step of all of them.
    if period.num_steps < 1 or period.num_steps % num_copies:
        return (
            f"num_consecutive_playing_steps ({period.num_steps}) is not a multiple of num_environments ({num_copies})"
        )
    if algorithm.num_consecutive_training_steps != 1:
        return "num_consecutive_training_steps is not 1"
    # The number of updates is planned before the phase, and cannot depend on its results.
    if getattr(algorithm, "target_kl_divergence", None) is not None:
        return "target_kl_divergence ends the epochs of a phase early"
    return None


def why_phases_are_not_compiled(
    parameters: AgentParameters, heats_up: bool, learns_sequences: bool = False
) -> str | None:
    """The reason why an agent cannot learn in a compiled loop from all steps since the last phase; None if it can. The
    arguments are those of ``why_epochs_are_not_compiled``."""
    if heats_up:
        return "there is a heatup"
    return None if learns_sequences else why_recurrent_networks_are_not_compiled(parameters)
