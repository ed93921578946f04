"""The layers under Coach 1's import path. They are the same on every framework."""

from rl_coach.architectures.layers import BatchnormActivationDropout, Conv2d, Dense, Flatten, LayerNorm, NoisyNetDense

__all__ = ["BatchnormActivationDropout", "Conv2d", "Dense", "Flatten", "LayerNorm", "NoisyNetDense"]
