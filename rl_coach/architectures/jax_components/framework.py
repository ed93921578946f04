"""The framework of ``-f jax``."""

from __future__ import annotations

from rl_coach.architectures.framework import Framework
from rl_coach.architectures.jax_components.compiled_evaluation import JaxCompiledEvaluation
from rl_coach.architectures.jax_components.compiled_loop import JaxCompiledLoop
from rl_coach.architectures.jax_components.compiled_seeds import JaxCompiledSeeds
from rl_coach.architectures.jax_components.layers import JaxNetwork
from rl_coach.architectures.jax_components.learner import JaxLearner, JaxNetworkState
from rl_coach.architectures.jax_components.onnx_export import export

FRAMEWORK = Framework(
    JaxNetwork, JaxNetworkState, JaxLearner, export, JaxCompiledLoop, JaxCompiledSeeds, JaxCompiledEvaluation
)
