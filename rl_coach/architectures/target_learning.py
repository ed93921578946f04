"""Updates towards targets that an agent computes itself, and updates with accumulated or given gradients."""

from __future__ import annotations

import functools
from typing import Any, Sequence

import numpy as np

from rl_coach.architectures.framework import Framework
from rl_coach.architectures.head_losses import head_loss_rule
from rl_coach.architectures.learner import Learner, LearningResult
from rl_coach.architectures.network_state import NetworkState
from rl_coach.architectures.padding import padded
from rl_coach.architectures.update import Optimizer, TrainingStep, with_unit_columns
from rl_coach.base_parameters import NetworkParameters
from rl_coach.utils import CoachError

Columns = dict[str, np.ndarray]
Fitted = tuple[float, list[float], float, list]


class TargetLearning:
    """Trains a network towards targets that the caller computes for each head.

    To accumulate gradients, the object stores the batches, and computes their gradients in the next update. The result
    is the same, because the weights do not change before.

    :param name: the network's name
    :param parameters: the network's parameters
    :param framework: the framework, which makes the learners
    :param state: the network's state

    :ivar accumulated: the batches for the next ``apply``
    """

    def __init__(self, name: str, parameters: NetworkParameters, framework: Framework, state: NetworkState):
        self.accumulated: list[Columns] = []
        self._name = name
        self._parameters = parameters
        self._framework = framework
        self._state = state
        self._optimizer = Optimizer(parameters)

    def train(
        self, inputs: Columns, targets: Any, importance_weights: np.ndarray | None, scaler: float = 1.0
    ) -> Fitted:
        """Make an update.

        :param inputs: observations [B, ...] by name; for a policy head i, ``output_<i>_0`` has the actions
        :param targets: an array for each head: [B, A] for Q, [B] for V, advantages [B] for a policy
        :param importance_weights: [B], the weight of each row in the loss; None for ones
        :param scaler: divisor of the gradients
        :return: the loss, a list of the heads' losses, the norm of the gradients before clipping, and an empty list
        """
        columns = self.columns(inputs, targets, importance_weights)
        if scaler == 1.0:
            return self._read(self.teacher.train(padded(columns)))
        # computed before the update, because losses and norms are reported without the scaler
        result = self._examine(columns)
        # the loss is linear in the weights of the rows, so smaller weights divide the gradients
        self.teacher.train(padded({**columns, "weights": columns["weights"] / np.float32(scaler)}))
        return result

    def accumulate(
        self, inputs: Columns, targets: Any, importance_weights: np.ndarray | None, replaces: bool = False
    ) -> Fitted:
        """Add a batch to the next update, which ``apply`` makes.

        :param replaces: True to discard the earlier batches
        :return: the same as for ``train``, for this batch only
        """
        columns = self.columns(inputs, targets, importance_weights)
        self.accumulated = [columns] if replaces else [*self.accumulated, columns]
        return self._examine(columns)

    def apply(self, gradients: Sequence[np.ndarray] | None = None, scaler: float = 1.0) -> None:
        """Make an update with gradients that the caller computed, or with the sum of the accumulated gradients.

        :param gradients: one for each weight array, in the order of ``get_weights``; they are not clipped. None for the
            sum
        :param scaler: divisor of the gradients
        :raises CoachError: if there are no gradients, or their number is not the number of weight arrays
        """
        if gradients is not None:
            self._apply_given(gradients, scaler)
            return
        if not self.accumulated:
            raise CoachError(f"network '{self._name}' has no gradients to apply: call accumulate_gradients first")
        rows = sum(len(columns["weights"]) for columns in self.accumulated)
        # the loss is a mean over all rows, but the sum of the batches' means is needed
        scaled = [{**c, "weights": c["weights"] * (rows / len(c["weights"]) / scaler)} for c in self.accumulated]
        self.teacher.train(padded({name: np.concatenate([c[name] for c in scaled]) for name in scaled[0]}))

    def _apply_given(self, gradients: Sequence[np.ndarray], scaler: float) -> None:
        state, size = self._state, len(gradients)
        weights, slots = state.arrays("weights"), state.arrays("slots")
        if size != len(weights):
            raise CoachError(
                f"network '{self._name}' has {len(weights)} weight arrays, but {size} gradients were given"
            )
        scaled = [np.asarray(gradient, np.float32) / np.float32(scaler) for gradient in gradients]
        by_kind = [slots[i * size : (i + 1) * size] for i in range(self._optimizer.num_slots)]
        weights, by_kind = self._optimizer(np, weights, scaled, by_kind, self._optimizer.scalars(state.updates + 1))
        state.set_arrays("weights", with_unit_columns(np, state.function, weights))
        state.set_arrays("slots", [array for kind in by_kind for array in kind])
        state.updates += 1

    def columns(self, inputs: Columns, targets: Any, importance_weights: np.ndarray | None = None) -> Columns:
        """The columns of a batch, in the form of ``Learner.train``."""
        names = list(self._state.function.input_shapes)
        columns = {f"states/{name}": np.asarray(inputs[name]) for name in names}
        for i, target in enumerate(targets if isinstance(targets, (list, tuple)) else [targets]):
            columns[f"extra/target_{i}"] = np.asarray(target, np.float32)
            if f"output_{i}_0" in inputs:
                columns[f"extra/action_{i}"] = np.asarray(inputs[f"output_{i}_0"], np.float32)
        size = len(columns[f"states/{names[0]}"])
        weights = np.ones(size, np.float32) if importance_weights is None else importance_weights
        columns["weights"] = np.asarray(weights, np.float32).reshape(size)
        return columns

    def _examine(self, columns: Columns) -> Fitted:
        """Compute the losses and the norm of the gradients. The network does not change."""
        buffers = [np.array(buffer) for buffer in self._state.arrays("buffers")]
        _, result = self.teacher.gradients(padded(columns))
        # only the update itself may move running statistics and draw noise
        self._state.set_arrays("buffers", buffers)
        return self._read(result)

    def _read(self, result: LearningResult) -> Fitted:
        losses = [float(loss[0]) for loss in result.signals.values()]
        return float(result.losses[self._name][0]), losses, float(result.gradient_norms[self._name][0]), []

    @functools.cached_property
    def teacher(self) -> Learner:
        """The learner that trains the network towards the heads' targets."""
        rule = head_loss_rule(self._name, self._parameters)
        step = TrainingStep({self._name: self._state.function}, {self._name: self._parameters}, rule)
        return self._framework.make_learner(step, {self._name: self._state}, (self._name,))
