"""Learners for MXNet and PyTorch. They make one update after the other, with all weights of a network in one vector."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from rl_coach.architectures.array_components.state import with_updated_target
from rl_coach.architectures.learner import CompiledStep, Learner, Packing, StepLayout, Variables
from rl_coach.architectures.update import TrainingStep, clips_each_variable

LEARNED = ("weights", "slots")
Called = tuple[Variables, Sequence[Any]]
"""The new variables and the results of a step."""
Change = Callable[[Variables, dict[str, Any], list], Called]
"""A function that makes a step from variables, the columns of a batch and scalars."""


class PackedBatch(NamedTuple):
    """A batch for one update: packed rows [B, width], the columns that are not packed, and the update's scalars."""

    rows: np.ndarray
    large: list[np.ndarray]
    scalars: np.ndarray


class VectorStep(TrainingStep):
    """A training step with an optimizer that updates all weights of a network as one vector. If a network needs the
    norms of single weight arrays or of their columns, the optimizer updates each array separately.

    :param step: supplies the networks, parameters and stages
    """

    def __init__(self, step: TrainingStep):
        super().__init__(step.networks, step.parameters, step.stages)

    def apply(
        self, ops: Any, state: dict, gradients: dict[str, Any], buffers: dict, optimizer_scalars: dict[str, Any]
    ) -> tuple[dict, dict[str, Any]]:
        # norms of single weights or columns need separate arrays; all else is one operation for each network
        if any(one.unit_columns or clips_each_variable(self.parameters[name]) for name, one in self.networks.items()):
            new_state, norms = super().apply(ops, state, gradients, buffers, optimizer_scalars)
            for name in gradients:
                new_state[name] |= {group: state[name][group].replaced(new_state[name][group]) for group in LEARNED}
            return new_state, norms
        vectors = {name: groups | {g: groups[g].vectors for g in LEARNED} for name, groups in state.items()}
        found = {name: group.vectors for name, group in gradients.items()}
        new_state, norms = super().apply(ops, vectors, found, buffers, optimizer_scalars)
        for name, old in state.items():
            new_state[name] |= {group: old[group].with_vectors(new_state[name][group]) for group in LEARNED}
        return new_state, norms

    @staticmethod
    def choose(ops: Any, condition: Any, these: Any, others: Any) -> Any:
        return these if condition > 0 else others

    @staticmethod
    def update_targets(state: dict, rates: dict[str, Any]) -> dict:
        return {**state, **{name: with_updated_target(state[name], rate) for name, rate in rates.items()}}

    def _with_convolutions(self, name: str, groups: dict[str, Any], group: str, convolutions: list) -> dict[str, Any]:
        changed = super()._with_convolutions(name, groups, group, convolutions)
        return {**changed, group: groups[group].replaced(changed[group])}


class ArrayLearner(Learner):
    """Base class of learners that call the framework once for each update. Python code decides before each update which
    networks learn and which target networks move.

    A subclass for a framework defines how a step is called (``_called``).

    :cvar ops: the framework's array operations; see ``ArrayNetwork``
    """

    ops: Any
    step: VectorStep

    def __init__(self, step: TrainingStep, networks: dict[str, Any], published: tuple[str, ...] = ()):
        # without published: reading all weights costs as much as reading some
        super().__init__(self.ops, VectorStep(step), networks)

    def _compile(self, layout: StepLayout, compute: Callable[..., tuple[Variables, list]]) -> CompiledStep:
        def call(vector: np.ndarray, large: list[np.ndarray], indices: np.ndarray | None) -> list[np.ndarray]:
            state, results = compute(layout, self.variables, vector, large, indices)
            for name, network in self.networks.items():
                network.variables = state[name]
                network.version += 1
            return results

        return call

    def _no_gradients(self, weights: Any) -> Any:
        return weights.with_vectors([self.ops.zeros_like(vector) for vector in weights.vectors])

    def _branch(self, condition: float, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
        return one() if condition > 0 else other()

    def all_updates(
        self, layout: StepLayout, variables: Variables, vector: Any, large: list, indices: Any
    ) -> tuple[Variables, list]:
        packing, size, outputs = layout.packing, layout.batch_size, []
        rows, scalars = packing.unpack_rows(np, vector), packing.unpack_scalars(np, vector)
        for k in range(int(vector[-1])):
            chosen = slice(k * size, (k + 1) * size) if indices is None else indices[k]
            batch = PackedBatch(*_chosen(packing, rows, large, chosen), scalars[k])
            variables, row = self._update(layout, variables, batch)
            outputs.append(row)
        # after the loop, because each conversion waits for the end of its update
        return variables, [np.stack([self.ops.convert_to_numpy(row) for row in outputs])]

    def gradients_of_call(
        self, layout: StepLayout, variables: Variables, vector: Any, large: list, indices: Any
    ) -> tuple[Variables, list]:
        packing = layout.packing
        rows, scalars = packing.unpack_rows(np, vector), packing.unpack_scalars(np, vector)
        change = partial(self._differentiated_by, layout)
        variables, results = self._called(layout, change, variables, PackedBatch(rows, large, scalars[0]))
        return variables, [self.ops.convert_to_numpy(result) for result in results]

    def _update(self, layout: StepLayout, variables: Variables, batch: PackedBatch) -> tuple[Variables, Any]:
        """Make an update. Return the new variables, and the update's outputs in one vector."""
        variables, (outputs,) = self._called(layout, partial(self._updated, layout), variables, batch)
        return variables, outputs

    def _updated(self, layout: StepLayout, variables: Variables, columns: dict, scalar_row: list) -> Called:
        after, outputs = self._one_update(layout, variables, columns, scalar_row)
        return after, [outputs]

    def _differentiated_by(self, layout: StepLayout, variables: Variables, columns: dict, scalar_row: list) -> Called:
        found, buffers, outputs = self._one_gradient(layout, variables, columns, scalar_row)
        after = {name: {**groups, "buffers": buffers[name]} for name, groups in variables.items()}
        return after, [*(found[name].vector for name in self._output_names[layout.stages].losses), outputs]

    def _called(self, layout: StepLayout, change: Change, variables: Variables, batch: PackedBatch) -> Called:
        """Call the framework for a step. Return the new variables and the results.

        :param change: the function that makes the step; calls with the same layout give the same function
        """
        raise NotImplementedError(f"{type(self).__name__} does not define _called")


def _chosen(
    packing: Packing, rows: np.ndarray, large: list[np.ndarray], chosen: Any
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The chosen rows of the packed columns and of the large columns. A negative index gives a row with weight 0."""
    if isinstance(chosen, slice):
        return rows[chosen], [column[chosen] for column in large]
    present = np.maximum(chosen, 0)
    rows = rows[present]
    # the indexing above has copied the rows, so this does not change the packed vector
    rows[chosen < 0, packing.packed["weights"].start] = 0.0
    return rows, [column[present] for column in large]
