"""Update of augmented random search (Mania et al. 2018, "Simple random search provides a competitive approach to
reinforcement learning")."""

from __future__ import annotations

from typing import Sequence

import numpy as np


def direction_of(seed: int, weights: Sequence[np.ndarray]) -> np.ndarray:
    """The direction [P] of a seed: standard normal numbers. Processes exchange seeds instead of directions.

    :param weights: arrays with P numbers in total
    """
    return np.random.default_rng(seed).standard_normal(sum(array.size for array in weights))


def shaped(numbers: np.ndarray, weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The numbers [P], reshaped to arrays with the shapes of the weights, float32."""
    parts = np.split(numbers.astype(np.float32), np.cumsum([array.size for array in weights])[:-1])
    return [part.reshape(array.shape) for part, array in zip(parts, weights)]


def random_search_gradient(directions: np.ndarray, plus: np.ndarray, minus: np.ndarray, top: int) -> np.ndarray:
    """The gradient [P]: -1 / (b sigma) sum_k (r_k+ - r_k-) delta_k over the b best directions (algorithm 2, steps 6 and
    7). A step of gradient descent with the learning rate alpha is the step of the paper.

    The best directions have the largest max(r+, r-). sigma is the standard deviation of their 2 b returns; if all are
    equal, the gradient is 0.

    :param directions: [N, P], delta_k
    :param plus: [N], returns with the weights + nu delta_k; ``minus`` with the weights - nu delta_k
    :param top: b, at most N
    """
    assert directions.ndim == 2 and plus.shape == minus.shape == directions.shape[:1] and 0 < top <= len(plus)
    best = np.argsort(-np.maximum(plus, minus), kind="stable")[:top]
    deviation = np.std(np.concatenate([plus[best], minus[best]]))
    differences = plus[best] - minus[best]
    return -(differences @ directions[best]) / (top * max(deviation, np.finfo(np.float64).tiny))
