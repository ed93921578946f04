"""Networks, their gradients and Adam in NumPy alone, to hold an agent's updates against a paper's equations.

Gradients are central differences in float64, so that no derivative is worked out twice in the same way.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

Weights = list[np.ndarray]


def gradient(loss: Callable[[Weights], float], weights: Weights, width: float = 1e-5) -> Weights:
    """The gradient of a scalar function of weights."""
    found = []
    for i, array in enumerate(weights):
        slope = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            values = []
            for sign in (1, -1):
                moved = array.copy()
                moved[index] += sign * width
                values.append(loss([*weights[:i], moved, *weights[i + 1 :]]))
            slope[index] = (values[0] - values[1]) / (2 * width)
        found.append(slope)
    return found


class Adam:
    """Kingma & Ba 2015, algorithm 1, with the bias corrections as the paper writes them."""

    def __init__(self, weights: Weights, rate: float, beta1: float, beta2: float, epsilon: float):
        self.rate, self.beta1, self.beta2, self.epsilon = rate, beta1, beta2, epsilon
        self.means = [np.zeros_like(w) for w in weights]
        self.squares = [np.zeros_like(w) for w in weights]
        self.step = 0

    def __call__(self, weights: Weights, gradients: Weights) -> Weights:
        """The weights after a step."""
        self.step += 1
        self.means = [self.beta1 * m + (1 - self.beta1) * g for m, g in zip(self.means, gradients)]
        self.squares = [self.beta2 * v + (1 - self.beta2) * g**2 for v, g in zip(self.squares, gradients)]
        corrected = [m / (1 - self.beta1**self.step) for m in self.means]
        roots = [np.sqrt(v / (1 - self.beta2**self.step)) for v in self.squares]
        return [w - self.rate * m / (r + self.epsilon) for w, m, r in zip(weights, corrected, roots)]


def adam_of(parameters: Any, weights: Weights) -> Adam:
    """The optimizer that a network's parameters describe."""
    p = parameters
    return Adam(weights, p.learning_rate, p.adam_optimizer_beta1, p.adam_optimizer_beta2, p.optimizer_epsilon)


def dense(weights: Weights, layer: int, x: np.ndarray) -> np.ndarray:
    """A fully connected layer, whose kernel and bias are the weights ``2 * layer`` and the next."""
    return x @ weights[2 * layer] + weights[2 * layer + 1]


def float64(arrays: Any) -> Weights:
    return [np.asarray(array, np.float64) for array in arrays]


def moved(target: Weights, online: Weights, rate: float) -> Weights:
    """Polyak averaging."""
    return [(1 - rate) * t + rate * w for t, w in zip(target, online)]


def recorded_columns(agent: Any) -> list[dict[str, np.ndarray]]:
    """The columns of each batch that the agent will learn from, as they come."""
    found: list[dict[str, np.ndarray]] = []
    columns_of = agent.learning_columns

    def record(batch: Any) -> dict[str, np.ndarray]:
        columns = columns_of(batch)
        found.append({name: np.array(column, np.float64) for name, column in columns.items()})
        return columns

    agent.learning_columns = record
    return found


def one_update(columns: dict[str, np.ndarray], number: int, size: int) -> dict[str, np.ndarray]:
    """The batch of update ``number``, from 0 on."""
    return {name: column[number * size : (number + 1) * size] for name, column in columns.items()}


def assert_equal(found: Any, expected: Weights, tolerance: float = 2e-4) -> None:
    """Equal but for float32's rounding, which Adam's quotient makes larger."""
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(np.asarray(one), other, atol=tolerance, rtol=tolerance, err_msg=f"weight {i}")
