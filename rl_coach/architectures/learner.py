"""The learner: makes the updates of an agent's networks, many in one compiled call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from rl_coach.architectures.packing import Packing
from rl_coach.architectures.update import LearningBatch, TrainingStep
from rl_coach.utils import TrainingError

OPTIMIZER_SCALARS = 3
CompiledStep = Callable[[np.ndarray, list[np.ndarray], "np.ndarray | None"], np.ndarray]


@dataclass
class LearningResult:
    """What K updates of batch size B gave.

    :param losses: [K] for each network
    :param gradient_norms: [K] for each network, before clipping
    :param signals: [K] for each of the rule's signals
    :param errors: [K, B], or None if the rule gives none
    """

    losses: dict[str, np.ndarray]
    gradient_norms: dict[str, np.ndarray]
    signals: dict[str, np.ndarray]
    errors: np.ndarray | None


class Learner:
    """Packs batches, keeps one compiled step for each layout of them, and reads the results.

    A framework's subclass says how to compile (``_compile``); everything else is the same for all.

    :param step: the pure training step
    :param networks: the framework's holders of the networks' state, by name
    """

    def __init__(self, step: TrainingStep, networks: dict[str, Any]):
        self.step = step
        self.networks = networks
        self.num_compilations = 0
        self._compiled: dict[Any, tuple[Packing, CompiledStep]] = {}
        self._output_names: dict[str, list[str]] = {}

    def train(
        self,
        columns: dict[str, np.ndarray],
        scalars: dict[str, float] | None = None,
        indices: np.ndarray | None = None,
        num_updates: int = 1,
        count: int | None = None,
        follow: dict[str, float] | None = None,
    ) -> LearningResult:
        """Make ``count`` of ``num_updates`` updates in one call.

        :param columns: [N, ...] each, by the names that ``LearningBatch`` has: ``states/<name>``,
            ``next_states/<name>``, ``actions``, ``rewards``, ``continues``, ``weights`` and ``extra/<name>``
        :param scalars: the agent's numbers of these updates, handed to the rule
        :param indices: [K, B] int32 rows of each update's batch, -1 for none; without it update k takes the k-th
            of K equal parts
        :param num_updates: K; the compiled step is made for it
        :param count: how many of them to make, all if not given; does not need another compilation
        :param follow: after each update these networks' targets follow at these rates
        :raises TrainingError: a loss is not finite
        """
        scalars = scalars or {}
        follow = follow or {}
        count = num_updates if count is None else count
        layout = tuple((name, column.shape, column.dtype.char) for name, column in columns.items())
        key = (layout, num_updates, None if indices is None else indices.shape, tuple(follow.items()), tuple(scalars))
        if key not in self._compiled:
            packing = Packing(columns, len(self.networks) * OPTIMIZER_SCALARS + len(scalars), num_updates)
            self.num_compilations += 1
            batch_size = len(next(iter(columns.values()))) // num_updates if indices is None else indices.shape[1]
            compiled = self._compile(packing, batch_size, indices is not None, follow, list(scalars))
            self._compiled[key] = packing, compiled
        packing, compiled = self._compiled[key]
        vector = packing.pack(columns, self._scalars(scalars, num_updates), count)
        rows = compiled(vector, [columns[name] for name in packing.large], indices)[:count]
        for name in self._output_names["losses"]:
            self.networks[name].updates += count
        return self._read(rows)

    def _compile(
        self, packing: Packing, batch_size: int, is_indexed: bool, follow: dict[str, float], scalar_names: list[str]
    ) -> CompiledStep:
        """A function of (packed vector, large columns, indices) that updates the networks and returns [K, outputs]."""
        raise NotImplementedError(f"{type(self).__name__} does not compile steps")

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

    def one_update(
        self,
        ops: Any,
        gradients: Callable,
        state: dict,
        columns: dict[str, Any],
        scalar_row: Any,
        scalar_names: list[str],
        follow: dict[str, float],
    ) -> tuple[dict, Any]:
        """One update as a pure function; traced by the framework.

        :param gradients: ``gradients(function, weights) -> (gradients, auxiliary)`` where ``function(weights)`` gives
            the losses by network and auxiliary values
        :return: the new state, and losses, gradient norms, signals and errors in one vector
        """
        batch = self._batch(columns, scalar_row, scalar_names)
        weights = {name: state[name]["weights"] for name in self.networks}

        def losses_of(weights: dict[str, list]) -> tuple[dict[str, Any], tuple]:
            losses, update, buffers = self.step.losses(ops, weights, state, batch)
            return losses, (losses, update.errors, update.signals, buffers)

        found, (losses, errors, signals, buffers) = gradients(losses_of, weights)
        optimizer_scalars = {
            name: scalar_row[i * OPTIMIZER_SCALARS : (i + 1) * OPTIMIZER_SCALARS]
            for i, name in enumerate(self.networks)
        }
        state, norms = self.step.apply(ops, state, found, buffers, optimizer_scalars)
        state = self.step.follow(state, follow)
        self._output_names = {"losses": list(losses), "norms": list(norms), "signals": list(signals)}
        numbers = [*losses.values(), *norms.values(), *signals.values()]
        outputs = ops.stack([ops.cast(ops.reshape(number, ()), "float32") for number in numbers])
        return state, outputs if errors is None else ops.concatenate([outputs, errors])

    def _batch(self, columns: dict[str, Any], scalar_row: Any, scalar_names: list[str]) -> LearningBatch:
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

    def _read(self, rows: np.ndarray) -> LearningResult:
        names = self._output_names
        parts: dict[str, dict[str, np.ndarray]] = {}
        start = 0
        for part in ("losses", "norms", "signals"):
            parts[part] = {name: rows[:, start + i] for i, name in enumerate(names[part])}
            start += len(names[part])
        for name, losses in parts["losses"].items():
            if not np.isfinite(losses).all():
                bad = self.networks[name].updates - len(losses) + 1 + int(np.argmin(np.isfinite(losses)))
                raise TrainingError(
                    f"the loss of network '{name}' became {losses[~np.isfinite(losses)][0]} at update {bad}: "
                    f"try a smaller learning_rate, clip_gradients, or rescaled rewards"
                )
        return LearningResult(
            parts["losses"], parts["norms"], parts["signals"], rows[:, start:] if rows.shape[1] > start else None
        )
