"""The framework of ``-f tensorflow``."""

from __future__ import annotations

import numpy as np

from rl_coach.architectures.framework import Framework
from rl_coach.architectures.keras_components.network import KerasNetwork
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.tensorflow_components.learner import TensorFlowLearner
from rl_coach.architectures.tensorflow_components.network_state import TensorFlowNetworkState
from rl_coach.architectures.tensorflow_components.onnx_export import export
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


class TensorFlowFramework:
    """See ``Framework``."""

    def make_function(
        self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator
    ) -> KerasNetwork:
        return KerasNetwork(parameters, spaces, name, rng)

    def hold(self, function: NetworkFunction, has_target: bool) -> TensorFlowNetworkState:
        return TensorFlowNetworkState(function, has_target)

    def make_learner(
        self, step: TrainingStep, networks: dict[str, TensorFlowNetworkState], published: tuple[str, ...]
    ) -> TensorFlowLearner:
        return TensorFlowLearner(step, networks, published)

    def export_network(self, network: TensorFlowNetworkState) -> ExportedNetwork:
        return export(network.function)


FRAMEWORK: Framework = TensorFlowFramework()
