"""The updates of the value family, loss by loss and weight by weight, against the papers' equations in NumPy.

The network is a single layer, so that its outputs are a product; the gradient is a difference quotient of the loss.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np
import pytest

from rl_coach.agents.bootstrapped_dqn_agent import bootstrapped_rule
from rl_coach.agents.ddqn_agent import greedy_by_online
from rl_coach.agents.mmc_agent import mixed_monte_carlo_rule
from rl_coach.agents.naf_agent import normalized_advantage_rule
from rl_coach.agents.pal_agent import PALAlgorithmParameters, advantage_learning_rule
from rl_coach.agents.qr_dqn_agent import quantile_regression_rule
from rl_coach.agents.rules.categorical_dqn import categorical_rule
from rl_coach.agents.rules.conservative import ConservativeSettings
from rl_coach.agents.rules.nec import neural_episodic_control_rule
from rl_coach.agents.rules.q_learning import (
    conservative_rule,
    greedy_by_target,
    munchausen_rule,
    q_lambda_rule,
    q_learning_rule,
)
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import (
    CategoricalQHeadParameters,
    DNDQHeadParameters,
    NAFHeadParameters,
    QHeadParameters,
    QuantileRegressionQHeadParameters,
)
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.update import TrainingStep, UpdateRule
from rl_coach.base_parameters import EmbedderScheme, MiddlewareScheme
from rl_coach.memories.non_episodic.differentiable_neural_dictionary import gradients_of_squared_errors, looked_up
from tests.agents.numpy_rules import batch, run
from tests.architectures.networks import BOX, DISCRETE, VECTOR, network_parameters, spaces, wrap

F, A, N, K, B, UPDATES = 3, 4, 5, 3, 6, 4
V_MIN, V_MAX, MIXING, ALPHA, KAPPA = -2.0, 2.0, 0.3, 0.8, 0.5
TEMPERATURE, SMALLEST_LOG_POLICY = 0.7, -0.9
RATE, TARGET_RATE = 0.3, 0.5
Weights = list[np.ndarray]
Row = dict[str, Any]


def outputs(weights: Weights, state: np.ndarray, head: int = 0) -> np.ndarray:
    """The numbers that a head gives for one state."""
    return state.astype(np.float64) @ weights[2 * head] + weights[2 * head + 1]


def double_dqn(weights: Weights, target: Weights, row: Row, head: int = 0) -> float:
    best = int(np.argmax(outputs(weights, row["next_state"], head)))
    return row["reward"] + row["discount"] * outputs(target, row["next_state"], head)[best]


def q_learning(weights: Weights, target: Weights, fixed: Weights, row: Row, double: bool) -> float:
    """Mnih et al. 2015, algorithm 1; van Hasselt et al. 2016, equation 4."""
    y = row["reward"] + row["discount"] * outputs(target, row["next_state"]).max()
    y = double_dqn(fixed, target, row) if double else y
    return (y - outputs(weights, row["state"])[row["action"]]) ** 2


def mixed_monte_carlo(weights: Weights, target: Weights, fixed: Weights, row: Row) -> float:
    y = (1 - MIXING) * double_dqn(fixed, target, row) + MIXING * row["return"]
    return (y - outputs(weights, row["state"])[row["action"]]) ** 2


def advantage(weights: Weights, target: Weights, fixed: Weights, row: Row, persistent: bool) -> float:
    """Bellemare et al. 2016: Delta_PAL = max(Delta_AL, Delta - alpha (V(x') - Q(x', a)))."""
    now, following = outputs(target, row["state"]), outputs(target, row["next_state"])
    y = double_dqn(fixed, target, row)
    if row["discount"] == 0:
        following = np.zeros(A)
    operator = y - ALPHA * (now.max() - now[row["action"]])
    if persistent:
        operator = max(operator, y - ALPHA * (following.max() - following[row["action"]]))
    operator = (1 - MIXING) * operator + MIXING * row["return"]
    return (operator - outputs(weights, row["state"])[row["action"]]) ** 2


def q_lambda(weights: Weights, target: Weights, fixed: Weights, row: Row) -> float:
    """Gallici et al. 2024, algorithm 1."""
    return 0.5 * (row["return"] - outputs(weights, row["state"])[row["action"]]) ** 2


def soft_policy(weights: Weights, state: np.ndarray) -> np.ndarray:
    """[A], softmax(q / tau)"""
    exponentials = np.exp(outputs(weights, state) / TEMPERATURE)
    return exponentials / exponentials.sum()


def munchausen(weights: Weights, target: Weights, fixed: Weights, row: Row) -> float:
    """Vieillard et al. 2020, section 2, the sum over next actions as it is written there."""
    y = row["reward"] + ALPHA * bounded_log_policy(target, row)
    following, policy = outputs(target, row["next_state"]), soft_policy(target, row["next_state"])
    y += row["discount"] * (policy * (following - TEMPERATURE * np.log(policy))).sum()
    return (y - outputs(weights, row["state"])[row["action"]]) ** 2


def conservative(weights: Weights, target: Weights, fixed: Weights, row: Row) -> float:
    """Kumar et al. 2020, equation 4, the sum over actions as it is written there."""
    q = outputs(weights, row["state"])
    gap = float(np.log(np.exp(q).sum())) - q[row["action"]]
    return (double_dqn(fixed, target, row) - q[row["action"]]) ** 2 + ALPHA * gap


def bounded_log_policy(target: Weights, row: Row) -> float:
    scaled = TEMPERATURE * float(np.log(soft_policy(target, row["state"])[row["action"]]))
    return min(max(scaled, SMALLEST_LOG_POLICY), 0.0)


def distributions(weights: Weights, state: np.ndarray) -> np.ndarray:
    """[A, N]"""
    exponentials = np.exp(outputs(weights, state).reshape(A, N))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def categorical(weights: Weights, target: Weights, fixed: Weights, row: Row, double: bool) -> float:
    """Bellemare et al. 2017, algorithm 1, line by line."""
    z = np.linspace(V_MIN, V_MAX, N)
    p_t = distributions(target, row["next_state"])
    a_t = int(np.argmax((distributions(fixed if double else target, row["next_state"]) * z).sum(axis=1)))
    m = np.zeros(N)
    for j in range(N):
        t_z = min(max(row["reward"] + row["discount"] * z[j], V_MIN), V_MAX)
        b = (t_z - V_MIN) / ((V_MAX - V_MIN) / (N - 1))
        lower, upper = int(np.floor(b)), int(np.ceil(b))
        if lower == upper:
            m[lower] += p_t[a_t, j]
        else:
            m[lower] += p_t[a_t, j] * (upper - b)
            m[upper] += p_t[a_t, j] * (b - lower)
    return -float((m * np.log(distributions(weights, row["state"])[row["action"]])).sum())


def quantiles(weights: Weights, target: Weights, fixed: Weights, row: Row, kappa: float) -> float:
    """Dabney et al. 2018, algorithm 1 and equations 9 and 10."""
    following = outputs(target, row["next_state"]).reshape(A, N)
    theta_t = following[int(np.argmax(following.mean(axis=1)))]
    theta = outputs(weights, row["state"]).reshape(A, N)[row["action"]]
    total = 0.0
    for i in range(N):
        tau = (i + 0.5) / N
        for j in range(N):
            u = row["reward"] + row["discount"] * theta_t[j] - theta[i]
            huber = u**2 / 2 if abs(u) <= kappa else kappa * (abs(u) - kappa / 2)
            total += abs(tau - (u < 0)) * (huber if kappa else abs(u)) / N
    return total


def bootstrapped(weights: Weights, target: Weights, fixed: Weights, row: Row) -> float:
    """Osband et al. 2016, appendix D: each head's own double Q-learning, on its own rows."""
    errors = [
        row["mask"][k] * (double_dqn(fixed, target, row, k) - outputs(weights, row["state"], k)[row["action"]])
        for k in range(K)
    ]
    return float(np.square(errors).sum())


def advantage_parameters(persistent: bool) -> PALAlgorithmParameters:
    algorithm = PALAlgorithmParameters()
    algorithm.pal_alpha, algorithm.monte_carlo_mixing_rate = ALPHA, MIXING
    algorithm.persistent_advantage_learning = persistent
    return algorithm


def categorical_head() -> CategoricalQHeadParameters:
    head = CategoricalQHeadParameters()
    head.v_min, head.v_max, head.atoms = V_MIN, V_MAX, N
    return head


def quantile_head() -> QuantileRegressionQHeadParameters:
    head = QuantileRegressionQHeadParameters()
    head.atoms = N
    return head


SUPPORT = np.linspace(V_MIN, V_MAX, N)
CASES: dict[str, tuple[Callable[[], Any], UpdateRule, Callable[..., float]]] = {
    "Q-learning": (
        QHeadParameters,
        q_learning_rule(False, None, greedy_by_target, False),
        lambda *a: q_learning(*a, double=False),
    ),
    "double Q-learning": (
        QHeadParameters,
        q_learning_rule(False, None, greedy_by_online, True),
        lambda *a: q_learning(*a, double=True),
    ),
    "mixed monte carlo": (QHeadParameters, mixed_monte_carlo_rule(MIXING, False, None), mixed_monte_carlo),
    "advantage learning": (
        QHeadParameters,
        advantage_learning_rule(advantage_parameters(False), False, None),
        lambda *a: advantage(*a, persistent=False),
    ),
    "persistent advantage learning": (
        QHeadParameters,
        advantage_learning_rule(advantage_parameters(True), False, None),
        lambda *a: advantage(*a, persistent=True),
    ),
    "lambda-returns": (QHeadParameters, q_lambda_rule(False, 0.5), q_lambda),
    "conservative": (
        QHeadParameters,
        conservative_rule(
            q_learning_rule(False, None, greedy_by_online, True), ConservativeSettings(ALPHA / 2), None, False
        ),
        conservative,
    ),
    "munchausen": (
        QHeadParameters,
        munchausen_rule(TEMPERATURE, ALPHA, SMALLEST_LOG_POLICY, False, None),
        munchausen,
    ),
    "categorical": (
        categorical_head,
        categorical_rule(SUPPORT, None, greedy_by_target, False),
        lambda *a: categorical(*a, double=False),
    ),
    "double categorical": (
        categorical_head,
        categorical_rule(SUPPORT, None, greedy_by_online, True),
        lambda *a: categorical(*a, double=True),
    ),
    "quantile regression": (
        quantile_head,
        quantile_regression_rule(N, KAPPA, None),
        lambda *a: quantiles(*a, kappa=KAPPA),
    ),
    "quantile regression without a Huber loss": (
        quantile_head,
        quantile_regression_rule(N, 0, None),
        lambda *a: quantiles(*a, kappa=0),
    ),
    "bootstrapped": (
        lambda: QHeadParameters(num_output_head_copies=K),
        bootstrapped_rule(False, None),
        bootstrapped,
    ),
}


def random_columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    rows = B * UPDATES
    return {
        "states/observation": rng.normal(size=(rows, F)).astype(np.float32),
        "next_states/observation": rng.normal(size=(rows, F)).astype(np.float32),
        "actions": rng.integers(0, A, rows),
        "rewards": rng.normal(size=rows).astype(np.float32),
        "discounts": (0.9 * (rng.random(rows) < 0.7)).astype(np.float32),
        "weights": (rng.random(rows) * (np.arange(rows) % B < B - 1)).astype(np.float32),  # the last row fills up
        "extra/returns": rng.normal(size=rows).astype(np.float32),
        "extra/mask": (rng.random((rows, K)) < 0.6).astype(np.float32),
    }


def trained(parameters: Any, definition: Any, rule: UpdateRule, columns: dict) -> tuple[Any, Weights, Weights]:
    """The learner's losses, and the network's weights before and after its updates."""
    network = wrap(parameters, definition)
    start = [w.astype(np.float64) for w in network.online_network.get_weights()]
    step = TrainingStep({"main": network.state.function}, {"main": parameters}, rule)
    learner = network.framework.make_learner(step, {"main": network.state}, ("main",))
    rates = {"main": TARGET_RATE} if parameters.create_target_network else {}
    losses = learner.train(columns, num_updates=UPDATES, target_rates=rates).losses["main"]
    return losses, start, network.online_network.get_weights()


def assert_same(
    learned: tuple[Any, Weights, Weights], per_row: Callable[..., float], columns: dict, rate: float = RATE
) -> None:
    found_losses, start, found = learned
    losses, weights = by_definition(per_row, start, columns, rate)
    np.testing.assert_allclose(found_losses, losses, rtol=2e-4)
    for one, expected in zip(found, weights):
        np.testing.assert_allclose(one, expected, rtol=2e-4, atol=2e-5)


def settings(layers: Any) -> dict[str, Any]:
    """A network without an embedder, whose middleware is linear, learned by gradient descent."""
    return {
        "optimizer_type": "SGD",
        "learning_rate": RATE,
        "input_embedders_parameters": {"observation": InputEmbedderParameters(scheme=EmbedderScheme.Empty)},
        "middleware_parameters": FCMiddlewareParameters(scheme=layers, activation_function="none"),
    }


def row_of(columns: dict[str, np.ndarray], i: int) -> Row:
    return {
        "state": columns["states/observation"][i],
        "next_state": columns["next_states/observation"][i],
        "action": columns["actions"][i],
        "reward": float(columns["rewards"][i]),
        "discount": float(columns["discounts"][i]),
        "return": float(columns["extra/returns"][i]),
        "keys": columns["extra/keys"][i].astype(np.float64) if "extra/keys" in columns else None,
        "values": columns["extra/values"][i].astype(np.float64) if "extra/values" in columns else None,
        "mask": columns["extra/mask"][i].astype(np.float64),
    }


def gradient(loss: Callable[[Weights], float], weights: Weights) -> Weights:
    """Central differences."""
    found, width = [], 1e-6
    for k, array in enumerate(weights):
        slope = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            sides = []
            for step in (width, -width):
                moved = [w.copy() for w in weights]
                moved[k][index] += step
                sides.append(loss(moved))
            slope[index] = (sides[0] - sides[1]) / (2 * width)
        found.append(slope)
    return found


def by_definition(
    per_row: Callable[..., float], weights: Weights, columns: dict, rate: float
) -> tuple[list[float], Weights]:
    """The losses and the last weights of gradient descent."""
    target, losses = [w.copy() for w in weights], []
    for update in range(UPDATES):
        rows = range(update * B, (update + 1) * B)
        fixed, held = [w.copy() for w in weights], [w.copy() for w in target]

        def loss(moved: Weights, rows: Any = rows, fixed: Weights = fixed, held: Weights = held) -> float:
            terms = [float(columns["weights"][i]) * per_row(moved, held, fixed, row_of(columns, i)) for i in rows]
            return float(sum(terms)) / (B - 1)

        losses.append(loss(weights))
        weights = [w - rate * g for w, g in zip(weights, gradient(loss, weights))]
        target = [t + TARGET_RATE * (w - t) for t, w in zip(target, weights)]
    return losses, weights


@pytest.mark.parametrize("case", CASES)
def test_losses_and_weights_are_those_of_the_equations(case):
    head, rule, per_row = CASES[case]
    parameters = network_parameters([head()], create_target_network=True, **settings(MiddlewareScheme.Empty))
    columns = random_columns()
    assert_same(trained(parameters, spaces(VECTOR, DISCRETE), rule, columns), per_row, columns)


def test_some_log_policies_are_cut_off_and_others_not():
    """So the numbers above say that both are right."""
    columns = random_columns()
    network = wrap(
        network_parameters([QHeadParameters()], create_target_network=True, **settings(MiddlewareScheme.Empty)),
        spaces(VECTOR, DISCRETE),
    )
    weights = network.online_network.get_weights()
    bonuses = np.array([bounded_log_policy(weights, row_of(columns, i)) for i in range(B * UPDATES)])
    is_cut_off = bonuses == SMALLEST_LOG_POLICY
    assert 0 < is_cut_off.sum() < len(bonuses)


D = 2
CENTRE, RADIUS = (BOX.high + BOX.low) / 2, (BOX.high - BOX.low) / 2


def layer(weights: Weights, state: np.ndarray, width: int) -> np.ndarray:
    """The output of the layer of that many units."""
    first = next(i for i, array in enumerate(weights) if array.ndim == 2 and array.shape[1] == width)
    return state.astype(np.float64) @ weights[first] + weights[first + 1]


def normalized_advantage(weights: Weights, target: Weights, fixed: Weights, row: Row, bounds: Any = None) -> float:
    """Gu et al. 2016, equations 4 and 5."""
    v, mean, entries = (layer(weights, row["state"], width) for width in (1, D, D * (D + 1) // 2))
    lower = np.zeros((D, D))
    lower[np.tril_indices(D)] = entries
    exponent = np.diag(lower)
    if bounds is not None:
        radius = np.log(bounds[1] / bounds[0]) / 2
        exponent = np.log(bounds[0] * bounds[1]) / 2 + radius * np.tanh(exponent / radius)
    lower[np.diag_indices(D)] = np.exp(exponent)
    difference = row["action"] - (CENTRE + RADIUS * np.tanh(mean))
    q = v[0] - difference @ lower @ lower.T @ difference / 2
    return (row["reward"] + row["discount"] * layer(target, row["next_state"], 1)[0] - q) ** 2


@pytest.mark.parametrize("bounds", [None, (0.5, 3.0)])
def test_normalized_advantage_functions(bounds):
    head = NAFHeadParameters()
    head.diagonal_bounds = bounds
    parameters = network_parameters([head], create_target_network=True, **settings([]))
    parameters.learning_rate = 0.001  # errors are large where an action is far from the best one
    columns = random_columns()
    columns["actions"] = np.random.default_rng(3).uniform(BOX.low, BOX.high, (B * UPDATES, D)).astype(np.float32)
    learned = trained(parameters, spaces(VECTOR, BOX), normalized_advantage_rule(False), columns)
    assert_same(learned, functools.partial(normalized_advantage, bounds=bounds), columns, rate=0.001)


DELTA, NEIGHBOURS, WIDTH = 0.1, 3, 4


def episodic(weights: Weights, target: Weights, fixed: Weights, row: Row) -> float:
    """Pritzel et al. 2017, equations 1, 2 and 5."""
    h = outputs(weights, row["state"])
    kernel = [1 / (np.square(h - key).sum() + DELTA) for key in row["keys"]]
    q = sum(k * v for k, v in zip(kernel, row["values"])) / sum(kernel)
    return (row["return"] - q) ** 2


def neighbours() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    keys = rng.normal(size=(B * UPDATES, NEIGHBOURS, WIDTH)).astype(np.float32)
    return keys, rng.normal(size=(B * UPDATES, NEIGHBOURS)).astype(np.float32)


def test_neural_episodic_control():
    parameters = network_parameters([DNDQHeadParameters()], **settings([Dense(WIDTH)]))
    columns = random_columns()
    columns["extra/keys"], columns["extra/values"] = neighbours()
    rule = neural_episodic_control_rule(DELTA, False)
    assert_same(trained(parameters, spaces(VECTOR, DISCRETE), rule, columns), episodic, columns)


def test_what_moves_keys_and_values_is_the_gradient_of_that_loss():
    rng = np.random.default_rng(0)
    h, returns = rng.normal(size=(B, WIDTH)), rng.normal(size=B)
    keys, values = rng.normal(size=(B, NEIGHBOURS, WIDTH)), rng.normal(size=(B, NEIGHBOURS))

    def loss(moved: Weights) -> float:
        return float(np.mean((looked_up(np, h, moved[0], moved[1], DELTA) - returns) ** 2))

    by_keys, by_values = gradient(loss, [keys, values])
    found = gradients_of_squared_errors(h, keys, values, returns, DELTA)
    np.testing.assert_allclose(found[0], by_keys, atol=1e-6)
    np.testing.assert_allclose(found[1], by_values, atol=1e-6)


class Values:
    """A network with given values of actions, for states and next states, online and as a target alike.

    :param q: [B, A] by state and next state
    """

    def __init__(self, q: dict[str, np.ndarray]):
        self.q = q

    def online(self, states: dict[str, Any], training: bool = True) -> list[dict[str, np.ndarray]]:
        q = self.q[states["which"]].astype(np.float32)
        distribution = np.tile(np.linspace(0.1, 0.3, N), (*q.shape, 1)) + np.arange(q.shape[1])[:, None] / 10
        distribution = (distribution / distribution.sum(axis=2, keepdims=True)).astype(np.float32)
        quantiles = np.linspace(-1, 1, N) * (1 + np.arange(q.shape[1]))[:, None] + q[..., None]
        outputs = {"distribution": distribution, "log_distribution": np.log(distribution)}
        return [{"q": q, "quantiles": quantiles.astype(np.float32), **outputs}] * K

    target = online


MASKED_RULES: dict[str, Callable[[str | None], UpdateRule]] = {
    "mixed monte carlo": lambda mask: mixed_monte_carlo_rule(MIXING, False, mask),
    "persistent advantage learning": lambda mask: advantage_learning_rule(advantage_parameters(True), False, mask),
    "conservative": lambda mask: conservative_rule(
        q_learning_rule(False, mask, greedy_by_online, True), ConservativeSettings(ALPHA / 2), mask, False
    ),
    "munchausen": lambda mask: munchausen_rule(TEMPERATURE, ALPHA, SMALLEST_LOG_POLICY, False, mask),
    "categorical": lambda mask: categorical_rule(SUPPORT, mask, greedy_by_target, False),
    "double categorical": lambda mask: categorical_rule(SUPPORT, mask, greedy_by_online, True),
    "quantile regression": lambda mask: quantile_regression_rule(N, KAPPA, mask),
    "bootstrapped": lambda mask: bootstrapped_rule(False, mask),
}


@pytest.mark.parametrize("name", MASKED_RULES)
def test_a_masked_action_of_huge_value_is_as_one_that_is_not_there(name):
    rng = np.random.default_rng(5)
    q = {which: rng.normal(size=(4, 3)) for which in ("states", "next_states")}
    tempting = {which: np.append(values, np.full((4, 1), 50.0), axis=1) for which, values in q.items()}
    columns = {
        "actions": np.array([0, 1, 2, 0]),
        "rewards": rng.normal(size=4),
        "discounts": [0.9, 0.9, 0.0, 0.9],
        "extra": {"returns": rng.normal(size=4), "mask": np.ones((4, K))},
    }
    mask = {"mask": np.tile([1, 1, 1, 0], (4, 1))}
    without = run(MASKED_RULES[name](None), {"main": Values(q)}, batch(**columns))
    masked = run(
        MASKED_RULES[name]("mask"), {"main": Values(tempting)}, batch(**columns, states=mask, next_states=mask)
    )
    np.testing.assert_allclose(masked.losses["main"], without.losses["main"], rtol=1e-5)
    np.testing.assert_allclose(masked.errors, without.errors, rtol=1e-5, atol=1e-6)
    tempted = run(MASKED_RULES[name](None), {"main": Values(tempting)}, batch(**columns))
    assert not np.allclose(tempted.losses["main"], without.losses["main"])
