"""What ``-f jax`` means: how networks are held, taught and asked."""

from __future__ import annotations

import numpy as np

from rl_coach.architectures.jax_components.learner import JaxLearner
from rl_coach.architectures.jax_components.network_state import JaxNetworkState
from rl_coach.architectures.jax_components.onnx_export import export
from rl_coach.architectures.keras_components.network import KerasNetwork
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


def make_network(
    parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator, has_target: bool
) -> JaxNetworkState:
    """Build a network with weights drawn from ``rng``."""
    return JaxNetworkState(KerasNetwork(parameters, spaces, name, rng), has_target)


def make_learner(step: TrainingStep, networks: dict[str, JaxNetworkState], published: tuple[str, ...]) -> JaxLearner:
    """A learner of these networks; all weights cost little to read here, those of ``published`` and the others."""
    return JaxLearner(step, networks)


def export_network(network: JaxNetworkState) -> ExportedNetwork:
    """The network as an ONNX graph with weights as inputs."""
    return export(network.function)
