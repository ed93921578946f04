"""Parameters that name the modules, for a process that may lack PyTorch."""

from __future__ import annotations

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters

MODULES = "tests.architectures.torch_components.modules"


class EncoderParameters(InputEmbedderParameters):
    path = f"{MODULES}:Encoder"


class ResidualParameters(FCMiddlewareParameters):
    path = f"{MODULES}:Residual"


class ForgetfulParameters(InputEmbedderParameters):
    path = f"{MODULES}:Forgetful"


class BranchingParameters(InputEmbedderParameters):
    path = f"{MODULES}:Branching"
