"""The updates of the value family, loss by loss and weight by weight, against the papers' equations in NumPy.

The network is a single layer, so that its outputs are a product; the gradient is a difference quotient of the loss.
"""

from __future__ import annotations

import importlib.util
from typing import Any, Callable

import numpy as np
import pytest

from rl_coach.agents.bootstrapped_dqn_agent import bootstrapped_rule
from rl_coach.agents.categorical_dqn_agent import categorical_rule
from rl_coach.agents.ddqn_agent import greedy_by_online
from rl_coach.agents.dqn_agent import greedy_by_target
from rl_coach.agents.mmc_agent import mixed_monte_carlo_rule
from rl_coach.agents.naf_agent import normalized_advantage_rule
from rl_coach.agents.nec_agent import looked_up, neural_episodic_control_rule
from rl_coach.agents.pal_agent import PALAlgorithmParameters, advantage_learning_rule
from rl_coach.agents.qr_dqn_agent import quantile_regression_rule
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import (
    CategoricalQHeadParameters,
    DNDQHeadParameters,
    NAFHeadParameters,
    QHeadParameters,
    QuantileRegressionQHeadParameters,
)
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters, LSTMMiddlewareParameters
from rl_coach.architectures.update import TrainingStep, UpdateRule
from rl_coach.base_parameters import EmbedderScheme, Frameworks, MiddlewareScheme
from rl_coach.core_types import Batch, EnvironmentSteps, RunPhase, Transition
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.policy.export import policy_of
from rl_coach.policy.policy import Policy
from rl_coach.utils import CoachError
from tests.agents.small_problems import (
    Bandit,
    Target,
    graph,
    n_step_q,
    neural_episodic_control,
    normalized_advantages,
    persistent_advantage_learning,
    quantile_regression,
    rainbow,
    upper_confidence_bounds,
)
from tests.agents.small_problems import (
    bootstrapped as bootstrapped_agent,
)
from tests.agents.small_problems import (
    categorical as categorical_agent,
)
from tests.agents.small_problems import (
    mixed_monte_carlo as mixed_agent,
)
from tests.architectures.networks import BOX, DISCRETE, VECTOR, network_parameters, spaces, wrap
from tests.frameworks import FRAMEWORK, run_on

F, A, N, K, B, UPDATES = 3, 4, 5, 3, 6, 4
V_MIN, V_MAX, MIXING, ALPHA, KAPPA = -2.0, 2.0, 0.3, 0.8, 0.5
RATE, TARGET_RATE = 0.3, 0.5
Weights = list[np.ndarray]
Row = dict[str, Any]


def outputs(weights: Weights, state: np.ndarray, head: int = 0) -> np.ndarray:
    """The numbers that a head gives for one state."""
    return state.astype(np.float64) @ weights[2 * head] + weights[2 * head + 1]


def double_dqn(weights: Weights, target: Weights, row: Row, head: int = 0) -> float:
    best = int(np.argmax(outputs(weights, row["next_state"], head)))
    return row["reward"] + row["discount"] * outputs(target, row["next_state"], head)[best]


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


def assert_same(learned: tuple[Any, Weights, Weights], per_row: Callable[..., float], columns: dict) -> None:
    found_losses, start, found = learned
    losses, weights = by_definition(per_row, start, columns)
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


def by_definition(per_row: Callable[..., float], weights: Weights, columns: dict) -> tuple[list[float], Weights]:
    """The losses and the last weights of gradient descent."""
    target, losses = [w.copy() for w in weights], []
    for update in range(UPDATES):
        rows = range(update * B, (update + 1) * B)
        fixed, held = [w.copy() for w in weights], [w.copy() for w in target]

        def loss(moved: Weights, rows: Any = rows, fixed: Weights = fixed, held: Weights = held) -> float:
            terms = [float(columns["weights"][i]) * per_row(moved, held, fixed, row_of(columns, i)) for i in rows]
            return float(sum(terms)) / (B - 1)

        losses.append(loss(weights))
        weights = [w - RATE * g for w, g in zip(weights, gradient(loss, weights))]
        target = [t + TARGET_RATE * (w - t) for t, w in zip(target, weights)]
    return losses, weights


@pytest.mark.parametrize("case", CASES)
def test_losses_and_weights_are_those_of_the_equations(case):
    head, rule, per_row = CASES[case]
    parameters = network_parameters([head()], create_target_network=True, **settings(MiddlewareScheme.Empty))
    columns = random_columns()
    assert_same(trained(parameters, spaces(VECTOR, DISCRETE), rule, columns), per_row, columns)


D = 2
CENTRE, RADIUS = (BOX.high + BOX.low) / 2, (BOX.high - BOX.low) / 2


def normalized_advantage(weights: Weights, target: Weights, fixed: Weights, row: Row) -> float:
    """Gu et al. 2016, equations 4 and 5."""
    v, mean, entries = (outputs(weights, row["state"], part) for part in range(3))
    lower = np.zeros((D, D))
    lower[np.tril_indices(D)] = entries
    lower[np.diag_indices(D)] = np.exp(np.diag(lower))
    difference = row["action"] - (CENTRE + RADIUS * np.tanh(mean))
    q = v[0] - difference @ lower @ lower.T @ difference / 2
    return (row["reward"] + row["discount"] * outputs(target, row["next_state"], 0)[0] - q) ** 2


def test_normalized_advantage_functions():
    parameters = network_parameters([NAFHeadParameters()], create_target_network=True, **settings([]))
    parameters.learning_rate = RATE
    columns = random_columns()
    columns["actions"] = np.random.default_rng(3).uniform(BOX.low, BOX.high, (B * UPDATES, D)).astype(np.float32)
    learned = trained(parameters, spaces(VECTOR, BOX), normalized_advantage_rule(False), columns)
    assert_same(learned, normalized_advantage, columns)


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


def test_what_moves_keys_and_values_is_the_gradient_of_that_loss(tmp_path):
    agent = graph(neural_episodic_control(), Bandit, tmp_path).get_agent()
    rng, delta = np.random.default_rng(0), agent.ap.algorithm.l2_norm_added_delta
    h, returns = rng.normal(size=(B, WIDTH)), rng.normal(size=B)
    keys, values = rng.normal(size=(B, NEIGHBOURS, WIDTH)), rng.normal(size=(B, NEIGHBOURS))

    def loss(moved: Weights) -> float:
        return float(np.mean((looked_up(np, h, moved[0], moved[1], delta) - returns) ** 2))

    by_keys, by_values = gradient(loss, [keys, values])
    found = agent._gradients(h, keys, values, returns)
    np.testing.assert_allclose(found[0], by_keys, atol=1e-6)
    np.testing.assert_allclose(found[1], by_values, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "problem", "change", "message"),
    [
        (categorical_agent, Bandit, lambda a: setattr(a.algorithm, "v_min", 10.0), r"algorithm.v_min is 10.0; it must be below"),
        (categorical_agent, Bandit, lambda a: setattr(a.algorithm, "atoms", 1), r"algorithm.atoms is 1; it must be a whole"),
        (rainbow, Bandit, lambda a: setattr(a.algorithm, "n_step", -2), r"algorithm.n_step is -2; it must be a whole"),
        (quantile_regression, Bandit, lambda a: setattr(a.algorithm, "huber_loss_interval", -1), r"huber_loss_interval is"),
        (n_step_q, Bandit, lambda a: setattr(a.algorithm, "targets_horizon", "3-Step"), r"targets_horizon is '3-Step'"),
        (bootstrapped_agent, Bandit, lambda a: setattr(a.exploration, "architecture_num_q_heads", 4), r"num_q_heads is 4; it must"),
        (bootstrapped_agent, Bandit, lambda a: setattr(a, "exploration", EGreedyParameters()), r"architecture_num_q_heads is None"),
        (neural_episodic_control, Bandit, lambda a: setattr(a.algorithm, "number_of_knn", 151), r"number_of_knn is 151"),
        (mixed_agent, Bandit, lambda a: setattr(a.algorithm, "monte_carlo_mixing_rate", 1.5), r"mixing_rate is 1.5"),
        (persistent_advantage_learning, Bandit, lambda a: setattr(a.algorithm, "pal_alpha", -1), r"pal_alpha is -1"),
        (normalized_advantages, Bandit, lambda a: None, r"need continuous actions with finite bounds"),
        (categorical_agent, Target, lambda a: None, r"cannot explore|CategoricalQHead needs a DiscreteActionSpace"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(parameters, problem, change, message, tmp_path):
    agent = parameters()
    change(agent)
    with pytest.raises(CoachError, match=message) as caught:
        graph(agent, problem, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_recurrent_network_is_refused_by_n_step_q(tmp_path):
    agent = n_step_q()
    agent.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters()
    with pytest.raises(CoachError, match="learns from single transitions"):
        graph(agent, Bandit, tmp_path)


def test_segments_of_n_step_q_end_in_the_value_of_their_last_state(tmp_path):
    agent = graph(n_step_q(), Bandit, tmp_path).get_agent()
    states = np.random.default_rng(0).random((4, 2)).astype(np.float32)
    steps = [
        Transition({"observation": states[t]}, t % 2, float(t + 1), {"observation": states[t + 1]}) for t in range(3)
    ]
    columns = agent.learning_columns(Batch(steps))
    np.testing.assert_allclose(columns["rewards"], [1 + 0.5 * 2 + 0.25 * 3, 2 + 0.5 * 3, 3])
    np.testing.assert_allclose(columns["discounts"], [0.125, 0.25, 0.5])
    np.testing.assert_array_equal(columns["next_states/observation"], states[[3, 3, 3]])
    np.testing.assert_allclose(columns["weights"].sum(), 1.0)
    steps[-1].game_over = True  # terminated, and not truncated
    np.testing.assert_array_equal(agent.learning_columns(Batch(steps))["discounts"], [0, 0, 0])
    agent.ap.algorithm.targets_horizon = "1-Step"
    columns = agent.learning_columns(Batch(steps))
    np.testing.assert_array_equal(columns["rewards"], [1, 2, 3])
    np.testing.assert_allclose(columns["discounts"], [0.5, 0.5, 0])
    np.testing.assert_array_equal(columns["next_states/observation"], states[1:])


def test_each_head_of_an_ensemble_has_its_own_share_of_what_is_played(tmp_path):
    parameters = bootstrapped_agent()
    parameters.exploration.bootstrapped_data_sharing_probability = 0.25
    manager = graph(parameters, Bandit, tmp_path)
    manager.heatup(EnvironmentSteps(400))
    masks = manager.get_agent().memory.transitions.info("mask")
    assert masks.shape == (400, 3)
    np.testing.assert_allclose(masks.mean(axis=0), 0.25, atol=0.08)


@pytest.mark.parametrize(
    "parameters", [bootstrapped_agent, upper_confidence_bounds, categorical_agent, quantile_regression, rainbow]
)
def test_the_exported_policy_acts_as_the_evaluated_agent(parameters, tmp_path):
    manager = graph(parameters(), Bandit, tmp_path / "run")
    agent = manager.get_agent()
    facts = {"framework": "tensorflow"}
    for name, data in policy_of(agent, facts).items():
        (tmp_path / name).write_bytes(data)
    policy = Policy.load(tmp_path)
    agent.phase = RunPhase.TEST
    for seed in range(20):
        state = np.random.default_rng(seed).random(2).astype(np.float32)
        for network in agent.networks.values():  # without noise, as the exported one
            q = network.online_network.predict({"observation": state[None]}, outputs=list(network.outputs_named("q")))
        if parameters is not rainbow:
            expected = agent.choose_action({"observation": state}).action
            assert policy.act(state) == expected
        assert np.shape(q)[-1] == 2


def test_the_entries_of_an_episode_are_its_embeddings_and_returns(tmp_path):
    parameters = neural_episodic_control()
    manager = graph(parameters, Bandit, tmp_path)
    agent = manager.get_agent()
    manager.heatup(EnvironmentSteps(10))  # one episode
    played = agent.memory.get_last_complete_episode().transitions
    states = np.stack([step.state["observation"] for step in played])
    h = agent.networks["main"].online_network.predict({"observation": states})
    # no entry was there yet, so that what follows four rewards was worth nothing
    expected = [sum(0.5**k * reward for k, reward in enumerate(rewards_of(states, played, t))) for t in range(10)]
    for t, step in enumerate(played):
        keys, values, _ = agent.dnd.query(h[t : t + 1], int(step.action), 1, touch=False)
        np.testing.assert_array_equal(keys[0, 0], h[t])
        same = [i for i in range(10) if played[i].action == step.action and np.array_equal(states[i], states[t])]
        moved = expected[same[0]]
        for i in same[1:]:
            moved += 0.1 * (expected[i] - moved)
        assert values[0, 0] == pytest.approx(moved, rel=1e-5)


def rewards_of(states: np.ndarray, played: list, t: int) -> list[float]:
    """The four rewards from step t on, by the problem's own rule: the arm whose light is on pays."""
    return [float(states[i][played[i].action]) for i in range(t, min(t + 4, 10))]


@pytest.mark.skipif(FRAMEWORK is not Frameworks.tensorflow, reason="starts the other framework itself")
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_the_same_on_jax():
    run_on("jax", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "equations or neural or normalized", __file__)
