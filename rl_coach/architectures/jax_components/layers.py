"""Keras layers that compute their results in another way on JAX, because this is faster on a CPU."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Callable, Iterator, Sequence

import jax
import keras
import numpy as np
from keras import ops

from rl_coach.architectures.initializers import Constant
from rl_coach.architectures.keras_components.layers import DenseBlocks, DoubledConvolution, KerasLayers
from rl_coach.architectures.keras_components.network import KerasNetwork
from rl_coach.architectures.layers import RMS_EPSILON, with_zeros

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


class TransposingDense(keras.layers.Dense):
    """A dense layer. On a CPU, it transposes a large factor before it computes the gradient of its kernel.

    This gradient is a product over the rows of both factors. XLA does not use its fast matrix product for CPUs there.
    With 1,040 rows, 640 inputs and 64 units, a gradient takes 1.2 ms without the transposition and 0.9 ms with it. In a
    compiled loop with 2,048 rows and 64 x 64 units, it takes 1.1 ms and 0.6 ms (one core with AVX-512). Outside a loop,
    the transposition saves no time if there are more units than inputs.
    """

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Compute [B, units] from [B, inputs]."""
        rows = inputs.shape[0]  # while a network is exported, the number of rows is not an int
        is_large = len(inputs.shape) == 2 and isinstance(rows, int) and rows >= _LEAST_ROWS
        saves_time = is_large and (inputs.shape[1] > self.units or _IS_IN_LOOP.get())
        if not (saves_time and jax.default_backend() == "cpu"):
            return super().call(inputs, training=training)
        # converted, because JAX's custom derivatives accept arrays only, and Keras' weights are objects
        outputs = _product(inputs, ops.convert_to_tensor(self.kernel)) + ops.convert_to_tensor(self.bias)
        return self.activation(outputs)


@jax.custom_vjp
def _product(rows: Any, kernel: Any) -> Any:
    return rows @ kernel


def _product_and_factors(rows: Any, kernel: Any) -> tuple[Any, tuple[Any, Any]]:
    return rows @ kernel, (rows, kernel)


def _gradients_of_factors(factors: tuple[Any, Any], gradient: Any) -> tuple[Any, Any]:
    rows, kernel = factors
    # without the barriers, XLA would merge the transpositions into the product again
    if kernel.shape[0] > kernel.shape[1]:
        of_kernel = jax.lax.optimization_barrier(jax.lax.optimization_barrier(gradient.T) @ rows).T
    else:
        of_kernel = jax.lax.optimization_barrier(rows.T) @ gradient
    return gradient @ kernel.T, of_kernel


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


_CELLS_AT_ONCE = 512  # with up to 32 channels, cells and their neighbours fit into the cache of a core


def _convolved(images: Any, kernel: Any, finished: Callable[[Any], Any]) -> Any:
    """Convolve [B, height, width, channels] without padding. A few images are computed at once, each with one matrix
    product, so that the factors stay in the cache.

    :param kernel: [size, size, channels, filters]
    :param finished: computes the result from [N, rows, columns, filters], for a few images at once
    """
    span, _, channels, filters = kernel.shape
    rows, columns = (length - span + 1 for length in images.shape[1:3])
    largest = max(1, _CELLS_AT_ONCE // (rows * columns))
    # a divisor of the number of images, because JAX's map needs parts of equal size
    at_once = max(n for n in range(1, len(images) + 1) if len(images) % n == 0 and n <= largest)

    def one_part(some: Any) -> Any:
        near = [some[:, i : i + rows, j : j + columns] for i in range(span) for j in range(span)]
        factors = ops.reshape(ops.concatenate(near, axis=-1), (-1, span * span * channels))
        products = factors @ ops.reshape(kernel, (span * span * channels, filters))
        return finished(ops.reshape(products, (-1, rows, columns, filters)))

    parts = ops.reshape(images, (-1, at_once, *images.shape[1:]))
    # the gradient computes the factors again: to keep them takes more time than to compute them
    found = jax.lax.map(jax.checkpoint(one_part), parts)
    return ops.reshape(found, (-1, *found.shape[2:]))


def _has_many(images: Any) -> bool:
    """True if ``_convolved`` is faster than a convolution: on a CPU, for more than one image."""
    # while a network is exported, the number of images is not an int
    return isinstance(images.shape[0], int) and images.shape[0] > 1 and jax.default_backend() == "cpu"


class CachedDoubledConvolution(DoubledConvolution, LoopedConvolution):
    """A convolution of a doubled image; see its base classes and ``_convolved``."""

    def of_small(self, images: Any, kernel: Any) -> Any:
        if not _has_many(images):
            return super().of_small(images, kernel)
        return _convolved(images, kernel, lambda outputs: outputs)


class PooledConvolution(LoopedConvolution):
    """A convolution with zeros around the image, and then the maximum of each square of four pixels; see
    ``Layers.pooled_convolution``.

    Four pixels with C channels are one cell with 4 C channels. A convolution of cells computes the four outputs of each
    cell. For 272 images of 64 x 64 pixels and 8 filters, value and gradient of the kernel take 140 ms, and 535 ms with
    a convolution of pixels (one core with AVX-512).
    """

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        rows, height, width, _ = input_shape
        return rows, height // 2, width // 2, self.filters

    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        """Convolve [B, height, width, channels] to [B, height / 2, width / 2, filters].

        :param kernel: [size, size, channels, filters]
        """
        height, width = (length // 2 for length in inputs.shape[1:3])
        padded, radius = inputs, kernel.shape[0] // 2
        for axis in (1, 2):
            padded = with_zeros(ops, padded, axis, radius, radius)
        if not _has_many(inputs):
            outputs = super().convolution_op(padded, kernel)
            return ops.max(ops.reshape(outputs, (-1, height, 2, width, 2, self.filters)), axis=(2, 4))
        folded = _for_cells(kernel)
        cells = _cells(padded, (height + len(folded) - 1, width + len(folded) - 1), (2, 2))
        return _convolved(cells, folded, lambda four: ops.max(ops.reshape(four, (*four.shape[:3], 4, -1)), axis=3))


def _for_cells(kernel: Any) -> Any:
    """The kernel of a convolution for cells of four pixels, [span, span, 4 * channels, 4 * filters].

    :param kernel: [size, size, channels, filters] for pixels; the size is odd
    """
    size, _, channels, filters = kernel.shape
    span = (size + 1) // 2
    places = np.zeros((size, span, 2, 2), np.float32)  # weight, cell, pixel of the cell, output of the cell
    for weight, output in np.ndindex(size, 2):
        places[(weight, *divmod(weight + output, 2), output)] = 1.0
    folded = ops.einsum("ijcf,iapo,jbqr->abpqcorf", kernel, places, places)
    return ops.reshape(folded, (span, span, 4 * channels, 4 * filters))


class SplitDenseBlocks(DenseBlocks):
    """Dense layers for blocks. On a CPU, each block has a separate product: XLA transposes the factors of one product
    for all blocks, which takes longer than the product. For 1,040 rows and 8 blocks of 64 x 192, a step of a loop
    takes 7.7 ms with one product and 5.1 ms with eight (one core with AVX-512).

    The derivative is written out, because JAX's own one adds zeros to the gradient of each block. In DreamerV3's update
    of 65 steps, this takes 6.2 ms, and 0.7 ms here.
    """

    def products(self, x: Any, kernel: Any, bias: Any) -> Any:
        if jax.default_backend() != "cpu":
            return super().products(x, kernel, bias)
        return _products(x, kernel, bias)


@jax.custom_vjp
def _products(x: Any, kernel: Any, bias: Any) -> Any:
    return ops.stack([x[:, block] @ kernel[block] + bias[block] for block in range(len(kernel))], axis=1)


def _products_and_factors(x: Any, kernel: Any, bias: Any) -> tuple[Any, tuple[Any, Any]]:
    return _products(x, kernel, bias), (x, kernel)


def _gradients_of_blocks(factors: tuple[Any, Any], gradient: Any) -> tuple[Any, Any, Any]:
    x, kernel = factors
    blocks = range(len(kernel))
    of_x = ops.stack([gradient[:, block] @ kernel[block].T for block in blocks], axis=1)
    of_kernel = ops.stack([x[:, block].T @ gradient[:, block] for block in blocks])
    return of_x, of_kernel, ops.sum(gradient, axis=0)


_products.defvjp(_products_and_factors, _gradients_of_blocks)


class RmsNormSilu(keras.layers.Layer):
    """The layer of ``Layers.rmsnorm_silu``, with a derivative that stores only the inputs. JAX's own derivative stores
    five arrays of their size. With 15,600 rows of a critic with three layers of 64 units, value and gradients take
    223 ms with JAX's derivative and 182 ms with this one (one core with AVX-512).
    """

    def build(self, input_shape: tuple) -> None:
        self.row = self.add_weight(input_shape[-1:], Constant(1.0), name="row")

    def call(self, x: Any) -> Any:
        return _rmsnorm_silu(x, ops.convert_to_tensor(self.row))


def _normalized(x: Any) -> tuple[Any, Any]:
    """``x`` divided by its root mean square over the last dimension, and the reciprocal of this root."""
    inverse = jax.lax.rsqrt(ops.mean(ops.square(x), axis=-1, keepdims=True) + RMS_EPSILON)
    return x * inverse, inverse


@jax.custom_vjp
def _rmsnorm_silu(x: Any, row: Any) -> Any:
    scaled = _normalized(x)[0] * row
    return scaled * ops.sigmoid(scaled)


def _rmsnorm_silu_and_inputs(x: Any, row: Any) -> tuple[Any, tuple[Any, Any]]:
    return _rmsnorm_silu(x, row), (x, row)


def _gradients_of_inputs(inputs: tuple[Any, Any], gradient: Any) -> tuple[Any, Any]:
    x, row = inputs
    normalized, inverse = _normalized(x)
    scaled = normalized * row
    share = ops.sigmoid(scaled)
    gradient = gradient * share * (1.0 + scaled * (1.0 - share))
    of_row = ops.sum(gradient * normalized, axis=tuple(range(x.ndim - 1)))
    gradient = gradient * row
    return inverse * (gradient - normalized * ops.mean(gradient * normalized, axis=-1, keepdims=True)), of_row


_rmsnorm_silu.defvjp(_rmsnorm_silu_and_inputs, _gradients_of_inputs)


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

    dense_class = TransposingDense
    convolution_class = LoopedConvolution
    doubled_convolution_class = CachedDoubledConvolution
    dense_blocks_class = SplitDenseBlocks

    def rmsnorm_silu(self, x: Any) -> Any:
        return self._applied(RmsNormSilu(), x)

    def pooled_convolution(self, x: Any, filters: int, size: int) -> Any:
        return self._convolution(PooledConvolution, x, filters, size, 1)


class JaxNetwork(KerasNetwork):
    """A Keras network on JAX; see ``KerasNetwork``."""

    layers_class = JaxLayers
