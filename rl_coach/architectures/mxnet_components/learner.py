"""Training steps with MXNet's ``autograd``: one operation after the other, nothing is compiled."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.architectures.learner import CompiledStep, Learner
from rl_coach.architectures.mxnet_components import ops
from rl_coach.architectures.mxnet_components.compatible_mxnet import mxnet, numpy_semantics
from rl_coach.architectures.mxnet_components.network_state import MXNetNetworkState
from rl_coach.architectures.packing import Packing


def gradients(function: Callable, weights: dict[str, list]) -> tuple[dict[str, list], Any]:
    """Each network's loss differentiated by that network's own weights."""
    # new handles on the same memory: a target may share its arrays with the online network, and has no gradient
    marked = {name: [weight.detach() for weight in group] for name, group in weights.items()}
    for group in marked.values():
        for weight in group:
            weight.attach_grad()
    with mxnet.autograd.record():
        losses, auxiliary = function(marked)
    found = {}
    for name, loss in losses.items():
        for weight in marked[name]:
            weight.grad[...] = 0  # another network's loss may have passed through here
        loss.backward(retain_graph=len(found) + 1 < len(losses))
        found[name] = [weight.grad.copy() for weight in marked[name]]
    return found, auxiliary


class MXNetLearner(Learner):
    """See ``Learner``."""

    networks: dict[str, MXNetNetworkState]

    def _compile(
        self, packing: Packing, batch_size: int, is_indexed: bool, follow: dict[str, float], scalar_names: list[str]
    ) -> CompiledStep:
        @numpy_semantics
        def call(vector: np.ndarray, large: list[np.ndarray], indices: np.ndarray | None) -> np.ndarray:
            rows = packing.unpack_rows(np, vector)
            scalars = packing.unpack_scalars(np, vector).tolist()
            state = {name: network.variables for name, network in self.networks.items()}
            outputs = []
            for k in range(int(vector[-1])):
                chosen = np.arange(k * batch_size, (k + 1) * batch_size) if indices is None else indices[k]
                columns = _columns(packing, rows, large, chosen)
                state, row = self.one_update(ops, gradients, state, columns, scalars[k], scalar_names, follow)
                outputs.append(row)
            for name, network in self.networks.items():
                network.replace(state[name])
            return np.stack([row.asnumpy() for row in outputs])

        return call


def _columns(packing: Packing, rows: np.ndarray, large: list[np.ndarray], chosen: np.ndarray) -> dict[str, Any]:
    """The columns of the chosen rows; a negative index stands for a row of weight 0."""
    present = np.maximum(chosen, 0)
    columns = packing.columns(ops, ops.convert_to_tensor(rows[present]))
    columns |= {name: ops.convert_to_tensor(column[present]) for name, column in zip(packing.large, large)}
    if (chosen < 0).any():
        columns["weights"] = columns["weights"] * ops.convert_to_tensor((chosen >= 0).astype(np.float32))
    return columns
