"""Networks on PyTorch."""

from __future__ import annotations

from rl_coach.architectures.array_components.network import ArrayNetwork
from rl_coach.architectures.torch_components import ops


class TorchNetwork(ArrayNetwork):
    """See ``ArrayNetwork``."""

    ops = ops
