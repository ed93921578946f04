"""The framework of ``-f mxnet``."""

from __future__ import annotations

from rl_coach.architectures.array_components.onnx_export import export
from rl_coach.architectures.framework import Framework
from rl_coach.architectures.mxnet_components.learner import MXNetLearner, MXNetNetworkState
from rl_coach.architectures.mxnet_components.network import MXNetNetwork

FRAMEWORK = Framework(MXNetNetwork, MXNetNetworkState, MXNetLearner, export)
