"""The state of a network as vectors: one for all weights, and one for each slot of the optimizer (such as momentum)."""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import Any, Iterator, Sequence

import numpy as np

from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.network_state import NetworkState, initial_groups

BUFFERS = ("buffers", "target_buffers")
Shapes = tuple[tuple[int, ...], ...]


class Pieces(Sequence):
    """Vectors that are cut into arrays: each array is a view of consecutive elements of a vector.

    The optimizer works on whole vectors, because one call of an operation costs as much as thousands of additions.

    :param ops: the framework's array operations
    :param vectors: arrays of one dimension, each cut in the same way
    :param shapes: the shapes of the arrays of one vector; the sum of their sizes is the length of the vector
    """

    def __init__(self, ops: Any, vectors: Sequence[Any], shapes: Shapes):
        self.ops = ops
        self.vectors = list(vectors)
        self.shapes = shapes

    @classmethod
    def of(cls, ops: Any, arrays: Sequence[np.ndarray], shapes: Shapes) -> Pieces:
        """Make vectors from NumPy arrays."""
        # the empty array is for networks without weights: NumPy concatenates no empty list
        values = np.concatenate([np.zeros(0, np.float32), *(array.ravel() for array in arrays)])
        parts = np.split(values, len(arrays) // len(shapes)) if len(values) else []
        return cls(ops, [ops.convert_to_tensor(part) for part in parts], shapes)

    def with_vectors(self, vectors: Sequence[Any]) -> Pieces:
        """Return the given vectors, cut in the same way."""
        return Pieces(self.ops, vectors, self.shapes)

    def replaced(self, arrays: Sequence[Any]) -> Pieces:
        """Return new vectors with the values of the given arrays, cut in the same way."""
        flat, size = [self.ops.reshape(array, (-1,)) for array in arrays], len(self.shapes)
        return self.with_vectors([self.ops.concatenate(flat[i : i + size]) for i in range(0, len(flat), size)])

    @property
    def vector(self) -> Any:
        """The vector, where there is only one."""
        (vector,) = self.vectors
        return vector

    @cached_property
    def arrays(self) -> list[Any]:
        """The arrays; each access returns the same objects."""
        places = self._places()
        # cached: MXNet's autograd marks these objects, and the forward pass must use the marked ones
        return [self.ops.piece(v, start, stop, shape) for v in self.vectors for start, stop, shape in places]

    def numpy(self) -> list[np.ndarray]:
        """Copies of the arrays as NumPy arrays."""
        places = self._places()
        # copied, because PyTorch's updates write to this memory
        values = [np.array(self.ops.convert_to_numpy(vector)) for vector in self.vectors]
        return [value[start:stop].reshape(shape) for value in values for start, stop, shape in places]

    def _places(self) -> list[tuple[int, int, tuple[int, ...]]]:
        stops = list(itertools.accumulate(map(math.prod, self.shapes)))
        return list(zip([0, *stops], stops, self.shapes))

    def __len__(self) -> int:
        return len(self.vectors) * len(self.shapes)

    def __getitem__(self, index: Any) -> Any:
        return self.arrays[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.arrays)


class ArrayNetworkState(NetworkState):
    """Weights and buffers of a network on MXNet or PyTorch; see ``NetworkState``. An update is complete when its call
    returns.

    :cvar ops: the framework's array operations; see ``ArrayNetwork``
    :ivar variables: arrays by group
    """

    ops: Any

    def __init__(self, function: NetworkFunction, has_target: bool):
        groups = initial_groups(function, has_target)
        super().__init__(function, groups)
        self.variables: dict[str, Any] = {name: self._held(name, group) for name, group in groups.items()}

    def arrays(self, *groups: str) -> list[np.ndarray]:
        return [array for group in groups for array in self._group(group)]

    def _group(self, group: str) -> list[np.ndarray]:
        held = self.variables[group]
        if isinstance(held, Pieces):
            return held.numpy()
        values = zip(held, self._forms[group])
        return [np.array(self.ops.convert_to_numpy(value), dtype) for value, (_, dtype) in values]

    def update_target(self, rate: float) -> None:
        self.variables = with_updated_target(self.variables, rate)
        self.version += 1

    def _replace(self, group: str, arrays: list[np.ndarray]) -> None:
        self.variables[group] = self._held(group, arrays)

    def _held(self, group: str, arrays: Sequence[np.ndarray]) -> Any:
        # separate arrays, because a pass replaces single buffers, and some buffers are not floats
        if group in BUFFERS:
            return [self.ops.buffer(np.array(array)) for array in arrays]
        return Pieces.of(self.ops, arrays, tuple(shape for shape, _ in self._forms["weights"]))


def with_updated_target(groups: dict[str, Any], rate: float) -> dict[str, Any]:
    """The groups after an update of the target: old target weights + rate * (online weights - old target weights)."""
    online, target = groups["weights"], groups["target_weights"]
    pairs = zip(online.vectors, target.vectors)
    # shared, not copied: an update makes new vectors and does not write to the old vectors
    vectors = online.vectors if rate == 1 else [old + rate * (new - old) for new, old in pairs]
    return {**groups, "target_weights": target.with_vectors(vectors), "target_buffers": groups["buffers"]}
