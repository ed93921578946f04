"""The behaviour policy of data that do not say how probable their actions were."""

from __future__ import annotations

import numpy as np

_ROWS_AT_ONCE = 256


def estimated_behaviour(
    states: np.ndarray, actions: np.ndarray, queries: np.ndarray, num_actions: int, num_neighbours: int = 100
) -> np.ndarray:
    """Probabilities of the actions in states, from how often the data have each in the states that are nearest (Raghu
    et al. 2018, "Behaviour Policy Estimation in Off-Policy Policy Evaluation: Calibration Matters", section 4).

    Distances are Euclidean, of elements divided by their standard deviation. Each action counts once more than it was
    taken, so that no probability is 0.

    :param states: [N, D] of the data to estimate from; not those to be evaluated, whose own actions would count
    :param actions: [N] integers, taken in them
    :param queries: [M, D], the states to give probabilities for
    :param num_actions: A
    :param num_neighbours: number of nearest states; of fewer data all count
    :return: [M, A] float64
    """
    deviations = np.asarray(states, np.float64).std(axis=0)
    scales = np.where(deviations > 0, deviations, 1.0)
    known, asked = np.asarray(states, np.float64) / scales, np.asarray(queries, np.float64) / scales
    count = min(num_neighbours, len(known))
    taken = np.eye(num_actions)[np.asarray(actions, np.int64)]
    squares, parts = (known**2).sum(axis=1), []
    for first in range(0, len(asked), _ROWS_AT_ONCE):
        points = asked[first : first + _ROWS_AT_ONCE]
        distances = squares - 2 * points @ known.T  # without the points' own squares, which order nothing
        nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
        parts.append(taken[nearest].sum(axis=1))
    return (np.concatenate(parts) + 1) / (count + num_actions)
