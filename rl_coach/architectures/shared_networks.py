"""Networks with weights that several processes of one machine share (Mnih et al. 2016, "Asynchronous methods for deep
reinforcement learning", section 4).

Weights, optimizer slots and buffers are in one block of shared memory. A worker computes gradients on its own copy of
the weights. Then it takes a lock, applies the gradients to the shared weights with NumPy, and copies the new weights.
The lock is a file lock of the kernel. The kernel releases the lock if the worker dies.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import time
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from rl_coach.architectures.learner import Learner, LearningResult, Masks
from rl_coach.architectures.network_state import NetworkState
from rl_coach.architectures.update import TrainingStep, clip, clips_each_variable, with_unit_columns

GROUPS = ("weights", "slots", "buffers")
_STRETCH = 32_768  # numbers
# pause between two checks for the other workers' gradients; a gradient takes some hundred times as long
_POLL_SECONDS = 0.0005
_NUMBER = 4  # bytes of a float32
_COUNT = 8  # bytes of an int64
Arrays = list[np.ndarray]

try:
    import fcntl
except ImportError:  # Windows has no fcntl, so workers cannot share weights there
    fcntl = None  # type: ignore[assignment]

CAN_SHARE = fcntl is not None
"""True if processes can share networks on this operating system."""


class SharedFile:
    """A file that several processes map into memory. It begins with a few counters.

    :param path: the file, filled with zeros; it may be deleted after all processes have opened it
    :param num_workers: number of workers that train

    :ivar memory: the bytes of the file
    :ivar joint_updates: [1], number of updates that all workers made together
    :ivar present: [workers], 1 for workers that take part in joint updates
    :ivar arrived: [workers], 1 if the worker's gradients for the next joint update have arrived
    """

    def __init__(self, path: str, num_workers: int):
        # each process opens the file itself: flock does not lock out processes that share a file descriptor
        self._file = os.open(path, os.O_RDWR)
        self.memory = mmap.mmap(self._file, os.fstat(self._file).st_size)
        counts = np.frombuffer(self.memory, np.int64, self.num_counts(num_workers))
        # views, not copies: writing to them changes the file
        self.joint_updates, self.present, self.arrived = np.split(counts, [1, 1 + num_workers])

    @staticmethod
    def num_counts(num_workers: int) -> int:
        """The number of counters at the beginning of the file, 8 bytes each."""
        return 1 + 2 * num_workers

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """A context with a lock on the file. The kernel releases the lock of a process that dies."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def join(self, worker: int) -> None:
        """Add a worker to joint updates, which then wait for it."""
        with self.locked():
            self.present[worker] = 1

    def leave(self, worker: int) -> None:
        """Stop waiting for a worker that has ended or died."""
        with self.locked():
            self.present[worker] = self.arrived[worker] = 0


class SharedBlock:
    """The positions of the shared values in the file.

    :param networks: the networks' states by name; the shapes are equal in all workers
    :param num_workers: number of workers that train
    """

    def __init__(self, networks: Mapping[str, NetworkState], num_workers: int):
        self.names = list(networks)
        self.num_workers = num_workers
        self._shapes = {
            (name, group): [array.shape for array in _floats(network.arrays(group))]
            for name, network in networks.items()
            for group in GROUPS
        }
        self._shapes |= {(name, "summed"): self._shapes[name, "weights"] for name in networks}
        self._first_count = SharedFile.num_counts(num_workers) * _COUNT
        self._first_array = self._first_count + 2 * len(self.names) * _COUNT

    @property
    def num_bytes(self) -> int:
        """The size of the file."""
        floats = sum(math.prod(shape) for shapes in self._shapes.values() for shape in shapes)
        return self._first_array + floats * _NUMBER

    def counts(self, memory: Any) -> list[dict[str, np.ndarray]]:
        """Two dicts with a view [1] for each network: the number of updates, and the number of workers with gradients
        in the sum for the next joint update.
        """
        counts = np.frombuffer(memory, np.int64, 2 * len(self.names), self._first_count).reshape(2, -1, 1)
        return [dict(zip(self.names, views)) for views in counts]

    def vectors(self, memory: Any) -> dict[tuple[str, str], np.ndarray]:
        """A view of all numbers of each network and group, as one vector."""
        start = self._first_array
        views: dict[tuple[str, str], np.ndarray] = {}
        for key, shapes in self._shapes.items():
            views[key] = np.frombuffer(memory, np.float32, sum(map(math.prod, shapes)), start)
            start += views[key].nbytes
        return views

    def split(self, name: str, group: str, vector: np.ndarray) -> Arrays:
        """Divide the vector of a network's group into its arrays. The arrays are views."""
        shapes = self._shapes[name, group]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(vector, ends[:-1]), shapes)]


class SharedNetworks:
    """Access of one worker to the shared networks.

    :param block: the positions of the values in the file
    :param file: the file with the values
    :param step: the training step, with the parameters of the networks
    :param worker: the number of this worker. Training workers have the first numbers; workers with higher numbers only
        read
    """

    def __init__(self, block: SharedBlock, file: SharedFile, step: TrainingStep, worker: int):
        self.worker = worker
        self._file = file
        self._locked = file.locked
        self._split = block.split
        self._vectors = block.vectors(file.memory)
        self._updates, self._contributors = block.counts(file.memory)
        self._functions, self._parameters = step.networks, step.parameters
        self._optimizers = step.optimizers
        self._is_asynchronous = any(network.async_training for network in step.parameters.values())
        self._own_slots = {
            name: np.zeros_like(self._vectors[name, "slots"])
            for name, network in step.parameters.items()
            if self._is_asynchronous and not network.shared_optimizer
        }
        self._own_updates = dict.fromkeys(self._own_slots, 0)

    def publish(self, networks: Mapping[str, NetworkState]) -> None:
        """Copy the state of a worker's networks to the shared networks."""
        with self._locked():
            for name, network in networks.items():
                for group in GROUPS:
                    self._share(name, group, network)
                self._updates[name][0] = network.updates

    def _share(self, name: str, group: str, network: NetworkState) -> None:
        """Copy a group of a worker's network to the shared network. The caller has the lock."""
        vector = self._vectors[name, group]
        if vector.size:
            for value, place in zip(_floats(network.arrays(group)), self._split(name, group, vector)):
                np.copyto(place, value)

    def take(self, networks: Mapping[str, NetworkState], groups: Sequence[str] = ("weights",)) -> None:
        """Copy the newest shared values to a worker's networks.

        :param groups: the groups to read, from ``GROUPS``; acting and learning read only the weights
        """
        # the lock is only for copying: other workers need not wait for the conversion to the framework's arrays
        with self._locked():
            values = {(name, group): self._vector(name, group).copy() for name in networks for group in groups}
            updates = {name: int(count[0]) for name, count in self._updates.items()}
        for (name, group), vector in values.items():
            if vector.size:
                floats = self._split(name, group, vector)
                networks[name].set_arrays(group, _with_own_states(networks[name], group, floats))
        for name, network in networks.items():
            network.updates = updates[name]

    def apply(self, gradients: Mapping[str, np.ndarray], networks: Mapping[str, NetworkState]) -> None:
        """Apply a worker's gradients to the shared weights. Asynchronous training applies them immediately. Synchronous
        training waits for the gradients of all other workers.

        :param gradients: the gradients of each network that learns, as one vector
        :param networks: the worker's networks; their buffers are copied to the shared buffers
        """
        if self._is_asynchronous:
            with self._locked():
                self._apply(gradients, networks)
        else:
            self._apply_together(gradients, networks)

    def _apply_together(self, gradients: Mapping[str, np.ndarray], networks: Mapping[str, NetworkState]) -> None:
        with self._locked():
            before = int(self._file.joint_updates[0])
            for name, vector in gradients.items():
                self._vectors[name, "summed"][...] += vector
                self._contributors[name][0] += 1
            self._file.arrived[self.worker] = 1
        while True:
            with self._locked():
                # check and update under one lock, so that only the first worker that finds all gradients applies them
                if self._file.joint_updates[0] != before:
                    return
                if np.array_equal(self._file.arrived & self._file.present, self._file.present):
                    self._apply_summed(networks)
                    return
            time.sleep(_POLL_SECONDS)

    def _apply_summed(self, networks: Mapping[str, NetworkState]) -> None:
        """Apply the summed gradients of all workers. A network may have gradients from only some of the workers."""
        summed = {}
        for name, count in self._contributors.items():
            if count[0]:
                is_averaged = self._parameters[name].scale_down_gradients_by_number_of_workers_for_sync_training
                summed[name] = self._vectors[name, "summed"] / np.float32(count[0] if is_averaged else 1)
                self._vectors[name, "summed"][...] = 0.0
                count[0] = 0
        self._apply(summed, networks)
        self._file.arrived[:] = 0
        self._file.joint_updates[0] += 1

    def _apply(self, gradients: Mapping[str, np.ndarray], networks: Mapping[str, NetworkState]) -> None:
        """Apply gradients to the shared weights, and share the buffers. The caller has the lock."""
        for name, vector in gradients.items():
            self._descend(name, self._clipped(name, vector))
        for name, network in networks.items():
            self._share(name, "buffers", network)

    def _clipped(self, name: str, vector: np.ndarray) -> np.ndarray:
        parameters = self._parameters[name]
        weights = self._vectors[name, "weights"]
        if not clips_each_variable(parameters):
            # the norm of all arrays is the norm of their vector, so it need not be split
            return clip(np, [vector], [weights], parameters)[0]
        gradients, variables = (self._split(name, "weights", one) for one in (vector, weights))
        clipped = clip(np, gradients, variables, parameters)
        return np.concatenate([array.ravel() for array in clipped])

    def _descend(self, name: str, gradient: np.ndarray) -> None:
        """Make an optimizer step, one stretch of the vectors after the other: intermediate results of a stretch stay in
        the processor's cache. The result is the same, because the optimizer treats each number separately. Only norms
        of columns need whole arrays.
        """
        optimizer, scalars = self._optimizers[name], self._optimizer_scalars(name)
        weights, slots = self._vector(name, "weights"), self._vector(name, "slots")
        slots = slots.reshape(optimizer.num_slots, weights.size)
        for start in range(0, weights.size, _STRETCH):
            part = slice(start, start + _STRETCH)
            (changed,), changed_slots = optimizer(
                np, [weights[part]], [gradient[part]], [[slot[part]] for slot in slots], scalars
            )
            weights[part] = changed
            for slot, (value,) in zip(slots, changed_slots):
                slot[part] = value
        if self._functions[name].unit_columns:
            arrays = self._split(name, "weights", weights)
            for array, value in zip(arrays, with_unit_columns(np, self._functions[name], arrays)):
                np.copyto(array, value)

    def _vector(self, name: str, group: str) -> np.ndarray:
        has_own = group == "slots" and name in self._own_slots
        return self._own_slots[name] if has_own else self._vectors[name, group]

    def _optimizer_scalars(self, name: str) -> np.ndarray:
        """Count an update of a network. :return: the learning rate and the bias corrections of this update"""
        self._updates[name][0] += 1  # counted first, because the bias corrections count from 1 on
        shared = own = int(self._updates[name][0])
        if name in self._own_updates:
            own = self._own_updates[name] = self._own_updates[name] + 1
        # float32: with float64 numbers, NumPy 2 would compute the whole update in float64
        # slots of one worker need the bias corrections of its own number of updates; schedules count all updates
        return np.asarray(self._optimizers[name].scalars(own, shared - 1), np.float32)


class SharedLearner:
    """Makes the updates of a worker's agent on networks that several workers share.

    :param learner: computes the gradients on the worker's own copy
    :param shared: the shared networks
    """

    def __init__(self, learner: Learner, shared: SharedNetworks):
        self._learner = learner
        self._shared = shared

    def train(
        self, columns: dict[str, np.ndarray], scalars: dict[str, float] | None = None,
        indices: np.ndarray | None = None, num_updates: int = 1, count: int | None = None,
        target_rates: dict[str, float] | None = None, learning: Masks | None = None, moving: Masks | None = None,
        training_step: int | None = None, sequence_length: int | None = None,
    ) -> LearningResult:  # fmt: skip
        """Make updates one after the other; see ``Learner.train``. ``training_step`` is ignored: schedules of the
        learning rate depend on the number of updates by all workers.
        """
        size = len(columns["weights"]) // num_updates
        results = []
        for k in range(num_updates if count is None else count):
            rows = np.arange(k * size, (k + 1) * size) if indices is None else indices[k]
            results.append(self._update(_rows(columns, rows), scalars, sequence_length, k, learning or {}))
            # each worker has its own target networks, and moves them towards its copy of the shared weights
            for name, rate in (target_rates or {}).items():
                if moving is None or name not in moving or moving[name][k]:
                    self._learner.networks[name].update_target(rate)
        return LearningResult.joined(results)

    def _update(
        self, columns: dict[str, np.ndarray], scalars: dict[str, float] | None, sequence_length: int | None, k: int,
        learning: Masks,
    ) -> LearningResult:  # fmt: skip
        networks, results = self._learner.networks, []
        for stage in range(len(self._learner.step.stages)):
            found, result = self._learner.gradients(columns, scalars, sequence_length, stage)
            self._shared.apply({n: g for n, g in found.items() if n not in learning or learning[n][k]}, networks)
            # the next stage needs the newest shared weights
            self._shared.take(networks)
            results.append(result)
        return LearningResult.of_stages(results)

    def take_newest(self, groups: Sequence[str] = ("weights",)) -> None:
        """Copy the newest shared values to the worker's networks."""
        self._shared.take(self._learner.networks, groups)


def _rows(columns: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    """The chosen rows of the columns. A negative index gives a row with weight 0."""
    if np.array_equal(rows, np.arange(len(columns["weights"]))):
        return columns
    chosen = {name: column[np.maximum(rows, 0)] for name, column in columns.items()}
    chosen["weights"] = chosen["weights"] * (rows >= 0)
    return chosen


def _floats(arrays: Sequence[np.ndarray]) -> Arrays:
    """The float arrays, which workers share. The others are each worker's own states of random generators."""
    return [array for array in arrays if array.dtype == np.float32]


def _with_own_states(network: NetworkState, group: str, floats: Arrays) -> Arrays:
    """All arrays of a group: the given floats, and the worker's own states of random generators."""
    if len(floats) == network.num_arrays(group):
        return floats
    found = iter(floats)
    return [next(found) if array.dtype == np.float32 else array for array in network.arrays(group)]
