"""Layers with weights and features on hyperspheres (Lee et al. 2025, "Hyperspherical normalization for scalable deep
reinforcement learning", SimbaV2)."""

from __future__ import annotations

import math
from typing import Any

from rl_coach.architectures.initializers import Constant
from rl_coach.architectures.layers import Layer, Layers, UnitsLayer
from rl_coach.utilities.requirements import number, whole

_TINY = 1e-8  # above 0, so that a hidden layer of zeros still has a direction
_SMALLEST_SQUARE = 1e-24


def on_sphere(ops: Any, x: Any) -> Any:
    """``x`` divided by its Euclidean norm over the last axis; zeros stay zeros."""
    # the bound is on the square, because the slope of the square root is infinite at 0
    return x / ops.sqrt(ops.maximum(ops.sum(ops.square(x), axis=-1, keepdims=True), _SMALLEST_SQUARE))


def scaled(layers: Layers, x: Any, initial: float, rate: float) -> Any:
    """``x`` [B, F] times a trained vector [F] that starts at ``initial``.

    :param rate: the trained numbers start at ``rate`` and are multiplied by ``initial / rate``. This also scales the
        optimizer's steps by ``initial / rate``
    """
    factor = initial / rate
    return x * layers.trained_row(x, x.shape[-1], Constant(rate), lambda row: row * factor)


class SphereEmbedding(Layer):
    """The first layer: appends a constant to the input, divides by the norm, applies a scaled linear layer, and divides
    by the norm again.

    The constant preserves the length of the input. Without it, inputs with the same direction and different lengths
    would become equal.

    :param units: d, the number of outputs
    :param shift: the constant; with a large constant, the direction depends only a little on the input
    """

    constraints = {"units": whole(1), "shift": number(above=0)}

    def __init__(self, units: int, shift: float = 3.0):
        self.units = units
        self.shift = shift

    def applied(self, layers: Layers, x: Any) -> Any:
        ops = layers.ops
        x = on_sphere(ops, ops.concatenate([x, self.shift * ops.ones_like(x[:, :1])], axis=-1))
        initial = math.sqrt(2.0 / self.units)
        return on_sphere(ops, scaled(layers, layers.unit_dense(x, self.units), initial, initial))

    def multiply_adds(self, width: int) -> tuple[float, int]:
        return float((width + 1) * self.units), self.units


class LerpBlock(Layer):
    """A step of h on the sphere towards the output of two linear layers: (1 - alpha) h + alpha MLP(h), normalised.

    MLP(h) is W2 relu(s W1 h), divided by its norm. s and alpha are trained vectors.

    :param depth: L, the number of these blocks in the network; alpha starts at 1 / (L + 1)
    :param expansion: the width of the hidden layer, as a multiple of the width of the input
    """

    constraints = {"depth": whole(1), "expansion": whole(1)}

    def __init__(self, depth: int = 1, expansion: int = 4):
        self.depth = depth
        self.expansion = expansion

    def applied(self, layers: Layers, x: Any) -> Any:
        ops, size = layers.ops, x.shape[-1]
        hidden = layers.unit_dense(x, self.expansion * size)
        initial = math.sqrt(2.0 / (self.expansion * size))
        hidden = ops.relu(scaled(layers, hidden, initial, initial)) + _TINY
        towards = on_sphere(ops, layers.unit_dense(hidden, size))
        step = scaled(layers, towards - x, 1.0 / (self.depth + 1), 1.0 / math.sqrt(size))
        return on_sphere(ops, x + step)

    def multiply_adds(self, width: int) -> tuple[float, int]:
        return 2.0 * self.expansion * width * width, width


class SphereOutput(UnitsLayer):
    """The last layer, for outputs of any size: a scaled linear layer, a second linear layer, and a trained offset."""

    def applied(self, layers: Layers, x: Any) -> Any:
        hidden = scaled(layers, layers.unit_dense(x, x.shape[-1]), 1.0, 1.0)
        outputs = layers.unit_dense(hidden, self.units)
        return outputs + layers.trained_row(x, self.units, Constant(0.0), lambda row: row)

    def multiply_adds(self, width: int) -> tuple[float, int]:
        return float(width * width + width * self.units), self.units
