"""Estimates of a policy's value: numbers worked out by hand, and expectations over all trajectories."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rl_coach.off_policy_evaluators import estimators
from rl_coach.off_policy_evaluators.behaviour import estimated_behaviour
from rl_coach.off_policy_evaluators.fitted_q_evaluation import fitted_q_evaluation
from rl_coach.utils import CoachError

STATES, ACTIONS, HORIZON, DISCOUNT = 3, 2, 4, 0.9


class Enumeration:
    """All trajectories of a random three-state MDP with their probabilities under a behaviour policy."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.transitions = rng.dirichlet(np.ones(STATES), size=(STATES, ACTIONS))
        self.rewards = rng.normal(size=(STATES, ACTIONS))
        self.start = rng.dirichlet(np.ones(STATES))
        self.target, self.behaviour = (rng.dirichlet(np.ones(ACTIONS), size=STATES) for _ in range(2))
        self.q = rng.normal(size=(HORIZON, STATES, ACTIONS))  # of no policy
        steps = np.array(list(itertools.product(range(STATES), range(ACTIONS), repeat=HORIZON)))
        self.states, self.actions = steps[:, ::2], steps[:, 1::2]
        moves = self.transitions[self.states[:, :-1], self.actions[:, :-1], self.states[:, 1:]]
        chosen = self.behaviour[self.states, self.actions]
        self.probabilities = self.start[self.states[:, 0]] * moves.prod(axis=1) * chosen.prod(axis=1)
        self.log_ratios = estimators.log_ratios(self.target[self.states, self.actions], chosen)

    def value(self) -> float:
        """V(pi) by dynamic programming."""
        value = np.zeros(STATES)
        for _ in range(HORIZON):
            value = np.sum(self.target * (self.rewards + DISCOUNT * self.transitions @ value), axis=1)
        return float(self.start @ value)

    def expectation(self, estimate) -> float:
        """The mean over all trajectories of an estimate from a single one."""
        rewards, mask = self.rewards[self.states, self.actions], np.ones((1, HORIZON), bool)
        times = np.arange(HORIZON)
        action_values = self.q[times, self.states, self.actions]
        values = np.sum(self.target[self.states] * self.q[times, self.states], axis=2)
        found = [
            estimate(self.log_ratios[row], rewards[row], mask, values[row], action_values[row])
            for row in (slice(n, n + 1) for n in range(len(rewards)))
        ]
        return float(np.dot(self.probabilities, found))


@pytest.mark.parametrize(
    "estimate",
    [
        lambda ratios, rewards, mask, v, q: estimators.importance_sampling(ratios, rewards, mask, DISCOUNT),
        lambda ratios, rewards, mask, v, q: estimators.per_decision_importance_sampling(
            ratios, rewards, mask, DISCOUNT
        ),
        lambda ratios, rewards, mask, v, q: estimators.sequential_doubly_robust(ratios, rewards, mask, v, q, DISCOUNT),
    ],
    ids=["importance sampling", "per decision", "sequential doubly robust"],
)
def test_the_expectation_over_all_trajectories_is_the_value_of_the_target_policy(estimate):
    mdp = Enumeration()
    np.testing.assert_allclose(mdp.probabilities.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(mdp.expectation(estimate), mdp.value(), rtol=0, atol=1e-12)


# two episodes, of 2 steps and of 1; ratios 2 and 0.5 (product 1), and 3
MASK = np.array([[True, True], [True, False]])
RATIOS = np.log(np.array([[2.0, 0.5], [3.0, 7.0]]))
REWARDS = np.array([[1.0, 4.0], [2.0, 99.0]])


def test_episodes_by_hand():
    sampled = (RATIOS, REWARDS, MASK, 0.5)
    # returns 1 + 0.5 * 4 = 3 and 2, weights 1 and 3
    assert estimators.importance_sampling(*sampled) == pytest.approx((1 * 3 + 3 * 2) / 2)
    assert estimators.weighted_importance_sampling(*sampled) == pytest.approx((1 * 3 + 3 * 2) / 4)
    # first step weights 2 and 3, second step 1 and 3, where the second episode has no reward
    assert estimators.per_decision_importance_sampling(*sampled) == pytest.approx((2 * 1 + 1 * 0.5 * 4 + 3 * 2) / 2)
    expected = (2 * 1 + 3 * 2) / 5 + 0.5 * (1 * 4 + 3 * 0) / 4
    assert estimators.per_decision_weighted_importance_sampling(*sampled) == pytest.approx(expected)
    values, action_values = np.array([[1.0, 2.0], [3.0, 99.0]]), np.array([[0.5, 3.0], [1.0, 99.0]])
    # second step 2 + 0.5 (4 - 3) = 2.5; first 1 + 2 (1 + 0.5 * 2.5 - 0.5) = 4.5; the other 3 + 3 (2 - 1) = 6
    robust = estimators.sequential_doubly_robust(RATIOS, REWARDS, MASK, values, action_values, 0.5)
    assert robust == pytest.approx((4.5 + 6) / 2)


def test_episodes_that_were_cut_off_are_bootstrapped():
    rewards = estimators.with_bootstrap(REWARDS, MASK, np.array([10.0, 0.0]), 0.5)
    np.testing.assert_array_equal(rewards, [[1.0, 4.0 + 5.0], [2.0, 0.0]])
    np.testing.assert_array_equal(REWARDS, [[1.0, 4.0], [2.0, 99.0]])


def test_single_steps_by_hand():
    probabilities, model = np.array([[0.25, 0.75], [1.0, 0.0]]), np.array([[4.0, 0.0], [2.0, 6.0]])
    rewards, actions = np.array([5.0, 1.0]), np.array([0, 1])
    ratios = estimators.log_ratios(probabilities[[0, 1], actions], np.array([0.5, 0.5]))
    np.testing.assert_array_equal(ratios, [np.log(0.5), -np.inf])
    assert estimators.direct_method(probabilities, model) == pytest.approx((1 + 2) / 2)
    assert estimators.inverse_propensity_score(ratios, rewards) == pytest.approx((0.5 * 5 + 0) / 2)
    robust = estimators.doubly_robust(ratios, rewards, actions, probabilities, model)
    assert robust == pytest.approx(1.5 + (0.5 * (5 - 4) + 0) / 2)


def test_long_episodes_keep_their_weights_in_range():
    ratios, rewards = np.full((2, 5000), np.log(3.0)), np.ones((2, 5000))
    ratios[1, 0] += np.log(2.0)  # twice the weight of the other, both beyond float64
    rewards[1] = 4.0
    mask = np.ones_like(rewards, dtype=bool)
    discounted = (1 - 0.5**5000) / 0.5
    found = estimators.weighted_importance_sampling(ratios, rewards, mask, 0.5)
    assert found == pytest.approx((1 + 2 * 4) / 3 * discounted)
    assert estimators.effective_sample_size(estimators.log_weights(ratios, mask)[:, -1]) == pytest.approx(9 / 5)


def test_a_policy_that_could_have_played_no_episode_has_no_estimate():
    ratios = np.full((2, 2), -np.inf)
    assert np.isnan(estimators.weighted_importance_sampling(ratios, REWARDS, MASK, 0.9))
    assert estimators.effective_sample_size(ratios[:, 0]) == 0


def test_an_action_of_probability_zero_is_refused():
    with pytest.raises(CoachError, match="probability of an action that was taken is 0"):
        estimators.log_ratios(np.array([0.5, 0.5]), np.array([0.5, 0.0]))


def covers_zero(rng: np.random.Generator) -> bool:
    sample = rng.normal(size=40)
    low, high = estimators.bootstrap_interval(lambda rows: sample[rows].mean(), 40, rng, 0.9, 200)
    return low <= 0 <= high


def test_an_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    assert 160 <= sum(covers_zero(rng) for _ in range(200)) <= 195


def test_the_estimated_behaviour_is_how_often_neighbours_took_an_action():
    states = np.array([[0.0, 0], [0.1, 0], [0.2, 0], [10, 0], [10.1, 0]])  # the second element never differs
    actions = np.array([0, 0, 1, 2, 2])
    found = estimated_behaviour(states, actions, np.array([[0.05, 0.0], [9.0, 0.0]]), num_actions=3, num_neighbours=2)
    assert np.allclose(found, [[3 / 5, 1 / 5, 1 / 5], [1 / 5, 1 / 5, 3 / 5]])
    fewer = estimated_behaviour(states, actions, np.array([[0.05, 0.0]]), num_actions=3)
    assert np.allclose(fewer, [[3 / 8, 2 / 8, 3 / 8]])
    assert estimated_behaviour(states, actions, states[:0], num_actions=3).shape == (0, 3)
    with pytest.raises(CoachError, match="there is no recorded step to estimate a policy from"):
        estimated_behaviour(states[:0], actions[:0], states, num_actions=3)


def test_the_estimated_behaviour_comes_near_a_known_one():
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, (4000, 2)) * [1, 100]
    right = np.where(states[:, 0] > 0, 0.9, 0.2)
    actions = (rng.random(4000) < right).astype(int)
    queries = rng.uniform(-1, 1, (300, 2)) * [1, 100]
    found = estimated_behaviour(states, actions, queries, num_actions=2)
    assert np.mean(np.abs(found[:, 1] - np.where(queries[:, 0] > 0, 0.9, 0.2))) < 0.06
    assert np.allclose(found.sum(axis=1), 1)


def test_fitted_q_evaluation_solves_the_equation_of_the_policy():
    """Three states, the last of which ends the episode; each step of the MDP once, so that a regression is exact."""
    discount, num_states = 0.8, 2
    policy = np.array([[0.3, 0.7], [0.6, 0.4]])
    # from state, action, reward, to state, ends
    steps = [(0, 0, 1.0, 0, False), (0, 1, 0.0, 1, False), (1, 0, 2.0, 0, False), (1, 1, 5.0, 0, True)]
    states, actions, rewards, following, ends = (np.array(column) for column in zip(*steps))

    def fit(states, actions, targets):
        table = np.zeros((num_states, 2))
        table[states, actions] = targets
        return lambda asked: table[asked]

    q = fitted_q_evaluation(
        states, actions, rewards, following, ends, policy[following], discount, 200, fit,
        lambda asked: np.full((len(asked), 2), 7.0),
    )  # fmt: skip
    moves = np.array([[0.3, 0.7], [0.6, 0.0]])  # V = expected reward + discount * moves V
    expected = np.linalg.solve(np.eye(2) - discount * moves, [0.3 * 1.0, 0.6 * 2.0 + 0.4 * 5.0])
    assert np.sum(policy * q(np.array([0, 1])), axis=1) == pytest.approx(expected, abs=1e-12)
