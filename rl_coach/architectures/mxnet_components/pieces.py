"""Arrays that share one vector, because each operation on MXNet costs as much as adding thousands of numbers."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Iterator, Sequence

import numpy as np

Shapes = tuple[tuple[int, ...], ...]


class Pieces(Sequence):
    """Consecutive pieces of a vector, as arrays on the same memory.

    :param vector: an ``mx.np`` array of one dimension
    :param shapes: the arrays' shapes, whose sizes add up to the vector's
    """

    def __init__(self, vector: Any, shapes: Shapes):
        self.vector = vector
        self.shapes = shapes

    @cached_property
    def arrays(self) -> list[Any]:
        """The arrays; those of one ``Pieces`` are always the same objects."""
        arrays, start = [], 0
        for shape in self.shapes:
            stop = start + int(np.prod(shape))
            arrays.append(self.vector[start:stop].reshape_view(shape))
            start = stop
        return arrays

    def numpy(self) -> list[np.ndarray]:
        """Copies of the arrays on the host."""
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        parts = np.split(self.vector.asnumpy(), np.cumsum(sizes)[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes)]

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, index: Any) -> Any:
        return self.arrays[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.arrays)
