"""What ``-f tensorflow`` means: how networks are held, taught and asked."""

from __future__ import annotations

import numpy as np

from rl_coach.architectures.keras_components.network import KerasNetwork
from rl_coach.architectures.native_messages import quiet_native_code
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.tensorflow_components.learner import TensorFlowLearner
from rl_coach.architectures.tensorflow_components.network_state import TensorFlowNetworkState
from rl_coach.architectures.tensorflow_components.onnx_export import export
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


def make_network(
    parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator, has_target: bool
) -> TensorFlowNetworkState:
    """Build a network with weights drawn from ``rng``."""
    return TensorFlowNetworkState(KerasNetwork(parameters, spaces, name, rng), has_target)


def make_learner(
    step: TrainingStep, networks: dict[str, TensorFlowNetworkState], published: tuple[str, ...]
) -> TensorFlowLearner:
    """A learner of these networks."""
    return TensorFlowLearner(step, networks, published)


def export_network(network: TensorFlowNetworkState) -> ExportedNetwork:
    """The network as an ONNX graph with weights as inputs."""
    with quiet_native_code():
        return export(network.function)
