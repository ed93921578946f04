"""Draws of discrete actions under a mask."""

from __future__ import annotations

import math
from typing import Sequence, Union

import numpy as np

from rl_coach.utils import TrainingError


def allowed_actions(action_mask: np.ndarray) -> np.ndarray:
    """The numbers of the actions that a mask allows.

    :raises ValueError: it allows none
    """
    allowed = np.flatnonzero(action_mask)
    if not allowed.size:
        raise ValueError("the action mask allows no action")
    return allowed


def sample_action(
    probabilities: Union[Sequence[float], np.ndarray],
    rng: np.random.Generator,
    action_mask: np.ndarray | None = None,
) -> tuple[int, np.ndarray]:
    """An action drawn by probabilities, and these over the allowed actions, scaled to sum to 1.

    Where all allowed actions have a probability of 0, they are drawn alike.

    :param probabilities: [A], not negative
    :param action_mask: [A] of 0 and 1, None allows all
    :raises TrainingError: the probabilities are not numbers
    :raises ValueError: no action is allowed
    """
    weights: np.ndarray = np.asarray(probabilities, dtype=np.float64).reshape(-1)
    if action_mask is not None:
        allowed = np.zeros(weights.size)
        allowed[allowed_actions(action_mask)] = 1.0
        weights = weights * allowed
        weights = weights if weights.any() else allowed
    cumulative = weights.cumsum()
    total = float(cumulative[-1])
    if not 0 < total < math.inf:
        raise TrainingError(f"the policy's probabilities sum to {total}; training has diverged")
    # side="right" passes over actions of probability 0
    action = int(cumulative.searchsorted(rng.random() * total, side="right"))
    if action == weights.size:  # the product of tiny numbers was rounded up
        action = int(np.flatnonzero(weights)[-1])
    return action, weights / total
