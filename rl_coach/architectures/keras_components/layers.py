"""Keras layers for the neutral layer descriptions, and the few that Keras lacks."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from rl_coach.architectures import layers as descriptions
from rl_coach.architectures.initializers import Constant, GlorotUniform, UniformFanIn
from rl_coach.utils import CoachError, did_you_mean

ACTIVATIONS = ("relu", "tanh", "sigmoid", "elu", "selu", "leaky_relu", "softplus")


class LayerFactory:
    """Makes Keras layers with weights drawn from one generator.

    :param rng: where initial weights come from
    :param dense_layer: the description class that stands in for ``Dense``; None for ``Dense`` itself
    """

    def __init__(self, rng: np.random.Generator, dense_layer: Any = None):
        self.rng = rng
        self.dense_layer = dense_layer

    def dense(self, units: int, kernel: Any = None, bias: Any = None) -> keras.layers.Layer:
        """A fully connected layer; Glorot-uniform weights and zero biases if not said otherwise."""
        if self.dense_layer not in (None, descriptions.Dense):
            return self.layer(self.dense_layer(units))
        return keras.layers.Dense(
            units,
            kernel_initializer=kernel or GlorotUniform(self.rng),
            bias_initializer=bias or Constant(0.0),
        )

    def layer(self, description: Any) -> keras.layers.Layer:
        """The Keras layer for a description; a Keras layer passes as it is."""
        if isinstance(description, keras.layers.Layer):
            return description
        if isinstance(description, descriptions.NoisyNetDense):
            return NoisyDense(description.units, self.rng)
        if isinstance(description, descriptions.Dense):
            return LayerFactory(self.rng).dense(description.units)
        if isinstance(description, descriptions.Conv2d):
            return keras.layers.Conv2D(
                description.num_filters,
                description.kernel_size,
                description.strides,
                kernel_initializer=GlorotUniform(self.rng),
            )
        if isinstance(description, descriptions.Flatten):
            return keras.layers.Flatten()
        raise CoachError(
            f"a network cannot have a layer {description!r}: use Dense, Conv2d, NoisyNetDense, Flatten, "
            f"BatchnormActivationDropout or a Keras layer"
        )

    def apply(self, description: Any, x: Any) -> Any:
        """``x`` after the described layer."""
        if isinstance(description, descriptions.BatchnormActivationDropout):
            return self._batchnorm_activation_dropout(description, x)
        if isinstance(description, descriptions.Conv2d) and min(x.shape[1:3]) < description.kernel_size:
            raise CoachError(
                f"{description!r} gets an image of {x.shape[1]} x {x.shape[2]}, which is too small for it: "
                f"give the embedder a smaller scheme, or a list of layers"
            )
        return self.layer(description)(x)

    def _batchnorm_activation_dropout(self, description: descriptions.BatchnormActivationDropout, x: Any) -> Any:
        if description.batchnorm:
            x = keras.layers.BatchNormalization()(x)
        x = activate(description.activation_function, x)
        if description.dropout_rate:
            x = keras.layers.Dropout(description.dropout_rate, seed=int(self.rng.integers(2**31)))(x)
        return x


def activate(name: str | None, x: Any) -> Any:
    """``x`` after the activation of that name; ``None`` and ``'none'`` change nothing."""
    if name is None or name == "none":
        return x
    if name not in ACTIVATIONS:
        suggestion = did_you_mean(name, ACTIVATIONS) or f": use one of {', '.join(ACTIVATIONS)} or none"
        raise CoachError(f"no activation function '{name}'{suggestion}")
    return keras.layers.Activation(name)(x)


class NoisyDense(keras.layers.Layer):
    """y = (w_mu + w_sigma * e_w) x + b_mu + b_sigma * e_b with factorised Gaussian noise e.

    Fortunato et al. 2018, section 3, equations 9 to 11. In learning each call draws new noise and remembers it; when
    acting the layer uses what it remembers, which ``Architecture`` renews before each prediction.

    :param units: the number of outputs
    :param rng: where the initial means and the seed of the noise come from
    :ivar draws_noise: whether calls draw new noise; set by the network for each of its calls
    """

    SIGMA_ZERO = 0.5

    def __init__(self, units: int, rng: np.random.Generator):
        super().__init__()
        self.units = units
        self.rng = rng
        self.draws_noise = False
        self.seed_generator = keras.random.SeedGenerator(int(rng.integers(2**31)))

    def build(self, input_shape: tuple) -> None:
        fan_in = int(input_shape[-1])
        means, deviations = UniformFanIn(self.rng, fan_in), Constant(self.SIGMA_ZERO / np.sqrt(fan_in))
        self.kernel_mean = self.add_weight((fan_in, self.units), means, name="kernel_mean")
        self.kernel_deviation = self.add_weight((fan_in, self.units), deviations, name="kernel_deviation")
        self.bias_mean = self.add_weight((self.units,), means, name="bias_mean")
        self.bias_deviation = self.add_weight((self.units,), deviations, name="bias_deviation")
        self.noise_in = self.add_weight((fan_in,), Constant(0.0), trainable=False, name="noise_in")
        self.noise_out = self.add_weight((self.units,), Constant(0.0), trainable=False, name="noise_out")

    def call(self, x: Any) -> Any:
        if self.draws_noise:
            for noise in (self.noise_in, self.noise_out):
                sample = keras.random.normal(noise.shape, seed=self.seed_generator)
                noise.assign(ops.sign(sample) * ops.sqrt(ops.abs(sample)))
        # equation 10: the noise matrix is an outer product, so it never has to be built
        clean = ops.matmul(x, self.kernel_mean) + self.bias_mean
        noisy = ops.matmul(x * self.noise_in, self.kernel_deviation) * self.noise_out
        return clean + noisy + self.bias_deviation * self.noise_out


class ScaleGradient(keras.layers.Layer):
    """The identity forwards; backwards the gradient is multiplied by ``factor``."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def call(self, x: Any) -> Any:
        return self.factor * x + (1.0 - self.factor) * ops.stop_gradient(x)


class LSTMSequences(keras.layers.Layer):
    """An LSTM over N sequences of T steps each that come as N * T rows, the steps of a sequence next to each other.

    N is the number of rows of the initial state, so that acting (one row, one state) and learning from an episode (T
    rows, one state) are the same call.

    :param cells: the size of the state
    """

    def __init__(self, cells: int, rng: np.random.Generator):
        super().__init__()
        self.cells = cells
        self.cell = keras.layers.LSTMCell(
            cells, kernel_initializer=GlorotUniform(rng), recurrent_initializer=GlorotUniform(rng)
        )
        self.sequence = keras.layers.RNN(self.cell, return_sequences=True, return_state=True)
        self.single_step = False

    def build(self, x_shape: tuple, h_shape: tuple, c_shape: tuple) -> None:
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
