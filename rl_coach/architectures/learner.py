"""The learner: makes the updates of an agent's networks, many in one compiled call."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from rl_coach.architectures.native_messages import quiet_native_code
from rl_coach.architectures.network_state import ACTING_GROUPS
from rl_coach.architectures.update import (
    LearningBatch,
    Move,
    NetworkView,
    Stage,
    Stages,
    TrainingStep,
    Update,
    UpdateRule,
    global_norm,
    sum_of_sizes,
)
from rl_coach.logger import screen
from rl_coach.utils import CoachError, TrainingError

OPTIMIZER_SCALARS = 3  # the learning rate and two bias corrections
# a column with more numbers per row, such as images, is not packed: it is an argument of its own dtype
LARGE_ROW = 4096
Masks = Mapping[str, Sequence[bool]]
CompiledStep = Callable[[np.ndarray, "list[np.ndarray]", "np.ndarray | None"], "list[Any]"]
Variables = dict[str, Any]


@dataclass(frozen=True)
class PackedColumn:
    """The position of a column in a packed row, and the shape of one entry."""

    start: int
    stop: int
    shape: tuple[int, ...]
    is_integer: bool


class Packing:
    """Packs the columns of a call into one vector. Each argument of a compiled step costs as much time as a small
    update: with a 64 x 64 Q-network, a step takes 1,020 us with six arrays and 390 us with one packed array.

    :param columns: an example of the columns, each [N, ...]
    :param num_scalars: S, the number of scalars of each update, in addition to its batch
    :param num_updates: K, the number of updates that one call makes

    :ivar size: the length of the packed vector. The vector contains the N rows, the K * S scalars, and the number of
        updates to make
    """

    def __init__(self, columns: dict[str, np.ndarray], num_scalars: int, num_updates: int):
        self.rows = len(next(iter(columns.values())))
        self.num_scalars = num_scalars
        self.num_updates = num_updates
        self.packed: dict[str, PackedColumn] = {}
        self.large: dict[str, tuple[tuple[int, ...], np.dtype]] = {}
        width = 0
        for name, column in columns.items():
            size = int(np.prod(column.shape[1:]))
            if size > LARGE_ROW:
                self.large[name] = (column.shape, column.dtype)
                continue
            # float32 represents integers exactly up to 2^24, more than any number of actions
            is_integer = np.issubdtype(column.dtype, np.integer) and name == "actions"
            self.packed[name] = PackedColumn(width, width + size, column.shape[1:], is_integer)
            width += size
        self.width = width
        self.size = self.rows * width + num_updates * num_scalars + 1

    def pack(self, columns: dict[str, np.ndarray], scalars: np.ndarray, count: int) -> np.ndarray:
        """The packed vector, [size] float32.

        :param columns: [N, ...] by name
        :param scalars: [K, S]
        :param count: number of the K updates to make
        """
        # a new vector in each call: JAX may still read the last one
        vector = np.empty(self.size, np.float32)
        rows = vector[: self.rows * self.width].reshape(self.rows, self.width)
        for name, place in self.packed.items():
            rows[:, place.start : place.stop] = columns[name].reshape(self.rows, -1)
        vector[self.rows * self.width : -1] = scalars.ravel()
        vector[-1] = count  # as data, so that a call with fewer updates uses the same compilation
        return vector

    def unpack_rows(self, ops: Any, vector: Any) -> Any:
        """Take the packed rows [N, width] from the vector that ``pack`` returned."""
        return ops.reshape(vector[: self.rows * self.width], (self.rows, self.width))

    def unpack_scalars(self, ops: Any, vector: Any) -> Any:
        """Take the scalars [K, S] of the updates from the vector that ``pack`` returned."""
        return ops.reshape(vector[self.rows * self.width : -1], (self.num_updates, self.num_scalars))

    def columns(self, ops: Any, rows: Any) -> dict[str, Any]:
        """The columns [B, ...] by name of packed rows [B, width]. Integers become int32."""
        columns = {}
        for name, place in self.packed.items():
            column = ops.reshape(rows[:, place.start : place.stop], (-1, *place.shape))
            columns[name] = ops.cast(column, "int32") if place.is_integer else column
        return columns


@dataclass(frozen=True)
class UpdateLayout:
    """The settings that updates are compiled for.

    :param stages: the stages of each update, one after the other
    :param target_rates: the rate of each network's target network: target = rate * online + (1 - rate) * target
    :param scalar_names: the names of the agent's scalars, in order
    :param learning: names of the networks that some updates leave out
    :param moving: names of the networks whose targets do not move after some updates
    :param sequence_length: number of rows in each sequence of a recurrent network; None if all rows are one sequence
    """

    stages: Stages
    target_rates: dict[str, float]
    scalar_names: tuple[str, ...]
    learning: tuple[str, ...] = ()
    moving: tuple[str, ...] = ()
    sequence_length: int | None = None


@dataclass(frozen=True, kw_only=True)
class StepLayout(UpdateLayout):
    """The settings and the shapes of batches that one compiled step is made for.

    :param packing: the layout of packed batches
    :param batch_size: B, the number of rows of each update
    :param is_indexed: if True, indices choose the rows of each update. If False, the rows are divided into K equal
        parts, one for each update
    :param changes_weights: False for a step that only returns gradients
    """

    packing: Packing
    batch_size: int
    is_indexed: bool
    changes_weights: bool = True


@dataclass(frozen=True)
class OutputNames:
    """Names of an update's outputs, in their order: first the scalars, then the errors, then the values.

    :param losses: names of the networks with a loss
    :param signals: names of the update rule's signals
    :param values: for each of the rule's values, the number of its rows divided by the rows of the batch, and the shape
        of a row
    :param has_errors: True if the rule returns the error of each row
    """

    losses: list[str]
    signals: list[str]
    values: dict[str, tuple[Fraction, tuple[int, ...]]]
    has_errors: bool


@dataclass(frozen=True)
class _Numbers:
    losses: dict[str, np.ndarray]
    gradient_norms: dict[str, np.ndarray]
    signals: dict[str, np.ndarray]
    errors: np.ndarray | None
    values: dict[str, np.ndarray]


@dataclass
class LearningResult:
    """The result of K updates of batch size B.

    The framework may still compute the updates. The first access waits for them, and raises ``TrainingError`` if a loss
    is not finite. Later accesses return the numbers without an error, so that the state of a failed run can be saved.

    :param read: waits for the updates. Returns the numbers and a message; the message is empty if all losses are finite
    :param signal_names: the names of the rule's signals
    :param explain: returns the reason why a loss is not finite
    """

    read: Callable[[], tuple[_Numbers, str]]
    signal_names: list[str]
    explain: Callable[[], str] | None = None
    _numbers: _Numbers | None = None

    @classmethod
    def joined(cls, results: Sequence[LearningResult]) -> LearningResult:
        """The joined result of several calls, as if one call had made all updates."""
        return cls(lambda: (_joined([result.wait() for result in results]), ""), results[0].signal_names)

    @classmethod
    def of_stages(cls, results: Sequence[LearningResult]) -> LearningResult:
        """The joined result of the stages of one update. Each stage was a separate call."""
        signals = [name for result in results for name in result.signal_names]
        return cls(lambda: (_numbers_together([result.wait() for result in results]), ""), signals)

    def part(self, network: str, signal_names: Sequence[str]) -> LearningResult:
        """The part of this result with the loss and gradient norm of one network and some of the rule's signals."""

        def read() -> tuple[_Numbers, str]:
            numbers = self.wait()
            losses, norms = {network: numbers.losses[network]}, {network: numbers.gradient_norms[network]}
            signals = {name: numbers.signals[name] for name in signal_names}
            return replace(numbers, losses=losses, gradient_norms=norms, signals=signals), ""

        return LearningResult(read, list(signal_names))

    def wait(self) -> _Numbers:
        """Wait until the updates are made. :raises TrainingError: if a loss is not finite"""
        if self._numbers is None:
            self._numbers, failure = self.read()
            # explain refers to the whole batch, and signals keep results until the episode ends: free the batch now
            explain, self.explain = self.explain, None
            if failure:
                raise TrainingError(f"{failure}: {explain()}" if explain else failure)
        return self._numbers

    @property
    def losses(self) -> dict[str, np.ndarray]:
        """The losses [K] by network. A loss is 0 if the update left the network out and did not compute the loss."""
        return self.wait().losses

    @property
    def gradient_norms(self) -> dict[str, np.ndarray]:
        """The norms of the gradients before clipping, [K] by network. A norm is 0 if the update left the network out
        and did not compute the loss.
        """
        return self.wait().gradient_norms

    @property
    def signals(self) -> dict[str, np.ndarray]:
        """The update rule's signals, [K] by name."""
        return self.wait().signals

    @property
    def errors(self) -> np.ndarray | None:
        """The errors of the rows, [K, B]; None if the update rule returns no errors."""
        return self.wait().errors

    @property
    def values(self) -> dict[str, np.ndarray]:
        """The update rule's values, [K, n, ...] by name."""
        return self.wait().values


def _names_together(stages: Sequence[OutputNames]) -> OutputNames:
    def of(group: str) -> list[str]:
        return list(dict.fromkeys(name for names in stages for name in getattr(names, group)))

    values = {name: layout for names in stages for name, layout in names.values.items()}
    return OutputNames(of("losses"), of("signals"), values, any(names.has_errors for names in stages))


def _split(outputs: np.ndarray, names: OutputNames) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """Split outputs [K, ...] after the scalars into errors [K, B] and values [K, n, ...].

    :raises CoachError: if a value has neither B rows nor a fixed share of B
    """
    shares = [Fraction(1), *(share for share, _ in names.values.values())]
    numbers_of_row = sum(share * math.prod(shape) for share, shape in names.values.values()) + int(names.has_errors)
    # fractions are exact, so a share that does not divide the batch is found
    size = Fraction(outputs.shape[1]) / numbers_of_row
    if any((size * share).denominator > 1 for share in shares):
        raise CoachError(
            f"the update rule's {', '.join(names.values)} must have B rows, one for each row of the batch, or a fixed "
            f"share of B: change the rule"
        )
    end = int(size * names.has_errors)
    errors = outputs[:, :end] if names.has_errors else None
    values: dict[str, np.ndarray] = {}
    for name, (share, shape) in names.values.items():
        start, end = end, end + int(size * share) * math.prod(shape)
        values[name] = outputs[:, start:end].reshape(len(outputs), int(size * share), *shape)
    return errors, values


def _together(one: Update, other: Update) -> Update:
    """Join the results of two stages of an update. The errors come from the last stage that has errors."""
    errors = one.errors if other.errors is None else other.errors
    return Update(
        one.losses | other.losses, errors, signals=one.signals | other.signals, values=one.values | other.values
    )


def _numbers_together(stages: Sequence[_Numbers]) -> _Numbers:
    def of(group: str) -> dict[str, np.ndarray]:
        return {name: values for numbers in stages for name, values in getattr(numbers, group).items()}

    errors = next((numbers.errors for numbers in reversed(stages) if numbers.errors is not None), None)
    return _Numbers(of("losses"), of("gradient_norms"), of("signals"), errors, of("values"))


def _joined(numbers: list[_Numbers]) -> _Numbers:
    def of(group: str) -> dict[str, np.ndarray]:
        parts = [getattr(one, group) for one in numbers]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    errors = [one.errors for one in numbers if one.errors is not None]
    return _Numbers(
        of("losses"), of("gradient_norms"), of("signals"), np.concatenate(errors) if errors else None, of("values")
    )


@contextlib.contextmanager
def _first_call() -> Iterator[None]:
    """A context for the first call of a step. This call compiles the step, which takes seconds."""
    with screen.waiting_for("compiling the training step"), quiet_native_code():
        yield


class Learner:
    """Makes the updates of an agent's networks. It packs the batches, compiles one step for each layout of batches, and
    reads the results.

    A subclass for a framework defines gradients, loops and compilation (``_gradients``, ``_loop``, ``_compile``).

    :param ops: the framework's array operations, with the names of ``keras.ops``
    :param step: the training step as pure functions
    :param networks: the ``NetworkState`` of each network, by name

    :ivar explain: a function of the update's columns that returns the reason why a loss is not finite
    """

    def __init__(self, ops: Any, step: TrainingStep, networks: dict[str, Any]):
        self.ops = ops
        self.step = step
        self.networks = networks
        self.num_compilations = 0
        self.explain: Callable[[Mapping[str, np.ndarray]], str] | None = None
        self._compiled: dict[Any, tuple[Packing, CompiledStep]] = {}
        # the names are stored here, because frameworks sort the keys of dicts in traced outputs
        self._output_names: dict[Stages, OutputNames] = {}

    def train(
        self, columns: dict[str, np.ndarray], scalars: dict[str, float] | None = None,
        indices: np.ndarray | None = None, num_updates: int = 1, count: int | None = None,
        target_rates: dict[str, float] | None = None, learning: Masks | None = None, moving: Masks | None = None,
        training_step: int | None = None, sequence_length: int | None = None, stages: Stages | None = None,
    ) -> LearningResult:  # fmt: skip
        """Make ``count`` updates in one call. The method may return before the updates are computed.

        :param columns: [N, ...] each, by the names of ``LearningBatch``: ``states/<name>``, ``next_states/<name>``,
            ``actions``, ``rewards``, ``discounts``, ``weights`` and ``extra/<name>``; the caller must not change these
            arrays afterwards
        :param scalars: the agent's scalars for these updates; the update rule reads them
        :param indices: [K, B] int32, the rows of each update's batch, -1 for padding. With None, the rows are divided
            into K equal parts, one for each update
        :param num_updates: K, the number of updates that the compiled step is made for
        :param count: number of updates to make; None for K. All numbers up to K use the same compilation
        :param target_rates: the rate of each network's target network: target = rate * online + (1 - rate) * target
        :param learning: [K] bool for each network, False for updates that leave the network out. Then the network, its
            optimizer's slots and its bias corrections do not change. Networks that learn in all updates may be missing.
            The compiled step depends on the names, not on the values
        :param moving: [K] bool for each network, False for updates after which the target network does not move.
            Networks of ``target_rates`` may be missing if their targets always move
        :param training_step: the number of the training step, from 0 on, for all these updates. Schedules of the
            learning rate depend on it. None if each update is a training step
        :param sequence_length: number of rows in each sequence of a recurrent network; None if all rows are one
            sequence
        :param stages: the stages of each update; None for all
        :raises TrainingError: if a loss of an earlier call is not finite
        """
        stages = self.step.stages if stages is None else stages
        scalars, target_rates, learning, moving = scalars or {}, target_rates or {}, learning or {}, moving or {}
        count = num_updates if count is None else count
        settings = stages, tuple(target_rates.items()), tuple(scalars), tuple(learning), tuple(moving), sequence_length
        rows = self._scalars(scalars, learning, moving, num_updates, training_step)
        call = self._step(self.all_updates, settings, columns, rows, count, indices)
        for network in self.networks.values():
            network.finish()  # raises if an earlier update has failed, so that no update follows it
            if network.keeps_for_acting:
                # copied before the call, because the call overwrites the arrays
                network.keep({group: network.arrays(group) for group in ACTING_GROUPS})
        (outputs,) = call()
        result = self.result_of(stages, outputs, count, learning, columns)
        for network in self.networks.values():
            network.is_changed_by(result.wait)
        return result

    def result_of(
        self, stages: Stages, outputs: Any, count: int, learning: Masks | None = None,
        columns: Mapping[str, np.ndarray] | None = None,
    ) -> LearningResult:  # fmt: skip
        """Count the updates that a compiled call has made, and return their result.

        :param outputs: [K, outputs], the outputs from ``updates_within``
        :param count: number of updates that were made
        :param learning: the same as for ``train``
        :param columns: the columns of the updates, to explain a loss that is not finite; None if they are not known
            outside the compiled call
        """
        names, learning = self._output_names[stages], learning or {}
        for name in names.losses:
            self.networks[name].updates += int(np.sum(learning[name][:count])) if name in learning else count
        updates = {name: self.networks[name].updates for name in names.losses}
        explain = self.explain and partial(self.explain, columns or {})
        return LearningResult(partial(self._read, names, outputs, count, updates, learning), names.signals, explain)

    def gradients(
        self,
        columns: dict[str, np.ndarray],
        scalars: dict[str, float] | None = None,
        sequence_length: int | None = None,
        stage: int = 0,
    ) -> tuple[dict[str, np.ndarray], LearningResult]:
        """Compute the gradients of one batch. The weights do not change, but buffers do, because noise is drawn.

        :param columns: [B, ...] by name, as for ``train``
        :param scalars: the same as for ``train``
        :param sequence_length: the same as for ``train``
        :param stage: the number of the update's stage; the gradients of earlier stages must have been applied
        :return: the gradients of each network that learns, as one vector in the order of its weights; and the result of
            the update
        :raises TrainingError: if a loss is not finite
        """
        scalars, stages = scalars or {}, self.step.stages[stage : stage + 1]
        # no optimizer runs here, but ``_batch`` expects the rule's scalars after the scalars of the optimizers
        rows = self._scalars(scalars, {}, {}, 1, None)
        settings = stages, (), tuple(scalars), (), (), sequence_length
        *found, outputs = self._step(self.gradients_of_call, settings, columns, rows)()
        names = self._output_names[stages]
        # only for the message: SharedNetworks counts the update later, when it applies the gradients
        updates = {name: self.networks[name].updates + 1 for name in names.losses}
        read = partial(self._read, names, outputs, 1, updates, {})
        result = LearningResult(read, names.signals, self.explain and partial(self.explain, columns))
        # the caller applies these gradients next, so a loss that is not finite must raise here
        result.wait()
        return {name: np.asarray(gradient) for name, gradient in zip(names.losses, found)}, result

    def _step(
        self, compute: Callable[..., tuple[Variables, list]], settings: tuple, columns: dict[str, np.ndarray],
        scalars: np.ndarray, count: int = 1, indices: np.ndarray | None = None,
    ) -> Callable[[], list[Any]]:  # fmt: skip
        """The call of a compiled step. The step is compiled if there is none for these settings and shapes.

        :param compute: ``all_updates``, or ``gradients_of_call``, which does not change the weights
        :param settings: the fields of ``UpdateLayout``, with a tuple of pairs for ``target_rates``
        :param scalars: [K, S], the scalars of each update
        """
        # the trace depends on all these values: if one of them changes, another step is compiled
        key: tuple = (compute.__name__, settings, len(scalars), None if indices is None else indices.shape)
        key += tuple((name, column.shape, column.dtype.char) for name, column in columns.items())
        is_new = key not in self._compiled
        if is_new:
            stages, target_rates, *others = settings
            packing = Packing(columns, scalars.shape[1], len(scalars))
            layout = StepLayout(
                stages, dict(target_rates), *others, packing=packing,
                batch_size=packing.rows // len(scalars) if indices is None else indices.shape[1],
                is_indexed=indices is not None, changes_weights=compute == self.all_updates,
            )  # fmt: skip
            self.num_compilations += 1
            self._compiled[key] = packing, self._compile(layout, compute)
        packing, compiled = self._compiled[key]
        # one vector, because each argument of a compiled call costs as much as a small update
        vector = packing.pack(columns, scalars, count)
        call = partial(compiled, vector, [columns[name] for name in packing.large], indices)
        return _first_call()(call) if is_new else call

    def _compile(self, layout: StepLayout, compute: Callable[..., tuple[Variables, list]]) -> CompiledStep:
        """Compile a step: a function of (packed vector, large columns, indices) that replaces the networks' variables
        and returns the results.

        :param compute: ``all_updates`` or ``gradients_of_call``. ``compute(layout, variables, vector, large, indices)``
            returns the new variables and the results
        """
        raise NotImplementedError(f"{type(self).__name__} does not define _compile")

    def _gradients(self, function: Callable, weights: dict[str, list]) -> tuple[dict[str, list], Any]:
        """The gradient of each network's loss with respect to its own weights, and auxiliary values.

        :param function: ``function(weights)`` returns the losses by network, and auxiliary values
        """
        raise NotImplementedError(f"{type(self).__name__} does not define _gradients")

    def _no_gradients(self, weights: list) -> list:
        """The gradients of a network that an update leaves out: zeros."""
        return [self.ops.zeros_like(array) for array in weights]

    def _branch(self, condition: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """Compute ``one()`` if the scalar ``condition`` is above 0, else ``other()``, and return the result."""
        return self.ops.cond(condition > 0, one, other)

    def _loop(self, update: Callable, state: dict, num_updates: int, count: Any) -> tuple[dict, Any]:
        """Make ``count`` updates one after the other, at most ``num_updates``.

        :param update: ``update(k, state)`` returns the new state and a vector of outputs
        :return: the last state, and the outputs [num_updates, outputs]
        """
        raise NotImplementedError(f"{type(self).__name__} does not define _loop")

    def _apply(
        self, state: dict, gradients: dict[str, list], buffers: dict, optimizer_scalars: dict
    ) -> tuple[dict, dict[str, Any]]:
        """Apply gradients with the optimizers; see ``TrainingStep.apply``."""
        return self.step.apply(self.ops, state, gradients, buffers, optimizer_scalars)

    def all_updates(
        self, layout: StepLayout, variables: Variables, vector: Any, large: list, indices: Any
    ) -> tuple[Variables, list]:
        """Make the updates of one call, as a pure function that the framework traces.

        :param variables: the values of each network's variables
        :return: the new values of the variables, and a list with one array [K, outputs]
        """
        packing, ops = layout.packing, self.ops
        rows, scalars = packing.unpack_rows(ops, vector), packing.unpack_scalars(ops, vector)
        large_columns = dict(zip(packing.large, large))

        def columns(k: Any) -> dict[str, Any]:
            return self._columns(layout, rows, large_columns, k, indices)

        count = ops.cast(vector[-1], "int32")
        state, outputs = self.updates_within(layout, self.unpacked(variables), columns, scalars, count)
        return self.packed(state), [outputs]

    def updates_within(
        self, layout: UpdateLayout, state: dict, columns: Callable[[Any], dict[str, Any]], scalars: Any, count: Any
    ) -> tuple[dict, Any]:
        """Make up to K updates one after the other, as a pure function that a compiled loop can contain.

        :param state: each network's groups of arrays
        :param columns: a function of k that returns the columns of update k's batch, with the names as in ``train``
        :param scalars: [K, S], the scalars of each update; see ``scalar_rows``
        :param count: number of the K updates to make
        :return: the new state, and [K, outputs] for ``result_of``
        """

        def update(k: Any, state: dict) -> tuple[dict, Any]:
            return self._one_update(layout, state, columns(k), scalars[k])

        # no loop for a single update, because XLA's convolutions are slow within a loop
        if scalars.shape[0] > 1:
            return self._loop(update, state, scalars.shape[0], count)
        state, row = update(0, state)
        return state, row[None]

    @property
    def output_names(self) -> OutputNames:
        """The names of the outputs of an update with all stages. They are known after the update has been traced."""
        return self._output_names[self.step.stages]

    @output_names.setter
    def output_names(self, names: OutputNames) -> None:
        """Set the names that another process found when it traced the update."""
        self._output_names[self.step.stages] = names

    @property
    def variables(self) -> Variables:
        """The variables of each network, by the network's name."""
        return {name: network.variables for name, network in self.networks.items()}

    def unpacked(self, variables: Variables) -> dict[str, Any]:
        """The groups of arrays (weights, optimizer slots and so on) of each network. :param variables: their values"""
        return {name: network.layout.unpack(self.ops, variables[name]) for name, network in self.networks.items()}

    def packed(self, state: dict) -> Variables:
        """The values of each network's variables. :param state: each network's groups of arrays"""
        return {name: network.layout.pack(self.ops, state[name]) for name, network in self.networks.items()}

    def views(self, state: dict) -> dict[str, NetworkView]:
        """The networks as arguments of update rules. :param state: each network's groups of arrays"""
        return self.step.views(self.ops, {name: groups["weights"] for name, groups in state.items()}, state)

    def scalar_rows(
        self, scalars: Mapping[str, Sequence[float]], count: int, updates_before: Sequence[int],
        training_steps: Sequence[int] | None = None, taught: Mapping[str, np.ndarray] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """[P, count, S] float32, the scalars for ``updates_within`` of all updates in P phases. They do not include the
        masks ``learning`` and ``moving``.

        :param scalars: the agent's scalars, [P] by name
        :param updates_before: [P], number of updates before each phase that the networks' counters do not include yet
        :param training_steps: [P], the number of the training step of each phase, from 0 on; None if each update is a
            training step
        :param taught: [P, count] by network, for networks that some updates leave out: the number of updates that the
            network has learned from, including this update, and that its counter does not include yet; at least 1
        """
        numbers = np.asarray(updates_before)[:, None] + np.arange(1, count + 1)
        steps = None if training_steps is None else np.broadcast_to(np.asarray(training_steps)[:, None], numbers.shape)
        own = taught or {}
        rows = [
            one.scalar_rows(self.networks[name].updates + own.get(name, numbers), steps)
            for name, one in self.step.optimizers.items()
        ]
        rows += [np.broadcast_to(np.asarray(column)[:, None, None], (*numbers.shape, 1)) for column in scalars.values()]
        # float64 up to here: in float32, 1 - 0.999 has only four correct digits
        return np.concatenate(rows, axis=2).astype(np.float32)

    def numbered_rows(self, row: Any, updates_before: Any, count: int) -> Any:
        """[count, S], the scalars of the updates of a phase, as a pure function. It is used if the number of earlier
        updates is only known within the compiled loop.

        :param row: [S], the scalars of any update of the phase; see ``scalar_rows``
        :param updates_before: [] int32, number of updates before the phase
        """
        ops = self.ops
        numbers = ops.cast(updates_before + ops.arange(1, count + 1), "float32")
        rows = ops.broadcast_to(row, (count, *row.shape))
        for i, optimizer in enumerate(self.step.optimizers.values()):
            # column 0 of an optimizer is the learning rate, which does not change within a phase
            own = optimizer.bias_corrections(ops, numbers)
            rows = ops.slice_update(rows, (0, i * OPTIMIZER_SCALARS + 1), own)
        return rows

    def gradients_of_call(
        self, layout: StepLayout, variables: Variables, vector: Any, large: list, indices: Any
    ) -> tuple[Variables, list]:
        """Compute the gradients of one batch, as a pure function that the framework traces.

        :param variables: the values of each network's variables
        :return: the variables with changed buffers, and a list: one vector of gradients for each network that learns
            (in the order of the losses), then the outputs [1, outputs]
        """
        packing, ops, state = layout.packing, self.ops, self.unpacked(variables)
        rows, scalars = packing.unpack_rows(ops, vector), packing.unpack_scalars(ops, vector)
        columns = self._columns(layout, rows, dict(zip(packing.large, large)), 0, None)
        found, buffers, outputs = self._one_gradient(layout, state, columns, scalars[0])
        names = self._output_names[layout.stages].losses
        flat = [ops.concatenate([ops.reshape(gradient, (-1,)) for gradient in found[name]]) for name in names]
        after = {name: {**groups, "buffers": buffers[name]} for name, groups in state.items()}
        return self.packed(after), [*flat, outputs]

    def _one_gradient(
        self, layout: StepLayout, state: dict, columns: dict[str, Any], scalar_row: Any
    ) -> tuple[dict[str, Any], dict[str, list], Any]:
        """The gradients and the new buffers by network, and the update's outputs [1, outputs]."""
        (stage,) = layout.stages
        found, buffers, told = self._differentiated(stage, state, self._batch(columns, scalar_row, layout), {})
        norms = {name: global_norm(self.ops, found[name]) for name in found}
        return found, buffers, self._outputs(layout.stages, told, norms)[None]

    def _columns(self, layout: StepLayout, rows: Any, large: dict[str, Any], k: Any, indices: Any) -> dict[str, Any]:
        """The columns of update k's batch."""
        ops, size = self.ops, layout.batch_size
        if indices is None:

            def part(x: Any) -> Any:
                # no slice: with a start that depends on k, XLA may not know its size and would pad it to all rows
                return ops.reshape(x, (-1, size, *x.shape[1:]))[k]
        else:
            # padding has the index -1: it reads row 0 here, and gets the weight 0 below
            present = ops.maximum(indices[k], 0)

            def part(x: Any) -> Any:
                return ops.take(x, present, axis=0)

        columns = layout.packing.columns(ops, part(rows)) | {name: part(column) for name, column in large.items()}
        if indices is not None:
            columns["weights"] *= ops.cast(indices[k] >= 0, "float32")
        return columns

    def _scalars(
        self, scalars: dict[str, float], learning: Masks, moving: Masks, num_updates: int, training_step: int | None
    ) -> np.ndarray:
        """[K, S], the scalars of each update: for the optimizers, for the rule, and the two masks."""
        # an optimizer counts only updates in which its network learns. In the other updates, the number is not
        # used, but it must be at least 1: Adam's bias corrections divide by 1 - beta^number
        counts = {name: np.maximum(np.cumsum(mask) - 1, 0) for name, mask in learning.items()}
        each, rows = range(num_updates), []
        for k in each:
            row = [
                value
                for name, optimizer in self.step.optimizers.items()
                for value in optimizer.scalars(
                    self.networks[name].updates + 1 + int(counts.get(name, each)[k]), training_step
                )
            ]
            row += scalars.values()
            row += [mask[k] for masks in (learning, moving) for mask in masks.values()]
            rows.append(row)
        return np.asarray(rows, np.float32)

    def _one_update(
        self, layout: UpdateLayout, state: dict, columns: dict[str, Any], scalar_row: Any
    ) -> tuple[dict, Any]:
        """Make an update. Return the new state, and the outputs in one vector; see ``_outputs``."""
        ops = self.ops
        optimizer_scalars = {
            name: scalar_row[i * OPTIMIZER_SCALARS : (i + 1) * OPTIMIZER_SCALARS]
            for i, name in enumerate(self.networks)
        }
        masks = scalar_row[len(self.networks) * OPTIMIZER_SCALARS + len(layout.scalar_names) :]
        learning = {name: masks[i] for i, name in enumerate(layout.learning)}
        moving = {name: masks[i] for i, name in enumerate(layout.moving, start=len(learning))}
        batch, told = self._batch(columns, scalar_row, layout), Update({})
        norms: dict[str, Any] = {}
        for stage in layout.stages:
            found, buffers, told_by_stage = self._differentiated(stage, state, batch, learning)
            if stage.move is None:
                after, norms_of_stage = self._apply(state, found, buffers, optimizer_scalars)
                # after each stage, because the next stage uses the new weights
                state = self.step.keep_left_out(ops, state, after, learning)
            else:
                state, norms_of_stage, signals = self._moved(stage.move, stage, state, found, buffers, batch)
                told_by_stage = replace(told_by_stage, signals={**told_by_stage.signals, **signals})
            told, norms = _together(told, told_by_stage), norms | norms_of_stage
        # after the last stage, so that all stages of an update see the same targets
        state = self.step.keep_targets(ops, state, self.step.update_targets(state, layout.target_rates), moving)
        # after the targets have moved, because the convolutions of target networks are copied too
        state = self.step.share_convolutions(state, layout.stages)
        return state, self._outputs(layout.stages, told, norms)

    def _moved(
        self, move: Move, stage: Stage, state: dict, gradients: dict[str, list], buffers: dict, batch: LearningBatch
    ) -> tuple[dict, dict[str, Any], dict[str, Any]]:
        """Make a ``move`` instead of an optimizer step. Return the new state, the gradient norm and the signals."""
        (name,) = stage.networks
        weights = {other: groups["weights"] for other, groups in state.items()}

        def loss_of(rule: UpdateRule, at: list) -> Any:
            _, update, _ = self.step.losses(self.ops, rule, {**weights, name: at}, state, batch)
            return update.losses[name]

        def slope_of(function: Callable[[list], Any], at: list) -> list:
            return self._gradients(lambda moving: ({name: function(moving[name])}, ()), {name: at})[0][name]

        moved, signals = move(self.ops, stage.rule, weights[name], gradients[name], loss_of, slope_of)
        after = {other: {**groups, "buffers": buffers[other]} for other, groups in state.items()}
        after[name]["weights"] = moved
        return after, {name: global_norm(self.ops, gradients[name])}, signals

    def _differentiated(
        self, stage: Stage, state: dict, batch: LearningBatch, learning: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, list], Update]:
        """Compute the gradients of a stage.

        If an update leaves out all networks in ``learning`` that belong to the stage, their gradients are not computed.
        If it leaves out only some of them, all gradients are computed.

        :param learning: a scalar for each network that can be left out, above 0 if the network learns. Networks that
            are missing always learn
        :return: the gradients and the new buffers by network, and the results of the stage's rule
        """
        weights = {name: state[name]["weights"] for name in self.networks}

        def differentiate(left_out: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, list], tuple]:
            def losses_of(learned: dict[str, list]) -> tuple[dict[str, Any], tuple]:
                losses, update, buffers = self.step.losses(self.ops, stage.rule, weights | learned, state, batch)
                # stored while the rule is traced, before the framework sorts the keys
                self._output_names[stage,] = OutputNames(
                    list(losses),
                    [*update.signals, *dict(stage.gradient_sums), *(stage.move.signal_names if stage.move else ())],
                    {
                        name: (Fraction(value.shape[0], batch.weights.shape[0]), tuple(value.shape[1:]))
                        for name, value in update.values.items()
                    },
                    update.errors is not None,
                )
                losses = {
                    # zeros, so that the compiler removes the computation of these losses
                    name: self.ops.zeros_like(loss) if name in left_out else loss
                    for name, loss in losses.items()
                }
                wanted = {name: loss for name, loss in losses.items() if name not in left_out}
                return wanted, (losses, update.errors, update.signals, update.values, buffers)

            learned = {name: weights[name] for name in stage.networks}
            if set(left_out) < set(learned):
                found, (*told, buffers) = self._gradients(losses_of, learned)
            else:
                # all networks of the stage are left out: no loss has a gradient, but the rule has other results
                found, (*told, buffers) = losses_of(learned)
            found |= {name: self._no_gradients(weights[name]) for name in left_out}
            return found, buffers, tuple(told)

        can_be_left_out = tuple(name for name in learning if name in stage.networks)
        # update_alone has masks for all networks, and one network of each stage learns: a second branch is not needed
        if not can_be_left_out or len(learning) == len(self.networks):
            found, buffers, told = differentiate(())
        else:
            # the second branch is for updates that leave all these networks out: it does not compute their gradients
            some_learn = sum(learning[name] for name in can_be_left_out)
            found, buffers, told = self._branch(
                some_learn, lambda: differentiate(()), lambda: differentiate(can_be_left_out)
            )
        update = Update(*told)
        sums = {signal: sum_of_sizes(self.ops, found[name]) for signal, name in stage.gradient_sums}
        return found, buffers, replace(update, signals={**update.signals, **sums})

    def _outputs(self, stages: Stages, told: Update, norms: dict[str, Any]) -> Any:
        """Losses, gradient norms, signals, errors and values in one vector."""
        ops, names = self.ops, _names_together([self._output_names[stage,] for stage in stages])
        self._output_names[stages] = names
        parts = ((told.losses, names.losses), (norms, names.losses), (told.signals, names.signals))
        scalars = [part[name] for part, of_part in parts for name in of_part]
        outputs = ops.stack([ops.cast(ops.reshape(number, ()), "float32") for number in scalars])
        rows = [] if told.errors is None else [told.errors]
        rows += [ops.cast(ops.reshape(told.values[name], (-1,)), "float32") for name in names.values]
        return ops.concatenate([outputs, *rows]) if rows else outputs

    def _batch(self, columns: dict[str, Any], scalar_row: Any, layout: UpdateLayout) -> LearningBatch:
        groups: dict[str, dict[str, Any]] = {"states": {}, "next_states": {}, "extra": {}}
        for path, column in columns.items():
            group, _, name = path.partition("/")
            if name:
                groups[group][name] = column
        first = len(self.networks) * OPTIMIZER_SCALARS
        return LearningBatch(
            states=groups["states"],
            next_states=groups["next_states"],
            actions=columns.get("actions"),
            rewards=columns.get("rewards"),
            discounts=columns.get("discounts"),
            weights=columns["weights"],
            extra=groups["extra"],
            scalars={name: scalar_row[first + i] for i, name in enumerate(layout.scalar_names)},
            sequence_length=layout.sequence_length,
        )

    def _read(
        self, names: OutputNames, outputs: Any, count: int, updates: dict[str, int], learning: Masks
    ) -> tuple[_Numbers, str]:
        rows = np.asarray(outputs)[:count]  # later rows belong to updates that were not made
        is_finite = np.isfinite(rows[:, : len(names.losses)]).all()
        failure = "" if is_finite else self._not_finite(rows, names.losses, updates, learning)
        numbers = iter(rows.T)
        losses = {name: next(numbers) for name in names.losses}
        norms = {name: next(numbers) for name in names.losses}
        signals = {name: next(numbers) for name in names.signals}
        rest = rows[:, 2 * len(losses) + len(signals) :]
        errors, values = _split(rest, names) if names.values else (rest if names.has_errors else None, {})
        return _Numbers(losses, norms, signals, errors, values), failure

    @staticmethod
    def _not_finite(rows: np.ndarray, losses_of: list[str], updates: dict[str, int], learning: Masks) -> str:
        name = next(name for name, loss in zip(losses_of, rows.T) if not np.isfinite(loss).all())
        loss = rows[:, losses_of.index(name)]
        first = int(np.argmin(np.isfinite(loss)))
        # the network counts only the updates in which it learns
        later = int(np.sum(learning[name][first : len(loss)])) if name in learning else len(loss) - first
        return f"the loss of network '{name}' became {loss[first]} at update {updates[name] - later + 1}"
