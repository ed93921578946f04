"""Networks on MXNet."""

from __future__ import annotations

from rl_coach.architectures.array_components.network import ArrayNetwork
from rl_coach.architectures.mxnet_components import ops
from rl_coach.architectures.mxnet_components.compatible_mxnet import numpy_semantics


class MXNetNetwork(ArrayNetwork):
    """See ``ArrayNetwork``. Random generators' state stays on the host."""

    ops = ops
    __call__ = numpy_semantics(ArrayNetwork.__call__)
    _draw = numpy_semantics(ArrayNetwork._draw)
