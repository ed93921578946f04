"""Draws continuous actions from the agent's own distribution."""

from __future__ import annotations

from rl_coach.exploration_policies.additive_noise import AdditiveNoise, AdditiveNoiseParameters


class ContinuousEntropyParameters(AdditiveNoiseParameters):
    """The agent's own mean and standard deviation; the agent's loss maintains the entropy."""

    path = "rl_coach.exploration_policies.continuous_entropy:ContinuousEntropy"


class ContinuousEntropy(AdditiveNoise):
    """``AdditiveNoise`` for agents that predict a mean and a standard deviation, and have an entropy bonus in their
    loss. Training uses the predicted deviation.
    """
