"""Weights of a policy's gradient: advantages, and the returns that they are made of."""

from __future__ import annotations

from enum import Enum

import numpy as np

from rl_coach.core_types import n_step_returns


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


def generalized_advantages(
    rewards: np.ndarray, values: np.ndarray, discount: float, gae_lambda: float
) -> tuple[np.ndarray, np.ndarray]:
    """A_t = sum_k (discount lambda)^k delta_{t+k} and the lambda-returns A_t + V(s_t) (Schulman et al. 2016, eq. 16).

    :param rewards: [T]
    :param values: [T + 1], the last one what follows the segment: 0 if it terminated
    :return: advantages [T] and targets of the critic [T]
    """
    assert len(values) == len(rewards) + 1
    deltas = rewards + discount * values[1:] - values[:-1]
    advantages = n_step_returns(deltas, discount * gae_lambda)
    return advantages, advantages + values[:-1]


def n_step_advantages(rewards: np.ndarray, values: np.ndarray, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """R_t - V(s_t) and R_t = sum_k discount^k r_{t+k}, bootstrapped; see ``generalized_advantages``."""
    returns = n_step_returns(np.append(rewards, values[-1]), discount)[:-1]
    return returns - values[:-1], returns
