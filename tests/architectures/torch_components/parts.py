"""Parameters that name the modules, for a process that may lack PyTorch."""

from __future__ import annotations

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters

MODULES = "tests.architectures.torch_components.modules"


class EncoderParameters(InputEmbedderParameters):
    @property
    def path(self):
        return f"{MODULES}:Encoder"


class ResidualParameters(FCMiddlewareParameters):
    @property
    def path(self):
        return f"{MODULES}:Residual"


class ForgetfulParameters(InputEmbedderParameters):
    @property
    def path(self):
        return f"{MODULES}:Forgetful"


class BranchingParameters(InputEmbedderParameters):
    @property
    def path(self):
        return f"{MODULES}:Branching"
