"""Estimates the behaviour policy of data without recorded probabilities of the actions."""

from __future__ import annotations

import numpy as np

from rl_coach.utils import CoachError

_ROWS_AT_ONCE = 256


def estimated_behaviour(
    states: np.ndarray, actions: np.ndarray, queries: np.ndarray, num_actions: int, num_neighbours: int = 100
) -> np.ndarray:
    """Estimate the probabilities of actions in states, from their frequencies in the nearest states of the data (Raghu
    et al. 2018, "Behaviour Policy Estimation in Off-Policy Policy Evaluation: Calibration Matters", section 4).

    Distances are Euclidean, after a division of each element by its standard deviation. Each action's count starts at
    1, so that no probability is 0.

    :param states: [N, D] states of the data to estimate from. Do not include the data to be evaluated, because their
        own actions would count
    :param actions: [N] integers, the actions taken in ``states``
    :param queries: [M, D], the states to estimate probabilities for
    :param num_actions: A
    :param num_neighbours: number of nearest states; all states if there are fewer
    :return: [M, A] float64
    :raises CoachError: if there is no step to estimate from
    """
    if not len(states):
        raise CoachError("there is no recorded step to estimate a policy from: use a data set that is not empty")
    deviations = np.asarray(states, np.float64).std(axis=0)
    scales = np.where(deviations > 0, deviations, 1.0)
    known, asked = np.asarray(states, np.float64) / scales, np.asarray(queries, np.float64) / scales
    count = min(num_neighbours, len(known))
    taken = np.eye(num_actions)[np.asarray(actions, np.int64)]
    squares, parts = (known**2).sum(axis=1), [np.zeros((0, num_actions))]
    for first in range(0, len(asked), _ROWS_AT_ONCE):
        points = asked[first : first + _ROWS_AT_ONCE]
        distances = squares - 2 * points @ known.T  # without the points' squares: same order
        nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
        parts.append(taken[nearest].sum(axis=1))
    return (np.concatenate(parts) + 1) / (count + num_actions)
