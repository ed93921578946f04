"""Layers as plain descriptions; each framework turns them into its own."""

from __future__ import annotations

from typing import Any, ClassVar, Mapping

from rl_coach.utilities.constraints import FLAG, TEXT, Constrained, Constraint, list_of, number, optional, whole

_EXTENT = whole(1) | list_of(whole(1))


class _Layer(Constrained):
    """Two descriptions of one class with equal settings are equal."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), str(sorted(vars(self).items()))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


class Conv2d(_Layer):
    """A convolution over height and width, without padding.

    :param num_filters: output channels
    :param kernel_size: height and width of the kernel
    :param strides: steps between two applications
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "num_filters": whole(1),
        "kernel_size": _EXTENT,
        "strides": _EXTENT,
    }

    def __init__(self, num_filters: int, kernel_size: int, strides: int):
        self.num_filters = num_filters
        self.kernel_size = kernel_size
        self.strides = strides


class BatchnormActivationDropout(_Layer):
    """Batch normalisation, then an activation, then dropout; each of them optional.

    :param activation_function: ``'relu'``, ``'tanh'``, ``'sigmoid'``, ``'elu'``, ``'selu'``, ``'leaky_relu'``,
        ``'none'`` or None
    :param dropout_rate: the share of activations set to zero in training; 0 is off
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "batchnorm": FLAG,
        "activation_function": optional(TEXT),
        "dropout_rate": number(0, below=1),
    }

    def __init__(self, batchnorm: bool = False, activation_function: Any = None, dropout_rate: float = 0):
        self.batchnorm = batchnorm
        self.activation_function = activation_function
        self.dropout_rate = dropout_rate


class Dense(_Layer):
    """A fully connected layer."""

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "units": whole(1),
    }

    def __init__(self, units: int):
        self.units = units


class NoisyNetDense(_Layer):
    """A fully connected layer whose weights carry learned factorised Gaussian noise (Fortunato et al. 2018)."""

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "units": whole(1),
    }

    def __init__(self, units: int):
        self.units = units


class Flatten(_Layer):
    """All dimensions but the batch become one."""
