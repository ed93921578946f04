"""Draws of discrete actions under a mask."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence, Union

import numpy as np

from rl_coach.utils import TrainingError


def allowed_actions(action_mask: np.ndarray) -> np.ndarray:
    """The numbers of the actions that a mask allows.

    :raises ValueError: if the mask allows no action
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
    """Draw an action. Return the action and the probabilities of the draw, which are 0 for forbidden actions.

    If all allowed actions have a probability of 0, each of them is equally likely.

    :param probabilities: [A], not negative
    :param action_mask: [A] of 0 and 1, None allows all
    :raises TrainingError: if the sum of the probabilities is 0, NaN or infinite
    :raises ValueError: if no action is allowed
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


def sample_actions(
    probabilities: np.ndarray, rng: np.random.Generator, action_masks: np.ndarray | None = None
) -> np.ndarray:
    """[N] actions, one for each row. They equal the results of ``sample_action``, with the same random numbers.

    :param probabilities: [N, A], not negative
    :param action_masks: [N, A] of 0 and 1, None allows all
    :raises TrainingError: if the sum of a row is 0, NaN or infinite
    :raises ValueError: if a mask allows no action
    """
    if np.ndim(probabilities) == 3:
        return of_each_part(lambda rows, masks: sample_actions(rows, rng, masks), probabilities, action_masks)
    weights: np.ndarray = np.asarray(probabilities, np.float64)
    if action_masks is not None:
        weights = allowed_weights(weights, action_masks > 0)
    cumulative = weights.cumsum(axis=1)
    totals = cumulative[:, -1]
    if not (np.isfinite(totals) & (totals > 0)).all():
        total = totals[~(np.isfinite(totals) & (totals > 0))][0]
        raise TrainingError(f"the policy's probabilities sum to {total}; training has diverged")
    # counts what searchsorted finds with side="right"
    actions = (cumulative <= (rng.random(len(weights)) * totals)[:, None]).sum(axis=1)
    for row in np.flatnonzero(actions == weights.shape[1]):  # the product of tiny numbers was rounded up
        actions[row] = np.flatnonzero(weights[row])[-1]
    return actions


def of_each_part(choose: Callable[[np.ndarray, Any], np.ndarray], values: np.ndarray, masks: np.ndarray | None) -> Any:
    """[N, K, ...], the results of ``choose``, which gets the values [N, K, M] of all parts as rows [N * K, M].

    :param masks: [N, K, M] of 0 and 1, None allows all
    """
    rows = values.reshape(-1, values.shape[-1])
    chosen = choose(rows, None if masks is None else np.asarray(masks).reshape(rows.shape))
    return chosen.reshape(*values.shape[:2], *chosen.shape[1:])


def allowed_probabilities(probabilities: np.ndarray, action_masks: np.ndarray) -> np.ndarray:
    """[N, A], probabilities of the allowed actions, scaled so that each row sums to 1."""
    if probabilities.ndim == 3:
        return of_each_part(lambda rows, masks: allowed_probabilities(rows, masks), probabilities, action_masks)
    weights = allowed_weights(np.asarray(probabilities, np.float64), action_masks > 0)
    return weights / weights.sum(axis=1, keepdims=True)


def allowed_weights(weights: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """[N, A], 0 where an action is not allowed; 1 for each allowed action of a row without any weight left."""
    require_allowed(allowed)
    weights = np.where(allowed, weights, 0.0)
    is_empty = ~weights.any(axis=1)
    weights[is_empty] = allowed[is_empty]
    return weights


def require_allowed(allowed: np.ndarray) -> None:
    """
    :param allowed: [N, A] bool
    :raises ValueError: if a row allows no action
    """
    if not allowed.any(axis=1).all():
        raise ValueError("the action mask allows no action")
