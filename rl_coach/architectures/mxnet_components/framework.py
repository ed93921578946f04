"""What ``-f mxnet`` means: how networks are held, taught and asked."""

from __future__ import annotations

import numpy as np

from rl_coach.architectures.mxnet_components.learner import MXNetLearner
from rl_coach.architectures.mxnet_components.network import MXNetNetwork
from rl_coach.architectures.mxnet_components.network_state import MXNetNetworkState
from rl_coach.architectures.mxnet_components.onnx_export import export
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


def make_network(
    parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator, has_target: bool
) -> MXNetNetworkState:
    """Build a network with weights drawn from ``rng``."""
    return MXNetNetworkState(MXNetNetwork(parameters, spaces, name, rng), has_target)


def make_learner(
    step: TrainingStep, networks: dict[str, MXNetNetworkState], published: tuple[str, ...]
) -> MXNetLearner:
    """A learner of these networks; all weights cost the same to read here, those of ``published`` and the others."""
    return MXNetLearner(step, networks)


def export_network(network: MXNetNetworkState) -> ExportedNetwork:
    """The network as an ONNX graph with weights as inputs."""
    return export(network.function)
