"""Layers: their settings, and the interface with which embedders, middlewares and heads build them on each
framework.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Sequence

import numpy as np

from rl_coach.architectures.initializers import Constant, Initializer, InitialWeights
from rl_coach.utilities.requirements import FLAG, TEXT, Constrained, Constraint, list_of, number, optional, whole
from rl_coach.utils import CoachError, choose_from

ACTIVATIONS = ("relu", "tanh", "sigmoid", "elu", "selu", "leaky_relu", "softplus")


class Layer(Constrained):
    """Base class of the layers in a scheme. Two layers of the same class with equal settings are equal.

    To write a layer, derive from this class. Write ``applied`` with the methods of ``Layers``.
    """

    def applied(self, layers: Layers, x: Any) -> Any:
        """Apply the layer to ``x`` [B, ...]. :param layers: makes weights; ``layers.ops`` are the array operations"""
        raise NotImplementedError(f"{type(self).__name__} does not define applied")

    def multiply_adds(self, width: int) -> tuple[float, int]:
        """The number of multiply-adds for one row of ``width`` numbers (infinite if unknown), and the number of
        outputs.
        """
        return 0.0, width

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        # as text, because a setting may be a list, and lists have no hash
        return hash((type(self), str(sorted(vars(self).items()))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


LAYERS = list_of(
    Constraint(
        "a layer such as Dense(64)",
        # a layer of a framework, such as a Keras layer, can be called
        lambda value: isinstance(value, Layer) or (callable(value) and not isinstance(value, type)),
    )
)
"""The values of a list of layers."""


class Conv2d(Layer):
    """A convolution over height and width, without padding.

    :param num_filters: output channels
    :param kernel_size: height and width of the kernel
    :param strides: step between two positions of the kernel, in pixels
    """

    constraints = dict.fromkeys(("num_filters", "kernel_size", "strides"), whole(1))

    def __init__(self, num_filters: int, kernel_size: int, strides: int):
        self.num_filters = num_filters
        self.kernel_size = kernel_size
        self.strides = strides

    def applied(self, layers: Layers, x: Any) -> Any:
        if len(x.shape) != 4:
            raise CoachError(
                f"{self!r} gets an input of the shape {list(x.shape[1:])}, but needs an image: "
                f"set the scheme of its embedder to EmbedderScheme.Medium or a list of other layers"
            )
        if min(x.shape[1:3]) < self.kernel_size:
            raise CoachError(
                f"{self!r} gets an image of {x.shape[1]} x {x.shape[2]}, which is too small: "
                f"set the scheme of its embedder to EmbedderScheme.Shallow or a list of layers, or observe a vector: "
                f"env_params.observation_space_type=ObservationSpaceType.Vector"
            )
        return layers.convolution(x, self.num_filters, self.kernel_size, self.strides)

    def multiply_adds(self, width: int) -> tuple[float, int]:
        # infinite, so that a network with convolutions gets several threads; see ``threads.largest_product``
        return math.inf, width


class SameConv2d(Conv2d):
    """A convolution with zeros around the image (TensorFlow's SAME). The new size depends only on ``strides``."""

    def applied(self, layers: Layers, x: Any) -> Any:
        for axis in (1, 2):
            length = int(x.shape[axis])
            missing = max((-(-length // self.strides) - 1) * self.strides + self.kernel_size - length, 0)
            # an odd zero comes last, as in TensorFlow
            x = with_zeros(layers.ops, x, axis, missing // 2, missing - missing // 2)
        return layers.convolution(x, self.num_filters, self.kernel_size, self.strides)


def of_shared(ops: Any, shared: Any, kernel: Any) -> Any:
    """The products [B, blocks, units] of inputs that all blocks share. One matrix product computes all results.

    :param shared: [B, S]
    :param kernel: [blocks, S, units]
    """
    blocks, inputs, units = kernel.shape
    together = ops.reshape(ops.swapaxes(kernel, 0, 1), (inputs, blocks * units))
    return ops.reshape(ops.matmul(shared, together), (-1, blocks, units))


def with_zeros(ops: Any, images: Any, axis: int, before: int, after: int) -> Any:
    """[B, height, width, channels] with rows (axis 1) or columns (axis 2) of zeros before and after them."""
    # not pad, which PyTorch's, MXNet's and ONNX's operations here lack
    zeros = ops.zeros_like(images[:, :1] if axis == 1 else images[:, :, :1])
    return ops.concatenate([zeros] * before + [images] + [zeros] * after, axis=axis)


class BatchnormActivationDropout(Layer):
    """Batch normalisation, then an activation, then dropout. Each of the three is optional.

    :param activation_function: ``'relu'``, ``'tanh'``, ``'sigmoid'``, ``'elu'``, ``'selu'``, ``'leaky_relu'``,
        ``'softplus'``, ``'none'`` or None
    :param dropout_rate: the share of activations that are set to zero in training; 0 for no dropout
    """

    constraints = {"batchnorm": FLAG, "activation_function": optional(TEXT), "dropout_rate": number(0, below=1)}

    def __init__(self, batchnorm: bool = False, activation_function: Any = None, dropout_rate: float = 0):
        self.batchnorm = batchnorm
        self.activation_function = activation_function
        self.dropout_rate = dropout_rate

    def applied(self, layers: Layers, x: Any) -> Any:
        if self.batchnorm:
            x = layers.batchnorm(x)
        x = layers.activate(self.activation_function, x)
        return layers.dropout(x, self.dropout_rate) if self.dropout_rate else x


class UnitsLayer(Layer):
    """A layer whose outputs are connected to all inputs. :param units: the number of outputs"""

    constraints = {"units": whole(1)}

    def __init__(self, units: int):
        self.units = units

    def multiply_adds(self, width: int) -> tuple[float, int]:
        return float(width * self.units), self.units


class Dense(UnitsLayer):
    """A fully connected layer."""

    def applied(self, layers: Layers, x: Any) -> Any:
        return layers.plain_dense(x, self.units)


class NoisyNetDense(UnitsLayer):
    """A fully connected layer with learned factorised Gaussian noise on its weights (Fortunato et al. 2018)."""

    def applied(self, layers: Layers, x: Any) -> Any:
        return layers.noisy_dense(x, self.units)


class LayerNorm(Layer):
    """Layer normalisation over the last dimension (Ba et al. 2016). In a scheme, the activation follows it."""

    def applied(self, layers: Layers, x: Any) -> Any:
        return layers.layernorm(x)


class Flatten(Layer):
    """Reshapes [B, ...] to [B, F]."""

    def applied(self, layers: Layers, x: Any) -> Any:
        return layers.flatten(x)


class Detached(Layer):
    """Returns its input without a gradient, so that the layers before it do not learn from this path."""

    def applied(self, layers: Layers, x: Any) -> Any:
        return layers.ops.stop_gradient(x)


NORM_MOMENTUM, NORM_EPSILON = 0.99, 1e-3  # the defaults of Keras, the same on all frameworks
RMS_EPSILON = 1e-4
SIGMA_ZERO = 0.5  # from Fortunato et al. 2018, section 3.2
_LARGEST_RATIO, _LARGEST_SHIFT = 3.0, 5.0  # the final limits in Ioffe 2017


def renormalized(ops: Any, x: Any, running_mean: Any, running_variance: Any, share: Any) -> tuple[Any, Any, Any]:
    """Batch renormalisation (Ioffe 2017, "Batch renormalization", algorithm 1): (x - mean) / deviation * r + d.

    Mean and standard deviation are of the batch, but r and d give the same result as the running statistics.
    r stays between 1/3 and 3, d between -5 and 5. No gradient passes through r and d. The paper widens these
    limits step by step; CrossQ uses the final limits after a warm-up (Bhatt et al. 2024).

    :param x: [..., F]
    :param running_mean: [F]; ``running_variance`` has the same shape
    :param share: 0 gives r = 1 and d = 0, which is plain batch normalisation; 1 gives the full correction
    :return: [..., F], and the batch's mean and variance [F]
    """
    axes = tuple(range(len(x.shape) - 1))
    mean = ops.mean(x, axis=axes)
    variance = ops.mean(ops.square(x - mean), axis=axes)
    deviation, running_deviation = ops.sqrt(variance + NORM_EPSILON), ops.sqrt(running_variance + NORM_EPSILON)
    ratio = ops.clip(deviation / running_deviation, 1.0 / _LARGEST_RATIO, _LARGEST_RATIO)
    shift = ops.clip((mean - running_mean) / running_deviation, -_LARGEST_SHIFT, _LARGEST_SHIFT)
    r, d = ops.stop_gradient(1.0 + share * (ratio - 1.0)), ops.stop_gradient(share * shift)
    return (x - mean) / deviation * r + d, mean, variance


def with_noise(ops: Any, x: Any, kernel: Sequence[Any], bias: Sequence[Any], noise: Sequence[Any]) -> Any:
    """The output [B, units] of a NoisyNet layer; see ``Layers.noisy_dense``.

    :param x: [B, F]
    :param kernel: means and standard deviations of the kernel, [F, units] each
    :param bias: means and standard deviations of the bias, [units] each
    :param noise: noise of the inputs [F] and of the outputs [units]
    """
    # equation 10: the kernel's noise is an outer product, so its matrix is not built
    clean = ops.matmul(x, kernel[0]) + bias[0]
    return clean + ops.matmul(x * noise[0], kernel[1]) * noise[1] + bias[1] * noise[1]


@dataclass(frozen=True)
class LayerSettings:
    """Settings of all layers of one part of a network.

    :param dense_layer: the class that replaces ``Dense``; None for ``Dense`` itself
    :param initial_weights: the scheme of initial weights
    :param replaces_kernels: True if ``initial_weights`` also replaces initializers that the part sets itself
    """

    dense_layer: Callable[[int], Any] | None
    initial_weights: InitialWeights
    replaces_kernels: bool = False


class Layers:
    """The layers of one part of a network. Weights are created, or supplied, in the order of the calls.

    A subclass for a framework implements ``plain_dense``, ``unit_dense``, ``convolution``, ``noisy_dense``,
    ``batchnorm``, ``batch_renorm``, ``dense_blocks``, ``dropout``, ``lstm`` and ``trained_row``. The other layers use
    these methods and ``ops``.

    :param ops: array operations with the names of ``keras.ops``
    :param rng: the source of initial weights
    :param settings: the settings of the part
    """

    def __init__(self, ops: Any, rng: np.random.Generator, settings: LayerSettings):
        self.ops = ops
        self.rng = rng
        self.settings = settings

    def dense(self, x: Any, units: int, kernel: Initializer | None = None, bias: Initializer | None = None) -> Any:
        """A fully connected layer, [B, F] to [B, units].

        :param kernel: initializer of the kernel; None uses the part's ``initial_weights``
        :param bias: initializer of the bias; None uses the part's ``initial_weights``
        """
        if self.settings.dense_layer not in (None, Dense):
            return self.apply(self.settings.dense_layer(units), x)
        return self.plain_dense(x, units, None if self.settings.replaces_kernels else kernel, bias)

    def apply(self, layer: Any, x: Any) -> Any:
        """Apply a layer of a scheme to ``x``."""
        return layer.applied(self, x) if isinstance(layer, Layer) else self.native(layer, x)

    def activate(self, name: str | None, x: Any) -> Any:
        """Apply the activation ``name`` to ``x``. None and ``'none'`` return ``x`` unchanged."""
        if name is None or name == "none":
            return x
        if name not in ACTIVATIONS:
            raise CoachError(f"no activation function '{name}'{choose_from(name, [*ACTIVATIONS, 'none'])}")
        return getattr(self.ops, name)(x)

    def flatten(self, x: Any) -> Any:
        """Reshape [B, ...] to [B, F]."""
        return self.ops.reshape(x, (-1, math.prod(x.shape[1:])))

    def scale_gradient(self, x: Any, factor: float) -> Any:
        """Return ``x`` unchanged, but multiply its gradient by ``factor``."""
        return x if factor == 1 else factor * x + (1.0 - factor) * self.ops.stop_gradient(x)

    def kernel(self, given: Initializer | None = None) -> Initializer:
        """The initializer of the next kernel: ``given``, or else the one from the network's settings."""
        return given or self.settings.initial_weights.kernel(self.rng)

    def bias(self, fan_in: int, given: Initializer | None = None) -> Initializer:
        """The initializer of the next bias. :param fan_in: number of inputs that each output is computed from"""
        return given or self.settings.initial_weights.bias(self.rng, fan_in)

    def plain_dense(
        self, x: Any, units: int, kernel: Initializer | None = None, bias: Initializer | None = None
    ) -> Any:
        """A fully connected layer. The setting ``dense_layer`` is ignored."""
        raise NotImplementedError(f"{type(self).__name__} does not define plain_dense")

    def unit_dense(self, x: Any, units: int) -> Any:
        """A linear layer without bias, [B, F] to [B, units]. The weights of each output have the Euclidean norm 1,
        because each update ends with a division by the norm (Lee et al. 2025, section 4).
        """
        raise NotImplementedError(f"{type(self).__name__} does not define unit_dense")

    def convolution(self, x: Any, filters: int, size: int, strides: int) -> Any:
        """Convolve [B, height, width, channels] without padding."""
        raise NotImplementedError(f"{type(self).__name__} does not define convolution")

    def doubled_convolution(self, x: Any, filters: int, size: int) -> Any:
        """Double the height and the width of [B, height, width, channels]. Then convolve, with zeros around the image.

        :param size: height and width of the kernel, odd
        """
        ops, (height, width, channels) = self.ops, x.shape[1:]
        x = ops.reshape(ops.stack([x, x], axis=2), (-1, 2 * height, width, channels))
        x = ops.reshape(ops.stack([x, x], axis=3), (-1, 2 * height, 2 * width, channels))
        return SameConv2d(filters, size, 1).applied(self, x)

    def pooled_convolution(self, x: Any, filters: int, size: int) -> Any:
        """Convolve [B, height, width, channels] with zeros around the image. Then take the maximum of each square of
        four pixels. The result is [B, height / 2, width / 2, filters].

        :param size: height and width of the kernel, odd
        """
        height, width = x.shape[1:3]
        x = SameConv2d(filters, size, 1).applied(self, x)
        return self.ops.max(self.ops.reshape(x, (-1, height // 2, 2, width // 2, 2, filters)), axis=(2, 4))

    def noisy_dense(self, x: Any, units: int) -> Any:
        """y = (w_mu + w_sigma * e_w) x + b_mu + b_sigma * e_b with factorised Gaussian noise e.

        Fortunato et al. 2018, section 3, equations 9 to 11. In updates, each call draws new noise and stores it. In
        predictions, the layer uses the stored noise, which ``Architecture`` draws again before each prediction.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define noisy_dense")

    def layernorm(self, x: Any) -> Any:
        """Layer normalisation: [..., F] is scaled to mean 0 and standard deviation 1 over F. Then it is multiplied by a
        trained scale, and a trained offset is added (Ba et al. 2016, equation 4).
        """
        centred = x - self.ops.mean(x, axis=-1, keepdims=True)
        normalized = centred / self.ops.sqrt(self.ops.mean(self.ops.square(centred), axis=-1, keepdims=True) + 1e-5)
        scale, offset = (self.trained_row(x, x.shape[-1], Constant(first), lambda row: row) for first in (1.0, 0.0))
        return normalized * scale + offset

    def rmsnorm_silu(self, x: Any) -> Any:
        """y * sigmoid(y), where y is [..., F] divided by its root mean square over F, times a trained scale (Zhang &
        Sennrich 2019).
        """
        size = self.ops.sqrt(self.ops.mean(self.ops.square(x), axis=-1, keepdims=True) + RMS_EPSILON)
        x = x / size * self.trained_row(x, x.shape[-1], Constant(1.0), lambda row: row)
        return x * self.ops.sigmoid(x)

    def dense_blocks(self, x: Any, units: int, shared: Any = None) -> Any:
        """A separate fully connected layer for each block, [B, blocks, F] to [B, blocks, units].

        :param shared: [B, S], more inputs of each block; None for no other inputs
        """
        raise NotImplementedError(f"{type(self).__name__} does not define dense_blocks")

    def batchnorm(self, x: Any) -> Any:
        """Batch normalisation over all dimensions but the last (Ioffe & Szegedy 2015, algorithm 1)."""
        raise NotImplementedError(f"{type(self).__name__} does not define batchnorm")

    def batch_renorm(self, x: Any, warm_up: int) -> Any:
        """Batch normalisation; after ``warm_up`` training passes, batch renormalisation (see ``renormalized``)."""
        raise NotImplementedError(f"{type(self).__name__} does not define batch_renorm")

    def dropout(self, x: Any, rate: float) -> Any:
        """Dropout: in training, set the share ``rate`` of the elements of ``x`` to zero."""
        raise NotImplementedError(f"{type(self).__name__} does not define dropout")

    def lstm(self, x: Any, h: Any, c: Any, cells: int) -> tuple[Any, Any, Any]:
        """An LSTM (Hochreiter & Schmidhuber 1997) over N sequences of T steps. ``x`` has N * T rows; the steps of a
        sequence are next to each other.

        N is the number of rows of the initial state ``h`` and ``c`` [N, cells]. So the same call serves acting (one
        row, one state) and learning from an episode (T rows, one state). The forget gate starts open (Jozefowicz et al.
        2015).

        :return: [N * T, cells], and the last state ``h`` and ``c``
        """
        raise NotImplementedError(f"{type(self).__name__} does not define lstm")

    def trained_row(self, x: Any, size: int, initializer: Initializer, function: Callable[[Any], Any]) -> Any:
        """[B, size], B equal rows: ``function`` of a trained vector [size]. B is the number of rows of ``x``."""
        raise NotImplementedError(f"{type(self).__name__} does not define trained_row")

    def constant(self, array: np.ndarray) -> Any:
        """A float32 array that is not trained."""
        return array.astype(np.float32)

    def module(self, module_class: Any, x: Any) -> Any:
        """Apply a PyTorch module to ``x``. ``module_class`` gets the shape of ``x`` without the batch dimension.

        :raises CoachError: if the framework is not PyTorch
        """
        raise CoachError(f"'{module_class.__name__}' is a module of PyTorch: use -f torch")

    def native(self, layer: Any, x: Any) -> Any:
        """Apply a layer of the framework itself, such as a Keras layer, to ``x``.

        :raises CoachError: if ``layer`` is not a layer of this framework
        """
        raise CoachError(
            f"a network cannot have a layer {layer!r}: use Dense, Conv2d, NoisyNetDense, LayerNorm, "
            f"Flatten, BatchnormActivationDropout or a subclass of rl_coach.architectures.layers.Layer"
        )
