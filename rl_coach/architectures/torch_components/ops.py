"""Array operations on PyTorch tensors on the CPU, with the names of ``keras.ops`` that update rules and networks
use.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Sequence

import numpy
import torch
from torch.nn import functional

_DTYPES = {name: getattr(torch, name) for name in ("float32", "int32", "int64", "bool")}


def convert_to_tensor(x: Any, dtype: str | None = None) -> torch.Tensor:
    """``x`` as a tensor. Floats become float32, and Python's integers int32. A tensor is returned unchanged."""
    if isinstance(x, (bool, int, float)):
        kind = "bool" if isinstance(x, bool) else "int32" if isinstance(x, int) else "float32"
        x = torch.full((), x, dtype=_DTYPES[kind])
    elif not isinstance(x, torch.Tensor):
        array = numpy.asarray(x)
        x = torch.tensor(array, dtype=torch.float32 if array.dtype.kind == "f" else None)
    return x if dtype is None else cast(x, dtype)


def cast(x: Any, dtype: Any) -> torch.Tensor:
    """``x`` with the type ``dtype``, a name or a PyTorch type; unchanged if it has this type."""
    return convert_to_tensor(x).to(_DTYPES.get(dtype, dtype))


def convert_to_numpy(x: Any) -> numpy.ndarray:
    """``x`` as a NumPy array on the same memory."""
    return x.detach().numpy() if isinstance(x, torch.Tensor) else numpy.asarray(x)


# rules also pass Python's numbers, which PyTorch's functions refuse
def _of_one(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def converted(x: Any, *arguments: Any, **named: Any) -> Any:
        return function(convert_to_tensor(x), *arguments, **named)

    return converted


# Keras and MXNet have a default axis, and PyTorch has none
def _over_last(function: Callable[..., Any]) -> Callable[..., Any]:
    def converted(x: Any, axis: int = -1) -> Any:
        return function(convert_to_tensor(x), axis)

    return converted


def _of_two(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(function)
    def converted(x: Any, y: Any) -> Any:
        return function(convert_to_tensor(x), convert_to_tensor(y))

    return converted


# PyTorch accepts NumPy's `axis` and `keepdims` in place of `dim` and `keepdim`

abs, all, any, arctan = map(_of_one, (torch.abs, torch.all, torch.any, torch.arctan))
argmax, argmin, argsort = map(_of_one, (torch.argmax, torch.argmin, torch.argsort))
broadcast_to, ceil, cos = map(_of_one, (torch.broadcast_to, torch.ceil, torch.cos))
cumprod, cumsum = map(_of_one, (torch.cumprod, torch.cumsum))
elu, log_sigmoid, softplus = map(_of_one, (functional.elu, functional.logsigmoid, functional.softplus))
equal, not_equal, matmul, outer = map(_of_two, (torch.eq, torch.ne, torch.matmul, torch.outer))
exp, expand_dims, expm1, floor = map(_of_one, (torch.exp, torch.unsqueeze, torch.expm1, torch.floor))
eye, ones, zeros = torch.eye, torch.ones, torch.zeros
isnan, log, log1p, logical_not = map(_of_one, (torch.isnan, torch.log, torch.log1p, torch.logical_not))
# the slope of Keras; PyTorch has 0.01
leaky_relu = _of_one(functools.partial(functional.leaky_relu, negative_slope=0.2))
log_softmax, softmax = map(_over_last, (torch.log_softmax, torch.softmax))
logaddexp, logical_and, logical_or = map(_of_two, (torch.logaddexp, torch.logical_and, torch.logical_or))
max, min, mean, prod, sum = map(_of_one, (torch.amax, torch.amin, torch.mean, torch.prod, torch.sum))
maximum, minimum = map(_of_two, (torch.maximum, torch.minimum))
ones_like, zeros_like, relu, selu = map(_of_one, (torch.ones_like, torch.zeros_like, torch.relu, torch.selu))
repeat, reshape, round = map(_of_one, (torch.repeat_interleave, torch.reshape, torch.round))
sigmoid, sign, sin, sqrt = map(_of_one, (torch.sigmoid, torch.sign, torch.sin, torch.sqrt))
square, squeeze, stop_gradient = map(_of_one, (torch.square, torch.squeeze, torch.Tensor.detach))
std, var = (_of_one(functools.partial(one, correction=0)) for one in (torch.std, torch.var))  # as in NumPy
swapaxes, tanh, tile, tril, triu = map(_of_one, (torch.swapaxes, torch.tanh, torch.tile, torch.tril, torch.triu))


def shape(x: Any) -> tuple[int, ...]:
    """The shape of ``x``."""
    return tuple(x.shape)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str | None = None) -> torch.Tensor:
    """Numbers from ``start`` up to, not including, ``stop``; with one argument, from 0 up to ``start``. Integers are
    int32.
    """
    first, last = (0, start) if stop is None else (start, stop)
    has_floats = float in map(type, (first, last, step))
    return torch.arange(first, last, step, dtype=_DTYPES[dtype or ("float32" if has_floats else "int32")])


def clip(x: Any, x_min: Any, x_max: Any) -> torch.Tensor:
    """``x`` limited to the range from ``x_min`` to ``x_max``, which may be arrays."""
    return minimum(maximum(x, x_min), x_max)


def concatenate(xs: Sequence[Any], axis: int = -1) -> torch.Tensor:
    """Join arrays along an existing axis."""
    return torch.cat([convert_to_tensor(x) for x in xs], dim=axis)


def stack(xs: Sequence[Any], axis: int = 0) -> torch.Tensor:
    """Join arrays along a new axis."""
    return torch.stack([convert_to_tensor(x) for x in xs], dim=axis)


def scan(step: Callable[[Any, Any], tuple[Any, Any]], start: Any, given: Any, reverse: bool = False) -> tuple[Any, Any]:
    """Make a step for each entry of ``given``. Return the carry after the last step, and the outputs of all steps.

    Carry, ``given`` and outputs are arrays or tuples of arrays. The trace contains each step separately, because a
    compiled loop has no gradient.
    """
    columns = given if isinstance(given, tuple) else (given,)
    carried, outputs = start, []
    for t in reversed(range(len(columns[0]))) if reverse else range(len(columns[0])):
        row = tuple(column[t] for column in columns)
        carried, output = step(carried, row if isinstance(given, tuple) else row[0])
        outputs.append(output)
    ordered = outputs[::-1] if reverse else outputs
    if isinstance(output, tuple):
        return carried, tuple(stack(column) for column in zip(*ordered, strict=True))
    return carried, stack(ordered)


def flip(x: torch.Tensor, axis: int) -> torch.Tensor:
    """``x`` in reverse order along an axis."""
    return torch.flip(x, (axis,))


def split(x: torch.Tensor, indices_or_sections: int, axis: int = 0) -> Sequence[torch.Tensor]:
    """Divide an array into equal parts along an axis."""
    return torch.split(x, x.shape[axis] // indices_or_sections, dim=axis)


def transpose(x: torch.Tensor, axes: Sequence[int] | None = None) -> torch.Tensor:
    """``x`` with its axes in the order ``axes``. None reverses the axes."""
    return torch.permute(x, tuple(reversed(range(x.ndim))) if axes is None else tuple(axes))


def sort(x: Any, axis: int = -1) -> torch.Tensor:
    """Sort numbers along an axis, the smallest first."""
    return torch.sort(convert_to_tensor(x), dim=axis).values


def where(condition: Any, x: Any, y: Any) -> torch.Tensor:
    """``x`` where the condition is True, else ``y``."""
    return torch.where(convert_to_tensor(condition), convert_to_tensor(x), convert_to_tensor(y))


def one_hot(x: torch.Tensor, num_classes: int, axis: int = -1, dtype: str = "float32") -> torch.Tensor:
    """A new last axis of size ``num_classes``: 1 at the index ``x``, 0 elsewhere. An index outside gives only zeros."""
    if axis != -1:
        raise NotImplementedError("one_hot supports only a new last axis: use axis=-1")
    # not PyTorch's one_hot, which refuses an index outside
    return cast(x[..., None] == torch.arange(num_classes, dtype=x.dtype), dtype)


def take(x: Any, indices: Any, axis: int | None = None) -> torch.Tensor:
    """The entries of ``x`` at ``indices`` along ``axis``."""
    x, indices = convert_to_tensor(x), convert_to_tensor(indices)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis % x.ndim)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return x.index_select(axis, indices.reshape(-1)).reshape(shape)


def take_along_axis(x: torch.Tensor, indices: Any, axis: int = -1) -> torch.Tensor:
    """The elements of ``x`` at ``indices`` along an axis, as NumPy's ``take_along_axis``."""
    # PyTorch refuses indices of 32 bits here
    return torch.take_along_dim(x, convert_to_tensor(indices).to(torch.int64), axis)


def logsumexp(x: Any, axis: int | None = None, keepdims: bool = False) -> torch.Tensor:
    """log sum exp(x), computed without overflow."""
    x = convert_to_tensor(x)
    return torch.logsumexp(x, tuple(range(x.ndim)) if axis is None else axis, keepdim=keepdims)


def while_loop(condition: Callable[..., Any], body: Callable[..., Any], variables: Sequence[Any]) -> Sequence[Any]:
    """Call ``body`` as long as the condition is True. Return the last variables. This loop cannot be compiled."""
    while condition(*variables):
        variables = body(*variables)
    return variables


def conv(inputs: torch.Tensor, kernel: torch.Tensor, strides: int) -> torch.Tensor:
    """Convolve [B, height, width, channels] with a kernel [height, width, channels, filters], without padding."""
    # PyTorch has the channels before height and width, the networks have them last
    y = functional.conv2d(inputs.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1), stride=strides)
    return y.permute(0, 2, 3, 1)


def piece(vector: torch.Tensor, start: int, stop: int, shape: tuple[int, ...]) -> torch.Tensor:
    """vector[start:stop] with the given shape, as a view on the same memory."""
    return vector[start:stop].view(shape)


# Random numbers are a function of a state: a seed and the number of draws so far. A compiled step therefore draws the
# same numbers as an eager one, and a checkpoint contains the whole state.

_MULTIPLIER, _LOW_BITS = 0x45D9F3B, 0xFFFFFFFF


def buffer(array: Any) -> torch.Tensor:
    """An array that is not trained, as a tensor. States of random generators (uint32) become int64."""
    unsigned = isinstance(array, numpy.ndarray) and array.dtype == numpy.uint32
    return torch.from_numpy(array.astype(numpy.int64)) if unsigned else convert_to_tensor(array)


def dropout_mask(state: torch.Tensor, shape: Sequence[int], rate: float) -> tuple[torch.Tensor, torch.Tensor]:
    """A mask for dropout (0 with the probability ``rate``, else 1 / (1 - rate)), and the generator's new state."""
    is_kept = _uniform(state, 0, math.prod(shape)).reshape(tuple(shape)) >= rate
    return is_kept / (1.0 - rate), _drawn(state)


def factorised_noise(state: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """[size], the noise sign(x) sqrt(|x|) of standard normal x (Box & Muller 1958), and the generator's new state."""
    radius = torch.sqrt(-2.0 * torch.log1p(-_uniform(state, 0, size)))
    sample = radius * torch.cos(2.0 * math.pi * _uniform(state, 1, size))
    return torch.sign(sample) * torch.sqrt(torch.abs(sample)), _drawn(state)


def _drawn(state: torch.Tensor) -> torch.Tensor:
    return state + torch.arange(2)


def _uniform(state: torch.Tensor, stream: int, size: int) -> torch.Tensor:
    """[size], random numbers from 0 to below 1. :param stream: the same state gives other numbers for another stream"""
    key = _mixed(_mixed(state[0] + stream) + state[1])
    # 24 bits, because float32 has no more: with more bits, the largest number would be rounded to 1
    return (_mixed(_mixed(torch.arange(size)) ^ key) >> 8).to(torch.float32) * 2.0**-24


def _mixed(x: torch.Tensor) -> torch.Tensor:
    """A permutation of 32-bit numbers: each bit of the result depends on all bits (Mueller's hash function)."""
    x = x & _LOW_BITS
    for _ in range(2):
        # a product of 32 and 27 bits fits into 64 bits, so it is the same on all processors
        x = ((x >> 16) ^ x) * _MULTIPLIER & _LOW_BITS
    return (x >> 16) ^ x
