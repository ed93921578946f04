"""Embedders, middleware and head of a network that reads trajectories as tokens (Chen et al. 2021, "Decision
Transformer: reinforcement learning via sequence modeling", section 3).

A step has three tokens, in this order: return to go, state, action. Each embedder outputs an array for all tokens [B, 3
K, width], with zeros for tokens of other inputs. The network adds these arrays. The features are the tokens of the
states [B, K, width] after the transformer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.embedders import InputEmbedder
from rl_coach.architectures.head_parameters import HeadParameters
from rl_coach.architectures.heads import PolicyHead
from rl_coach.architectures.layers import Layers
from rl_coach.architectures.middleware_parameters import TransformerMiddlewareParameters
from rl_coach.architectures.middlewares import State, TransformerMiddleware
from rl_coach.base_parameters import EmbedderScheme
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace
from rl_coach.utilities.requirements import optional, whole

RETURN, STATE, ACTION = range(3)
"""The positions of a step's tokens."""
TOKENS = 3


class TokenEmbedder(InputEmbedder):
    """Embeds the numbers [B, K, D] of each step with a linear layer. The result is one of the step's tokens, or is
    added to all of the step's tokens.
    """

    parameters: TokenEmbedderParameters

    def embed(self, layers: Layers, x: Any) -> Any:
        ops, width, token = layers.ops, self.parameters.width, self.parameters.token
        own = layers.dense(x, width)
        other = ops.zeros_like(own)
        tokens = ops.stack([own if token in (None, one) else other for one in range(TOKENS)], axis=2)
        return ops.reshape(tokens, (-1, TOKENS * int(x.shape[1]), width))


class TimeEmbedder(TokenEmbedder):
    """Embeds each time step [B, K, 1] of an episode as a trained vector. The last vector is also used for all later
    steps.
    """

    parameters: TimeEmbedderParameters

    def embed(self, layers: Layers, x: Any) -> Any:
        ops, count = layers.ops, self.parameters.max_timestep
        # a one-hot vector for each step, so that the dense layer looks up a row
        # computed from distances, because the operations that record ONNX graphs have no one_hot
        distance = ops.abs(ops.minimum(x, float(count - 1)) - layers.constant(np.arange(count)))
        return super().embed(layers, ops.maximum(1.0 - distance, 0.0))


class TrajectoryMiddleware(TransformerMiddleware):
    """A transformer over normalised tokens. The features are the tokens of the states [B, K, width]."""

    def __call__(self, layers: Layers, x: Any, state: State) -> tuple[Any, State]:
        return super().__call__(layers, layers.layernorm(x), state)

    def read(self, layers: Layers, x: Any) -> Any:
        width = int(x.shape[-1])
        steps = layers.ops.reshape(x, (-1, int(x.shape[1]) // TOKENS, TOKENS * width))
        return steps[:, :, STATE * width : (STATE + 1) * width]


class ActionOfStepHead(PolicyHead):
    """The action of each step. Discrete: ``probabilities``, ``log_probabilities`` and ``logits`` [B, K, A]. Continuous:
    ``mean`` [B, K, A], within the bounds of a bounded space."""

    supported_actions = (DiscreteActionSpace, BoxActionSpace)

    def __call__(self, layers: Layers, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        return (
            super().__call__(layers, features, inputs) if self.is_discrete else {"mean": self._mean(layers, features)}
        )


class TokenEmbedderParameters(InputEmbedderParameters):
    """Settings of the embedder of an input.

    :param token: ``RETURN``, ``STATE`` or ``ACTION``; None adds the embedding to all tokens of a step
    :param width: the size of each token
    """

    constraints = {"token": optional(whole(0, TOKENS - 1)), "width": whole(1)}

    def __init__(self, token: int | None = STATE, width: int = 128):
        super().__init__(scheme=EmbedderScheme.Empty)
        self.token, self.width = token, width

    @property
    def path(self) -> str:
        return f"{__name__}:TokenEmbedder"


class TimeEmbedderParameters(TokenEmbedderParameters):
    """Settings of the embedder of time steps. :param max_timestep: number of different vectors"""

    constraints = {"max_timestep": whole(1)}

    def __init__(self, width: int = 128, max_timestep: int = 1000):
        super().__init__(None, width)
        self.max_timestep = max_timestep

    @property
    def path(self) -> str:
        return f"{__name__}:TimeEmbedder"


class TrajectoryMiddlewareParameters(TransformerMiddlewareParameters):
    """Settings of the transformer over trajectories. The defaults come from the paper."""

    def __init__(self, width: int = 128, heads: int = 1, blocks: int = 3, dropout_rate: float = 0.1):
        super().__init__(width, heads, blocks, dropout_rate)
        self.parameterized_class_name = f"{__name__}:TrajectoryMiddleware"


class ActionOfStepHeadParameters(HeadParameters):
    """Settings of the head that predicts the action of each step."""

    def __init__(self) -> None:
        super().__init__(f"{__name__}:ActionOfStepHead")
