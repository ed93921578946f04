"""The ``Framework`` object of ``-f tensorflow``."""

from __future__ import annotations

from rl_coach.architectures.framework import Framework
from rl_coach.architectures.keras_components.network import KerasNetwork
from rl_coach.architectures.tensorflow_components.learner import TensorFlowLearner, TensorFlowNetworkState
from rl_coach.architectures.tensorflow_components.onnx_export import export

FRAMEWORK = Framework(KerasNetwork, TensorFlowNetworkState, TensorFlowLearner, export)
