"""Weights of a policy's gradient."""

from __future__ import annotations

from enum import Enum


class PolicyGradientRescaler(Enum):
    """Weight of log pi(a|s) in a policy's gradient."""

    TOTAL_RETURN = 0
    FUTURE_RETURN = 1
    FUTURE_RETURN_NORMALIZED_BY_EPISODE = 2
    FUTURE_RETURN_NORMALIZED_BY_TIMESTEP = 3
    Q_VALUE = 4
    A_VALUE = 5
    TD_RESIDUAL = 6
    DISCOUNTED_TD_RESIDUAL = 7
    GAE = 8
