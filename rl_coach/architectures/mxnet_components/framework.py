"""The framework of ``-f mxnet``."""

from __future__ import annotations

import numpy as np

from rl_coach.architectures.framework import Framework
from rl_coach.architectures.mxnet_components.learner import MXNetLearner
from rl_coach.architectures.mxnet_components.network import MXNetNetwork
from rl_coach.architectures.mxnet_components.network_state import MXNetNetworkState
from rl_coach.architectures.mxnet_components.onnx_export import export
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


class MXNetFramework:
    """See ``Framework``."""

    def make_function(
        self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator
    ) -> MXNetNetwork:
        return MXNetNetwork(parameters, spaces, name, rng)

    def hold(self, function: NetworkFunction, has_target: bool) -> MXNetNetworkState:
        return MXNetNetworkState(function, has_target)

    def make_learner(
        self, step: TrainingStep, networks: dict[str, MXNetNetworkState], published: tuple[str, ...]
    ) -> MXNetLearner:
        # all weights cost the same to read here, published or not
        return MXNetLearner(step, networks)

    def export_network(self, network: MXNetNetworkState) -> ExportedNetwork:
        return export(network.function)


FRAMEWORK: Framework = MXNetFramework()
