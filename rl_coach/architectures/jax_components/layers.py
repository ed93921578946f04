"""Keras layers that compute differently in a compiled loop on JAX, because this is faster."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator, Sequence

import jax
import keras
from keras import ops

from rl_coach.architectures.keras_components.layers import DoubledConvolution, KerasLayers
from rl_coach.architectures.keras_components.network import KerasNetwork

_IS_IN_LOOP = ContextVar("_IS_IN_LOOP", default=False)


@contextmanager
def inside_loop() -> Iterator[None]:
    """A context in which JAX traces networks as part of a loop that XLA compiles. Layers then use forms that are fast
    in such a loop.

    JAX stores the trace of a function. A function that was traced outside this context keeps that trace inside.
    """
    token = _IS_IN_LOOP.set(True)
    try:
        yield
    finally:
        _IS_IN_LOOP.reset(token)


_LEAST_ROWS = 512  # with fewer rows, the transposition takes as much time as it saves


class LoopedDense(keras.layers.Dense):
    """A dense layer. In a compiled loop on a CPU, it transposes large batches before it computes the gradient of its
    kernel.

    This gradient is a product over the rows of both factors. XLA does not use its fast matrix product for CPUs there.
    With 2,048 rows and 64 x 64 units, a gradient takes 1.1 ms without the transposition and 0.6 ms with it (one core
    with AVX-512).
    """

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Compute [B, units] from [B, inputs]."""
        rows = inputs.shape[0]  # while a network is exported, the number of rows is not an int
        is_large = len(inputs.shape) == 2 and isinstance(rows, int) and rows >= _LEAST_ROWS
        if not (is_large and _IS_IN_LOOP.get() and jax.default_backend() == "cpu"):
            return super().call(inputs, training=training)
        outputs = _product(inputs, ops.convert_to_tensor(self.kernel)) + ops.convert_to_tensor(self.bias)
        return self.activation(outputs)


@jax.custom_vjp
def _product(rows: Any, kernel: Any) -> Any:
    return rows @ kernel


def _product_and_factors(rows: Any, kernel: Any) -> tuple[Any, tuple[Any, Any]]:
    return rows @ kernel, (rows, kernel)


def _gradients_of_factors(factors: tuple[Any, Any], gradient: Any) -> tuple[Any, Any]:
    rows, kernel = factors
    # without the barrier, XLA would merge the transposition into the product again
    return gradient @ kernel.T, jax.lax.optimization_barrier(rows.T) @ gradient


_product.defvjp(_product_and_factors, _gradients_of_factors)


class LoopedConvolution(keras.layers.Conv2D):
    """A convolution. In a compiled loop on a CPU, it is computed as a sum of matrix products.

    Inside a loop, XLA does not use its fast convolutions for CPUs. The gradient of DQN's Nature network with 256 rows
    then takes 7.2 s with convolutions and 0.14 s with products, on two cores with AVX-512. Outside a loop, convolutions
    are faster: an update of DQN with 32 rows takes 39 ms, and 44 ms with products.
    """

    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        """Convolve [B, height, width, channels] without padding. The result is [B, rows, columns, filters].

        :param kernel: [height, width, channels, filters]
        """
        if not _IS_IN_LOOP.get() or jax.default_backend() != "cpu":
            return super().convolution_op(inputs, kernel)
        strides = self.strides
        sizes = [(n - size) // stride + 1 for n, size, stride in zip(inputs.shape[1:3], kernel.shape, strides)]
        # strides x strides pixels become the channels of a cell; each cell that the kernel covers needs one product
        spans = [-(-size // stride) for size, stride in zip(kernel.shape, strides)]
        cells = _cells(inputs, [n + span - 1 for n, span in zip(sizes, spans)], strides)
        kernels = _cells(ops.transpose(kernel, (3, 0, 1, 2)), spans, strides)
        rows, columns = sizes
        return sum(
            ops.matmul(cells[:, i : i + rows, j : j + columns], ops.transpose(kernels[:, i, j]))
            for i in range(spans[0])
            for j in range(spans[1])
        )


class LoopedDoubledConvolution(DoubledConvolution, LoopedConvolution):
    """A convolution of a doubled image; see its base classes."""


def _cells(pixels: Any, counts: Sequence[int], size: Sequence[int]) -> Any:
    """Reshape [N, height, width, channels] to [N, *counts, size[0] * size[1] * channels]. Pixels that do not fit are
    cut off; missing pixels are zeros.
    """
    lengths = [count * length for count, length in zip(counts, size)]
    pixels = pixels[:, : lengths[0], : lengths[1]]
    missing = [(0, full - there) for full, there in zip(lengths, pixels.shape[1:3])]
    pixels = ops.pad(pixels, [(0, 0), *missing, (0, 0)])
    cut = ops.reshape(pixels, (-1, counts[0], size[0], counts[1], size[1], pixels.shape[-1]))
    return ops.reshape(ops.transpose(cut, (0, 1, 3, 2, 4, 5)), (-1, *counts, size[0] * size[1] * pixels.shape[-1]))


class JaxLayers(KerasLayers):
    """The layers of a network on JAX; see ``KerasLayers``."""

    dense_class = LoopedDense
    convolution_class = LoopedConvolution
    doubled_convolution_class = LoopedDoubledConvolution


class JaxNetwork(KerasNetwork):
    """A Keras network on JAX; see ``KerasNetwork``."""

    layers_class = JaxLayers
