"""The part of PPO with a recurrent network in a compiled loop. It learns from sequences; see ``Sequences``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from rl_coach.agents.core.compiled_epochs import CompiledEpochs, Minibatches, PlayedPhase, PolicyInEpochs
from rl_coach.agents.core.sequences import sequence_places, sequence_rows
from rl_coach.architectures.compiled_loop import Arrays, Networks, Phase, PlayedStep


class PlayedSequences(NamedTuple):
    """The sequences of a phase of T steps in N copies of an environment. The N T rows are in the order of the copies:
    all steps of the first copy, then all steps of the second.

    :param begins: [T, N] bool, True for the first step of each sequence
    :param is_last: [T, N] bool, True for the last step of each episode, and for the last step of the phase
    :param starts: [N T] int32, the first row of each sequence, padded with N T
    :param lasts: [N T] int32, the index of the last row of each row's episode
    :param count: [] int32, number of sequences
    """

    begins: Any
    is_last: Any
    starts: Any
    lasts: Any
    count: Any


def played_sequences(ops: Any, ended: Any, length: int) -> PlayedSequences:
    """The sequences of up to ``length`` steps in a phase. A sequence ends early where its episode ends.

    :param ops: array operations with the names of ``keras.ops``
    :param ended: [T, N] bool, terminated or truncated
    """
    steps, rows = ended.shape[0], ended.shape[0] * ended.shape[1]
    is_last = ops.logical_or(ended, ops.arange(steps)[:, None] == steps - 1)
    begins, lasts = sequence_places(ops, by_copies(ops, is_last), length)
    # the number of sequences is not known at compilation, so the array has room for one at each row
    starts = ops.sort(ops.where(begins, ops.arange(rows), rows))
    begins_of_copies = ops.transpose(ops.reshape(begins, (-1, steps)))
    return PlayedSequences(begins_of_copies, is_last, starts, lasts, ops.sum(ops.cast(begins, "int32")))


def by_copies(ops: Any, column: Any) -> Any:
    """Reorder a column [T, N, ...] to [N T, ...]: all steps of the first copy, then all steps of the second."""
    return ops.reshape(ops.swapaxes(column, 0, 1), (-1, *column.shape[2:]))


class RecurrentPolicyInEpochs(PolicyInEpochs):
    """``PolicyInEpochs`` with a recurrent network.

    :param sequence_length: L, number of steps in a sequence
    :param settings: the arguments of ``PolicyInEpochs``
    """

    def __init__(self, sequence_length: int, *settings: Any):
        super().__init__(*settings)
        self._length = sequence_length

    def _evaluated(self, networks: Networks, played: PlayedPhase) -> tuple[Any, Arrays, Any]:
        """The same results as in ``PolicyInEpochs``. The network is unrolled as in learning: each sequence starts from
        its stored recurrent state."""
        ops, shape = self._ops, played.rewards.shape
        sequences = played_sequences(ops, played.ended, self._length)

        def by_steps(columns: Arrays) -> Arrays:
            return {name: ops.reshape(column, (*shape, *column.shape[1:])) for name, column in columns.items()}

        def step(state: Arrays, row: tuple) -> tuple[Arrays, tuple]:
            states, before, begins = row
            state = {name: ops.where(begins[:, None], before[name], own) for name, own in state.items()}
            values, policy, after = self._outputs(networks, states, state)
            return after, (values, policy, after)

        rows = by_steps(played.states), by_steps(played.recurrent), sequences.begins
        # the first row begins a sequence, so no step uses these zeros
        none = {name: ops.zeros_like(column[0]) for name, column in rows[1].items()}
        _, (values, policy, after) = ops.scan(step, none, rows)
        values_after, _, _ = self._outputs(networks, played.next_states, self._flat(after))
        # within an episode, the next state is the next row's state, which is evaluated from its own stored state
        following = ops.where(sequences.is_last, ops.reshape(values_after, shape), ops.roll(values, -1, axis=0))
        return ops.reshape(values, (-1,)), self._flat(policy), ops.reshape(following, (-1,))

    def _flat(self, columns: Arrays) -> Arrays:
        return {name: self._ops.reshape(one, (-1, *one.shape[2:])) for name, one in columns.items()}


class CompiledSequences(CompiledEpochs):
    """``CompiledEpochs`` with minibatches of whole sequences, as in ``EpochLearning``.

    The number of sequences depends on where episodes end, so only the compiled loop knows the number of updates.

    :param sequence_length: L, number of steps in a sequence
    :param settings: the arguments of ``CompiledEpochs``
    """

    def __init__(self, sequence_length: int, *settings: Any):
        super().__init__(*settings)
        # A minibatch has whole sequences, so it may have fewer steps than batch_size.
        self._length, self._per_batch = sequence_length, max(1, self._settings.batch_size // sequence_length)
        self._planned_updates = 1  # only the first update's scalars are planned; the loop numbers the others
        self.updates_per_phase = self._settings.epochs * -(-self._rows // self._per_batch)
        self._layout = replace(self._layout, sequence_length=sequence_length)
        self.recurrent_sizes = dict(self._learner.step.networks["main"].recurrent_sizes)

    def memory(self, example: PlayedStep) -> Any:
        made = self._learner.networks["main"].updates
        return {**super().memory(example), "updates": self._ops.convert_to_tensor(made, "int32")}

    def _emptied(self, memory: Any, count: Any) -> Any:
        return {**super()._emptied(memory, count), "updates": memory["updates"] + count}

    def columns(self, networks: Networks, memory: Any, statistics: Any) -> tuple[Arrays, Arrays, Any]:
        """The columns of ``CompiledEpochs``, [N T, ...] copy by copy, and the recurrent state before each step."""
        columns, shown, statistics = super().columns(networks, memory, statistics)
        steps = self._settings.steps
        found = {name: self._ops.reshape(one, (steps, -1, *one.shape[1:])) for name, one in columns.items()}
        found |= {f"states/{name}": column for name, column in memory["recurrent"].items()}
        return {name: by_copies(self._ops, column) for name, column in found.items()}, shown, statistics

    def _minibatches(self, key: Any, memory: Any, phase: Phase) -> Minibatches:
        ops, size = self._ops, self._per_batch
        sequences = played_sequences(ops, memory["ended"], self._length)
        per_epoch = (sequences.count + size - 1) // size
        orders = self._orders_of(key, sequences.count)

        def rows(k: Any) -> tuple[Any, Any]:
            places = k % per_epoch * size + ops.arange(size)
            is_there = places < sequences.count
            chosen = ops.take(orders[k // per_epoch], ops.where(is_there, places, 0), axis=0)
            return self._rows_of(sequences, chosen, is_there)

        scalars = self._learner.numbered_rows(phase.scalars[0], memory["updates"], self.updates_per_phase)
        return Minibatches(self._settings.epochs * per_epoch, scalars, rows)

    def _orders_of(self, key: Any, count: Any) -> Any:
        """[E, N T] int32: for each epoch, the numbers below ``count`` in random order, and then the other numbers up to
        N T. The other numbers stand for no sequence."""
        ops, orders = self._ops, self._orders(key)
        # a uniform order of all numbers also gives a uniform order of the numbers below count
        places = ops.arange(self._rows)
        first = ops.argsort(ops.where(orders < count, places, places + self._rows), axis=-1)
        return ops.take_along_axis(orders, first, axis=-1)

    def _rows_of(self, sequences: PlayedSequences, chosen: Any, is_there: Any) -> tuple[Any, Any]:
        """The rows and weights of a minibatch; see ``Minibatches.rows``.

        :param chosen: [S], the numbers of the minibatch's sequences
        :param is_there: [S] bool, False for padding
        """
        ops = self._ops
        starts = ops.take(sequences.starts, chosen, axis=0)
        rows, is_present = sequence_rows(ops, starts, ops.take(sequences.lasts, starts, axis=0), self._length)
        weights = ops.cast(ops.logical_and(is_present, is_there[:, None]), "float32")
        return ops.reshape(rows, (-1,)), ops.reshape(weights, (-1,))
