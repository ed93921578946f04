"""Weights of a policy's gradient: advantages, and the returns from which they are computed."""

from __future__ import annotations

from enum import Enum
from typing import Any, Callable

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
    """The advantages A_t = sum_k (discount lambda)^k delta_{t+k} and the lambda-returns A_t + V(s_t) (Schulman et al.
    2016, equation 16).

    :param rewards: [T]
    :param values: [T + 1]; the last number is the value after the segment: 0 if the episode terminated
    :return: advantages [T] and targets of the critic [T]
    """
    assert len(values) == len(rewards) + 1
    return _generalized(
        rewards, values[:-1], values[1:], discount, lambda deltas: n_step_returns(deltas, discount * gae_lambda)
    )


def _generalized(
    rewards: Any, values: Any, next_values: Any, discount: float, sums: Callable[[Any], Any]
) -> tuple[Any, Any]:
    """The equations of ``generalized_advantages``. :param sums: returns discounted sums of the residuals delta_t"""
    advantages = sums(rewards + discount * next_values - values)
    return advantages, advantages + values


def n_step_advantages(rewards: np.ndarray, values: np.ndarray, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """The advantages R_t - V(s_t) and the bootstrapped returns R_t = sum_k discount^k r_{t+k}. The arguments are those
    of ``generalized_advantages``."""
    returns = n_step_returns(np.append(rewards, values[-1]), discount)[:-1]
    return returns - values[:-1], returns


# The functions below do the same for several environments at once, with the array operations of a framework. If an
# episode ends within the segment, estimates do not continue into the next episode. A truncated episode bootstraps.


def generalized_advantages_of_copies(
    ops: Any,
    rewards: Any,
    values: Any,
    next_values: Any,
    terminated: Any,
    ended: Any,
    discount: float,
    gae_lambda: float,
) -> tuple[Any, Any]:
    """``generalized_advantages`` for N copies of the environment.

    :param rewards: [T, N]
    :param values: [T, N], the values of the states
    :param next_values: [T, N], the values of the next states
    :param terminated: [T, N] bool
    :param ended: [T, N] bool, terminated or truncated
    :return: advantages and targets of the critic, [T, N] each
    """
    discounts = ops.where(ended, 0.0, discount * gae_lambda)
    return _generalized(
        rewards, values, ops.where(terminated, 0.0, next_values), discount,
        lambda deltas: discounted_sums(ops, deltas, discounts, ops.zeros_like(values[0])),
    )  # fmt: skip


def n_step_advantages_of_copies(
    ops: Any, rewards: Any, values: Any, next_values: Any, terminated: Any, ended: Any, discount: float
) -> tuple[Any, Any]:
    """``n_step_advantages`` for N copies of the environment. See ``generalized_advantages_of_copies`` for the
    arguments."""
    bootstrapped = rewards + discount * ops.where(ops.logical_and(ended, ~terminated), next_values, 0.0)
    returns = discounted_sums(ops, bootstrapped, ops.where(ended, 0.0, discount), next_values[-1])
    return returns - values, returns


def discounted_sums(ops: Any, numbers: Any, discounts: Any, following: Any) -> Any:
    """The sums s_t = x_t + d_t s_{t+1}, [T, N]. :param following: [N], the sum after the last step"""

    def add(later: Any, row: tuple[Any, Any]) -> tuple[Any, Any]:
        number, discount = row
        total = number + discount * later
        return total, total

    return ops.scan(add, following, (numbers, discounts), reverse=True)[1]


def lambda_returns(ops: Any, rewards: Any, discounts: Any, values: Any, mixing: Any) -> Any:
    """The lambda-returns [T, N]: R_t = r_{t+1} + d_{t+1} ((1 - m_{t+1}) v_{t+1} + m_{t+1} R_{t+1}) and R_T = v_T
    (Hafner et al. 2023, equation 7).

    :param rewards: [T, N], r_1 to r_T
    :param discounts: [T, N], d_1 to d_T
    :param values: [T, N], v_1 to v_T
    :param mixing: [T, N], m_1 to m_T: lambda, or 0 where the next state is the last known state
    """
    return discounted_sums(ops, rewards + discounts * (1.0 - mixing) * values, discounts * mixing, values[-1])


def percentiles(ops: Any, values: Any) -> tuple[Any, Any]:
    """The 5th and the 95th percentile of the values [N], by linear interpolation."""
    ordered = ops.sort(values)

    def percentile(share: float) -> Any:
        place = share * (values.shape[0] - 1)
        below = int(place)
        low, high = ordered[below], ordered[min(below + 1, values.shape[0] - 1)]
        return low + (place - below) * (high - low)

    return percentile(0.05), percentile(0.95)
