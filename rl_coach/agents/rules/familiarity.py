"""Actions that a data set contains in similar states, and the maximum over them (Fujimoto, Meger and Precup 2019)."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from rl_coach.architectures.policies import MASKED_LOGIT
from rl_coach.architectures.update import LearningBatch


def greedy_among_familiar(ops: Any, q_online: Any, q_target: Any, batch: LearningBatch) -> Any:
    """argmax of the online network's Q [B, A] over the actions with a 1 in ``extra['familiar']`` [B, A]."""
    return ops.argmax(ops.where(batch.extra["familiar"] > 0, q_online, MASKED_LOGIT), axis=-1)


def nearest_distances(points: np.ndarray, known: Sequence[np.ndarray]) -> np.ndarray:
    """The Euclidean distances [B, A] from each of ``points`` [B, D] to the nearest point of each of the A sets
    ``known``. Each set is an array [N, D]. The distance to an empty set is infinite.
    """
    points = np.asarray(points, np.float64)
    columns = []
    for others in known:
        if not len(others):
            columns.append(np.full(len(points), np.inf))
            continue
        others = np.asarray(others, np.float64)
        squares = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * points @ others.T
        columns.append(np.sqrt(np.maximum(squares.min(axis=1), 0)))
    return np.stack(columns, axis=1)


def allowed_or_most_familiar(familiarity: np.ndarray, threshold: float, possible: np.ndarray) -> np.ndarray:
    """[B, A], True for possible actions that are familiar enough. If no possible action is familiar enough, only the
    most familiar possible action is True.

    :param familiarity: [B, A], larger for more familiar actions
    :param threshold: the smallest familiarity that is enough
    :param possible: [B, A], True for actions that the environment allows
    """
    among_possible = np.where(possible, familiarity, -np.inf)
    allowed = possible & (familiarity >= threshold)
    best = among_possible.argmax(axis=1)[:, None] == np.arange(familiarity.shape[1])
    return np.where(allowed.any(axis=1, keepdims=True), allowed, best)
