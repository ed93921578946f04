"""Arrays that share one vector, because each operation on MXNet costs as much as adding thousands of numbers."""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import Any, Iterator, Sequence

import numpy as np

from rl_coach.architectures.mxnet_components import ops

Shapes = tuple[tuple[int, ...], ...]


class Pieces(Sequence):
    """Consecutive pieces of vectors, as arrays on the same memory.

    :param vectors: ``mx.np`` arrays of one dimension, each cut in the same way
    :param shapes: the shapes of one vector's pieces, whose sizes add up to its length
    """

    def __init__(self, vectors: Sequence[Any], shapes: Shapes):
        self.vectors = list(vectors)
        self.shapes = shapes

    @classmethod
    def of(cls, arrays: Sequence[np.ndarray], shapes: Shapes) -> Pieces:
        """New vectors with the values of arrays on the host, as many as the shapes go into them."""
        values = np.concatenate([np.zeros(0, np.float32), *(array.ravel() for array in arrays)])
        parts = np.split(values, len(arrays) // len(shapes)) if len(values) else []
        return cls([ops.convert_to_tensor(part) for part in parts], shapes)

    @property
    def vector(self) -> Any:
        """The only vector."""
        (vector,) = self.vectors
        return vector

    @cached_property
    def arrays(self) -> list[Any]:
        """The pieces; those of one ``Pieces`` are always the same objects."""
        places = self._places()
        return [v._slice(start, stop).reshape_view(shape) for v in self.vectors for start, stop, shape in places]

    def numpy(self) -> list[np.ndarray]:
        """Copies of the pieces on the host."""
        places = self._places()
        values = [vector.asnumpy() for vector in self.vectors]
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
