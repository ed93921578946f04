"""The layers of networks in Keras, and the layers that Keras lacks."""

from __future__ import annotations

from typing import Any, Callable

import keras
import numpy as np
from keras import ops

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
    with_zeros,
)


class DoubledConvolution(keras.layers.Conv2D):
    """Doubles the height and the width of an image, puts zeros around the result, and convolves it. The size of the
    kernel is odd.

    The pixels of a doubled image are equal in squares of four. With a kernel of 5 x 5, four neighbouring outputs
    therefore depend on 3 x 3 pixels of the small image, and one convolution of the small image computes the four. For
    32 x 32 pixels with 8 channels and 3 filters, on a core with AVX-512, value and gradients take a third of the time
    that they take if the image is doubled and then convolved.
    """

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        rows, height, width, _ = input_shape
        return rows, 2 * height, 2 * width, self.filters

    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        """Convolve [B, height, width, channels] to [B, 2 * height, 2 * width, filters].

        :param kernel: [size, size, channels, filters]
        """
        radius = kernel.shape[0] // 2
        reach = (radius + 1) // 2
        pixel_of = np.zeros((kernel.shape[0], 2 * reach + 1, 2), np.float32)
        for weight, output in np.ndindex(kernel.shape[0], 2):
            pixel_of[weight, (output + weight - radius) // 2 + reach, output] = 1.0
        folded = ops.einsum("ijcf,idp,jeq->decpqf", kernel, pixel_of, pixel_of)
        folded = ops.reshape(folded, (*pixel_of.shape[1:2] * 2, kernel.shape[2], 4 * self.filters))
        _, height, width, _ = inputs.shape
        for axis in (1, 2):
            inputs = with_zeros(ops, inputs, axis, reach, reach)
        fours = ops.reshape(self.of_small(inputs, folded), (-1, height, width, 2, 2, self.filters))
        return ops.reshape(ops.transpose(fours, (0, 1, 3, 2, 4, 5)), (-1, 2 * height, 2 * width, self.filters))

    def of_small(self, images: Any, kernel: Any) -> Any:
        """Convolve small images without padding."""
        return super().convolution_op(images, kernel)


class DenseBlocks(keras.layers.Layer):
    """The layer of ``Layers.dense_blocks``. Its kernel is [blocks, F + S, units]."""

    def __init__(self, units: int, initializer: Initializer):
        super().__init__()
        self.units, self.initializer = units, initializer

    def build(self, x_shape: Any, shared_shape: Any = None) -> None:
        _, blocks, inputs = x_shape
        inputs += shared_shape[-1] if shared_shape else 0
        self.kernel = self.add_weight((blocks, inputs, self.units), self.initializer, name="kernel")
        self.bias = self.add_weight((blocks, self.units), "zeros", name="bias")

    def call(self, x: Any, shared: Any = None) -> Any:
        inputs, kernel = x.shape[2], ops.convert_to_tensor(self.kernel)
        outputs = self.products(x, kernel[:, :inputs], ops.convert_to_tensor(self.bias))
        return outputs if shared is None else outputs + of_shared(ops, shared, kernel[:, inputs:])

    def products(self, x: Any, kernel: Any, bias: Any) -> Any:
        """[B, blocks, units] of [B, blocks, F].

        :param kernel: [blocks, F, units]
        :param bias: [blocks, units]
        """
        return ops.einsum("bgi,gio->bgo", x, kernel) + bias


class KerasLayers(Layers):
    """Applies Keras layers to symbolic tensors, to build a Keras model.

    :cvar dense_class: the Keras class of dense layers
    :cvar convolution_class: the Keras class of convolutions
    :cvar doubled_convolution_class: the Keras class of convolutions of doubled images
    :cvar dense_blocks_class: the class of dense layers for blocks
    :param made: a list to which each new layer is added
    """

    dense_class: type[keras.layers.Dense] = keras.layers.Dense
    convolution_class: type[keras.layers.Conv2D] = keras.layers.Conv2D
    doubled_convolution_class: type[DoubledConvolution] = DoubledConvolution
    dense_blocks_class: type[DenseBlocks] = DenseBlocks

    def __init__(self, rng: np.random.Generator, settings: LayerSettings, made: list[keras.layers.Layer]):
        super().__init__(ops, rng, settings)
        self.made = made

    def _applied(self, layer: keras.layers.Layer, *tensors: Any) -> Any:
        self.made.append(layer)
        return layer(*tensors)

    def plain_dense(
        self, x: Any, units: int, kernel: Initializer | None = None, bias: Initializer | None = None
    ) -> Any:
        dense = self.dense_class(
            int(units), kernel_initializer=self.kernel(kernel), bias_initializer=self.bias(x.shape[-1], bias)
        )
        return self._applied(dense, x)

    def unit_dense(self, x: Any, units: int) -> Any:
        return self._applied(UnitDense(int(units), self.rng), x)

    def convolution(self, x: Any, filters: int, size: int, strides: int) -> Any:
        return self._convolution(self.convolution_class, x, filters, size, strides)

    def doubled_convolution(self, x: Any, filters: int, size: int) -> Any:
        return self._convolution(self.doubled_convolution_class, x, filters, size, 1)

    def _convolution(self, kind: type[keras.layers.Conv2D], x: Any, *numbers: int) -> Any:
        bias = self.bias(numbers[1] ** 2 * x.shape[-1])
        sizes = (int(number) for number in numbers)
        return self._applied(kind(*sizes, kernel_initializer=self.kernel(), bias_initializer=bias), x)

    def dense_blocks(self, x: Any, units: int, shared: Any = None) -> Any:
        given = (x,) if shared is None else (x, shared)
        return self._applied(self.dense_blocks_class(int(units), self.kernel()), *given)

    def noisy_dense(self, x: Any, units: int) -> Any:
        return self._applied(NoisyDense(int(units), self.rng), x)

    def batchnorm(self, x: Any) -> Any:
        return self._applied(keras.layers.BatchNormalization(), x)

    def batch_renorm(self, x: Any, warm_up: int) -> Any:
        return self._applied(BatchRenormalization(warm_up), x)

    def dropout(self, x: Any, rate: float) -> Any:
        # a seed from the run's generator: without it, Keras uses another seed in each run
        return self._applied(keras.layers.Dropout(float(rate), seed=int(self.rng.integers(2**31))), x)

    def lstm(self, x: Any, h: Any, c: Any, cells: int) -> tuple[Any, Any, Any]:
        return self._applied(LSTMSequences(int(cells), self.kernel(), self.kernel()), x, h, c)

    def trained_row(self, x: Any, size: int, initializer: Initializer, function: Callable[[Any], Any]) -> Any:
        return self._applied(TrainedRow(size, initializer, function), x)

    def native(self, layer: Any, x: Any) -> Any:
        return self._applied(layer, x) if isinstance(layer, keras.layers.Layer) else super().native(layer, x)


class TrainedRow(keras.layers.Layer):
    """The layer of ``Layers.trained_row``."""

    def __init__(self, size: int, initializer: Initializer, function: Callable[[Any], Any]):
        super().__init__()
        self.function = function
        self.row = self.add_weight((size,), initializer, name="row")

    def call(self, x: Any) -> Any:
        # the zeros have as many rows as x, also if the number of rows is unknown in a trace
        return self.function(self.row) + ops.zeros_like(x[:, :1])


class UnitDense(keras.layers.Layer):
    """The layer of ``Layers.unit_dense``. The training step keeps the columns of the kernel at norm 1."""

    def __init__(self, units: int, rng: np.random.Generator):
        super().__init__()
        self.units = units
        self.rng = rng

    def build(self, input_shape: tuple) -> None:
        self.kernel = self.add_weight((int(input_shape[-1]), self.units), UnitColumns(self.rng), name="kernel")

    def call(self, x: Any) -> Any:
        return ops.matmul(x, self.kernel)


class BatchRenormalization(keras.layers.Layer):
    """The layer of ``Layers.batch_renorm``.

    :param warm_up: number of first training passes, in which the layer makes plain batch normalisation
    """

    def __init__(self, warm_up: int):
        super().__init__()
        self.warm_up = warm_up

    def build(self, input_shape: tuple) -> None:
        size = input_shape[-1:]
        self.scale = self.add_weight(size, Constant(1.0), name="scale")
        self.offset = self.add_weight(size, Constant(0.0), name="offset")
        self.moving_mean = self.add_weight(size, Constant(0.0), trainable=False, name="moving_mean")
        self.moving_variance = self.add_weight(size, Constant(1.0), trainable=False, name="moving_variance")
        # a weight, so that checkpoints contain the number of passes
        self.passes = self.add_weight((1,), Constant(0.0), trainable=False, name="passes")

    def call(self, x: Any, training: bool = False) -> Any:
        if not training:
            deviation = ops.sqrt(self.moving_variance + NORM_EPSILON)
            return (x - self.moving_mean) / deviation * self.scale + self.offset
        share = ops.cast(self.passes >= self.warm_up, "float32")
        normalized, mean, variance = renormalized(ops, x, self.moving_mean, self.moving_variance, share)
        for moving, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moving.assign(NORM_MOMENTUM * moving + (1.0 - NORM_MOMENTUM) * new)
        self.passes.assign(self.passes + 1.0)
        return normalized * self.scale + self.offset


class NoisyDense(keras.layers.Layer):
    """The layer of ``Layers.noisy_dense``.

    :param units: the number of outputs
    :param rng: the source of the initial means and of the noise's seed
    :ivar draws_noise: True if a call draws new noise; the network sets it before each call
    """

    def __init__(self, units: int, rng: np.random.Generator):
        super().__init__()
        self.units = units
        self.rng = rng
        self.draws_noise = False
        # a seed from the run's generator: without it, Keras uses another seed in each run
        self.seed_generator = keras.random.SeedGenerator(int(rng.integers(2**31)))

    def build(self, input_shape: tuple) -> None:
        fan_in = int(input_shape[-1])
        means, deviations = UniformFanIn(self.rng, fan_in), Constant(SIGMA_ZERO / np.sqrt(fan_in))
        initial = {"mean": means, "deviation": deviations}.items()
        shape = (fan_in, self.units)
        self.kernel = [self.add_weight(shape, one, name=f"kernel_{name}") for name, one in initial]
        self.bias = [self.add_weight((self.units,), one, name=f"bias_{name}") for name, one in initial]
        self.noise_in = self.add_weight((fan_in,), Constant(0.0), trainable=False, name="noise_in")
        self.noise_out = self.add_weight((self.units,), Constant(0.0), trainable=False, name="noise_out")

    def call(self, x: Any) -> Any:
        if self.draws_noise:
            for noise in (self.noise_in, self.noise_out):
                sample = keras.random.normal(noise.shape, seed=self.seed_generator)
                noise.assign(ops.sign(sample) * ops.sqrt(ops.abs(sample)))
        return with_noise(ops, x, self.kernel, self.bias, (self.noise_in, self.noise_out))


class LSTMSequences(keras.layers.Layer):
    """The layer of ``Layers.lstm``.

    :param cells: the size of the state
    :param kernel: initialization of the weights of the input; ``recurrent`` is the initialization for the state
    :ivar single_step: True if each row is a separate sequence; the network sets it before each call
    """

    def __init__(self, cells: int, kernel: Initializer, recurrent: Initializer):
        super().__init__()
        self.cells = cells
        # a fixed seed, although this generator is not used: Keras would choose a random seed
        self.cell = keras.layers.LSTMCell(cells, kernel_initializer=kernel, recurrent_initializer=recurrent, seed=0)
        # not ops.scan: on TensorFlow, XLA cannot differentiate it, because it does not know the number of steps
        self.sequence = keras.layers.RNN(self.cell, return_sequences=True, return_state=True)
        self.single_step = False

    def build(self, x_shape: tuple, h_shape: tuple, c_shape: tuple) -> None:
        # built here, so that the weights are drawn in the order of the layers
        self.sequence.build((None, None, x_shape[-1]))

    def call(self, x: Any, h: Any, c: Any) -> tuple:
        if self.single_step:
            output, (h, c) = self.cell(x, [h, c])
            return output, h, c
        sequences = ops.reshape(x, (ops.shape(h)[0], -1, x.shape[-1]))

        outputs, h, c = self.sequence(sequences, initial_state=[h, c])
        return ops.reshape(outputs, (-1, self.cells)), h, c

    def compute_output_spec(self, x: Any, h: Any, c: Any) -> tuple:
        return (
            keras.KerasTensor((x.shape[0], self.cells)),
            keras.KerasTensor((h.shape[0], self.cells)),
            keras.KerasTensor((c.shape[0], self.cells)),
        )
