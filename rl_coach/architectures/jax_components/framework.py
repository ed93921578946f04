"""The framework of ``-f jax``."""

from __future__ import annotations

import numpy as np

from rl_coach.architectures.framework import Framework
from rl_coach.architectures.jax_components.learner import JaxLearner
from rl_coach.architectures.jax_components.network_state import JaxNetworkState
from rl_coach.architectures.jax_components.onnx_export import export
from rl_coach.architectures.keras_components.network import KerasNetwork
from rl_coach.architectures.network_function import NetworkFunction
from rl_coach.architectures.onnx_predictor import ExportedNetwork
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import SpacesDefinition


class JaxFramework:
    """See ``Framework``."""

    def make_function(
        self, parameters: NetworkParameters, spaces: SpacesDefinition, name: str, rng: np.random.Generator
    ) -> KerasNetwork:
        return KerasNetwork(parameters, spaces, name, rng)

    def hold(self, function: NetworkFunction, has_target: bool) -> JaxNetworkState:
        return JaxNetworkState(function, has_target)

    def make_learner(
        self, step: TrainingStep, networks: dict[str, JaxNetworkState], published: tuple[str, ...]
    ) -> JaxLearner:
        # all weights cost little to read here, published or not
        return JaxLearner(step, networks)

    def export_network(self, network: JaxNetworkState) -> ExportedNetwork:
        return export(network.function)


FRAMEWORK: Framework = JaxFramework()
