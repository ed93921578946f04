"""Initial weights, drawn with NumPy so that one seed gives the same network on every framework."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np


class Initializer:
    """The initial values of one kind of weights; Keras calls it with a shape.

    :param rng: where the numbers come from
    """

    def __init__(self, rng: np.random.Generator):
        self.rng = rng

    def values(self, shape: Sequence[int]) -> np.ndarray:
        """The initial values, float64."""
        raise NotImplementedError

    def __call__(self, shape: Sequence[int], dtype: Any = "float32", **kwargs: Any) -> np.ndarray:
        return self.values(tuple(shape)).astype("float32" if dtype is None else dtype)


class GlorotUniform(Initializer):
    """Uniform within sqrt(6 / (fan in + fan out)) (Glorot & Bengio 2010, equation 16)."""

    def values(self, shape: Sequence[int]) -> np.ndarray:
        receptive_field = int(np.prod(shape[:-2]))
        limit = np.sqrt(6.0 / (receptive_field * (shape[-2] + shape[-1])))
        return self.rng.uniform(-limit, limit, shape)


class NormalizedColumns(Initializer):
    """Random columns of one Euclidean norm, so that all outputs start alike.

    :param norm: the norm of each column; a small one keeps a policy near uniform at first
    """

    def __init__(self, rng: np.random.Generator, norm: float = 1.0):
        super().__init__(rng)
        self.norm = norm

    def values(self, shape: Sequence[int]) -> np.ndarray:
        columns = self.rng.standard_normal(shape)
        return columns * self.norm / np.sqrt(np.square(columns).sum(axis=0, keepdims=True))


class UniformFanIn(Initializer):
    """Uniform within 1 / sqrt(fan in), as NoisyNet starts its means (Fortunato et al. 2018, section 3.2).

    :param fan_in: how many inputs the layer has
    """

    def __init__(self, rng: np.random.Generator, fan_in: int):
        super().__init__(rng)
        self.fan_in = fan_in

    def values(self, shape: Sequence[int]) -> np.ndarray:
        limit = 1.0 / np.sqrt(self.fan_in)
        return self.rng.uniform(-limit, limit, shape)


class Constant(Initializer):
    """One number everywhere."""

    def __init__(self, value: float):
        self.value = value

    def values(self, shape: Sequence[int]) -> np.ndarray:
        return np.full(shape, self.value)


def output_bias(initializer: Any) -> Any:
    """What a head's ``output_bias_initializer`` means: None zeros, a number that number, else the initializer."""
    if initializer is None:
        return Constant(0.0)
    return Constant(float(initializer)) if isinstance(initializer, (int, float)) else initializer
