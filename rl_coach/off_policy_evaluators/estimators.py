"""Estimates of a policy's value from the episodes of another policy, as pure functions of arrays.

The *target* policy is evaluated. The *behaviour* policy has played the episodes. Functions of single steps take [N]
rows. Functions of episodes take [E, T]: E episodes, padded to T steps, with a mask that is True for the real steps.
"""

from __future__ import annotations

from typing import Callable

import numpy as np

from rl_coach.utils import CoachError


def log_ratios(target: np.ndarray, behaviour: np.ndarray) -> np.ndarray:
    """The log ratios log pi(a|s) - log mu(a|s) of the actions taken; -inf for actions that the target policy never
    takes.

    :param target: [...] probabilities of the taken actions under the target policy
    :param behaviour: [...] their probabilities under the behaviour policy
    :raises CoachError: if an action was taken with probability 0
    """
    if not np.all(behaviour > 0):
        raise CoachError(
            "the recorded probability of an action that was taken is 0, so the probabilities belong to another policy: "
            "use the probabilities of the policy that recorded the data"
        )
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(target, np.float64)) - np.log(np.asarray(behaviour, np.float64))


def direct_method(probabilities: np.ndarray, modelled_rewards: np.ndarray) -> float:
    """The mean reward of the target policy according to a model of rewards (Dudik et al. 2011, section 2).

    :param probabilities: [N, A] of the target policy
    :param modelled_rewards: [N, A]
    """
    return float(np.mean(np.sum(probabilities * modelled_rewards, axis=1)))


def inverse_propensity_score(log_ratios: np.ndarray, rewards: np.ndarray) -> float:
    """The mean of ratio times reward over steps (Dudik et al. 2011, section 2).

    :param log_ratios: [N]
    :param rewards: [N]
    """
    return float(np.mean(np.exp(log_ratios) * rewards))


def doubly_robust(
    log_ratios: np.ndarray,
    rewards: np.ndarray,
    actions: np.ndarray,
    probabilities: np.ndarray,
    modelled_rewards: np.ndarray,
) -> float:
    """The direct method plus the ratio times the model's error (Dudik et al. 2011, equation 1).

    The estimate is unbiased if the model is right, or if the probabilities of the behaviour policy are right.

    :param log_ratios: [N]; ``rewards`` and ``actions`` are [N] too
    :param probabilities: [N, A] of the target policy
    :param modelled_rewards: [N, A]
    """
    errors = rewards - modelled_rewards[np.arange(len(actions)), actions]
    return direct_method(probabilities, modelled_rewards) + inverse_propensity_score(log_ratios, errors)


def with_bootstrap(rewards: np.ndarray, mask: np.ndarray, last_values: np.ndarray, discount: float) -> np.ndarray:
    """Add the discounted value of the last state to the last reward of each episode, for episodes that were cut off.

    :param rewards: [E, T]
    :param mask: [E, T]
    :param last_values: [E] values of the last states under the target policy; 0 where an episode terminated
    """
    bootstrapped = np.where(mask, rewards, 0.0).astype(np.float64)
    bootstrapped[np.arange(len(rewards)), mask.sum(axis=1) - 1] += discount * np.asarray(last_values, np.float64)
    return bootstrapped


def log_weights(log_ratios: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The logarithms [E, T] of the products of an episode's ratios up to each step; constant after the end of the
    episode."""
    return np.cumsum(np.where(mask, log_ratios, 0.0), axis=1)


def importance_sampling(log_ratios: np.ndarray, rewards: np.ndarray, mask: np.ndarray, discount: float) -> float:
    """The mean of weight * return over episodes: unbiased, with large variance (Precup et al. 2000, equation 3)."""
    return float(np.mean(np.exp(log_weights(log_ratios, mask)[:, -1]) * _returns(rewards, mask, discount)))


def per_decision_importance_sampling(
    log_ratios: np.ndarray, rewards: np.ndarray, mask: np.ndarray, discount: float
) -> float:
    """Importance sampling that weights each reward only by the ratios of the actions up to this reward (Precup et al.
    2000, equation 5)."""
    discounted = np.where(mask, rewards, 0.0) * _discounts(mask, discount)
    return float(np.mean(np.sum(np.exp(log_weights(log_ratios, mask)) * discounted, axis=1)))


def weighted_importance_sampling(
    log_ratios: np.ndarray, rewards: np.ndarray, mask: np.ndarray, discount: float
) -> float:
    """The mean return, with weights divided by their sum: biased, with lower variance (Precup et al. 2000, equation 4).

    :return: NaN if the target policy has probability 0 for each episode
    """
    return float(np.sum(_shares(log_weights(log_ratios, mask)[:, -1]) * _returns(rewards, mask, discount)))


def per_decision_weighted_importance_sampling(
    log_ratios: np.ndarray, rewards: np.ndarray, mask: np.ndarray, discount: float
) -> float:
    """The sum over steps t of the weighted mean, over the episodes, of the discounted rewards at step t (Thomas 2015,
    section 3.9).

    :return: NaN if, for some step, the target policy has probability 0 for each episode up to this step
    """
    discounted = np.where(mask, rewards, 0.0) * _discounts(mask, discount)
    return float(np.sum(_shares(log_weights(log_ratios, mask)) * discounted))


def sequential_doubly_robust(
    log_ratios: np.ndarray,
    rewards: np.ndarray,
    mask: np.ndarray,
    values: np.ndarray,
    action_values: np.ndarray,
    discount: float,
) -> float:
    """The mean of V_0 over the episodes, with V_t = v(s_t) + ratio_t (r_t + discount V_{t+1} - q(s_t, a_t)) (Jiang and
    Li 2016, equation 10). The estimate is unbiased if v is the mean of q under the target policy.

    :param values: [E, T] v(s_t)
    :param action_values: [E, T] q(s_t, a_t)
    """
    estimate = np.zeros(len(rewards))
    ratios = np.exp(log_ratios)
    for t in reversed(range(mask.shape[1])):
        corrected = values[:, t] + ratios[:, t] * (rewards[:, t] + discount * estimate - action_values[:, t])
        estimate = np.where(mask[:, t], corrected, 0.0)
    return float(np.mean(estimate))


def effective_sample_size(log_weights: np.ndarray) -> float:
    """The effective sample size: (sum of weights)^2 / sum of squared weights. This is the number of episodes of the
    target policy that would give the same precision (Kong 1992).

    :param log_weights: [E]
    :return: from 1 (only one weight is not 0) to E (all weights are equal); 0 if all weights are 0
    """
    shares = _shares(np.asarray(log_weights, np.float64))
    return 0.0 if np.isnan(shares).any() else float(1.0 / np.sum(shares**2))


def bootstrap_interval(
    estimate: Callable[[np.ndarray], float],
    num_episodes: int,
    rng: np.random.Generator,
    level: float = 0.95,
    num_resamples: int = 1000,
) -> tuple[float, float]:
    """The confidence interval of an estimate (Efron 1979). Its bounds are percentiles of the estimates from resampled
    episodes, which are drawn with replacement.

    :param estimate: computes the estimate from indices [num_episodes] of episodes; an index may occur more than once
    :param level: the share of resampled estimates inside the interval
    """
    found = [estimate(rng.integers(num_episodes, size=num_episodes)) for _ in range(num_resamples)]
    low, high = np.nanquantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _discounts(mask: np.ndarray, discount: float) -> np.ndarray:
    return discount ** np.arange(mask.shape[1])


def _returns(rewards: np.ndarray, mask: np.ndarray, discount: float) -> np.ndarray:
    return np.sum(np.where(mask, rewards, 0.0) * _discounts(mask, discount), axis=1)


def _shares(log_weights: np.ndarray) -> np.ndarray:
    """Weights divided by their sum over the first axis, without leaving the range of float64; NaN if all are 0."""
    largest = log_weights.max(axis=0)
    with np.errstate(invalid="ignore"):
        weights = np.exp(log_weights - largest)
        return weights / weights.sum(axis=0)
