"""Selects the number of threads for the networks of a run.

Steps per second on two cores, with one thread and with two threads. On TensorFlow: DQN with 256 x 512 units and a batch
of 32: 660 and 570. SAC with 256 x 256 units and a batch of 256: 115 and 170. DDPG with 400 x 300 units and a batch of
64, just above the limit: 126 and 157. On JAX: DDPG 146 and 211, PPO in eight environments 12,600 and 9,700, SAC 125 and
170. For networks of 64 x 64 units and for other presets, the differences are within the noise of the machine. MXNet
compiles nothing and keeps its default.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Mapping

from rl_coach.architectures import schemes
from rl_coach.architectures.layers import Layer
from rl_coach.architectures.network_inputs import NetworkInput, embedded_names
from rl_coach.base_parameters import EmbeddingMergerType, Frameworks, NetworkParameters
from rl_coach.spaces import BoxActionSpace, RewardSpace, SpacesDefinition, StateSpace, VectorObservationSpace
from rl_coach.utils import CoachError

LARGE_PRODUCT = 6_000_000
"""Number of multiply-adds of one layer for a batch. From this number on, updates are faster with a second thread."""
ACTING_THREADS = 2
"""Threads for acting with heavy networks. One row at a time is not enough work for more threads."""
GUESSED_SIZE = 256
"""Assumed size of an observation as long as the environment does not exist."""
HEAVY_NETWORK = 1_000_000
"""Number of trained parameters of a network. Above this number, acting uses a second thread."""
_VARIABLES = {
    Frameworks.tensorflow: "TF_NUM_INTRAOP_THREADS",
    Frameworks.jax: "NPROC",
    Frameworks.mxnet: "OMP_NUM_THREADS",
    Frameworks.torch: "OMP_NUM_THREADS",
}


def set_num_threads(
    framework: Frameworks, wanted: int | None, networks: Mapping[str, NetworkParameters], spaces: SpacesDefinition
) -> None:
    """Set the number of threads of a framework. Call this function before the framework's first computation in this
    process: later it has no effect.

    If the user has set the framework's environment variable, its value is used, unless ``wanted`` is given.

    :param wanted: ``TaskParameters.num_threads``; None decides by the size of the networks
    :param networks: the agent's networks by name
    :param spaces: the agent's spaces
    :raises CoachError: if ``wanted`` is below 1
    """
    if wanted is not None and wanted < 1:
        raise CoachError(f"num_threads must be at least 1, not {wanted}")
    if wanted is not None and framework in _VARIABLES:
        _set(framework, wanted)
    elif framework in (Frameworks.tensorflow, Frameworks.jax, Frameworks.torch):
        largest = max(largest_product(name, network, spaces) for name, network in networks.items())
        if largest < LARGE_PRODUCT and _VARIABLES[framework] not in os.environ:
            _set(framework, 1)


def _set(framework: Frameworks, number: int) -> None:
    os.environ[_VARIABLES[framework]] = str(number)
    torch = sys.modules.get("torch")
    if framework is Frameworks.torch and torch is not None:
        # an imported PyTorch does not read the variable again; presets with a user's module import it
        torch.set_num_threads(number)


def set_num_threads_early(framework: Frameworks, wanted: int | None, networks: Mapping[str, NetworkParameters]) -> None:
    """Set the number of threads before the environment's spaces are known. This is for environments that use the
    framework when they are imported. Observations and goals are assumed to be vectors of ``GUESSED_SIZE`` numbers.

    Measured on JAX, on two cores: PPO with 64 x 64 units in a compiled loop makes 99,000 steps per second with one
    thread. With two threads it makes 81,000 steps per second and takes 1.6 times the processor time.
    """
    names = {name for network in networks.values() for name in network.input_embedders_parameters}
    vector = VectorObservationSpace(GUESSED_SIZE)
    states = StateSpace(dict.fromkeys(names - {"goal", "action"}, vector))
    spaces = SpacesDefinition(states, vector, BoxActionSpace(GUESSED_SIZE), RewardSpace(1))
    set_num_threads(framework, wanted, networks, spaces)


def largest_product(name: str, network: NetworkParameters, spaces: SpacesDefinition) -> float:
    """The number of multiply-adds for one batch in the largest layer of a network's embedders and middleware. It is
    infinite for a network with convolutions.

    :param name: the network's name, for messages
    :param spaces: the agent's spaces
    :raises CoachError: if an input of the network does not exist
    """
    if not network.input_embedders_parameters:
        return 0.0  # a network of single values has no layers
    largest, widths = 0.0, []
    for input_name in embedded_names(network, name):
        given, embedder = NetworkInput.named(input_name, spaces, name), network.input_embedders_parameters[input_name]
        product, width = _through(given.layers(embedder), math.prod(given.shape))
        largest = max(largest, product)
        widths.append(width)
    width = sum(widths) if network.embedding_merger_type == EmbeddingMergerType.Concat else max(widths)
    layers = schemes.resolve_layers(network.middleware_parameters, schemes.MIDDLEWARE)
    product, width = _through(layers, width)
    return network.batch_size * max(largest, product)


def _through(layers: list, width: int) -> tuple[float, int]:
    """The largest number of multiply-adds of one layer for a row of ``width`` numbers, and the size of the output."""
    largest = 0.0
    for layer in layers:
        if isinstance(layer, Layer):  # the size of a framework's own layers is not known
            product, width = layer.multiply_adds(width)
            largest = max(largest, product)
    return largest, width


def num_acting_threads(num_parameters: int, has_convolutions: bool) -> int:
    """The number of threads to use for one prediction of a network.

    :param num_parameters: number of trained parameters of the network
    """
    is_heavy = has_convolutions or num_parameters > HEAVY_NETWORK
    return min(ACTING_THREADS, os.cpu_count() or 1) if is_heavy else 1
