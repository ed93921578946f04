"""Learning, written once for all frameworks: from an algorithm's losses to new weights.

An algorithm defines an *update rule*, a pure function ``rule(ops, networks, batch) -> Update``. ``ops`` are array
operations with the names of ``keras.ops``; ``networks['main'].online(states)`` and ``.target(states)`` return a list
with a dict of outputs for each head. ``TrainingStep`` turns the rule into a pure function of the networks' state, with
gradients, clipping, optimizer and target networks. If one network learns from the new weights of another network, the
algorithm defines a rule for each ``Stage`` of its update. A framework only supplies differentiation, loops and
compilation (see ``learner.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Protocol

import numpy as np

from rl_coach.architectures.network_function import NetworkFunction, NetworkParts
from rl_coach.base_parameters import NetworkParameters
from rl_coach.core_types import GradientClippingMethod
from rl_coach.schedules import StepDecaySchedule
from rl_coach.utils import CoachError


@dataclass
class Update:
    """The result of an update rule.

    :param losses: a scalar for each network that learns. Each network is trained only with its own loss
    :param errors: [B], the TD error of each transition or a similar measure, for prioritized replay
    :param signals: scalars to log
    :param values: more results by name, each [n, ...]. n is B or a fixed share of B, such as the number of sequences
    """

    losses: dict[str, Any]
    errors: Any = None
    signals: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class LearningBatch:
    """A batch for update rules. All tensors have the first dimension B.

    :param states: observations by name
    :param next_states: observations after the step, by name
    :param actions: [B] int32 or [B, D] float32
    :param rewards: [B]
    :param discounts: [B], the factor of a bootstrapped value: gamma^n after n steps, 0 if the episode has terminated
    :param weights: [B], the weight of each transition in the loss; 0 for padding rows
    :param extra: more columns by name, which the agent adds
    :param scalars: numbers that change from one update to the next, by name
    :param sequence_length: number of rows in each sequence of a recurrent network; None if all rows are one sequence
    """

    states: dict[str, Any]
    next_states: dict[str, Any]
    actions: Any
    rewards: Any
    discounts: Any
    weights: Any
    extra: dict[str, Any]
    scalars: dict[str, Any]
    sequence_length: int | None = None


class NetworkView:
    """A network in an update rule. Its methods compute outputs with the online weights or the target weights.

    With ``output_embedding``, the outputs of the first head contain ``embedding``, the output of the middleware.
    Buffers such as running statistics pass from one call to the next call, but without a gradient.
    """

    def __init__(
        self, ops: Any, function: NetworkFunction, weights: list, buffers: list, target: tuple[list, list] | None,
        sequence_length: int | None = None,
    ):  # fmt: skip
        self._ops = ops
        self._function = function
        self._weights = weights
        self._target = target
        self._sequence_length = sequence_length
        self.buffers = buffers

    def online(self, states: dict[str, Any], training: bool = True) -> list[dict[str, Any]]:
        """The outputs of the online network.

        :param states: [B, ...] by name. They may include the recurrent state before each sequence, in the first row of
            the sequence
        """
        return self.unroll(states, self._before_sequences(states), training)[0]

    def _before_sequences(self, states: dict[str, Any]) -> dict[str, Any]:
        first = slice(0, 1) if self._sequence_length is None else slice(None, None, self._sequence_length)
        return {name: states[name][first] for name in self._function.recurrent_sizes if name in states}

    @property
    def recurrent_names(self) -> list[str]:
        """The names of the parts of the recurrent state; empty if there is none."""
        return list(self._function.recurrent_sizes)

    def unroll(
        self, states: dict[str, Any], recurrent: dict[str, Any], training: bool = True
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The outputs of the online network for N sequences of T steps, and the recurrent state after each sequence.

        :param states: [N * T, ...] by name; the steps of a sequence are next to each other
        :param recurrent: the recurrent state before each sequence, [N, size] by name
        """
        inputs = {**states, **recurrent}
        outputs, after, buffers = self._function(self._weights, self.buffers, inputs, training, draws_noise=True)
        # these running statistics come from the batch: with a gradient, a later loss would also train through it
        self.buffers = [self._ops.stop_gradient(buffer) for buffer in buffers]
        return outputs, after

    def step(self, states: dict[str, Any], recurrent: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The outputs of the online network as in acting, and the recurrent state after the step. The buffers do not
        change.

        :param states: [B, ...] by name, one step of each of B sequences
        :param recurrent: the recurrent state before the step, [B, size] by name; empty for none
        """
        inputs = {**states, **recurrent}
        # as in acting: each row is one step of an LSTM, and batch normalisation uses its running statistics
        outputs, after, _ = self._function(
            self._weights, self.buffers, inputs, False, single_step=True, draws_noise=True
        )
        return outputs, after

    def target(self, states: dict[str, Any]) -> list[dict[str, Any]]:
        """The outputs of the target network, for states as in ``online``. No gradient reaches the target network."""
        return self.unroll_target(states, self._before_sequences(states))[0]

    def unroll_target(
        self, states: dict[str, Any], recurrent: dict[str, Any]
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The same as ``unroll``, for the target network."""
        weights, own_buffers = self._target_state()
        # the target network needs new NoisyNet noise in each update, independent of the online network's noise
        # (Fortunato et al. 2018, section 3.3): both draw from one stream
        buffers = self._function.with_random_state(own_buffers, self.buffers)
        outputs, state, after = self._function(weights, buffers, {**states, **recurrent}, False, draws_noise=True)
        self.buffers = self._function.with_random_state(self.buffers, after)
        return outputs, state

    @property
    def parts(self) -> NetworkParts:
        """The parts of the online network, for calls of single parts."""
        return self._function.in_parts(self._weights)

    @property
    def constant_parts(self) -> NetworkParts:
        """The same as ``parts``, but no gradient reaches the weights."""
        return self._function.in_parts([self._ops.stop_gradient(weight) for weight in self._weights])

    @property
    def target_parts(self) -> NetworkParts:
        """The parts of the target network. No gradient reaches the weights."""
        return self._function.in_parts(self._target_state()[0])

    def _target_state(self) -> tuple[list, list]:
        if self._target is None:
            raise CoachError("this network has no target network: set create_target_network to True")
        return self._target

    def keep(self, **values: Any) -> None:
        """Replace values that are not trained, by name; see ``ValuesParameters``."""
        names = self._function.kept_names
        if unknown := sorted(set(values) - set(names)):
            raise CoachError(f"there is no kept value '{unknown[0]}': name it in ValuesParameters(kept=...)")
        kept = [values.get(name, old) for name, old in zip(names, self.buffers)]
        self.buffers = [self._ops.stop_gradient(value) for value in kept]


UpdateRule = Callable[[Any, dict[str, NetworkView], LearningBatch], Update]
LossOf = Callable[[UpdateRule, list], Any]
"""A function of a rule and of a network's weights: the network's loss without L2 regularisation."""
SlopeOf = Callable[[Callable[[list], Any], list], list]
"""The gradient at given weights of a function that maps a network's weights to a scalar. Calls may be nested."""


class Move(Protocol):
    """A custom update of the only network of a stage, instead of gradient clipping and the optimizer.

    :ivar signal_names: the names of the scalars that a call returns
    """

    @property
    def signal_names(self) -> tuple[str, ...]: ...

    def __call__(
        self, ops: Any, rule: UpdateRule, weights: list, gradient: list, loss_of: LossOf, slope_of: SlopeOf
    ) -> tuple[list, dict[str, Any]]:
        """Compute the new weights, and a scalar for each of ``signal_names``.

        :param rule: the update rule of the stage
        :param gradient: the gradient of the rule's loss at ``weights``
        """


@dataclass(frozen=True)
class Stage:
    """A part of an update. The next stage uses the new weights of this stage.

    For example, TD3 has a stage for the critic and then a stage for the actor, which maximizes the new critic.

    :param networks: the networks that learn in this stage; the rule must return a loss for each
    :param rule: computes the losses of this stage
    :param gradient_sums: pairs (signal, network); the signal logs the sum of the absolute values of all gradients of
        the network before clipping, and 0 if an update leaves the network out
    :param move: a custom update of the stage's only network, which must learn in each update; None for the optimizer
    :param shared_convolutions: names of two networks. After each update, the convolutions of the first network are
        copied to the second network and to the target of the first network
    """

    networks: tuple[str, ...]
    rule: UpdateRule
    gradient_sums: tuple[tuple[str, str], ...] = ()
    move: Move | None = None
    shared_convolutions: tuple[str, str] | None = None


Stages = tuple[Stage, ...]


def stages_of(rule: UpdateRule | Stages, networks: Iterable[str]) -> Stages:
    """The stages of an update. A single rule becomes one stage in which all networks learn."""
    return rule if isinstance(rule, tuple) else (Stage(tuple(networks), rule),)


def assert_rank(rank: int, **columns: Any) -> None:
    """Check that columns have ``rank`` dimensions. The check runs when a step is traced, so it costs no time in
    training.

    :param columns: the columns by name, such as ``rewards=batch.rewards``; the error message contains the name
    :raises CoachError: if a column has another rank, or is missing in the batch
    """
    for name, column in columns.items():
        if column is None:
            raise CoachError(
                f"the update rule needs '{name}', but the batch does not have it: add it in learning_columns"
            )
        if len(column.shape) != rank:
            raise CoachError(
                f"'{name}' has shape {tuple(column.shape)}, and the update rule takes {rank} dimensions: "
                f"reshape it in learning_columns"
            )


def weighted_mean(ops: Any, values: Any, weights: Any) -> Any:
    """The weighted mean of ``values`` [B]: sum(w x) divided by the number of rows with a weight above 0.

    So importance weights do not change the divisor, and padding rows (weight 0) do not count.
    """
    rows = ops.sum(ops.cast(weights > 0, "float32"))
    # a batch of padding rows only has the mean 0, not NaN
    return ops.sum(values * weights) / ops.maximum(rows, 1.0)


def huber(ops: Any, errors: Any) -> Any:
    """The Huber loss (Huber 1964): x^2 / 2 if |x| <= 1, else |x| - 1/2."""
    size = ops.abs(errors)
    return ops.where(size < 1.0, 0.5 * errors * errors, size - 0.5)


def cross_entropy(ops: Any, logits: Any, targets: Any) -> Any:
    """[N], the cross entropy of logits [N, K] and target probabilities [N, K]. The targets get no gradient."""
    return -ops.sum(ops.stop_gradient(targets) * ops.log_softmax(logits), axis=-1)


def binary_cross_entropy(ops: Any, logits: Any, targets: Any) -> Any:
    """[N], the cross entropy of the probabilities sigmoid(logits) and the targets from 0 to 1."""
    # not with the logarithm of the sigmoid, which is -inf for a very negative logit
    return ops.softplus(logits) - targets * logits


def select(ops: Any, values: Any, actions: Any) -> Any:
    """values[b, actions[b]] for each row b: values [B, A] and actions [B] give [B]."""
    return ops.sum(values * ops.one_hot(actions, values.shape[-1], dtype="float32"), axis=-1)


def select_rows(ops: Any, values: Any, actions: Any) -> Any:
    """values[b, actions[b], :] for each row b: values [B, A, N] and actions [B] give [B, N]."""
    return ops.sum(values * ops.one_hot(actions, values.shape[1], dtype="float32")[:, :, None], axis=1)


def weighted_sum(ops: Any, values: Any, weights: Any) -> Any:
    """The sum of ``values`` [B] times ``weights`` [B]."""
    return ops.sum(values * weights)


class Optimizer:
    """An optimizer: computes new weights from a list of weights and their gradients.

    ``slots`` is the state of the optimizer, such as Adam's two means: lists of arrays with the shapes of the weights.
    Python code computes ``scalars`` before each update, so that schedules and bias corrections take no time in the
    compiled step.

    :param parameters: the network's parameters
    """

    def __init__(self, parameters: NetworkParameters):
        kinds = {"adam": self._adam, "laprop": self._laprop, "rmsprop": self._rmsprop, "sgd": self._sgd}
        kind = parameters.optimizer_type.lower()
        if kind not in kinds:
            raise CoachError(f"no optimizer '{parameters.optimizer_type}': use 'Adam', 'LaProp', 'RMSProp' or 'SGD'")
        self._apply = kinds[kind]
        self.num_slots = {"adam": 2, "laprop": 2, "rmsprop": 1, "sgd": 0}[kind]
        self.parameters = parameters

    def scalars(self, update: int, training_step: int | None = None) -> list[float]:
        """The learning rate and the two bias corrections of one update.

        :param update: the number of the update, from 1 on
        :param training_step: the number of the training step of this update, from 0 on; None if each update is a
            training step
        """
        p = self.parameters
        first, second = 1 - p.adam_optimizer_beta1**update, 1 - p.adam_optimizer_beta2**update
        return [self.learning_rate(update - 1 if training_step is None else training_step), 1 / first, 1 / second]

    def scalar_rows(self, updates: np.ndarray, training_steps: np.ndarray | None = None) -> np.ndarray:
        """[..., 3], the ``scalars`` of many updates.

        :param updates: [...] int, the numbers of the updates, from 1 on
        :param training_steps: [...] as for ``scalars``; None if each update is a training step
        """
        steps = updates - 1 if training_steps is None else training_steps
        rows = np.empty((*updates.shape, 3))
        rows[..., 0] = np.reshape([self.learning_rate(step) for step in steps.ravel().tolist()], steps.shape)
        rows[..., 1:] = self.bias_corrections(np, updates)
        return rows

    def bias_corrections(self, ops: Any, updates: Any) -> Any:
        """[..., 2], the bias corrections 1 / (1 - beta^n) for both betas.

        :param updates: [...], the numbers n of the updates, from 1 on
        :param ops: NumPy, or array operations with the names of ``keras.ops``
        """
        betas = self.parameters.adam_optimizer_beta1, self.parameters.adam_optimizer_beta2
        # in float32, 1 - 0.999 has only four correct digits
        # with a beta of 0, expm1(-inf) is -1, so the correction is 1
        logs = [math.log(beta) if beta else -math.inf for beta in betas]
        return ops.stack([-1 / ops.expm1(updates * log) for log in logs], axis=-1)

    def learning_rate(self, training_step: int) -> float:
        """The learning rate in a training step. :param training_step: the number of the step, from 0 on"""
        p = self.parameters
        rate: Any = p.learning_rate
        if p.learning_rate_decay_rate and p.learning_rate_decay_steps:
            rate = StepDecaySchedule(rate, p.learning_rate_decay_rate, p.learning_rate_decay_steps)
        return float(rate.value_at(training_step)) if hasattr(rate, "value_at") else rate

    def __call__(self, ops: Any, weights: list, gradients: list, slots: list, scalars: Any) -> tuple[list, list]:
        """Compute the new weights and slots."""
        return self._apply(ops, weights, gradients, slots, scalars)

    def _adam(self, ops: Any, weights: list, gradients: list, slots: list, scalars: Any) -> tuple[list, list]:
        """Adam (Kingma & Ba 2015, algorithm 1)."""
        p = self.parameters
        b1, b2, epsilon = p.adam_optimizer_beta1, p.adam_optimizer_beta2, p.optimizer_epsilon
        rate, first_correction, second_correction = scalars[0], scalars[1], scalars[2]
        means = [b1 * m + (1 - b1) * g for m, g in zip(slots[0], gradients)]
        squares = [b2 * v + (1 - b2) * g * g for v, g in zip(slots[1], gradients)]
        weights = [
            w - rate * (m * first_correction) / (ops.sqrt(v * second_correction) + epsilon)
            for w, m, v in zip(weights, means, squares)
        ]
        return weights, [means, squares]

    def _laprop(self, ops: Any, weights: list, gradients: list, slots: list, scalars: Any) -> tuple[list, list]:
        """LaProp (Ziyin et al. 2020, algorithm 1): Adam, but the gradient is divided before the mean is taken."""
        p = self.parameters
        b1, b2, epsilon = p.adam_optimizer_beta1, p.adam_optimizer_beta2, p.optimizer_epsilon
        rate, first_correction, second_correction = scalars[0], scalars[1], scalars[2]
        squares = [b2 * v + (1 - b2) * g * g for v, g in zip(slots[1], gradients)]
        means = [
            b1 * m + (1 - b1) * g / (ops.sqrt(v * second_correction) + epsilon)
            for m, g, v in zip(slots[0], gradients, squares)
        ]
        return [w - rate * first_correction * m for w, m in zip(weights, means)], [means, squares]

    def _rmsprop(self, ops: Any, weights: list, gradients: list, slots: list, scalars: Any) -> tuple[list, list]:
        """RMSProp (Tieleman & Hinton 2012, lecture 6.5), with epsilon inside the root, as in TensorFlow."""
        decay, epsilon = self.parameters.rms_prop_optimizer_decay, self.parameters.optimizer_epsilon
        squares = [decay * v + (1 - decay) * g * g for v, g in zip(slots[0], gradients)]
        weights = [w - scalars[0] * g / ops.sqrt(v + epsilon) for w, g, v in zip(weights, gradients, squares)]
        return weights, [squares]

    def _sgd(self, ops: Any, weights: list, gradients: list, slots: list, scalars: Any) -> tuple[list, list]:
        return [w - scalars[0] * g for w, g in zip(weights, gradients)], []


_COLUMNS = 128  # number of columns that XLA adds in parallel


def sum_of_squares(ops: Any, array: Any) -> Any:
    """The sum of the squares of an array.

    The sum has two steps, first over 128 columns. XLA adds all numbers of an array one after the other (140 us for 256
    x 512 on TensorFlow), but columns in parallel (too fast to measure). The absolute value between the two steps
    changes no number, but prevents XLA from merging them.
    """
    squares = array * array
    if len(array.shape) > 1:
        if math.prod(array.shape) % _COLUMNS == 0:
            squares = ops.reshape(squares, (-1, _COLUMNS))
        squares = ops.abs(ops.sum(squares, axis=tuple(range(len(squares.shape) - 1))))
    return ops.sum(squares)


def global_norm(ops: Any, gradients: list) -> Any:
    """The Euclidean norm of all gradients as one vector."""
    return ops.sqrt(sum(sum_of_squares(ops, g) for g in gradients))


def sum_of_sizes(ops: Any, gradients: list) -> Any:
    """The sum of the absolute values of all gradients."""
    return sum(ops.sum(ops.abs(gradient)) for gradient in gradients)


# the least norm of a weight array, so that weights of zero can learn (Brock et al. 2021, section 4.1)
_LEAST_NORM = 1e-3


def clip(ops: Any, gradients: list, weights: list, parameters: NetworkParameters) -> list:
    """Clip the gradients to ``parameters.clip_gradients`` with the method that the parameters select."""
    limit = parameters.clip_gradients
    if limit is None or limit == 0:
        return gradients
    method = parameters.gradients_clipping_method
    if method == GradientClippingMethod.ClipByValue:
        return [ops.clip(g, -limit, limit) for g in gradients]
    if method == GradientClippingMethod.ClipByNorm:
        return [g * _shrink(ops, ops.sqrt(sum_of_squares(ops, g)), limit) for g in gradients]
    if method == GradientClippingMethod.ClipByWeightNorm:
        return [
            g * _shrink(ops, ops.sqrt(sum_of_squares(ops, g)), limit * ops.maximum(norm, _LEAST_NORM))
            for g, norm in zip(gradients, (ops.sqrt(sum_of_squares(ops, w)) for w in weights))
        ]
    shrink = _shrink(ops, global_norm(ops, gradients), limit)
    return [g * shrink for g in gradients]


def clips_each_variable(parameters: NetworkParameters) -> bool:
    """True if ``clip`` needs the norm of each single weight array."""
    methods = GradientClippingMethod.ClipByNorm, GradientClippingMethod.ClipByWeightNorm
    return bool(parameters.clip_gradients) and parameters.gradients_clipping_method in methods


def _shrink(ops: Any, norm: Any, limit: Any) -> Any:
    # the factor is 1 for all norms up to the limit, so no division by a norm of 0
    return limit / ops.maximum(norm, limit)


def with_unit_columns(ops: Any, network: NetworkFunction, weights: list) -> list:
    """A network's weights, after the columns of norm 1 (see ``Layers.unit_dense``) are divided by their norms."""
    return [
        w / ops.sqrt(ops.sum(ops.square(w), axis=0, keepdims=True)) if index in network.unit_columns else w
        for index, w in enumerate(weights)
    ]


class TrainingStep:
    """The parts of an update of an agent's networks, as pure functions of the networks' state.

    The state of a network is a dict of lists of arrays: ``weights``, ``buffers``, ``slots`` (the slots of the optimizer
    in one list) and, if there is a target network, ``target_weights`` and ``target_buffers``.

    :param networks: the networks' functions by name
    :param parameters: the networks' parameters by name
    :param rule: the algorithm's update rule, or the stages of its update
    """

    def __init__(
        self, networks: dict[str, NetworkFunction], parameters: dict[str, NetworkParameters], rule: UpdateRule | Stages
    ):
        self.networks = networks
        self.parameters = parameters
        self.stages = stages_of(rule, networks)
        # in the order of the networks, because the scalars of an update have this order
        self.optimizers = {name: Optimizer(parameters[name]) for name in networks}

    def losses(
        self, ops: Any, rule: UpdateRule, weights: dict[str, list], state: dict[str, dict], batch: LearningBatch
    ) -> tuple[dict[str, Any], Update, dict[str, list]]:
        """Call a rule. Return the loss of each network with L2 regularisation, the rule's ``Update``, and the new
        buffers.

        :param rule: the rule of a stage
        """
        views = self.views(ops, weights, state, batch.sequence_length)
        update = rule(ops, views, batch)
        losses = {name: loss + self._l2(ops, name, weights[name]) for name, loss in update.losses.items()}
        return losses, update, {name: view.buffers for name, view in views.items()}

    def views(
        self, ops: Any, weights: dict[str, list], state: dict[str, dict], sequence_length: int | None = None
    ) -> dict[str, NetworkView]:
        """The networks as arguments of update rules.

        :param weights: the weights of each network; they may differ from the weights in ``state``
        """
        views = {}
        for name, function in self.networks.items():
            own = state[name]
            target = (own["target_weights"], own["target_buffers"]) if "target_weights" in own else None
            views[name] = NetworkView(ops, function, weights[name], own["buffers"], target, sequence_length)
        return views

    def apply(
        self, ops: Any, state: dict, gradients: dict[str, list], buffers: dict, optimizer_scalars: dict[str, Any]
    ) -> tuple[dict, dict[str, Any]]:
        """Clip and apply gradients. Return the new state, and the gradient norm of each network before clipping.

        :param gradients: the gradients of the networks that learn. In other networks, only the buffers change
        """
        new_state, norms = {}, {}
        for name, old in state.items():
            new_state[name] = {**old, "buffers": buffers[name]}
            if name not in gradients:
                continue
            norms[name] = global_norm(ops, gradients[name])
            clipped = clip(ops, gradients[name], old["weights"], self.parameters[name])
            size, optimizer = len(old["weights"]), self.optimizers[name]
            slots = [old["slots"][i * size : (i + 1) * size] for i in range(optimizer.num_slots)]
            weights, slots = optimizer(ops, old["weights"], clipped, slots, optimizer_scalars[name])
            new_state[name]["weights"] = with_unit_columns(ops, self.networks[name], weights)
            if optimizer.num_slots:
                new_state[name]["slots"] = [array for slot in slots for array in slot]
        return new_state, norms

    def keep_left_out(self, ops: Any, old: dict, new: dict, learning: dict[str, Any]) -> dict:
        """Restore the exact old values of networks that an update leaves out. Only random generators keep their new
        state.

        :param old: the state before a stage
        :param new: the state after the stage
        :param learning: a scalar for each network, above 0 if it learns
        """
        kept = dict(new)
        for name, learns in learning.items():
            before, after = old[name], new[name]
            weights, slots = (self.choose(ops, learns, after[g], before[g]) for g in ("weights", "slots"))
            # random generators keep the new state, so that the next update does not draw the same noise again
            held = self.networks[name].with_random_state(before["buffers"], after["buffers"])
            buffers = self.choose(ops, learns, after["buffers"], held)
            kept[name] = {**after, "weights": weights, "slots": slots, "buffers": buffers}
        return kept

    def keep_targets(self, ops: Any, old: dict, new: dict, moving: dict[str, Any]) -> dict:
        """Restore the old target networks where the scalar in ``moving`` is 0."""
        groups = ("target_weights", "target_buffers")
        chosen = {
            name: {group: self.choose(ops, moves, new[name][group], old[name][group]) for group in groups}
            for name, moves in moving.items()
        }
        return {name: {**groups, **chosen.get(name, {})} for name, groups in new.items()}

    @staticmethod
    def choose(ops: Any, condition: Any, these: Any, others: Any) -> Any:
        """The arrays ``these`` if the scalar ``condition`` is above 0, else the arrays ``others``."""
        # not a product with 0 or 1, because 0 * NaN is NaN
        return [one if one is other else ops.where(condition > 0, one, other) for one, other in zip(these, others)]

    @staticmethod
    def update_targets(state: dict, rates: dict[str, Any]) -> dict:
        """Move the target networks of the networks in ``rates`` towards the online weights.

        The new target is target + rate * (online - target) (Lillicrap et al. 2016, section 3). A rate of 1 copies the
        online weights.
        """
        moved = dict(state)
        for name, rate in rates.items():
            old = state[name]
            # with a rate of 1, target + (online - target) would not be exactly online in floating point
            mixed = [t + rate * (w - t) for t, w in zip(old["target_weights"], old["weights"])] if rate != 1 else None
            moved[name] = {**old, "target_weights": mixed or old["weights"], "target_buffers": old["buffers"]}
        return moved

    def share_convolutions(self, state: dict, stages: Stages) -> dict:
        """Copy convolutions between networks, as ``Stage.shared_convolutions`` defines."""
        shared = dict(state)
        for source, other in (stage.shared_convolutions for stage in stages if stage.shared_convolutions):
            newest = [shared[source]["weights"][index] for index in self.networks[source].convolution_weights]
            shared[other] = self._with_convolutions(other, shared[other], "weights", newest)
            shared[source] = self._with_convolutions(source, shared[source], "target_weights", newest)
        return shared

    def _with_convolutions(self, name: str, groups: dict[str, list], group: str, convolutions: list) -> dict[str, list]:
        weights = list(groups[group])
        for index, array in zip(self.networks[name].convolution_weights, convolutions, strict=True):
            weights[index] = array
        return {**groups, group: weights}

    def _l2(self, ops: Any, name: str, weights: list) -> Any:
        scale = self.parameters[name].l2_regularization
        if not scale:
            return 0.0
        is_decayed = self.networks[name].is_decayed
        return scale * 0.5 * sum(sum_of_squares(ops, w) for w, decayed in zip(weights, is_decayed) if decayed)
