"""Networks as pure functions of their weights: the interface for frameworks, learners and agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Sequence

import numpy as np

from rl_coach.base_parameters import NetworkParameters
from rl_coach.utils import CoachError

Outputs = list[dict[str, Any]]


@dataclass(frozen=True)
class NetworkParts:
    """The parts of a network with given weights, for update rules that call them separately.

    :param embed: the joined output of the embedders [B, E], of observations [B, ...] by name
    :param advance: the features and the new recurrent state, of an embedding [B, E] and the recurrent state [B, size]
        by name; each row is one step of a separate sequence
    :param head: the outputs of the head with a number, of features as ``advance`` gives them
    """

    embed: Callable[[dict[str, Any]], Any]
    advance: Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any]]]
    head: Callable[[int, Any], dict[str, Any]]


class NetworkFunction:
    """Base class of networks. A network has no weights inside: the caller passes them to each call.

    The same network therefore computes with the online weights, the target weights, and the weights within a compiled
    step. ``weights`` are trained. ``buffers`` are not trained: they are statistics of batch normalisation, noise, and
    states of random generators. A call returns their new values.

    :param parameters: the network's parameters
    :param name: its name, for messages

    :ivar input_shapes: the shape of one row of each input, by name
    :ivar recurrent_sizes: size of each part of the state that the network carries from step to step
    :ivar public_outputs: the results of ``predict``, each as the number of a head and the name of one of its outputs
    :ivar head_outputs: the names of each head's outputs, public or not; None if only the public outputs are known
    :ivar noise_buffers: the buffers that hold NoisyNet's noise, by their position among the float buffers
    :ivar unit_columns: positions of the weights with columns that each update divides by their norms
    :ivar convolution_weights: kernels and biases of convolutions, by their position
    :ivar kept_names: the names of the buffers that an update rule may replace: all buffers or none
    :ivar order: for ``weights`` and ``buffers``, the place of each array in the order of the layers. This order is the
        same on each framework. Empty if it is unknown
    """

    def __init__(self, parameters: NetworkParameters, name: str):
        self.parameters = parameters
        self.name = name
        self.input_shapes: dict[str, tuple[int, ...]] = {}
        self.recurrent_sizes: dict[str, int] = {}
        self.public_outputs: list[tuple[int, str]] = []
        self.head_outputs: list[tuple[str, ...]] | None = None
        self.noise_buffers: list[int] = []
        self.unit_columns: list[int] = []
        self.convolution_weights: list[int] = []
        self.kept_names: tuple[str, ...] = ()
        self.order: dict[str, list[int]] = {}
        self._weights: Sequence[Any] = []
        self._buffers: Sequence[Any] = []

    def __call__(
        self, weights: Sequence, buffers: Sequence, inputs: dict[str, Any], training: bool, single_step: bool = False,
        draws_noise: bool = False,
    ) -> tuple[Outputs, dict[str, Any], list]:  # fmt: skip
        """The outputs for given weights.

        :param inputs: [B, ...] by name, of any dtype; a recurrent network's state starts at zero if it is not there
        :param training: batch normalisation over the batch, and dropout
        :param single_step: each row is a separate sequence with one step
        :param draws_noise: NoisyNet layers draw new noise; otherwise they use the noise in the buffers
        :return: a dict of outputs for each head, the new recurrent state, the new buffers
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what it computes")

    def in_parts(self, weights: Sequence) -> NetworkParts:
        """The parts of the network for given weights.

        :raises CoachError: if the network cannot be called in parts
        """
        raise CoachError(f"network '{self.name}' cannot be called in parts")

    def initial_weights(self) -> list[np.ndarray]:
        """The initial values of the trained weights."""
        return [np.array(weight) for weight in self._weights]

    def initial_buffers(self) -> list[np.ndarray]:
        """The initial values of the untrained state."""
        return [np.array(buffer) for buffer in self._buffers]

    @property
    def is_decayed(self) -> list[bool]:
        """For each weight, that l2 regularisation counts it: kernels alone, as is usual, not biases and scales."""
        return [len(weight.shape) > 1 for weight in self._weights]

    def with_random_state(self, buffers: Sequence, source: Sequence) -> list:
        """The buffers with the state of random generators, which is no float, taken from other ones."""
        own = [np.dtype(buffer.dtype) == np.float32 for buffer in self._buffers]
        return [mine if is_own else other for mine, other, is_own in zip(buffers, source, own)]

    def summary(self) -> str:
        """The weights' shapes and the number of parameters, as text."""
        lines = [f"network '{self.name}'"]
        lines += [f"  weight_{i:<4} {'x'.join(map(str, weight.shape))}" for i, weight in enumerate(self._weights)]
        return "\n".join([*lines, f"  {sum(weight.size for weight in self._weights):,} parameters"])
