"""Arrays that share one vector, because each operation costs as much as adding thousands of numbers."""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import Any, Iterator, Sequence

import numpy as np

Shapes = tuple[tuple[int, ...], ...]


class Pieces(Sequence):
    """Consecutive pieces of vectors, as arrays on the same memory.

    :param ops: the framework's array operations
    :param vectors: its arrays of one dimension, each cut in the same way
    :param shapes: the shapes of one vector's pieces, whose sizes add up to its length
    """

    def __init__(self, ops: Any, vectors: Sequence[Any], shapes: Shapes):
        self.ops = ops
        self.vectors = list(vectors)
        self.shapes = shapes

    @classmethod
    def of(cls, ops: Any, arrays: Sequence[np.ndarray], shapes: Shapes) -> Pieces:
        """New vectors with the values of arrays on the host, as many as the shapes go into them."""
        values = np.concatenate([np.zeros(0, np.float32), *(array.ravel() for array in arrays)])
        parts = np.split(values, len(arrays) // len(shapes)) if len(values) else []
        return cls(ops, [ops.convert_to_tensor(part) for part in parts], shapes)

    def with_vectors(self, vectors: Sequence[Any]) -> Pieces:
        """Other vectors, cut in the same way."""
        return Pieces(self.ops, vectors, self.shapes)

    def replaced(self, arrays: Sequence[Any]) -> Pieces:
        """New values of the pieces, in new vectors."""
        flat, size = [self.ops.reshape(array, (-1,)) for array in arrays], len(self.shapes)
        return self.with_vectors([self.ops.concatenate(flat[i : i + size]) for i in range(0, len(flat), size)])

    @property
    def vector(self) -> Any:
        """The only vector."""
        (vector,) = self.vectors
        return vector

    @cached_property
    def arrays(self) -> list[Any]:
        """The pieces; those of one ``Pieces`` are always the same objects."""
        places = self._places()
        return [self.ops.piece(v, start, stop, shape) for v in self.vectors for start, stop, shape in places]

    def numpy(self) -> list[np.ndarray]:
        """Copies of the pieces on the host."""
        places = self._places()
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
