"""The ``Framework`` object of ``-f torch``."""

from __future__ import annotations

from rl_coach.architectures.array_components.onnx_export import export
from rl_coach.architectures.framework import Framework
from rl_coach.architectures.torch_components.learner import TorchLearner, TorchNetworkState
from rl_coach.architectures.torch_components.network import TorchNetwork

FRAMEWORK = Framework(TorchNetwork, TorchNetworkState, TorchLearner, export)
