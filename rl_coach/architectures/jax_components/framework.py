"""The ``Framework`` object of ``-f jax``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rl_coach.architectures.framework import Framework
from rl_coach.architectures.jax_components.compiled_evaluation import JaxCompiledEvaluation
from rl_coach.architectures.jax_components.compiled_loop import JaxCompiledLoop
from rl_coach.architectures.jax_components.compiled_seeds import JaxCompiledSeeds
from rl_coach.architectures.jax_components.device_mesh import DeviceMesh
from rl_coach.architectures.jax_components.layers import JaxNetwork
from rl_coach.architectures.jax_components.learner import JaxLearner, JaxNetworkState
from rl_coach.architectures.jax_components.onnx_export import export


def _divided(num_devices: int) -> Framework:
    return replace(FRAMEWORK, make_learner=partial(JaxLearner, mesh=DeviceMesh(num_devices)))


FRAMEWORK = Framework(
    JaxNetwork, JaxNetworkState, JaxLearner, export, JaxCompiledLoop, JaxCompiledSeeds, JaxCompiledEvaluation, _divided
)
