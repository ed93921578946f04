"""Replay of sequences for recurrent Q-networks, with stored recurrent states and a burn-in (Kapturowski et al. 2019,
"Recurrent Experience Replay in Distributed Reinforcement Learning", section 3; Hausknecht & Stone 2015)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Iterable

import numpy as np

from rl_coach.agents.core.batches import BatchSource
from rl_coach.agents.core.sequences import stored_states
from rl_coach.architectures.middleware_parameters import MiddlewareParameters
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule
from rl_coach.core_types import Batch
from rl_coach.memories.memory import Memory
from rl_coach.utils import CoachError

_BEGINS = "begins_episode"


class SequenceReplay(BatchSource):
    """Batches of sequences of L steps. Each sequence follows b steps of burn-in, unless it begins an episode.

    The columns of a sequence have b + L + 1 rows, because the last step has one more state, its next state.

    :param memory: the memory with the steps
    :param parameters: the middleware parameters of the recurrent network; they have L and b
    :param parts: the names of the parts of the recurrent state
    """

    gives_sequences = True

    def __init__(self, memory: Memory, parameters: MiddlewareParameters, parts: Iterable[str]):
        self.length, self.burn_in = parameters.sequence_length, parameters.burn_in
        self._memory, self._parts = memory, list(parts)
        self.gives_many_at_once = memory.draws_many_batches

    @property
    def has_rows(self) -> bool:
        return self._memory.length() > 0

    def sample(self, updates: int, batch_size: int) -> Batch:
        """The steps of the sequences for the next updates, b + L rows for each sequence.

        :param batch_size: number of steps that an update learns from
        """
        sequences = max(1, batch_size // self.length)
        return self._memory.sample_sequences(updates * sequences, self.length, self.burn_in)

    def columns(self, batch: Batch, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns that the result of ``rule`` reads, [N * (b + L + 1), ...] for N sequences.

        :param batch: a batch from ``sample``
        :param columns: [N * (b + L), ...], the algorithm's columns for this batch
        """
        own = {name: column for name, column in columns.items() if not name.startswith(("states/", "next_states/"))}
        own["weights"] = own["weights"] * batch.info("is_learned")
        own[f"extra/{_BEGINS}"] = batch.info(_BEGINS).astype(np.float32)
        own |= {f"states/{name}": state for name, state in stored_states(batch, self._parts).items()}
        # the last row of these columns is a copy, and no rule reads it
        found = {name: self._flat(steps := self._steps(column), steps[:, -1:]) for name, column in own.items()}
        names = [name.partition("/")[2] for name in columns if name.startswith("states/")]
        for name in names:
            states, following = (self._steps(columns[f"{group}/{name}"]) for group in ("states", "next_states"))
            # rows after the burn-in hold next states, because no step has the state after an episode's last step
            found[f"states/{name}"] = self._flat(states[:, : self.burn_in + 1], following[:, self.burn_in :])
        return found

    def _steps(self, column: np.ndarray) -> np.ndarray:
        """The column as sequences, [N, b + L, ...]."""
        return column.reshape(-1, self.burn_in + self.length, *column.shape[1:])

    @staticmethod
    def _flat(*parts: np.ndarray) -> np.ndarray:
        """Join parts [N, t, ...] along the steps, and reshape them to [N * T, ...]."""
        joined = np.concatenate(parts, axis=1)
        return joined.reshape(-1, *joined.shape[2:])

    def rule(self, rule: UpdateRule) -> UpdateRule:
        """The algorithm's rule for single steps, applied to sequences. Online and target network are unrolled."""
        burn_in, rows = self.burn_in, self.burn_in + self.length + 1

        def rule_on_sequences(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
            def steps(column: Any, first: int = burn_in, end: int = rows - 1) -> Any:
                sequences = ops.reshape(column, (-1, rows, *column.shape[1:]))
                return ops.reshape(sequences[:, first:end], (-1, *column.shape[1:]))

            learned = replace(
                batch,
                states={name: steps(column) for name, column in batch.states.items()},
                next_states={name: steps(column, burn_in + 1, rows) for name, column in batch.states.items()},
                actions=steps(batch.actions),
                rewards=steps(batch.rewards),
                discounts=steps(batch.discounts),
                weights=steps(batch.weights),
                extra={name: steps(column) for name, column in batch.extra.items()},
            )
            views = {
                name: _UnrolledView(ops, network, batch, learned, burn_in, rows) for name, network in networks.items()
            }
            found = rule(ops, views, learned)  # type: ignore[arg-type]
            return replace(found, errors=None)  # sequences have no priorities, and errors do not match the rows

        return rule_on_sequences


class _UnrolledView:
    """An unrolled network with the interface that a rule for single steps expects. It has outputs for the states and
    the next states of the sequences. Both are parts of one unrolling, so other states have no outputs.

    :param batch: the sequences with their burn-in
    :param learned: the batch of the rule, with the steps after the burn-in
    :param burn_in: b, the steps of burn-in
    :param rows: b + L + 1, the rows of each sequence
    """

    def __init__(
        self, ops: Any, network: NetworkView, batch: LearningBatch, learned: LearningBatch, burn_in: int, rows: int
    ):
        self._ops, self._network, self._burn_in, self._rows = ops, network, burn_in, rows
        self._batch, self._learned = batch, learned
        self._unrolled: dict[bool, list[dict[str, Any]]] = {}

    def online(self, states: dict[str, Any]) -> list[dict[str, Any]]:
        """The outputs of the online network, for the states or the next states of the rule's batch."""
        return self._outputs(states, of_target=False)

    def target(self, states: dict[str, Any]) -> list[dict[str, Any]]:
        """The outputs of the target network, for the states or the next states of the rule's batch."""
        return self._outputs(states, of_target=True)

    def _outputs(self, states: dict[str, Any], of_target: bool) -> list[dict[str, Any]]:
        if of_target not in self._unrolled:
            self._unrolled[of_target] = self._unroll(self._network.unroll_target if of_target else self._network.unroll)
        ops, first = self._ops, self._first_row(states)
        steps = self._rows - self._burn_in - 1

        def chosen(output: Any) -> Any:
            sequences = ops.reshape(output, (-1, steps + 1, *output.shape[1:]))
            return ops.reshape(sequences[:, first : first + steps], (-1, *output.shape[1:]))

        return [{name: chosen(output) for name, output in head.items()} for head in self._unrolled[of_target]]

    def _first_row(self, states: dict[str, Any]) -> int:
        """The first row of the unrolled sequences for some states: 0 for the states and 1 for the next states.

        :raises CoachError: if the given states are not the states or the next states of the rule's batch
        """
        # compared by identity, because values are not known while the rule is traced
        for row, known in enumerate((self._learned.states, self._learned.next_states)):
            if all(known.get(name) is column for name, column in states.items()):
                return row
        raise CoachError(
            "the update rule changes observations before it passes them to a recurrent network: pass batch.states or "
            "batch.next_states unchanged, or set middleware_parameters to FCMiddlewareParameters()"
        )

    def _unroll(self, unroll: Any) -> list[dict[str, Any]]:
        ops, burn_in, rows = self._ops, self._burn_in, self._rows

        def sequences(column: Any) -> Any:
            return ops.reshape(column, (-1, rows, *column.shape[1:]))

        parts = self._network.recurrent_names
        inputs = {name: sequences(column) for name, column in self._batch.states.items() if name not in parts}
        stored = {name: sequences(self._batch.states[name]) for name in parts}
        start = {name: state[:, burn_in] for name, state in stored.items()}
        if burn_in:
            before = {name: state[:, 0] for name, state in stored.items()}
            # the burn-in only refreshes the recurrent state, so no gradient flows through it
            burned = unroll(self._flat(inputs, 0, burn_in), before)[1]
            begins = sequences(self._batch.extra[_BEGINS])[:, burn_in][:, None] > 0
            # a sequence that begins an episode has no burn-in, and starts from its stored state
            start = {name: ops.where(begins, start[name], ops.stop_gradient(burned[name])) for name in parts}
        return unroll(self._flat(inputs, burn_in, rows), start)[0]

    def _flat(self, inputs: dict[str, Any], first: int, end: int) -> dict[str, Any]:
        return {name: self._ops.reshape(c[:, first:end], (-1, *c.shape[2:])) for name, c in inputs.items()}
