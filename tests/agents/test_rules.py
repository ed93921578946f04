"""Each algorithm's update rule and the numbers it is given, against the papers' equations in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.agents.actor_critic_agent import actor_critic_rule, generalized_advantages
from rl_coach.agents.ddqn_agent import greedy_by_online
from rl_coach.agents.naf_agent import normalized_advantage_rule
from rl_coach.agents.policy_gradients_agent import policy_gradient_rule
from rl_coach.agents.rules.acer import acer_rule
from rl_coach.agents.rules.proximal_policy import clipped_ppo_rule
from rl_coach.agents.rules.q_learning import greedy_by_target, q_learning_rule
from rl_coach.agents.rules.soft_actor_critic import soft_actor_critic_rule, squashed_sample
from rl_coach.architectures.policies import entropy, log_probability, masked
from rl_coach.utilities.shared_running_stats import RunningMeans
from tests.agents.numpy_rules import FixedNetwork, batch, gaussian_density, ops, run, softmax_policy

Q = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], np.float32)
Q_TARGET = np.array([[10.0, 20.0], [40.0, 30.0], [50.0, 60.0], [7.0, 9.0]], np.float32)
Q_NEXT = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], np.float32)
NETWORKS = {"main": FixedNetwork([{"q": Q}], [{"q": Q_NEXT}], [{"q": Q_TARGET}])}
# of the four transitions the second terminated; the first was cut off by a time limit, and goes on
TRANSITIONS = {"actions": np.array([0, 1, 1, 0]), "rewards": [1.0, 2.0, 3.0, 4.0], "discounts": [0.5, 0, 0.5, 0.5]}


def td_errors(bootstrap: list[float]) -> np.ndarray:
    return np.array([1, 2, 3, 4]) + 0.5 * np.array([1, 0, 1, 1]) * bootstrap - np.array([1, 4, 6, 7])


@pytest.mark.parametrize(
    ("select", "needs_online", "bootstrap"),
    [(greedy_by_target, False, [20, 40, 60, 9]), (greedy_by_online, True, [10, 30, 50, 7])],
    ids=["dqn", "double_dqn"],
)
def test_q_learning_bootstraps_from_the_target_unless_terminated(select, needs_online, bootstrap):
    rule = q_learning_rule(False, None, select, needs_online)
    update = run(rule, NETWORKS, batch(**TRANSITIONS))
    np.testing.assert_allclose(update.errors, td_errors(bootstrap))
    assert update.losses["main"] == pytest.approx(np.mean(td_errors(bootstrap) ** 2))


def test_q_learning_weighs_rows_and_ignores_those_that_fill_up():
    rule = q_learning_rule(False, None, greedy_by_target, False, loss_weight=3.0)
    update = run(rule, NETWORKS, batch(**TRANSITIONS, weights=[0.5, 1.0, 0.25, 0.0]))
    squares = td_errors([20, 40, 60, 9]) ** 2
    assert update.losses["main"] == pytest.approx(3 * (0.5 * squares[0] + squares[1] + 0.25 * squares[2]) / 3)


def test_q_learning_with_huber_losses():
    update = run(q_learning_rule(True, None, greedy_by_target, False), NETWORKS, batch(**TRANSITIONS))
    errors = np.abs(td_errors([20, 40, 60, 9]))
    assert update.losses["main"] == pytest.approx(np.where(errors < 1, errors**2 / 2, errors - 0.5).mean())


@pytest.mark.parametrize(
    ("select", "needs_online", "bootstrap"),
    [(greedy_by_target, False, [10, 0, 60, 7]), (greedy_by_online, True, [10, 0, 60, 7])],
    ids=["dqn", "double_dqn"],
)
def test_q_learning_never_bootstraps_from_a_masked_action(select, needs_online, bootstrap):
    # nothing is allowed where the episode has terminated
    mask = [[1, 0], [0, 0], [0, 1], [1, 0]]
    rule = q_learning_rule(False, "mask", select, needs_online)
    update = run(rule, NETWORKS, batch(**TRANSITIONS, next_states={"mask": mask}))
    np.testing.assert_allclose(update.errors, td_errors(bootstrap))


LOGITS = np.array([[0.0, 1.0, 2.0], [1.0, -1.0, 0.5], [0.3, 0.2, 0.1]], np.float32)
ACTIONS = np.array([2, 0, 1])
ADVANTAGES = np.array([1.5, -2.0, 0.5], np.float32)
WEIGHTS = np.array([0.25, 0.5, 0.0], np.float32)


def chosen(policy: dict[str, np.ndarray]) -> np.ndarray:
    return policy["log_probabilities"][np.arange(3), ACTIONS]


def entropies(policy: dict[str, np.ndarray]) -> np.ndarray:
    return -(policy["probabilities"] * np.log(policy["probabilities"])).sum(axis=1)


def test_policy_gradient():
    policy = softmax_policy(LOGITS)
    columns = batch(actions=ACTIONS, weights=WEIGHTS, extra={"advantages": ADVANTAGES})
    update = run(policy_gradient_rule(0.1, None, 2.0), {"main": FixedNetwork([policy])}, columns)
    expected = -2 * (WEIGHTS * chosen(policy) * ADVANTAGES).sum() - 0.1 * (WEIGHTS * entropies(policy)).sum()
    assert update.losses["main"] == pytest.approx(expected, rel=1e-5)


def test_a_mask_takes_actions_out_of_a_policy():
    mask = np.array([[1, 0, 1], [1, 1, 1], [0, 1, 0]], np.float32)
    policy = masked(ops, softmax_policy(LOGITS), mask)
    weights = np.exp(LOGITS) * mask
    expected = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(policy["probabilities"], expected, rtol=1e-5)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(expected > 0, expected * np.log(expected), 0)
    np.testing.assert_allclose(entropy(ops, policy), -terms.sum(axis=1), atol=1e-6)
    allowed = log_probability(ops, policy, np.array([2, 0, 1]))
    np.testing.assert_allclose(allowed, np.log(expected[np.arange(3), [2, 0, 1]]), atol=1e-6)


def test_log_density_and_entropy_of_a_gaussian_policy():
    mean, deviation = np.array([[0.5, -1.0], [2.0, 0.0]]), np.array([[1.0, 2.0], [0.5, 3.0]])
    actions = np.array([[0.0, 0.0], [2.5, -3.0]])
    policy = {"mean": mean.astype(np.float32), "standard_deviation": deviation.astype(np.float32)}
    density = gaussian_density(actions, mean, deviation)
    np.testing.assert_allclose(log_probability(ops, policy, actions.astype(np.float32)), np.log(density), rtol=1e-5)
    expected = 0.5 * np.log(2 * np.pi * np.e * deviation**2).sum(axis=1)
    np.testing.assert_allclose(entropy(ops, policy), expected, rtol=1e-5)


def test_actor_critic():
    policy, values, returns = softmax_policy(LOGITS), np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.0, 1e3])
    extra = {"advantages": ADVANTAGES, "returns": returns}
    columns = batch(actions=ACTIONS, weights=WEIGHTS, extra=extra)
    network = FixedNetwork([{"v": values.astype(np.float32)}, policy])
    update = run(actor_critic_rule(0.5, 2.0, 0.1, None), {"main": network}, columns)
    value_loss = (WEIGHTS * (returns - values) ** 2).sum()
    policy_loss = -(WEIGHTS * chosen(policy) * ADVANTAGES).sum()
    expected = 0.5 * value_loss + 2.0 * policy_loss - 0.1 * (WEIGHTS * entropies(policy)).sum()
    assert update.losses["main"] == pytest.approx(expected, rel=1e-5)
    assert update.signals["Value Loss"] == pytest.approx(value_loss)
    assert update.signals["Policy Loss"] == pytest.approx(policy_loss, rel=1e-5)


def test_clipped_ppo():
    policy, values, returns = softmax_policy(LOGITS), np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.0, 1e3])
    behaviour = chosen(policy) - np.log([1.5, 0.5, 1.0])  # ratios, of which 1.1 and 0.9 are the limits
    extra = {"advantages": ADVANTAGES, "returns": returns, "behaviour_log_probs": behaviour}
    columns = batch(actions=ACTIONS, weights=[1, 1, 0], extra=extra, scalars={"clipping_decay": 0.5})
    network = FixedNetwork([{"v": values.astype(np.float32)}, policy])
    update = run(clipped_ppo_rule(0.2, 0.01, 0.5, 2.0, None), {"main": network}, columns)
    # a good action is not made likelier than 1.1 times; a bad one's loss counts as if it were at 0.9
    policy_loss = -np.mean([1.1 * 1.5, 0.9 * -2.0])
    value_loss = np.mean([1.0, 4.0])
    expected = 2.0 * policy_loss + 0.5 * value_loss - 0.01 * entropies(policy)[:2].mean()
    assert update.losses["main"] == pytest.approx(expected, rel=1e-5)
    assert update.signals["PPO Clipped Share"] == pytest.approx(1.0)
    divergence = np.mean([0.5 - np.log(1.5), -0.5 - np.log(0.5)])
    assert update.signals["KL Divergence"] == pytest.approx(divergence, rel=1e-4)
    assert update.signals["Likelihood Ratio"] == pytest.approx((1.5 + 0.5) / 2, rel=1e-4)
    assert update.signals["Clipped Likelihood Ratio"] == pytest.approx((1.1 + 0.9) / 2, rel=1e-5)
    assert "Policy Standard Deviation" not in update.signals


def test_clipped_ppo_tells_the_deviation_of_a_gaussian_policy():
    policy = {"mean": np.zeros((2, 2), np.float32), "standard_deviation": np.array([[1.0, 3.0]], np.float32)}
    density = -0.5 * 2 * np.log(2 * np.pi) - np.log(3.0)
    extra = {"advantages": [1.0, 2.0], "returns": np.zeros(2), "behaviour_log_probs": np.full(2, density)}
    columns = batch(actions=np.zeros((2, 2)), extra=extra, scalars={"clipping_decay": 1.0})
    network = FixedNetwork([{"v": np.zeros(2, np.float32)}, policy])
    update = run(clipped_ppo_rule(0.2, 0.0, 1.0, 1.0, None), {"main": network}, columns)
    assert update.signals["Policy Standard Deviation"] == pytest.approx(2.0)
    assert update.signals["Likelihood Ratio"] == pytest.approx(1.0, rel=1e-5)


def test_the_two_parts_of_acers_loss():
    policy, average = softmax_policy(LOGITS), softmax_policy(np.zeros_like(LOGITS))
    q = np.array([[1.0, -1.0, 0.5], [0.0, 2.0, 1.0], [3.0, 0.0, -2.0]], np.float32)
    behaviour, retrace = np.array([[0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]), np.array([1.0, -1.0, 2.0])
    columns = batch(actions=ACTIONS, weights=WEIGHTS, extra={"retrace": retrace, "behaviour": behaviour})
    network = FixedNetwork([{"q": q}, policy], target=[{"q": q}, average])
    network.target = lambda states: network.target_outputs
    update = run(acer_rule(1.5, None, 0.0, 1.0, 1.0, None), {"main": network}, columns)
    phi, rows = policy["probabilities"].astype(np.float64), np.arange(3)
    value, ratio = (phi * q).sum(axis=1), phi / behaviour
    likely = np.minimum(1.5, ratio[rows, ACTIONS]) * (retrace - value) * np.log(phi[rows, ACTIONS])
    left = (phi * np.maximum(0, 1 - 1.5 / ratio) * (q - value[:, None]) * np.log(phi)).sum(axis=1)
    assert (ratio > 1.5).any()
    assert update.signals["Probability Loss"] == pytest.approx(-(WEIGHTS * likely).sum(), rel=1e-3)
    assert update.signals["Bias Correction Loss"] == pytest.approx(-(WEIGHTS * left).sum(), rel=1e-3)


def test_what_normalized_advantages_tell():
    head = {
        "mean": np.array([[0.0], [1.0]], np.float32), "v": np.array([2.0, 4.0], np.float32),
        "factor": np.array([[[2.0]], [[1.0]]], np.float32),
    }  # fmt: skip
    network = FixedNetwork([head], target=[{"v": np.array([10.0, 20.0], np.float32)}])
    columns = batch(actions=np.array([[1.0], [3.0]]), rewards=[1.0, 2.0], discounts=[0.5, 0.0])
    signals = run(normalized_advantage_rule(False), {"main": network}, columns).signals
    # advantages -(2 * 1)^2 / 2 and -(1 * 2)^2 / 2; targets 1 + 5 and 2
    assert {name: float(value) for name, value in signals.items()} == pytest.approx(
        {"Advantage": -2.0, "Q": 1.0, "L": 1.5, "TD targets": 4.0}
    )


def test_clipped_ppo_counts_a_ratio_on_the_other_side_in_full():
    policy = softmax_policy(LOGITS)
    behaviour = chosen(policy) - np.log([0.5, 1.5, 1.0])
    extra = {"advantages": ADVANTAGES, "returns": np.zeros(3), "behaviour_log_probs": behaviour}
    columns = batch(actions=ACTIONS, weights=[1, 1, 0], extra=extra, scalars={"clipping_decay": 1.0})
    network = FixedNetwork([{"v": np.zeros(3, np.float32)}, policy])
    update = run(clipped_ppo_rule(0.2, 0.0, 1.0, 1.0, None), {"main": network}, columns)
    assert update.losses["main"] == pytest.approx(-np.mean([0.5 * 1.5, 1.5 * -2.0]), rel=1e-5)


def test_generalized_advantages_worked_out_by_hand():
    rewards, values = np.array([1.0, 0.0, 2.0]), np.array([0.5, 1.0, -1.0, 4.0])
    advantages, targets = generalized_advantages(rewards, values, discount=0.5, gae_lambda=0.5)
    deltas = [1 + 0.5 * 1 - 0.5, 0 + 0.5 * -1 - 1, 2 + 0.5 * 4 + 1]  # 1, -1.5, 5
    expected = [1 - 0.25 * 1.5 + 0.0625 * 5, -1.5 + 0.25 * 5, 5]
    assert deltas == [1, -1.5, 5]
    np.testing.assert_allclose(advantages, expected)
    np.testing.assert_allclose(targets, np.add(expected, values[:-1]))


def test_generalized_advantages_at_their_extremes():
    rewards, values = np.array([1.0, 0.0, 2.0]), np.array([0.5, 1.0, -1.0, 4.0])
    one_step, _ = generalized_advantages(rewards, values, 0.9, 0.0)
    np.testing.assert_allclose(one_step, rewards + 0.9 * values[1:] - values[:-1])
    monte_carlo, targets = generalized_advantages(rewards, values, 0.9, 1.0)
    returns = [1 + 0.81 * 2 + 0.729 * 4, 0.9 * 2 + 0.81 * 4, 2 + 0.9 * 4]
    np.testing.assert_allclose(targets, returns)
    np.testing.assert_allclose(monte_carlo, np.subtract(returns, values[:-1]))


def test_running_means_over_episodes_of_several_lengths():
    means = RunningMeans()
    for episode in ([1.0, 2.0], [3.0, 6.0, 5.0], [8.0]):
        means.push(np.array(episode))
    np.testing.assert_allclose(means.means, [4.0, 4.0, 5.0])


MEAN = np.array([[0.2, -0.4], [1.0, 0.0]], np.float32)
LOG_DEVIATION = np.array([[-1.0, 0.5], [0.0, -2.0]], np.float32)
NOISE = np.array([[0.3, -1.2], [2.0, 0.1]], np.float32)


def numeric_log_density(action: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> float:
    """The density of tanh(u): that of u times the slope of artanh, which is taken as a difference quotient."""
    width = 1e-6
    slope = (np.arctanh(action + width) - np.arctanh(action - width)) / (2 * width)
    return float(np.log(gaussian_density(np.arctanh(action), mean, deviation) * slope.prod()))


def test_the_density_of_a_squashed_sample():
    policy = {"mean": MEAN, "log_deviation": LOG_DEVIATION}
    actions, log_density = (np.asarray(x) for x in squashed_sample(ops, policy, NOISE))
    deviation = np.exp(LOG_DEVIATION.astype(np.float64))
    exact = np.tanh(MEAN + deviation * NOISE)
    np.testing.assert_allclose(actions, exact, rtol=1e-5)
    expected = [numeric_log_density(a, m, d) for a, m, d in zip(exact, MEAN, deviation)]
    np.testing.assert_allclose(log_density, expected, rtol=1e-4)


def test_the_density_of_an_action_that_rounds_to_its_bound_is_finite():
    policy = {"mean": np.array([[30.0]], np.float32), "log_deviation": np.zeros((1, 1), np.float32)}
    action, log_density = squashed_sample(ops, policy, np.zeros((1, 1), np.float32))
    # log(1 - tanh(u)^2) is log 4 - 2 u for large u
    assert float(action[0, 0]) == 1.0
    assert float(log_density[0]) == pytest.approx(-0.5 * np.log(2 * np.pi) - (np.log(4) - 60), rel=1e-5)


class Critics(FixedNetwork):
    """Two critics: one for the actions in the memory, one for new actions, told apart by what they are asked."""

    def __init__(self, replayed: np.ndarray, stored: dict, new: dict):
        super().__init__(None)
        self.replayed, self.stored, self.new = replayed, stored, new

    def online(self, states, training=True):
        return [self.stored if np.array_equal(states["action"], self.replayed) else self.new]


def test_the_three_losses_of_soft_actor_critic():
    actions = np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)
    stored = {"q1": np.array([1.0, 2.0], np.float32), "q2": np.array([0.0, 5.0], np.float32)}
    new = {"q1": np.array([3.0, 1.0], np.float32), "q2": np.array([2.0, 4.0], np.float32)}
    v, v_t = np.array([0.5, -0.5], np.float32), np.array([10.0, 20.0], np.float32)
    policy = {"mean": MEAN, "log_deviation": LOG_DEVIATION}
    networks = {
        "policy": FixedNetwork([policy]),
        "q": Critics(actions, stored, new),
        "v": FixedNetwork([{"v": v}], target=[{"v": v_t}]),
    }
    columns = batch(actions=actions, rewards=[1.0, 2.0], discounts=[0.9, 0.0], extra={"noise": NOISE})
    update = run(soft_actor_critic_rule(), networks, columns)
    log_density = np.asarray(squashed_sample(ops, policy, NOISE)[1])
    soft_value = np.array([2.0, 1.0]) - log_density
    target = np.array([1 + 0.9 * 10, 2.0])
    assert update.losses["policy"] == pytest.approx(-soft_value.mean(), rel=1e-5)
    assert update.losses["v"] == pytest.approx(0.5 * np.mean((v - soft_value) ** 2), rel=1e-5)
    squares = (stored["q1"] - target) ** 2 + (stored["q2"] - target) ** 2
    assert update.losses["q"] == pytest.approx(0.5 * squares.mean(), rel=1e-5)
    np.testing.assert_allclose(update.errors, stored["q1"] - target)
    expected = {
        "Policy_mu_avg": MEAN.mean(), "Policy_logsig": LOG_DEVIATION.mean(), "Policy_logp_sampled": log_density.mean(),
        "Q1": 2.0, "Q2": 3.0, "TD err1": 0.5 * ((1 - 10) ** 2 + 0) / 2, "TD err2": 0.5 * (10**2 + 3**2) / 2,
        "V_tgt_ns": 15.0, "V_onl_ys": soft_value.mean(),
    }  # fmt: skip
    assert {name: float(update.signals[name]) for name in expected} == pytest.approx(expected, rel=1e-5)
    weighted = run(soft_actor_critic_rule(), networks, batch(**{**vars(columns), "weights": [2.0, 0.0]}))
    assert weighted.losses["q"] == pytest.approx(0.5 * 2 * squares[0], rel=1e-5)
