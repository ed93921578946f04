"""Fitted Q evaluation (Le, Voloshin and Yue 2019, "Batch Policy Learning under Constraints", algorithm 3)."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

Predict = Callable[[Any], np.ndarray]
"""Values [N, A] of the actions in states."""
Fit = Callable[[Any, np.ndarray, np.ndarray], Predict]
"""``fit(states, actions [N], targets [N])`` learns the values of these actions."""


def fitted_q_evaluation(
    states: Any,
    actions: np.ndarray,
    rewards: np.ndarray,
    next_states: Any,
    terminated: np.ndarray,
    next_policy: np.ndarray,
    discount: float,
    iterations: int,
    fit: Fit,
    predict: Predict,
) -> Predict:
    """Learn the action values of a policy from the steps of any policy, by ``iterations`` regressions. Each regression
    learns the targets r + discount * sum_a pi(a|s') Q(s', a), with the Q of the previous regression.

    The method does not need a model of rewards or the probabilities of the recorded actions. Its accuracy depends on
    the regressions.

    :param states: states in the form that ``fit`` and the function it returns expect
    :param actions: [N] integers
    :param rewards: [N]
    :param next_states: in the same form as ``states``
    :param terminated: [N], True if the episode has terminated
    :param next_policy: [N, A] probabilities of the policy in the next states
    :param fit: learns values; see ``Fit``
    :param predict: the initial Q
    :return: the last Q
    """
    for _ in range(iterations):
        following = np.sum(next_policy * np.asarray(predict(next_states), np.float64), axis=1)
        predict = fit(states, actions, rewards + discount * np.where(terminated, 0.0, following))
    return predict
