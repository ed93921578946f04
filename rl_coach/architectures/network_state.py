"""The state of one network: weights, buffers and optimizer slots. Each framework has a subclass."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Sequence

import numpy as np

from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.update import Optimizer, TrainingStep

# arrays with fewer numbers share one variable, because a separate variable costs more than copying
SMALL_ARRAY = 16_384
CONVOLUTION_RANK = 4  # number of dimensions of a convolution's kernel
Groups = dict[str, list[Any]]
ACTING_GROUPS = ("weights", "buffers")
"""The groups of arrays that the online network needs to predict."""


class Kept(NamedTuple):
    """A copy of the values with which the online network predicts during an update.

    :param version: the version number of the state with these values
    :param groups: the arrays of each group, by the group's name
    """

    version: int
    groups: dict[str, list[np.ndarray]]

    @property
    def arrays(self) -> list[np.ndarray]:
        """The values of all groups, in the order of ``ACTING_GROUPS``."""
        return [array for group in ACTING_GROUPS for array in self.groups[group]]


class StateLayout:
    """Maps the arrays of a network to a few variables: each large array has its own variable, and all small float
    arrays share one vector.

    Each variable of a compiled step costs as much time as a small update. On JAX, an update of a 64 x 64 Q-network
    takes two thirds of the time that it would take with a variable for each array.

    :param groups: the groups of arrays, by name
    """

    def __init__(self, groups: dict[str, list[np.ndarray]]):
        self.shapes = {name: [array.shape for array in group] for name, group in groups.items()}
        self._places: dict[str, list[tuple[int, slice | None]]] = {}
        # variable 0 is the vector that all small arrays share
        variables, end = 1, 0
        for name, group in groups.items():
            places: list[tuple[int, slice | None]] = []
            for array in group:
                if array.dtype == np.float32 and array.size < SMALL_ARRAY:
                    places.append((0, slice(end, end + array.size)))
                    end += array.size
                else:
                    places.append((variables, None))
                    variables += 1
            self._places[name] = places

    def pack(self, ops: Any, groups: Groups) -> list:
        """Make the variables' values: the shared vector, then the large arrays.

        :param ops: ``numpy`` or ``keras.ops``
        """
        # the empty array is for networks without small arrays: concatenate does not accept an empty list
        small: list[Any] = [np.zeros(0, np.float32)]
        large: list[Any] = []
        for name, places in self._places.items():
            for array, (_, part) in zip(groups[name], places):
                (large if part is None else small).append(array if part is None else ops.reshape(array, (-1,)))
        return [ops.concatenate(small), *large]

    def unpack(self, ops: Any, variables: Sequence) -> Groups:
        """Get all groups from the variables' values."""
        return {name: self.group(ops, variables, name) for name in self._places}

    def group(self, ops: Any, variables: Any, name: str) -> list:
        """Get the arrays of a group. :param variables: values by index, at least of the group's variables"""
        # acting needs this after each update, and np.reshape takes several times as long as the method
        reshape = np.ndarray.reshape if ops is np else ops.reshape
        return [
            variables[index] if part is None else reshape(variables[index][part], shape)
            for (index, part), shape in zip(self._places[name], self.shapes[name])
        ]

    def with_group(self, name: str, arrays: Sequence[np.ndarray], variables: dict[int, np.ndarray]) -> dict:
        """Replace a group. :return: the new values of the variables that contain the group, by index

        :param arrays: the new arrays of the group
        :param variables: current values by index, at least of the variables that also contain other arrays
        """
        changed: dict[int, np.ndarray] = {}
        for array, (index, part) in zip(arrays, self._places[name]):
            if part is None:
                changed[index] = array
            else:
                # a copy, because the current value may be memory of the framework, and nobody else may write there
                changed.setdefault(index, np.array(variables[index]))[part] = np.ravel(array)
        return changed

    def variables_of(self, names: Sequence[str]) -> list[int]:
        """The indices of the variables that contain these groups."""
        return sorted({index for name in names for index, _ in self._places[name]})


def initial_groups(function: NetworkFunction, has_target: bool) -> dict[str, list[np.ndarray]]:
    """The initial state of a network: its groups of arrays by name.

    :param function: the network, for example a ``KerasNetwork``
    :param has_target: add a target network, equal to the online network at first
    """
    weights, buffers = function.initial_weights(), function.initial_buffers()
    slots = [np.zeros_like(w) for _ in range(Optimizer(function.parameters).num_slots) for w in weights]
    groups = {"weights": weights, "buffers": buffers, "slots": slots}
    # online and target network get the same arrays: each framework copies them
    return groups | {"target_weights": weights, "target_buffers": buffers} if has_target else groups


class NetworkState:
    """The state of a network as groups of arrays: weights, buffers, optimizer slots and, with a target network, the
    target's weights and buffers.

    A subclass for a framework stores the arrays, returns a group (``arrays``), replaces a group (``_replace``) and
    updates the target network (``update_target``).

    :param function: the network, for example a ``KerasNetwork``
    :param groups: the initial arrays; see ``initial_groups``
    :ivar updates: number of updates of the weights so far, by all learners; the optimizer's schedules and bias
        corrections depend on it
    :ivar version: a number that changes with each change of a value
    :ivar keeps_for_acting: if True, the network predicts with a copy of its values during an update, so that acting
        does not wait
    :ivar kept: the copy from before the last update; None without a copy, or if values have been replaced after it
    """

    def __init__(self, function: NetworkFunction, groups: dict[str, list[np.ndarray]]):
        self.function = function
        self.updates = 0
        self.version = 0
        self.keeps_for_acting = False
        self.kept: Kept | None = None
        self._forms = {name: [(array.shape, array.dtype) for array in group] for name, group in groups.items()}

    def groups(self) -> list[str]:
        """The names of the groups."""
        return list(self._forms)

    def num_arrays(self, group: str) -> int:
        """The number of arrays of a group."""
        return len(self._forms[group])

    @property
    def has_convolutions(self) -> bool:
        """True if the network has convolutions."""
        return any(len(shape) == CONVOLUTION_RANK for shape, _ in self._forms["weights"])

    def arrays(self, *groups: str) -> list[np.ndarray]:
        """The arrays of the given groups, such as ``'target_weights'``, in one list. Do not change the arrays.

        :raises TrainingError: if an update that computes these values has failed
        """
        raise NotImplementedError(f"{type(self).__name__} does not define arrays")

    def set_arrays(self, group: str, values: Sequence[np.ndarray]) -> None:
        """Replace a group's arrays. :raises ValueError: if their number or a shape does not fit"""
        # wait first, because an update in progress would overwrite the new values
        self.finish()
        forms = self._forms[group]
        if len(values) != len(forms):
            raise ValueError(f"'{group}' must have {len(forms)} arrays, but {len(values)} were given")
        for (shape, _), value in zip(forms, values):
            if shape != np.shape(value):
                raise ValueError(f"an array of '{group}' must have the shape {shape}, but has {np.shape(value)}")
        self._replace(group, [np.asarray(value, dtype) for (_, dtype), value in zip(forms, values)])
        self.version += 1
        self.kept = None

    def update_target(self, rate: float) -> None:
        """Update the target network: target = rate * online + (1 - rate) * target. A rate of 1 copies the online
        weights.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define update_target")

    def keep(self, groups: Mapping[str, Sequence[np.ndarray]]) -> None:
        """Copy the values of ``groups``, and predict with the copy until the next update begins."""
        # the copy has the version before the update: a predictor with this version need not read it
        self.kept = Kept(self.version, {group: [np.array(array) for array in groups[group]] for group in groups})
        self.version += 1

    def is_changed_by(self, check: Callable[[], Any]) -> None:
        """Record that updates have been made. :param check: waits for the updates, and raises if they failed"""
        self.version += 1
        check()

    def finish(self) -> None:
        """Wait for updates in progress, and raise an error if they failed."""

    def _replace(self, group: str, arrays: list[np.ndarray]) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _replace")


class CompiledNetworkState(NetworkState):
    """The state of a network for compiled steps. It has few variables. Updates may still be in progress when their call
    returns.

    A subclass for a framework defines how variables are created (``_hold``), read (``_read``), written (``_write``) and
    changed by a compiled function (``_compile``).

    :cvar ops: the framework's array operations, with the names of ``keras.ops``
    :ivar published: values of variables, by index, that the last step returned with its results. On some frameworks
        this is faster than reading the variables
    """

    ops: Any

    def __init__(self, function: NetworkFunction, has_target: bool):
        groups = initial_groups(function, has_target)
        super().__init__(function, groups)
        self.published: dict[int, np.ndarray] = {}
        self.layout = StateLayout(groups)
        self.variables = [self._hold(array) for array in self.layout.pack(np, groups)]
        self._variables_of = {group: self.layout.variables_of([group]) for group in groups}
        self._pending: Callable[[], Any] | None = None
        self._target_updates: dict[float, Callable[[], None]] = {}

    def arrays(self, *groups: str) -> list[np.ndarray]:
        self.finish()
        known = self.published
        indices = [index for group in groups for index in self._variables_of[group]]
        values = {index: known[index] if index in known else self._read(index) for index in indices}
        return [array for group in groups for array in self.layout.group(np, values, group)]

    def hold(self, variables: Sequence[np.ndarray]) -> None:
        """Replace the values of all variables."""
        self.finish()
        self.variables = [self._hold(one) for one in variables]
        self.published = {}
        self.version += 1
        self.kept = None

    def update_target(self, rate: float) -> None:
        # one compiled function for each rate, because the rate is a constant of the trace
        if rate not in self._target_updates:

            def with_updated_target(variables: Sequence) -> list:
                groups = self.layout.unpack(self.ops, variables)
                return self.layout.pack(self.ops, TrainingStep.update_targets({"": groups}, {"": rate})[""])

            self._target_updates[rate] = self._compile(with_updated_target)
        self._target_updates[rate]()
        self.version += 1

    def is_changed_by(self, check: Callable[[], Any]) -> None:
        """Record that updates are in progress.

        :param check: waits for them, and raises if they failed; called before values are read
        """
        self._pending = check
        self.version += 1

    def finish(self) -> None:
        if self._pending is not None:
            # cleared first, so that a failure raises only once: later reads must work, to save the failed run
            check, self._pending = self._pending, None
            check()

    def _replace(self, group: str, arrays: list[np.ndarray]) -> None:
        # only the vector of small arrays also contains other groups
        shared = {index: self._read(index) for index in self._variables_of[group] if index == 0}
        for index, value in self.layout.with_group(group, arrays, shared).items():
            self._write(index, value)

    def _hold(self, array: np.ndarray) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define _hold")

    def _read(self, index: int) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} does not define _read")

    def _write(self, index: int, value: np.ndarray) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _write")

    def _compile(self, change: Callable[[Sequence], list]) -> Callable[[], None]:
        """Compile a function that replaces the variables' values with the result of ``change``."""
        raise NotImplementedError(f"{type(self).__name__} does not define _compile")
