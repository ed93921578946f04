"""Array operations on ``mx.np`` arrays, with the names of ``keras.ops`` that update rules and networks use."""

from __future__ import annotations

from typing import Any

import numpy

from rl_coach.architectures.mxnet_components.compatible_mxnet import mxnet

_np, _npx = mxnet.np, mxnet.npx

abs, all, any, arange, arctan, argmax = _np.abs, _np.all, _np.any, _np.arange, _np.arctan, _np.argmax
argmin, broadcast_to, ceil, concatenate, cos = _np.argmin, _np.broadcast_to, _np.ceil, _np.concatenate, _np.cos
cumsum, equal, exp, expand_dims, expm1, eye = _np.cumsum, _np.equal, _np.exp, _np.expand_dims, _np.expm1, _np.eye
floor, isnan, log, log1p, log_softmax = _np.floor, _np.isnan, _np.log, _np.log1p, _npx.log_softmax
logical_not, max, maximum, mean, min, minimum = _np.logical_not, _np.max, _np.maximum, _np.mean, _np.min, _np.minimum
not_equal, ones, ones_like, outer, prod, relu = _np.not_equal, _np.ones, _np.ones_like, _np.outer, _np.prod, _npx.relu
repeat, reshape, round, sigmoid, sign, sin = _np.repeat, _np.reshape, _np.round, _npx.sigmoid, _np.sign, _np.sin
sort, softmax, split, sqrt, square, squeeze = _np.sort, _npx.softmax, _np.split, _np.sqrt, _np.square, _np.squeeze
stack, std, sum, swapaxes, take, tanh, tile = _np.stack, _np.std, _np.sum, _np.swapaxes, _np.take, _np.tanh, _np.tile
transpose, tril, var, where, zeros = _np.transpose, _np.tril, _np.var, _np.where, _np.zeros
zeros_like = _np.zeros_like

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def convert_to_tensor(x: Any, dtype: str | None = None) -> Any:
    """``x`` as an ``mx.np`` array of the same type, or of ``dtype``; unchanged if it already is one."""
    if not isinstance(x, _np.ndarray):
        x = numpy.asarray(x)
        x = _np.array(x, dtype=x.dtype)
    return x if dtype is None else cast(x, dtype)


def cast(x: Any, dtype: str) -> Any:
    """``x`` as ``dtype``; an array of that type is returned unchanged."""
    x = convert_to_tensor(x)
    return x if x.dtype == numpy.dtype(dtype) else x.astype(dtype)


def shape(x: Any) -> tuple[int, ...]:
    """The shape of ``x``."""
    return x.shape


def stop_gradient(x: Any) -> Any:
    """``x`` without a gradient. NumPy arrays are returned unchanged."""
    return x.detach() if isinstance(x, _np.ndarray) else x


def matmul(x: Any, y: Any) -> Any:
    """The matrix product of ``x`` and ``y``, or of each pair of matrices in two batches."""
    return _np.dot(x, y) if x.ndim == y.ndim == 2 else _np.matmul(x, y)


def clip(x: Any, x_min: Any, x_max: Any) -> Any:
    """``x`` limited to the range from ``x_min`` to ``x_max``, which may be arrays."""
    return _np.minimum(_np.maximum(x, x_min), x_max)


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: str = "float32") -> Any:
    """A new last axis of size ``num_classes``: 1 at the index ``x``, 0 elsewhere. An index outside gives only zeros."""
    if axis != -1:
        raise NotImplementedError("one_hot supports only a new last axis: use axis=-1")
    return _npx.one_hot(x, num_classes, dtype=dtype)


def take_along_axis(x: Any, indices: Any, axis: int = -1) -> Any:
    """The elements of ``x`` at ``indices`` along an axis, as NumPy's ``take_along_axis``. For an axis that is not the
    last axis, the indices may differ only along the first axis and ``axis``.
    """
    if axis in (-1, x.ndim - 1):
        return sum(x[..., None, :] * one_hot(indices, x.shape[-1]), axis=-1)
    rows, num_taken = _np.moveaxis(x, axis, 1), indices.shape[axis]
    chosen = one_hot(reshape(indices, (len(x), num_taken)), x.shape[axis])  # [B, taken, size]
    # a cast, because images have bytes
    taken = matmul(chosen, cast(reshape(rows, (len(x), x.shape[axis], -1)), "float32"))
    return _np.moveaxis(reshape(cast(taken, x.dtype), (len(x), num_taken, *rows.shape[2:])), 1, axis)


def logical_and(x: Any, y: Any) -> Any:
    """True where ``x`` and ``y`` are True."""
    return cast(x, "bool") * cast(y, "bool")


def logical_or(x: Any, y: Any) -> Any:
    """True where ``x`` or ``y`` is True."""
    return cast(x, "bool") + cast(y, "bool") > 0


def triu(x: Any, k: int = 0) -> Any:
    """The matrix ``x`` with zeros below its k-th diagonal."""
    return x - _np.tril(x, k - 1)


def logsumexp(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """log sum exp(x), computed without overflow."""
    # the shift cancels out, so it has no gradient
    largest = stop_gradient(_np.max(x, axis=axis, keepdims=True))
    total = _np.log(_np.sum(_np.exp(x - largest), axis=axis, keepdims=True)) + largest
    return total if keepdims else _np.squeeze(total, axis=axis)


def logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), computed without overflow."""
    return _np.maximum(x, y) + _np.log1p(_np.exp(-_np.abs(x - y)))


def softplus(x: Any) -> Any:
    """log(1 + exp(x))."""
    return _npx.activation(x, act_type="softrelu")


def log_sigmoid(x: Any) -> Any:
    """log(1 / (1 + exp(-x)))."""
    return -softplus(-x)


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    """``x`` where ``x`` is positive, else ``negative_slope`` * ``x``."""
    return _npx.leaky_relu(x, act_type="leaky", slope=negative_slope)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """``x`` where ``x`` is positive, else alpha * (exp(x) - 1)."""
    return _npx.leaky_relu(x, act_type="elu", slope=alpha)


def selu(x: Any) -> Any:
    """The self-normalising variant of ``elu`` (Klambauer et al. 2017)."""
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


def conv(inputs: Any, kernel: Any, strides: int) -> Any:
    """Convolve [B, height, width, channels] with a kernel [height, width, channels, filters], without padding."""
    size, filters = kernel.shape[:2], kernel.shape[3]
    # MXNet has the channels before height and width, the networks have them last
    x, k = _np.transpose(inputs, (0, 3, 1, 2)), _np.transpose(kernel, (3, 2, 0, 1))
    y = _npx.convolution(x, k, kernel=size, stride=(strides, strides), num_filter=filters, no_bias=True)
    return _np.transpose(y, (0, 2, 3, 1))


def convert_to_numpy(x: Any) -> numpy.ndarray:
    """``x`` as a NumPy array."""
    return x.asnumpy() if isinstance(x, _np.ndarray) else numpy.asarray(x)


def piece(vector: Any, start: int, stop: int, shape: tuple[int, ...]) -> Any:
    """vector[start:stop] with the given shape, as a view on the same memory."""
    return vector._slice(start, stop).reshape_view(shape)


def buffer(array: Any) -> Any:
    """An array that is not trained, as an MXNet array. States of random generators (not floats) stay NumPy arrays."""
    return array if array.dtype == numpy.uint32 else convert_to_tensor(array)


def dropout_mask(state: numpy.ndarray, shape: tuple[int, ...], rate: float) -> tuple[Any, numpy.ndarray]:
    """A mask for dropout (0 with the probability ``rate``, else 1 / (1 - rate)), and the generator's new state."""
    rng, after = _generator(state)
    return convert_to_tensor(((rng.random(shape) >= rate) / (1.0 - rate)).astype(numpy.float32)), after


def factorised_noise(state: numpy.ndarray, size: int) -> tuple[Any, numpy.ndarray]:
    """[size], the noise sign(x) sqrt(|x|) of standard normal x, and the generator's new state."""
    rng, after = _generator(state)
    sample = rng.standard_normal(size)
    return convert_to_tensor((numpy.sign(sample) * numpy.sqrt(numpy.abs(sample))).astype(numpy.float32)), after


def _generator(state: numpy.ndarray) -> tuple[numpy.random.Generator, numpy.ndarray]:
    seed, count = (int(number) for number in state)
    # a new generator from two numbers, so that a checkpoint of these numbers repeats the noise
    return numpy.random.default_rng([seed, count]), numpy.array([seed, count + 1], numpy.uint32)
