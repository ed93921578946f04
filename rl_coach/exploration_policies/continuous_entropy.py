"""Draws continuous actions from the agent's own distribution."""

from __future__ import annotations

from rl_coach.exploration_policies.additive_noise import AdditiveNoise, AdditiveNoiseParameters


class ContinuousEntropyParameters(AdditiveNoiseParameters):
    """Continuous actions are drawn with the agent's own mean and standard deviation. The agent's loss keeps the entropy
    high."""

    path = "rl_coach.exploration_policies.continuous_entropy:ContinuousEntropy"


class ContinuousEntropy(AdditiveNoise):
    """``AdditiveNoise`` for agents that predict a mean and a standard deviation, and have an entropy bonus in their
    loss. Training uses the predicted deviation."""
