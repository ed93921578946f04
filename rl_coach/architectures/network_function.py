"""Networks as pure functions of their weights. Frameworks, learners and agents use this interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Sequence

import numpy as np

from rl_coach.base_parameters import NetworkParameters
from rl_coach.utils import CoachError

Outputs = list[dict[str, Any]]


@dataclass(frozen=True)
class NetworkParts:
    """The parts of a network with given weights, for update rules that call the parts separately.

    :param embed: a function from observations [B, ...] by name to the joined output of the embedders [B, E]
    :param advance: a function from an embedding [B, E] and the recurrent state [B, size] by name to the features and
        the new recurrent state. Each row is one step of a separate sequence
    :param head: a function from the number of a head and features (the result of ``advance``) to the outputs of the
        head
    """

    embed: Callable[[dict[str, Any]], Any]
    advance: Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any]]]
    head: Callable[[int, Any], dict[str, Any]]


class NetworkFunction:
    """Base class of networks. A network does not store weights: the caller passes them to each call.

    So the same network computes with the online weights, the target weights, and the weights within a compiled step.
    ``weights`` are trained. ``buffers`` are not trained: they are statistics of batch normalisation, noise, and states
    of random generators. A call returns the new values of the buffers.

    :param parameters: the network's parameters
    :param name: the network's name, for messages

    :ivar input_shapes: the shape of one row of each input, by name
    :ivar recurrent_sizes: size of each part of the recurrent state, by name; empty for none
    :ivar public_outputs: the outputs of ``predict``; each is the number of a head and the name of one output of this
        head
    :ivar head_outputs: the names of all outputs of each head; None if only the public outputs are known
    :ivar noise_buffers: positions of the noise of NoisyNet layers, counted among the float buffers
    :ivar unit_columns: positions of the weights with columns of norm 1: each update divides these columns by their
        norms
    :ivar convolution_weights: positions of the kernels and biases of convolutions
    :ivar kept_names: the names of the buffers that an update rule may replace: all buffers or none
    :ivar order: for ``weights`` and ``buffers``, the position of each array in the order of the layers, which is the
        same on all frameworks. Empty if unknown
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
        """Compute the outputs for given weights.

        :param inputs: [B, ...] by name, of any dtype. Without a recurrent state among the inputs, the state starts at
            zero
        :param training: True in updates: batch normalisation uses the statistics of the batch, and dropout is active
        :param single_step: True if each row is a separate sequence with one step
        :param draws_noise: True if NoisyNet layers draw new noise; otherwise they use the noise in the buffers
        :return: a dict of outputs for each head, the new recurrent state, the new buffers
        """
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")

    def in_parts(self, weights: Sequence) -> NetworkParts:
        """Functions that compute one part of the network each, with the given weights; see ``NetworkParts``.

        :raises CoachError: if the parts of this network cannot be computed separately
        """
        raise CoachError(f"network '{self.name}' cannot be called in parts")

    def initial_weights(self) -> list[np.ndarray]:
        """The initial values of the trained weights."""
        return [np.array(weight) for weight in self._weights]

    def initial_buffers(self) -> list[np.ndarray]:
        """The initial values of the buffers."""
        return [np.array(buffer) for buffer in self._buffers]

    @property
    def is_decayed(self) -> list[bool]:
        """True for each weight array that L2 regularisation includes: kernels, but not biases and scales."""
        return [len(weight.shape) > 1 for weight in self._weights]

    def with_random_state(self, buffers: Sequence, source: Sequence) -> list:
        """The float arrays of ``buffers``, and the states of random generators (not floats) of ``source``."""
        own = [np.dtype(buffer.dtype) == np.float32 for buffer in self._buffers]
        return [mine if is_own else other for mine, other, is_own in zip(buffers, source, own)]

    def summary(self) -> str:
        """A text with the shapes of the weights and the number of trained parameters."""
        lines = [f"network '{self.name}'"]
        lines += [f"  weight_{i:<4} {'x'.join(map(str, weight.shape))}" for i, weight in enumerate(self._weights)]
        return "\n".join([*lines, f"  {sum(weight.size for weight in self._weights):,} parameters"])
