"""A network's state in PyTorch tensors, and the training steps that change this state in place.

One compiled update is made for each combination of networks that learn. A training phase calls compiled updates in a
loop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Sequence

import numpy as np
import torch

from rl_coach.architectures.array_components.learner import ArrayLearner, Called, Change, PackedBatch
from rl_coach.architectures.array_components.state import ArrayNetworkState, Pieces
from rl_coach.architectures.learner import OPTIMIZER_SCALARS, StepLayout, Variables
from rl_coach.architectures.torch_components import ops
from rl_coach.architectures.torch_components.compilation import Step, compiled
from rl_coach.architectures.update import Move, Stage


class TorchNetworkState(ArrayNetworkState):
    """The state of a network on PyTorch; see ``ArrayNetworkState``. An update changes the tensors in place."""

    ops = ops

    def update_target(self, rate: float) -> None:
        groups = self.variables
        for old, new in zip(groups["target_weights"].vectors, groups["weights"].vectors):
            # a rate of 1 copies, because target + (online - target) is not exactly online
            old.copy_(new if rate == 1 else old + rate * (new - old))
        for old, new in zip(groups["target_buffers"], groups["buffers"]):
            old.copy_(new)
        self.version += 1


def flattened(variables: Variables) -> list[torch.Tensor]:
    """The tensors of all networks in one list."""
    groups = [group for network in variables.values() for group in network.values()]
    return [tensor for group in groups for tensor in (group.vectors if isinstance(group, Pieces) else group)]


def filled(example: Variables, tensors: Sequence[torch.Tensor]) -> tuple[Variables, list[torch.Tensor]]:
    """Undo ``flattened``. Return the variables in the structure of ``example``, and the remaining tensors."""
    left = list(tensors)

    def taken(group: Any) -> Any:
        vectors = group.vectors if isinstance(group, Pieces) else group
        own, left[: len(vectors)] = left[: len(vectors)], []
        return group.with_vectors(own) if isinstance(group, Pieces) else own

    filled = {name: {key: taken(group) for key, group in groups.items()} for name, groups in example.items()}
    return filled, left


class TorchLearner(ArrayLearner):
    """The learner on PyTorch; see ``Learner``."""

    ops = ops
    networks: dict[str, TorchNetworkState]

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._steps: dict[tuple, Step] = {}

    def _gradients(self, function: Callable, weights: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        # weights already require gradients if this derivative is a part of another derivative
        is_part = any(array.requires_grad for arrays in weights.values() for array in arrays)
        marked = {name: [_marked(array) for array in arrays] for name, arrays in weights.items()}
        losses, auxiliary = function(marked)
        found = {}
        for name, loss in losses.items():
            slopes: Sequence[Any] = [None] * len(marked[name])
            if loss.requires_grad:
                # the graph is retained, because the losses of several networks share parts of it
                slopes = torch.autograd.grad(
                    loss, marked[name], retain_graph=True, create_graph=is_part, allow_unused=True
                )
            # None: the loss does not depend on this weight
            known = [torch.zeros_like(a) if s is None else s for a, s in zip(marked[name], slopes)]
            found[name] = weights[name].replaced(known) if isinstance(weights[name], Pieces) else known
        return found, auxiliary

    def _moved(self, move: Move, stage: Stage, state: dict, gradients: dict, *others: Any) -> tuple[dict, dict, dict]:
        after, norms, signals = super()._moved(move, stage, state, gradients, *others)
        for name in gradients:
            # a move returns separate arrays, but the state has all weights in one vector
            after[name]["weights"] = state[name]["weights"].replaced(after[name]["weights"])
        return after, norms, signals

    def _update(self, layout: StepLayout, variables: Variables, batch: PackedBatch) -> tuple[Variables, Any]:
        # targets are updated outside the compiled step, so that steps with and without this update need one compilation
        variables, outputs = super()._update(layout, variables, batch)
        moves = dict(zip(layout.moving, batch.scalars[len(batch.scalars) - len(layout.moving) :]))
        for name, rate in layout.target_rates.items():
            if moves.get(name, 1) > 0:
                self.networks[name].update_target(rate)
        return variables, outputs

    def _updated(self, layout: StepLayout, *others: Any) -> Called:
        return super()._updated(replace(layout, target_rates={}, moving=()), *others)

    def _called(self, layout: StepLayout, change: Change, variables: Variables, batch: PackedBatch) -> Called:
        scalars = batch.scalars
        first_mask = len(self.networks) * OPTIMIZER_SCALARS + len(layout.scalar_names)
        learning = [float(mask) for mask in scalars[first_mask : first_mask + len(layout.learning)]]
        given = [*flattened(variables), *map(_tensor, (batch.rows, scalars[:first_mask], *batch.large))]
        # no other layout has the same id, because the compiled call keeps a reference to its layout
        key = (id(layout), *learning)  # a mask is a constant of a trace, so each choice of networks needs a step
        if key not in self._steps:

            def step(given: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
                state, (rows, numbers, *large) = filled(variables, given)
                columns = layout.packing.columns(ops, rows) | dict(zip(layout.packing.large, large))
                after, results = change(state, columns, [*numbers.unbind(), *learning])
                # in place, because the arrays of the state are views of these tensors
                for old, new in zip(given, flattened(after)):
                    if new is not old:
                        old.copy_(new)
                return results

            # not compiled: the number of iterations of a move depends on data, and a trace cannot contain such a loop
            has_moves = any(stage.move for stage in layout.stages)
            self._steps[key] = step if has_moves else compiled(step, given)
        return variables, self._steps[key](given)


def _marked(array: torch.Tensor) -> torch.Tensor:
    """A tensor with the same values that requires a gradient."""
    # a view is part of the outer graph, so that the outer derivative passes through it
    return array.view_as(array) if array.requires_grad else array.detach().requires_grad_(True)


def _tensor(array: np.ndarray) -> torch.Tensor:
    """A tensor on the memory of the array; a copy if the array is read-only."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())
