"""The state of one network, as every framework holds it."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Sequence

import numpy as np

from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.update import Optimizer, TrainingStep

SMALL_ARRAY = 16_384  # numbers below which an array's own variable costs more than copying it into a shared one
CONVOLUTION_RANK = 4  # dimensions of a convolution's weights
Groups = dict[str, list[Any]]
ACTING_GROUPS = ("weights", "buffers")
"""The groups that the online network predicts with."""


class Kept(NamedTuple):
    """The values that the online network predicts with during an update.

    :param version: the version of the state with these values
    :param groups: by name
    """

    version: int
    groups: dict[str, list[np.ndarray]]

    @property
    def arrays(self) -> list[np.ndarray]:
        """The values of all groups, in the order of ``ACTING_GROUPS``."""
        return [array for group in ACTING_GROUPS for array in self.groups[group]]


class StateLayout:
    """The places of a network's arrays in variables. Each large array has its own variable; all small float arrays
    share one vector.

    Each variable of a compiled step costs as much as a small update. Measured on JAX, an update of a 64 x 64 Q-network
    takes two thirds of the time that it takes with a variable for each array.

    :param groups: lists of arrays by name
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
        """The variables' values: the shared vector, then the large arrays. :param ops: ``numpy`` or ``keras.ops``"""
        # the empty array serves networks without small arrays: concatenate takes no empty list
        small: list[Any] = [np.zeros(0, np.float32)]
        large: list[Any] = []
        for name, places in self._places.items():
            for array, (_, part) in zip(groups[name], places):
                (large if part is None else small).append(array if part is None else ops.reshape(array, (-1,)))
        return [ops.concatenate(small), *large]

    def unpack(self, ops: Any, variables: Sequence) -> Groups:
        """All groups, from the variables' values."""
        return {name: self.group(ops, variables, name) for name in self._places}

    def group(self, ops: Any, variables: Any, name: str) -> list:
        """A group, from the values of (at least) its variables by index."""
        # what acting reads after each update: NumPy's own function costs several times its arrays' method
        reshape = np.ndarray.reshape if ops is np else ops.reshape
        return [
            variables[index] if part is None else reshape(variables[index][part], shape)
            for (index, part), shape in zip(self._places[name], self.shapes[name])
        ]

    def with_group(self, name: str, arrays: Sequence[np.ndarray], variables: dict[int, np.ndarray]) -> dict:
        """The new values of the variables that hold a group, by index.

        :param arrays: the group's new values
        :param variables: the present values of the variables, at least of the ones that also hold other arrays
        """
        changed: dict[int, np.ndarray] = {}
        for array, (index, part) in zip(arrays, self._places[name]):
            if part is None:
                changed[index] = array
            else:
                # a copy: the present value may be memory of the framework, which must not be written to
                changed.setdefault(index, np.array(variables[index]))[part] = np.ravel(array)
        return changed

    def variables_of(self, names: Sequence[str]) -> list[int]:
        """The variables that hold these groups."""
        return sorted({index for name in names for index, _ in self._places[name]})


def initial_groups(function: NetworkFunction, has_target: bool) -> dict[str, list[np.ndarray]]:
    """The initial state of a network: its groups of arrays by name.

    :param function: the network, for example a ``KerasNetwork``
    :param has_target: add a target network, equal to the online network at first
    """
    weights, buffers = function.initial_weights(), function.initial_buffers()
    slots = [np.zeros_like(w) for _ in range(Optimizer(function.parameters).num_slots) for w in weights]
    groups = {"weights": weights, "buffers": buffers, "slots": slots}
    # the same arrays for both: each framework copies them into its own memory
    return groups | {"target_weights": weights, "target_buffers": buffers} if has_target else groups


class NetworkState:
    """The state of a network as groups of arrays: weights, buffers, optimizer slots and, with a target network, the
    target's weights and buffers.

    A framework's subclass holds the arrays, returns a group (``arrays``), replaces a group (``_replace``) and moves the
    target (``update_target``).

    :param function: the network, for example a ``KerasNetwork``
    :param groups: its ``initial_groups``
    :ivar updates: number of updates of the weights so far, by all learners; the optimizer's schedules and bias
        corrections depend on it
    :ivar version: changes with each change of a value
    :ivar keeps_for_acting: the network predicts with a copy of its values during an update, so that acting does not
        wait
    :ivar kept: the copy from before the last update; None without a copy, or if values have been replaced since
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
        """True if the network looks at images."""
        return any(len(shape) == CONVOLUTION_RANK for shape, _ in self._forms["weights"])

    def arrays(self, *groups: str) -> list[np.ndarray]:
        """The values of some groups, such as ``'target_weights'``, one group after the other. Do not change the arrays.

        :raises TrainingError: if an update that computes these values failed
        """
        raise NotImplementedError(f"{type(self).__name__} does not read arrays")

    def set_arrays(self, group: str, values: Sequence[np.ndarray]) -> None:
        """Replace the values of one group.

        :raises ValueError: if the number of arrays or a shape does not fit
        """
        # first, because an update that still runs would overwrite the new values
        self.finish()
        forms = self._forms[group]
        if len(values) != len(forms):
            raise ValueError(f"'{group}' has {len(forms)} arrays, got {len(values)}")
        for (shape, _), value in zip(forms, values):
            if shape != np.shape(value):
                raise ValueError(f"an array of '{group}' has shape {shape}, got {np.shape(value)}")
        self._replace(group, [np.asarray(value, dtype) for (_, dtype), value in zip(forms, values)])
        self.version += 1
        self.kept = None

    def update_target(self, rate: float) -> None:
        """Move the target's weights towards the online ones; a rate of 1 copies them."""
        raise NotImplementedError(f"{type(self).__name__} moves no target")

    def keep(self, groups: Mapping[str, Sequence[np.ndarray]]) -> None:
        """Predict with these values, which are copied, until the next update begins."""
        # the version before the update: a predictor with this version has these weights already
        self.kept = Kept(self.version, {group: [np.array(array) for array in groups[group]] for group in groups})
        self.version += 1

    def is_changed_by(self, check: Callable[[], Any]) -> None:
        """Updates have been made or are under way. :param check: waits for them and raises if they failed"""
        self.version += 1
        check()

    def finish(self) -> None:
        """Wait for updates under way, and raise if they failed."""

    def _replace(self, group: str, arrays: list[np.ndarray]) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not replace arrays")


class CompiledNetworkState(NetworkState):
    """The state for compiled steps. It has few variables, and updates may still be in progress when their call returns.

    A framework's subclass defines how variables are created, read, written and compiled (``_hold``, ``_read``,
    ``_write`` and ``_compile``).

    :cvar ops: the framework's array operations, with the names of ``keras.ops``
    :ivar published: by index, values of variables that the last step returned with its results, if this is faster than
        reading the variables
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
        # one compiled function for each rate, because the rate is a constant of its trace
        if rate not in self._target_updates:

            def with_updated_target(variables: Sequence) -> list:
                groups = self.layout.unpack(self.ops, variables)
                return self.layout.pack(self.ops, TrainingStep.update_targets({"": groups}, {"": rate})[""])

            self._target_updates[rate] = self._compile(with_updated_target)
        self._target_updates[rate]()
        self.version += 1

    def is_changed_by(self, check: Callable[[], Any]) -> None:
        """Updates are under way. :param check: waits for them and raises if they failed; called before anyone reads"""
        self._pending = check
        self.version += 1

    def finish(self) -> None:
        if self._pending is not None:
            # first, so that a failure raises once: later reads must work, because the failed run is saved
            check, self._pending = self._pending, None
            check()

    def _replace(self, group: str, arrays: list[np.ndarray]) -> None:
        # the vector of small arrays is the only variable that also holds other groups
        shared = {index: self._read(index) for index in self._variables_of[group] if index == 0}
        for index, value in self.layout.with_group(group, arrays, shared).items():
            self._write(index, value)

    def _hold(self, array: np.ndarray) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not hold variables")

    def _read(self, index: int) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} does not read variables")

    def _write(self, index: int, value: np.ndarray) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not write variables")

    def _compile(self, change: Callable[[Sequence], list]) -> Callable[[], None]:
        """A function that replaces the variables' values by the result of ``change``."""
        raise NotImplementedError(f"{type(self).__name__} does not compile")
