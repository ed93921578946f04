"""Functions that draw discrete actions at random, with masks of forbidden actions."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence, Union

import numpy as np

from rl_coach.utils import CoachError, TrainingError


def allowed_actions(action_mask: np.ndarray) -> np.ndarray:
    """The numbers of the actions that a mask allows. :raises CoachError: if the mask allows no action"""
    allowed = np.flatnonzero(action_mask)
    if not allowed.size:
        raise CoachError("the action mask allows no action")
    return allowed


def sample_action(
    probabilities: Union[Sequence[float], np.ndarray],
    rng: np.random.Generator,
    action_mask: np.ndarray | None = None,
) -> tuple[int, np.ndarray]:
    """Draw an action at random.

    If all allowed actions have a probability of 0, all allowed actions are equally likely.

    :param probabilities: [A], not negative; their sum need not be 1
    :param rng: the random generator
    :param action_mask: [A], 1 for allowed and 0 for forbidden actions; None allows all actions
    :return: the action, and the probabilities [A] of the draw, which are 0 for forbidden actions
    :raises TrainingError: if the sum of the probabilities is 0, NaN or infinite
    :raises CoachError: if no action is allowed
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
    # side="right" skips actions with a probability of 0
    action = int(cumulative.searchsorted(rng.random() * total, side="right"))
    if action == weights.size:  # the product of tiny numbers was rounded up
        action = int(np.flatnonzero(weights)[-1])
    return action, weights / total


def sample_actions(
    probabilities: np.ndarray, rng: np.random.Generator, action_masks: np.ndarray | None = None
) -> np.ndarray:
    """Draw an action for each row. With the same random numbers, the actions are the same as from ``sample_action``.

    :param probabilities: [N, A], not negative; or [N, K, M] if actions have K parts
    :param rng: the random generator
    :param action_masks: 1 for allowed and 0 for forbidden actions, in the shape of ``probabilities``; None allows all
        actions
    :return: [N], or [N, K] if actions have K parts
    :raises TrainingError: if the sum of a row is 0, NaN or infinite
    :raises CoachError: if a mask allows no action
    """
    if np.ndim(probabilities) == 3:
        return of_each_part(lambda rows, masks: sample_actions(rows, rng, masks), probabilities, action_masks)
    if len(probabilities) == 1:  # for one row, this is several times as fast
        return np.array([sample_action(probabilities[0], rng, None if action_masks is None else action_masks[0])[0]])
    weights: np.ndarray = np.asarray(probabilities, np.float64)
    if action_masks is not None:
        weights = allowed_weights(weights, action_masks > 0)
    cumulative = weights.cumsum(axis=1)
    totals = cumulative[:, -1]
    if not (np.isfinite(totals) & (totals > 0)).all():
        total = totals[~(np.isfinite(totals) & (totals > 0))][0]
        raise TrainingError(f"the policy's probabilities sum to {total}; training has diverged")
    # the same as searchsorted with side="right", but for all rows at once
    actions = (cumulative <= (rng.random(len(weights)) * totals)[:, None]).sum(axis=1)
    for row in np.flatnonzero(actions == weights.shape[1]):  # the product of tiny numbers was rounded up
        actions[row] = np.flatnonzero(weights[row])[-1]
    return actions


def of_each_part(choose: Callable[[np.ndarray, Any], np.ndarray], values: np.ndarray, masks: np.ndarray | None) -> Any:
    """Choose each part of actions with K parts.

    :param choose: a function of values [N * K, M] and masks [N * K, M], which returns an array [N * K, ...]
    :param values: [N, K, M]
    :param masks: [N, K, M], 1 for allowed and 0 for forbidden choices; None allows all choices
    :return: [N, K, ...], the results of ``choose``
    """
    rows = values.reshape(-1, values.shape[-1])
    chosen = choose(rows, None if masks is None else np.asarray(masks).reshape(rows.shape))
    return chosen.reshape(*values.shape[:2], *chosen.shape[1:])


def allowed_probabilities(probabilities: np.ndarray, action_masks: np.ndarray) -> np.ndarray:
    """Set the probabilities of forbidden actions to 0, and scale each row to the sum 1.

    :param probabilities: [N, A], or [N, K, M] if actions have K parts
    :param action_masks: 1 for allowed and 0 for forbidden actions, in the shape of ``probabilities``
    :return: the probabilities, in the same shape
    """
    if probabilities.ndim == 3:
        return of_each_part(allowed_probabilities, probabilities, action_masks)
    weights = allowed_weights(np.asarray(probabilities, np.float64), action_masks > 0)
    return weights / weights.sum(axis=1, keepdims=True)


def allowed_weights(weights: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Set the weights of forbidden actions to 0. If all weights of a row are then 0, its allowed actions get the weight
    1.

    :param weights: [N, A]
    :param allowed: [N, A] bool
    :return: [N, A]
    """
    require_allowed(allowed)
    weights = np.where(allowed, weights, 0.0)
    is_empty = ~weights.any(axis=1)
    weights[is_empty] = allowed[is_empty]
    return weights


def require_allowed(allowed: np.ndarray) -> None:
    """Check that each row allows an action.

    :param allowed: [N, A] bool
    :raises CoachError: if a row allows no action
    """
    if not allowed.any(axis=1).all():
        raise CoachError("the action mask allows no action")
