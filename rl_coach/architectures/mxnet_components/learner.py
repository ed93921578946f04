"""A network's state in MXNet arrays, and the training steps that change this state. The steps use ``autograd``; nothing
is compiled."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.architectures.array_components.learner import ArrayLearner, Called, Change, PackedBatch
from rl_coach.architectures.array_components.state import ArrayNetworkState, Pieces
from rl_coach.architectures.learner import CompiledStep, Packing, StepLayout, Variables
from rl_coach.architectures.mxnet_components import ops
from rl_coach.architectures.mxnet_components.compatible_mxnet import mxnet, numpy_semantics
from rl_coach.architectures.update import TrainingStep
from rl_coach.utils import CoachError


class MXNetNetworkState(ArrayNetworkState):
    """The state of a network on MXNet; see ``ArrayNetworkState``. An update makes new arrays and does not write to the
    old arrays.
    """

    ops = ops
    update_target = numpy_semantics(ArrayNetworkState.update_target)
    _held = numpy_semantics(ArrayNetworkState._held)


def gradients(function: Callable, weights: dict[str, Pieces]) -> tuple[dict[str, Pieces], Any]:
    """The gradient of each network's loss with respect to its own weights, and auxiliary values; see
    ``Learner._gradients``.
    """
    # new arrays on the same memory: a target network may share its vector with the online network and needs no gradient
    marked = {name: group.with_vectors(group.vectors) for name, group in weights.items()}
    found = {
        name: group.with_vectors([ops.zeros_like(vector) for vector in group.vectors])
        for name, group in weights.items()
    }
    for name, group in marked.items():
        mxnet.autograd.mark_variables(group.arrays, found[name].arrays)
    with mxnet.autograd.record():
        losses, auxiliary = function(marked)
    taken: dict[str, Pieces] = {}
    for name, loss in losses.items():
        if taken:
            found[name].vector[:] = 0  # the loss of another network may have added a gradient here
        loss.backward(retain_graph=len(taken) + 1 < len(losses))
        # a copy, because a later loss may change this gradient
        taken[name] = found[name].with_vectors([found[name].vector.copy()]) if len(losses) > 1 else found[name]
    return taken, auxiliary


class MXNetLearner(ArrayLearner):
    """The learner on MXNet; see ``Learner``."""

    ops = ops
    networks: dict[str, MXNetNetworkState]

    def __init__(self, step: TrainingStep, *others: Any):
        if any(stage.move for stage in step.stages):
            raise CoachError("the update needs second derivatives, which MXNet lacks: use -f tensorflow, jax or torch")
        super().__init__(step, *others)

    def _gradients(self, function: Callable, weights: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        return gradients(function, weights)

    def _compile(self, layout: StepLayout, compute: Callable[..., tuple[Variables, list]]) -> CompiledStep:
        return numpy_semantics(super()._compile(layout, compute))

    def _called(self, layout: StepLayout, change: Change, variables: Variables, batch: PackedBatch) -> Called:
        return change(variables, _columns(layout.packing, batch.rows, batch.large), batch.scalars.tolist())


def _columns(packing: Packing, rows: np.ndarray, large: list[np.ndarray]) -> dict[str, Any]:
    """The columns of a batch as MXNet arrays."""
    # one copy to MXNet for all columns: each copy or slice in MXNet costs an operation, a slice in NumPy costs little
    packed = [rows[:, place.start : place.stop] for place in packing.packed.values()]
    shapes = tuple((len(rows), *place.shape) for place in packing.packed.values())
    columns = {
        name: ops.cast(array, "int32") if place.is_integer else array
        for (name, place), array in zip(packing.packed.items(), Pieces.of(ops, packed, shapes))
    }
    return columns | {name: ops.convert_to_tensor(column) for name, column in zip(packing.large, large)}
