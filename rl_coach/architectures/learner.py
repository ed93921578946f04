"""The learner: makes the updates of an agent's networks, many in one compiled call."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Callable, Iterator

import numpy as np

from rl_coach.architectures.native_messages import quiet_native_code
from rl_coach.architectures.packing import Packing
from rl_coach.architectures.update import LearningBatch, TrainingStep
from rl_coach.logger import screen
from rl_coach.utils import TrainingError

OPTIMIZER_SCALARS = 3
CompiledStep = Callable[[np.ndarray, "list[np.ndarray]", "np.ndarray | None"], Any]


@dataclass(frozen=True)
class StepLayout:
    """What one compiled step is made for.

    :param packing: how batches are packed
    :param batch_size: B, the rows of each update
    :param is_indexed: rows are chosen by indices, otherwise update k takes the k-th of K equal parts
    :param follow: after each update these networks' targets follow at these rates
    :param scalar_names: the agent's numbers, in order
    """

    packing: Packing
    batch_size: int
    is_indexed: bool
    follow: dict[str, float]
    scalar_names: tuple[str, ...]


@dataclass(frozen=True)
class _Numbers:
    losses: dict[str, np.ndarray]
    gradient_norms: dict[str, np.ndarray]
    signals: dict[str, np.ndarray]
    errors: np.ndarray | None


class LearningResult:
    """What K updates of batch size B gave.

    A framework may still be computing them: the first look waits, and raises ``TrainingError`` if a loss is not finite.

    :param read: waits and gives the numbers
    :param signal_names: the names of the rule's signals, which are known before
    """

    def __init__(self, read: Callable[[], _Numbers], signal_names: list[str]):
        self._read = read
        self.signal_names = signal_names

    @cached_property
    def _numbers(self) -> _Numbers:
        return self._read()

    def wait(self) -> None:
        """Wait until the updates are made.

        :raises TrainingError: a loss is not finite
        """
        _ = self._numbers

    @property
    def losses(self) -> dict[str, np.ndarray]:
        """[K] for each network."""
        return self._numbers.losses

    @property
    def gradient_norms(self) -> dict[str, np.ndarray]:
        """[K] for each network, before clipping."""
        return self._numbers.gradient_norms

    @property
    def signals(self) -> dict[str, np.ndarray]:
        """[K] for each of the rule's signals."""
        return self._numbers.signals

    @property
    def errors(self) -> np.ndarray | None:
        """[K, B], or None if the rule gives none."""
        return self._numbers.errors


@contextlib.contextmanager
def _first_call() -> Iterator[None]:
    """The call in which a step is compiled, which takes seconds."""
    with screen.waiting_for("compiling the training step"), quiet_native_code():
        yield


class Learner:
    """Packs batches, keeps one compiled step for each layout of them, and reads the results.

    A framework's subclass says how to differentiate, to loop and to compile (``_gradients``, ``_loop``, ``_compile``);
    everything else is the same for all.

    :param ops: the framework's array operations, with the names of ``keras.ops``
    :param step: the pure training step
    :param networks: the framework's holders of the networks' state, by name
    """

    def __init__(self, ops: Any, step: TrainingStep, networks: dict[str, Any]):
        self.ops = ops
        self.step = step
        self.networks = networks
        self.num_compilations = 0
        self._compiled: dict[Any, tuple[Packing, CompiledStep]] = {}
        self._unread: LearningResult | None = None
        self._output_names: list[list[str]] = []

    def train(
        self,
        columns: dict[str, np.ndarray],
        scalars: dict[str, float] | None = None,
        indices: np.ndarray | None = None,
        num_updates: int = 1,
        count: int | None = None,
        follow: dict[str, float] | None = None,
    ) -> LearningResult:
        """Make ``count`` of ``num_updates`` updates in one call, which may return before they are made.

        :param columns: [N, ...] each, by the names that ``LearningBatch`` has: ``states/<name>``,
            ``next_states/<name>``, ``actions``, ``rewards``, ``continues``, ``weights`` and ``extra/<name>``; nobody
            may write to them afterwards
        :param scalars: the agent's numbers of these updates, handed to the rule
        :param indices: [K, B] int32 rows of each update's batch, -1 for none; without it update k takes the k-th
            of K equal parts
        :param num_updates: K; the compiled step is made for it
        :param count: how many of them to make, all if not given; does not need another compilation
        :param follow: after each update these networks' targets follow at these rates
        :raises TrainingError: a loss of an earlier call is not finite
        """
        scalars = scalars or {}
        follow = follow or {}
        count = num_updates if count is None else count
        layout = tuple((name, column.shape, column.dtype.char) for name, column in columns.items())
        key = (layout, num_updates, None if indices is None else indices.shape, tuple(follow.items()), tuple(scalars))
        is_new = key not in self._compiled
        if is_new:
            packing = Packing(columns, len(self.networks) * OPTIMIZER_SCALARS + len(scalars), num_updates)
            self.num_compilations += 1
            batch_size = len(next(iter(columns.values()))) // num_updates if indices is None else indices.shape[1]
            layout_of_step = StepLayout(packing, batch_size, indices is not None, follow, tuple(scalars))
            self._compiled[key] = packing, self._compile(layout_of_step)
        packing, compiled = self._compiled[key]
        vector = packing.pack(columns, self._scalars(scalars, num_updates), count)
        for network in self.networks.values():
            network.finish()  # a failure stops the run before another update is made of it
        with _first_call() if is_new else contextlib.nullcontext():
            outputs = compiled(vector, [columns[name] for name in packing.large], indices)
        losses_of, _, signals_of = self._output_names
        for name in losses_of:
            self.networks[name].updates += count
        updates = {name: self.networks[name].updates for name in losses_of}
        result = self._unread = LearningResult(partial(self._read, outputs, count, updates), signals_of)
        for network in self.networks.values():
            network.is_changed_by(self.finish)
        return result

    def finish(self) -> None:
        """Wait for the updates under way.

        :raises TrainingError: a loss is not finite; said once, so that a failed run can still be saved
        """
        if self._unread is not None:
            self._unread.wait()

    def _compile(self, layout: StepLayout) -> CompiledStep:
        """A function of (packed vector, large columns, indices) that updates the networks and returns [K, outputs]."""
        raise NotImplementedError(f"{type(self).__name__} does not compile steps")

    def _gradients(self, function: Callable, weights: dict[str, list]) -> tuple[dict[str, list], Any]:
        """Each network's loss differentiated by that network's own weights, and auxiliary values.

        :param function: ``function(weights)`` gives the losses by network and auxiliary values
        """
        raise NotImplementedError(f"{type(self).__name__} does not differentiate")

    def _loop(self, update: Callable, state: dict, num_updates: int, count: Any) -> tuple[dict, Any]:
        """``count`` updates one after the other, at most ``num_updates``.

        :param update: ``update(k, state)`` gives the new state and a vector of outputs
        :return: the last state, and the outputs as [num_updates, outputs]
        """
        raise NotImplementedError(f"{type(self).__name__} does not loop")

    def _apply(
        self, state: dict, gradients: dict[str, list], buffers: dict, optimizer_scalars: dict
    ) -> tuple[dict, dict[str, Any]]:
        """See ``TrainingStep.apply``."""
        return self.step.apply(self.ops, state, gradients, buffers, optimizer_scalars)

    def all_updates(
        self, layout: StepLayout, variables: dict[str, list], vector: Any, large: list, indices: Any
    ) -> tuple[dict[str, list], Any]:
        """The updates of one call as a pure function; traced by the framework.

        :param variables: the values of each network's variables
        :return: their new values, and [K, outputs]
        """
        packing, ops = layout.packing, self.ops
        state = {name: network.layout.unpack(ops, variables[name]) for name, network in self.networks.items()}
        rows = packing.unpack_rows(ops, vector)
        scalars = packing.unpack_scalars(ops, vector)
        large_columns = dict(zip(packing.large, large))

        def update(k: Any, state: dict) -> tuple[dict, Any]:
            columns = self._columns(layout, rows, large_columns, k, indices)
            return self._one_update(layout, state, columns, scalars[k])

        if packing.num_updates > 1:
            state, outputs = self._loop(update, state, packing.num_updates, ops.cast(vector[-1], "int32"))
        else:
            state, row = update(0, state)
            outputs = row[None]
        return {name: network.layout.pack(ops, state[name]) for name, network in self.networks.items()}, outputs

    def _columns(self, layout: StepLayout, rows: Any, large: dict[str, Any], k: Any, indices: Any) -> dict[str, Any]:
        """The columns of update k's batch."""
        ops, size = self.ops, layout.batch_size
        if indices is None:

            def part(x: Any) -> Any:
                # a slice with a moving start may have no static shape, and XLA would pad it to all rows
                return ops.reshape(x, (-1, size, *x.shape[1:]))[k]
        else:
            present = ops.maximum(indices[k], 0)

            def part(x: Any) -> Any:
                return ops.take(x, present, axis=0)

        columns = layout.packing.columns(ops, part(rows)) | {name: part(column) for name, column in large.items()}
        if indices is not None:
            columns["weights"] *= ops.cast(indices[k] >= 0, "float32")
        return columns

    def _scalars(self, scalars: dict[str, float], num_updates: int) -> np.ndarray:
        rows = []
        for k in range(1, num_updates + 1):
            row = [
                value
                for name, o in self.step.optimizers.items()
                for value in o.scalars(self.networks[name].updates + k)
            ]
            rows.append(row + list(scalars.values()))
        return np.asarray(rows, np.float32)

    def _one_update(
        self, layout: StepLayout, state: dict, columns: dict[str, Any], scalar_row: Any
    ) -> tuple[dict, Any]:
        """:return: the new state, and losses, gradient norms, signals and errors in one vector"""
        ops = self.ops
        batch = self._batch(columns, scalar_row, layout.scalar_names)
        weights = {name: state[name]["weights"] for name in self.networks}

        def losses_of(weights: dict[str, list]) -> tuple[dict[str, Any], tuple]:
            losses, update, buffers = self.step.losses(ops, weights, state, batch)
            # frameworks sort the keys of what passes through them
            self._output_names = [list(losses), list(losses), list(update.signals)]
            return losses, (losses, update.errors, update.signals, buffers)

        found, (losses, errors, signals, buffers) = self._gradients(losses_of, weights)
        optimizer_scalars = {
            name: scalar_row[i * OPTIMIZER_SCALARS : (i + 1) * OPTIMIZER_SCALARS]
            for i, name in enumerate(self.networks)
        }
        state, norms = self._apply(state, found, buffers, optimizer_scalars)
        state = self.step.follow(state, layout.follow)
        parts = zip((losses, norms, signals), self._output_names)
        numbers = [part[name] for part, names in parts for name in names]
        outputs = ops.stack([ops.cast(ops.reshape(number, ()), "float32") for number in numbers])
        return state, outputs if errors is None else ops.concatenate([outputs, errors])

    def _batch(self, columns: dict[str, Any], scalar_row: Any, scalar_names: tuple[str, ...]) -> LearningBatch:
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
            continues=columns.get("continues"),
            weights=columns["weights"],
            extra=groups["extra"],
            scalars={name: scalar_row[first + i] for i, name in enumerate(scalar_names)},
        )

    def _read(self, outputs: Any, count: int, updates: dict[str, int]) -> _Numbers:
        self._unread = None
        rows = np.asarray(outputs)[:count]
        losses_of, norms_of, signals_of = self._output_names
        if not np.isfinite(rows[:, : len(losses_of)]).all():
            raise self._not_finite(rows, losses_of, count, updates)
        values = iter(rows.T)
        losses = {name: next(values) for name in losses_of}
        norms = {name: next(values) for name in norms_of}
        signals = {name: next(values) for name in signals_of}
        errors = rows[:, len(losses) + len(norms) + len(signals) :]
        return _Numbers(losses, norms, signals, errors if errors.shape[1] else None)

    @staticmethod
    def _not_finite(rows: np.ndarray, losses_of: list[str], count: int, updates: dict[str, int]) -> TrainingError:
        name = next(name for name, loss in zip(losses_of, rows.T) if not np.isfinite(loss).all())
        loss = rows[:, losses_of.index(name)]
        first = int(np.argmin(np.isfinite(loss)))
        return TrainingError(
            f"the loss of network '{name}' became {loss[first]} at update {updates[name] - count + 1 + first}: "
            f"try a smaller learning_rate, clip_gradients, or rescaled rewards"
        )
