"""The ``Framework`` object of ``-f mxnet``."""

from __future__ import annotations

from rl_coach.architectures.array_components.network import ArrayNetwork
from rl_coach.architectures.array_components.onnx_export import export
from rl_coach.architectures.framework import Framework
from rl_coach.architectures.mxnet_components import ops
from rl_coach.architectures.mxnet_components.compatible_mxnet import numpy_semantics
from rl_coach.architectures.mxnet_components.learner import MXNetLearner, MXNetNetworkState


class MXNetNetwork(ArrayNetwork):
    """A network on MXNet; see ``ArrayNetwork``. The state of random generators stays in NumPy arrays."""

    ops = ops
    __call__ = numpy_semantics(ArrayNetwork.__call__)
    _draw = numpy_semantics(ArrayNetwork._draw)


FRAMEWORK = Framework(MXNetNetwork, MXNetNetworkState, MXNetLearner, export)
