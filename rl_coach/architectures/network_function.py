"""The seams between networks, the frameworks that hold them, and those who use them."""

from __future__ import annotations

from typing import Any, Protocol, Sequence

import numpy as np

Outputs = list[dict[str, Any]]


class NetworkFunction(Protocol):
    """A network as a pure function of its weights; ``KerasNetwork``, ``MXNetNetwork`` and ``ValuesFunction`` are some.

    :ivar parameters: the network's parameters
    :ivar input_shapes: the shape of one row of each input, by name
    :ivar recurrent_sizes: size of each part of the state that the network carries from step to step
    :ivar public_outputs: results of ``predict``, as numbers of heads and names of their outputs
    :ivar head_outputs: the names of each head's outputs, public or not; None where only those that act are known
    :ivar noise_buffers: the buffers that hold NoisyNet's noise, by their position among the float buffers
    :ivar kept_names: the names of buffers that an update rule may replace, which are all or none of them
    :ivar is_decayed: for each weight, that l2 regularisation counts it
    """

    parameters: Any
    input_shapes: dict[str, tuple[int, ...]]
    recurrent_sizes: dict[str, int]
    public_outputs: list[tuple[int, str]]
    head_outputs: list[tuple[str, ...]] | None
    kept_names: tuple[str, ...]
    is_decayed: list[bool]

    @property
    def noise_buffers(self) -> list[int]: ...

    def initial_weights(self) -> list[np.ndarray]:
        """The trained weights as they were drawn."""
        ...

    def initial_buffers(self) -> list[np.ndarray]:
        """The untrained state as it begins."""
        ...

    def __call__(
        self,
        weights: Sequence,
        buffers: Sequence,
        inputs: dict[str, Any],
        training: bool,
        single_step: bool = False,
        draws_noise: bool = False,
    ) -> tuple[Outputs, dict[str, Any], list]:
        """The outputs for given weights.

        :param inputs: [B, ...] by name, of any dtype; a recurrent network's state starts at zero if it is not there
        :param training: batch normalisation over the batch, and dropout
        :param single_step: each row is a sequence of its own with one step
        :param draws_noise: NoisyNet layers draw new noise; otherwise they use that of the buffers
        :return: a dict of outputs for each head, the new recurrent state, the new buffers
        """
        ...

    def with_random_state(self, buffers: list, source: list) -> list:
        """The buffers with the state of random generators taken from other ones."""
        ...

    def summary(self) -> str:
        """The layers with their shapes and numbers of parameters, as text."""
        ...
