"""A network's state in MXNet arrays, and the training steps with ``autograd`` that change it: one operation after the
other, nothing is compiled."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from rl_coach.architectures.learner import CompiledStep, Learner, Packing, StepLayout, Variables
from rl_coach.architectures.mxnet_components import ops
from rl_coach.architectures.mxnet_components.compatible_mxnet import mxnet, numpy_semantics
from rl_coach.architectures.mxnet_components.pieces import Pieces
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.network_state import NetworkState, initial_groups
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import NetworkParameters
from rl_coach.core_types import GradientClippingMethod
from rl_coach.utils import CoachError

LEARNED = ("weights", "slots")
BUFFERS = ("buffers", "target_buffers")


class MXNetNetworkState(NetworkState):
    """See ``NetworkState``. Nothing is ever under way: MXNet's updates are made when the call returns.

    :ivar variables: arrays by group, which nobody writes to: an update replaces them
    """

    def __init__(self, function: NetworkFunction, has_target: bool):
        groups = initial_groups(function, has_target)
        super().__init__(function, groups)
        self.variables: dict[str, Any] = {name: self._held(name, group) for name, group in groups.items()}

    def arrays(self, group: str) -> list[np.ndarray]:
        held = self.variables[group]
        if isinstance(held, Pieces):
            return held.numpy()
        return [value if isinstance(value, np.ndarray) else value.asnumpy() for value in held]

    @numpy_semantics
    def update_target(self, rate: float) -> None:
        self.replace(with_updated_target(self.variables, rate))

    def replace(self, variables: dict[str, Any]) -> None:
        """Take the values that an update computed."""
        self.variables = variables
        self.version += 1

    def _replace(self, group: str, arrays: list[np.ndarray]) -> None:
        self.variables[group] = self._held(group, arrays)

    @numpy_semantics
    def _held(self, group: str, arrays: Sequence[np.ndarray]) -> Any:
        """The arrays on MXNet; the state of random generators, which is no float, stays on the host."""
        if group in BUFFERS:
            return [np.array(array) if array.dtype == np.uint32 else ops.convert_to_tensor(array) for array in arrays]
        return Pieces.of(arrays, tuple(shape for shape, _ in self._forms["weights"]))


def with_updated_target(groups: dict[str, Any], rate: float) -> dict[str, Any]:
    """The groups after the target moved towards the online weights, all of them at once."""
    online, target = groups["weights"], groups["target_weights"]
    vector = online.vector if rate == 1 else target.vector + rate * (online.vector - target.vector)
    return {**groups, "target_weights": Pieces([vector], online.shapes), "target_buffers": groups["buffers"]}


def gradients(function: Callable, weights: dict[str, Pieces]) -> tuple[dict[str, Pieces], Any]:
    """Each network's loss differentiated by that network's own weights."""
    # new handles on the same memory: a target may share its vector with the online network, and has no gradient
    marked = {name: Pieces(group.vectors, group.shapes) for name, group in weights.items()}
    found = {
        name: Pieces([ops.zeros_like(vector) for vector in group.vectors], group.shapes)
        for name, group in weights.items()
    }
    for name, group in marked.items():
        mxnet.autograd.mark_variables(group.arrays, found[name].arrays)
    with mxnet.autograd.record():
        losses, auxiliary = function(marked)
    taken: dict[str, Pieces] = {}
    for name, loss in losses.items():
        if taken:
            found[name].vector[:] = 0  # another network's loss may have passed through here
        loss.backward(retain_graph=len(taken) + 1 < len(losses))
        # a later loss may pass through here
        taken[name] = Pieces([found[name].vector.copy()], found[name].shapes) if len(losses) > 1 else found[name]
    return taken, auxiliary


class VectorStep(TrainingStep):
    """A training step whose optimizer works on all weights of a network as one vector.

    :param step: the step whose networks, parameters and stages it has
    """

    def __init__(self, step: TrainingStep):
        super().__init__(step.networks, step.parameters, step.stages)

    def apply(
        self, ops: Any, state: dict, gradients: dict[str, Any], buffers: dict, optimizer_scalars: dict[str, Any]
    ) -> tuple[dict, dict[str, Any]]:
        if any(_clips_each_variable(parameters) for parameters in self.parameters.values()):
            new_state, norms = super().apply(ops, state, gradients, buffers, optimizer_scalars)
        else:
            vectors = {name: groups | {g: groups[g].vectors for g in LEARNED} for name, groups in state.items()}
            found = {name: group.vectors for name, group in gradients.items()}
            new_state, norms = super().apply(ops, vectors, found, buffers, optimizer_scalars)
        for name, old in state.items():
            new_state[name] |= {group: _held(new_state[name][group], old[group]) for group in LEARNED}
        return new_state, norms

    @staticmethod
    def choose(ops: Any, condition: Any, these: Any, others: Any) -> Any:
        return these if condition > 0 else others

    @staticmethod
    def update_targets(state: dict, rates: dict[str, Any]) -> dict:
        return {**state, **{name: with_updated_target(state[name], rate) for name, rate in rates.items()}}


def _clips_each_variable(parameters: NetworkParameters) -> bool:
    return bool(parameters.clip_gradients) and (
        parameters.gradients_clipping_method == GradientClippingMethod.ClipByNorm
    )


def _held(arrays: Any, old: Pieces) -> Pieces:
    """New values of ``old``, which come as vectors or as pieces, in vectors."""
    if len(arrays) != len(old.vectors):
        size = len(old.shapes)
        groups = [arrays[start : start + size] for start in range(0, len(arrays), size)]
        arrays = [ops.concatenate([array.reshape_view((-1,)) for array in group]) for group in groups]
    return Pieces(arrays, old.shapes)


class MXNetLearner(Learner):
    """See ``Learner``."""

    networks: dict[str, MXNetNetworkState]

    def __init__(self, step: TrainingStep, networks: dict[str, MXNetNetworkState], published: tuple[str, ...] = ()):
        if any(stage.move for stage in step.stages):
            raise CoachError("the update needs second derivatives, which MXNet lacks: use -f tensorflow or -f jax")
        if any(stage.shared_convolutions for stage in step.stages):
            raise CoachError("networks share no convolutions on MXNet: use -f tensorflow or -f jax")
        super().__init__(ops, VectorStep(step), networks)  # all weights cost the same to read

    def _gradients(self, function: Callable, weights: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        return gradients(function, weights)

    def _no_gradients(self, weights: Any) -> Any:
        return Pieces([ops.zeros_like(vector) for vector in weights.vectors], weights.shapes)

    def _branch(self, condition: float, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
        return one() if condition > 0 else other()

    def _compile(self, layout: StepLayout, compute: Callable[..., tuple[Variables, list]]) -> CompiledStep:
        @numpy_semantics
        def call(vector: np.ndarray, large: list[np.ndarray], indices: np.ndarray | None) -> list[np.ndarray]:
            state = {name: network.variables for name, network in self.networks.items()}
            state, results = compute(layout, state, vector, large, indices)
            for name, network in self.networks.items():
                network.replace(state[name])
            return results

        return call

    def all_updates(
        self, layout: StepLayout, variables: Variables, vector: Any, large: list, indices: Any
    ) -> tuple[Variables, list]:
        packing, size, outputs = layout.packing, layout.batch_size, []
        rows, scalars = packing.unpack_rows(np, vector), packing.unpack_scalars(np, vector).tolist()
        for k in range(int(vector[-1])):
            chosen = np.arange(k * size, (k + 1) * size) if indices is None else indices[k]
            columns = _columns(packing, rows, large, chosen)
            variables, row = self._one_update(layout, variables, columns, scalars[k])
            outputs.append(row)
        return variables, [np.stack([row.asnumpy() for row in outputs])]

    def gradients_of_call(
        self, layout: StepLayout, variables: Variables, vector: Any, large: list, indices: Any
    ) -> tuple[Variables, list]:
        packing = layout.packing
        columns = _columns(packing, packing.unpack_rows(np, vector), large, np.arange(packing.rows))
        scalars = packing.unpack_scalars(np, vector).tolist()
        found, buffers, outputs = self._one_gradient(layout, variables, columns, scalars[0])
        after = {name: {**groups, "buffers": buffers[name]} for name, groups in variables.items()}
        flat = [found[name].vector.asnumpy() for name in self._output_names[layout.stages].losses]
        return after, [*flat, outputs.asnumpy()]


def _columns(packing: Packing, rows: np.ndarray, large: list[np.ndarray], chosen: np.ndarray) -> dict[str, Any]:
    """The columns of the chosen rows; a negative index stands for a row of weight 0."""
    present = np.maximum(chosen, 0)
    packed = [rows[present, place.start : place.stop] for place in packing.packed.values()]
    shapes = tuple((len(chosen), *place.shape) for place in packing.packed.values())
    columns = {
        name: ops.cast(array, "int32") if place.is_integer else array
        for (name, place), array in zip(packing.packed.items(), Pieces.of(packed, shapes))
    }
    columns |= {name: ops.convert_to_tensor(column[present]) for name, column in zip(packing.large, large)}
    if (chosen < 0).any():
        columns["weights"] = columns["weights"] * ops.convert_to_tensor((chosen >= 0).astype(np.float32))
    return columns
