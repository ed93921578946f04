"""Layers made of the array operations of MXNet or PyTorch, or of operations that record an ONNX graph.

A layer is a plain function of its input and a ``Pass``. The pass supplies the layer's weights. The first pass draws
initial weights in the order of the calls. Later passes supply given weights in the same order.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence

import numpy as np

from rl_coach.architectures.initializers import Constant, Initializer, UniformFanIn, UnitColumns
from rl_coach.architectures.layers import (
    NORM_EPSILON,
    NORM_MOMENTUM,
    SIGMA_ZERO,
    Layers,
    LayerSettings,
    of_shared,
    renormalized,
    with_noise,
)

CONVOLUTION, UNIT_COLUMNS = "convolution", "unit columns"
"""Kinds of weights that need a special treatment in training steps."""


class Pass:
    """A forward pass through a network with given weights.

    :param ops: array operations with the names of ``keras.ops``
    :param rng: the source of initial weights
    :param weights: the trained weights, in order
    :param buffers: the untrained state, in order; ``self.buffers`` has the new values afterwards
    :param training: True in updates: batch normalisation uses the statistics of the batch, and dropout is active
    :param single_step: True if each row is a separate sequence with one step
    :param draws_noise: True if NoisyNet layers draw new noise; otherwise they use the noise in the buffers
    :param parts: the objects that the first pass has made and that are not arrays, such as modules, in order
    """

    def __init__(
        self, ops: Any, rng: np.random.Generator, weights: Sequence, buffers: Sequence, training: bool = False,
        single_step: bool = False, draws_noise: bool = False, parts: Sequence = (),
    ):  # fmt: skip
        self.ops = ops
        self.rng = rng
        self.training = training
        self.single_step = single_step
        self.draws_noise = draws_noise
        self.buffers = list(buffers)
        self._weights: Iterator = iter(weights)
        self._parts: Iterator = iter(parts)
        self._num_buffers = 0

    def part(self, make: Callable[[], Any]) -> Any:
        """The next object of the network that is not an array, such as a user's module."""
        return next(self._parts)

    def weight(self, shape: tuple[int, ...], initializer: Initializer, kind: str | None = None) -> Any:
        """The next trained weight array."""
        return next(self._weights)

    def buffer(self, shape: tuple[int, ...], initializer: Initializer) -> int:
        """The position in ``buffers`` of the next array that is not trained."""
        self._num_buffers += 1
        return self._num_buffers - 1

    def noise_buffer(self, size: int) -> int:
        """The position in ``buffers`` of the next array of noise. New noise is drawn before each action."""
        return self.buffer((size,), Constant(0.0))

    def random_stream(self) -> int:
        """The position in ``buffers`` of the next random stream: an array of a seed and the number of draws."""
        return self.buffer((2,), Constant(0.0))

    def dropout_mask(self, stream: int, shape: tuple[int, ...], rate: float) -> Any:
        """A mask for dropout: 0 with the probability ``rate``, otherwise 1 / (1 - rate).

        :param stream: the position of the random stream
        """
        mask, self.buffers[stream] = self.ops.dropout_mask(self.buffers[stream], shape, rate)
        return mask

    def factorised_noise(self, stream: int, size: int) -> Any:
        """[size], the noise of NoisyNet layers: sign(x) sqrt(|x|) of standard normal x.

        :param stream: the position of the random stream
        """
        noise, self.buffers[stream] = self.ops.factorised_noise(self.buffers[stream], size)
        return noise


class DrawingPass(Pass):
    """The first pass, which draws the initial weights.

    :ivar drawn: the trained weights
    :ivar initial_buffers: the arrays that are not trained
    :ivar noise: positions of the noise, counted among the float buffers
    :ivar parts: the objects that are not arrays
    :ivar kinds: positions of the weights of each kind
    """

    def __init__(self, ops: Any, rng: np.random.Generator):
        super().__init__(ops, rng, [], [])
        self.drawn: list[np.ndarray] = []
        self.initial_buffers: list[np.ndarray] = []
        self.noise: list[int] = []
        self.parts: list[Any] = []
        self.kinds: dict[str, list[int]] = {CONVOLUTION: [], UNIT_COLUMNS: []}

    def part(self, make: Callable[[], Any]) -> Any:
        self.parts.append(make())
        return self.parts[-1]

    def weight(self, shape: tuple[int, ...], initializer: Initializer, kind: str | None = None) -> Any:
        if kind is not None:
            self.kinds[kind].append(len(self.drawn))
        self.drawn.append(initializer(shape))
        return self.ops.convert_to_tensor(self.drawn[-1])

    def buffer(self, shape: tuple[int, ...], initializer: Initializer) -> int:
        return self._add(initializer(shape))

    def noise_buffer(self, size: int) -> int:
        # only float buffers are counted, because only float buffers are inputs of the ONNX graph
        self.noise.append(sum(buffer.dtype == np.float32 for buffer in self.initial_buffers))
        return super().noise_buffer(size)

    def random_stream(self) -> int:
        # uint32 marks the state of a random generator: all other buffers are float32
        return self._add(np.array([self.rng.integers(2**31), 0], np.uint32))

    def _add(self, array: np.ndarray) -> int:
        self.initial_buffers.append(array)
        self.buffers.append(self.ops.buffer(array))
        return len(self.buffers) - 1


class ArrayLayers(Layers):
    """Layers of one part of a network. Each call of a layer returns its output at once.

    :param run: the pass, which supplies the weights
    """

    def __init__(self, run: Pass, settings: LayerSettings):
        super().__init__(run.ops, run.rng, settings)
        self.run = run

    def plain_dense(
        self, x: Any, units: int, kernel: Initializer | None = None, bias: Initializer | None = None
    ) -> Any:
        weights = self.run.weight((x.shape[-1], units), self.kernel(kernel))
        return self.ops.matmul(x, weights) + self.run.weight((units,), self.bias(x.shape[-1], bias))

    def dense_blocks(self, x: Any, units: int, shared: Any = None) -> Any:
        ops, (blocks, inputs) = self.ops, x.shape[1:]
        num_shared = 0 if shared is None else shared.shape[-1]
        kernel = self.run.weight((blocks, inputs + num_shared, units), self.kernel())
        products = ops.matmul(ops.swapaxes(x, 0, 1), kernel[:, :inputs])  # [blocks, B, units]
        outputs = ops.swapaxes(products, 0, 1) + self.run.weight((blocks, units), Constant(0.0))
        return outputs if shared is None else outputs + of_shared(ops, shared, kernel[:, inputs:])

    def unit_dense(self, x: Any, units: int) -> Any:
        return self.ops.matmul(x, self.run.weight((x.shape[-1], units), UnitColumns(self.rng), UNIT_COLUMNS))

    def convolution(self, x: Any, filters: int, size: int, strides: int) -> Any:
        kernel = self.run.weight((size, size, x.shape[-1], filters), self.kernel(), CONVOLUTION)
        bias = self.run.weight((filters,), self.bias(size * size * x.shape[-1]), CONVOLUTION)
        return self.ops.conv(x, kernel, strides) + bias

    def trained_row(self, x: Any, size: int, initializer: Initializer, function: Callable[[Any], Any]) -> Any:
        return function(self.run.weight((size,), initializer)) + self.ops.zeros_like(x[:, :1])

    def constant(self, array: np.ndarray) -> Any:
        return self.ops.convert_to_tensor(super().constant(array))

    def lstm(self, x: Any, h: Any, c: Any, cells: int) -> tuple[Any, Any, Any]:
        run, ops = self.run, self.ops
        kernel = run.weight((x.shape[-1], 4 * cells), self.kernel())
        recurrent = run.weight((cells, 4 * cells), self.kernel())
        # 1, as in Keras, so that one seed gives the same network
        bias = run.weight((4 * cells,), _OpenForgetGate(1.0))
        # one product for the inputs of all steps: only the recurrent part needs the result of the step before
        projected = ops.matmul(x, kernel) + bias
        if run.single_step:
            h, c = self._cell(projected + ops.matmul(h, recurrent), c)
            return h, h, c
        steps = ops.reshape(projected, (h.shape[0], -1, 4 * cells))
        outputs = []
        for t in range(steps.shape[1]):
            h, c = self._cell(steps[:, t] + ops.matmul(h, recurrent), c)
            outputs.append(h)
        return ops.reshape(ops.stack(outputs, axis=1), (-1, cells)), h, c

    def _cell(self, gates: Any, c: Any) -> tuple[Any, Any]:
        sigmoid, tanh = self.ops.sigmoid, self.ops.tanh
        i, f, g, o = self.ops.split(gates, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c

    def batchnorm(self, x: Any) -> Any:
        scale, shift, positions = self._norm(x)
        if self.run.training:
            axes = tuple(range(len(x.shape) - 1))
            mean = self.ops.mean(x, axis=axes)
            variance = self.ops.mean(self.ops.square(x - mean), axis=axes)
            self._move(positions, (mean, variance))
        else:
            mean, variance = (self.run.buffers[position] for position in positions)
        return (x - mean) / self.ops.sqrt(variance + NORM_EPSILON) * scale + shift

    def batch_renorm(self, x: Any, warm_up: int) -> Any:
        run, ops = self.run, self.ops
        scale, shift, positions = self._norm(x)
        # before the return: each pass must ask for the same buffers in the same order
        passes = run.buffer((1,), Constant(0.0))
        mean, variance = (run.buffers[position] for position in positions)
        if not run.training:
            return (x - mean) / ops.sqrt(variance + NORM_EPSILON) * scale + shift
        share = ops.cast(run.buffers[passes] >= warm_up, "float32")
        normalized, *of_batch = renormalized(ops, x, mean, variance, share)
        self._move(positions, of_batch)
        run.buffers[passes] = run.buffers[passes] + 1.0
        return normalized * scale + shift

    def _norm(self, x: Any) -> tuple[Any, Any, tuple[int, int]]:
        """Scale and shift, and the positions in ``buffers`` of the running mean and variance."""
        run, size = self.run, x.shape[-1:]
        scale, shift = run.weight(size, Constant(1.0)), run.weight(size, Constant(0.0))
        return scale, shift, (run.buffer(size, Constant(0.0)), run.buffer(size, Constant(1.0)))

    def _move(self, positions: tuple[int, int], of_batch: Sequence[Any]) -> None:
        """Move the running statistics towards the statistics of the batch."""
        for position, new in zip(positions, of_batch):
            old = self.run.buffers[position]
            self.run.buffers[position] = old + (1 - NORM_MOMENTUM) * (new - old)

    def dropout(self, x: Any, rate: float) -> Any:
        # also if it is not used: each pass must ask for the same buffers in the same order
        stream = self.run.random_stream()
        if not self.run.training:
            return x
        return x * self.run.dropout_mask(stream, x.shape, rate)

    def noisy_dense(self, x: Any, units: int) -> Any:
        run, fan_in = self.run, x.shape[-1]
        # the stream first, as in the layer of Keras: checkpoints have one order for all frameworks
        stream = run.random_stream()
        initial = UniformFanIn(run.rng, fan_in), Constant(SIGMA_ZERO / np.sqrt(fan_in))
        kernel = [run.weight((fan_in, units), one) for one in initial]
        bias = [run.weight((units,), one) for one in initial]
        positions = run.noise_buffer(fan_in), run.noise_buffer(units)
        if run.draws_noise:
            for position, size in zip(positions, (fan_in, units)):
                run.buffers[position] = run.factorised_noise(stream, size)
        return with_noise(self.ops, x, kernel, bias, [run.buffers[position] for position in positions])


class _OpenForgetGate(Constant):
    """Initial bias of an LSTM: ``value`` for the forget gate (the second of four gates), zeros for the others."""

    def values(self, shape: Sequence[int]) -> np.ndarray:
        zero, value = np.zeros(shape[0] // 4), super().values((shape[0] // 4,))
        return np.concatenate([zero, value, zero, zero])
