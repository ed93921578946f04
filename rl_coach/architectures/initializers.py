"""Initial weights, drawn with NumPy so that one seed gives the same network on every framework."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from rl_coach.utilities.requirements import Constrained, number
from rl_coach.utils import CoachError, choose_from


class Initializer:
    """Draws the initial values of a weight array with ``rng``. Keras calls the object with a shape."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng

    def values(self, shape: Sequence[int]) -> np.ndarray:
        """The initial values of an array of this shape, float64."""
        raise NotImplementedError

    def __call__(self, shape: Sequence[int], dtype: Any = "float32", **kwargs: Any) -> np.ndarray:
        return self.values(tuple(shape)).astype("float32" if dtype is None else dtype)


class GlorotUniform(Initializer):
    """Uniform between plus and minus sqrt(6 / (fan in + fan out)) (Glorot & Bengio 2010, equation 16)."""

    def values(self, shape: Sequence[int]) -> np.ndarray:
        receptive_field = int(np.prod(shape[:-2]))
        limit = np.sqrt(6.0 / (receptive_field * (shape[-2] + shape[-1])))
        return self.rng.uniform(-limit, limit, shape)


class NormalizedColumns(Initializer):
    """Random columns with the same Euclidean norm, so that all outputs start with the same scale.

    :param norm: the norm of each column; with a small norm, a policy is nearly uniform at first
    """

    def __init__(self, rng: np.random.Generator, norm: float = 1.0):
        super().__init__(rng)
        self.norm = norm

    def values(self, shape: Sequence[int]) -> np.ndarray:
        columns = self.rng.standard_normal(shape)
        return columns * self.norm / np.sqrt(np.square(columns).sum(axis=0, keepdims=True))


class UniformFanIn(Initializer):
    """Uniform between plus and minus 1 / sqrt(fan in), as for the means of NoisyNet layers (Fortunato et al. 2018,
    section 3.2).

    :param fan_in: number of inputs of each output; None reads it from the kernel's shape
    """

    def __init__(self, rng: np.random.Generator, fan_in: int | None = None):
        super().__init__(rng)
        self.fan_in = fan_in

    def values(self, shape: Sequence[int]) -> np.ndarray:
        limit = 1.0 / np.sqrt(self.fan_in or int(np.prod(shape[:-1])))
        return self.rng.uniform(-limit, limit, shape)


class Constant(Initializer):
    """The same number for all weights, or given numbers."""

    def __init__(self, value: float | np.ndarray):
        self.value = value

    def values(self, shape: Sequence[int]) -> np.ndarray:
        return np.full(shape, self.value)


class Orthonormal(Initializer):
    """Orthogonal rows or columns, whichever are fewer, times a gain (Saxe et al. 2014).

    :param gain: the norm of each row or column
    """

    def __init__(self, rng: np.random.Generator, gain: float):
        super().__init__(rng)
        self.gain = gain

    def values(self, shape: Sequence[int]) -> np.ndarray:
        rows, columns = int(np.prod(shape[:-1])), shape[-1]
        # not fewer rows than columns, because QR makes orthonormal columns
        normal = self.rng.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(normal)
        q = q * np.sign(np.diag(r))  # with these signs, all orthogonal matrices are equally likely
        return self.gain * (q if rows >= columns else q.T).reshape(shape)


class FanInNormal(Initializer):
    """A normal distribution cut off at two standard deviations, with the variance scale^2 / inputs.

    :param scale: factor of the standard deviation; with 0, all weights are 0
    """

    def __init__(self, rng: np.random.Generator, scale: float = 1.0):
        super().__init__(rng)
        self.scale = scale

    def values(self, shape: Sequence[int]) -> np.ndarray:
        # each of several blocks has separate inputs; each pixel of a convolution's kernel is an input
        inputs = shape[-2] * (int(np.prod(shape[:-2])) if len(shape) == 4 else 1)
        drawn = self.rng.standard_normal(shape)
        while (outside := np.abs(drawn) > 2).any():
            drawn[outside] = self.rng.standard_normal(int(outside.sum()))
        # 0.87962566: the standard deviation of a standard normal distribution cut off at 2
        return drawn * self.scale / 0.87962566 / np.sqrt(inputs)


class UnitColumns(Orthonormal):
    """Columns of norm 1, one for each output. If the number of columns is at most the number of rows, the columns are
    orthogonal. Otherwise the rows are made orthogonal first, and then the columns are divided by their norms.
    """

    def __init__(self, rng: np.random.Generator):
        super().__init__(rng, 1.0)

    def values(self, shape: Sequence[int]) -> np.ndarray:
        columns = super().values(shape)
        return columns / np.linalg.norm(columns, axis=0, keepdims=True)


class InitialWeights(Constrained):
    """Initial weights of a network or of one of its parts: kernels and biases."""

    def kernel(self, rng: np.random.Generator) -> Initializer:
        """The initializer of a kernel [..., inputs, outputs]."""
        raise NotImplementedError

    def bias(self, rng: np.random.Generator, fan_in: int) -> Initializer:
        """The initializer of a bias [outputs]. :param fan_in: number of inputs that each output is computed from"""
        return Constant(0.0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


class Xavier(InitialWeights):
    """Glorot-uniform kernels and zero biases. This is Coach's default."""

    def kernel(self, rng: np.random.Generator) -> Initializer:
        return GlorotUniform(rng)


class KaimingUniform(InitialWeights):
    """Kernels and biases uniform between plus and minus 1 / sqrt(fan in), as in PyTorch's ``Linear`` and ``Conv2d``.

    This is the result of PyTorch's ``kaiming_uniform_(a=sqrt(5))`` (the idea is equation 10 of He et al. 2015).
    """

    def kernel(self, rng: np.random.Generator) -> Initializer:
        return UniformFanIn(rng)

    def bias(self, rng: np.random.Generator, fan_in: int) -> Initializer:
        return UniformFanIn(rng, fan_in)


class Orthogonal(InitialWeights):
    """Orthogonal kernels and zero biases.

    :param gain: factor of the weights, above 0; 1 preserves the length of vectors. The square root of 2 is usual before
        a relu. 0.01 is usual for the output of a policy: the policy is then nearly uniform at first
    """

    constraints = {"gain": number(above=0)}

    def __init__(self, gain: float = 2**0.5):
        self.gain = gain

    def kernel(self, rng: np.random.Generator) -> Initializer:
        return Orthonormal(rng, self.gain)


class TruncatedNormal(InitialWeights):
    """Kernels from a truncated normal distribution with the variance 1 / inputs, and zero biases."""

    def kernel(self, rng: np.random.Generator) -> Initializer:
        return FanInNormal(rng)


INITIAL_WEIGHTS: dict[str, type[InitialWeights]] = {
    "xavier": Xavier,
    "kaiming_uniform": KaimingUniform,
    "orthogonal": Orthogonal,
    "truncated_normal": TruncatedNormal,
}


def initial_weights(wanted: str | InitialWeights) -> InitialWeights:
    """The scheme of initial weights with the name ``wanted``; a scheme is returned unchanged.

    :raises CoachError: if the name is unknown
    """
    if isinstance(wanted, InitialWeights):
        return wanted
    if not isinstance(wanted, str) or wanted not in INITIAL_WEIGHTS:
        suggestion = choose_from(str(wanted), INITIAL_WEIGHTS)
        raise CoachError(f"initial_weights: there is no scheme '{wanted}'{suggestion}")
    return INITIAL_WEIGHTS[wanted]()


def output_bias(initializer: Any) -> Any:
    """The initializer for a head's ``output_bias_initializer``: ``Constant`` for a number, otherwise the argument."""
    return Constant(float(initializer)) if isinstance(initializer, (int, float)) else initializer
