"""Policy gradients, actor-critic, PPO and ACER against the papers' equations, in NumPy and in float64.

Networks are linear, so that the same losses are written down by hand here; their gradients are taken by differences.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from rl_coach.agents.acer_agent import ACERAgentParameters
from rl_coach.agents.actor_critic_agent import actor_critic_rule
from rl_coach.agents.policy_gradients_agent import policy_gradient_rule
from rl_coach.agents.ppo_agent import PPOAgentParameters
from rl_coach.agents.rules.acer import acer_rule, retrace_targets
from rl_coach.agents.rules.proximal_policy import adapted_coefficient, clipped_ppo_rule, ppo_rule
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.framework import load_framework
from rl_coach.architectures.head_parameters import (
    ACERPolicyHeadParameters,
    PolicyHeadParameters,
    PPOHeadParameters,
    QHeadParameters,
    VHeadParameters,
)
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters, LSTMMiddlewareParameters
from rl_coach.architectures.update import TrainingStep
from rl_coach.base_parameters import EmbedderScheme, Frameworks, MiddlewareScheme
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import LinearSchedule
from rl_coach.spaces import DiscreteActionSpace, VectorObservationSpace
from rl_coach.utils import CoachError
from tests.architectures.networks import BOX, DISCRETE, VECTOR, network_parameters, spaces
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import Bandit, SmallEnvironment, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import clipped_ppo, shrink
from tests.zoo.states import weights_of

RNG = np.random.default_rng(7)
ROWS, INPUTS, ACTIONS, RATE, UPDATES = 32, 3, 4, 0.05, 3
STATES = RNG.normal(size=(ROWS, INPUTS)).astype(np.float32)
TAKEN = RNG.integers(ACTIONS, size=ROWS)
ADVANTAGES, RETURNS = RNG.normal(size=(2, ROWS)).astype(np.float32)
BEHAVIOUR = RNG.dirichlet(np.full(ACTIONS, 4.0), ROWS).astype(np.float32)
BASE = {"states/observation": STATES, "actions": TAKEN, "weights": np.full(ROWS, 1 / ROWS, np.float32)}
Weights = dict[str, list[np.ndarray]]


def linear(heads: list, has_target: bool = False) -> Any:
    return network_parameters(
        heads,
        input_embedders_parameters={"observation": InputEmbedderParameters(scheme=EmbedderScheme.Empty)},
        middleware_parameters=FCMiddlewareParameters(scheme=MiddlewareScheme.Empty),
        optimizer_type="SGD", learning_rate=RATE, create_target_network=has_target,
    )  # fmt: skip


def in_order_of_heads(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Kernel and bias of the first head, then of the second; Keras holds the last head's first."""
    arrays = [np.array(array, np.float64) for array in arrays]
    is_turned = len(arrays) == 4 and FRAMEWORK not in (Frameworks.mxnet, Frameworks.torch)
    return [*arrays[2:], *arrays[:2]] if is_turned else arrays


def trained(
    networks: dict[str, Any],
    rule: Any,
    columns: dict[str, np.ndarray],
    scalars: Any,
    action: Any,
    updates: int = UPDATES,
) -> Any:
    """The weights before and after some updates on the same rows, and the first update's losses."""
    framework, definition = load_framework(FRAMEWORK), spaces(VECTOR, action)
    states = {
        name: framework.hold(
            framework.make_function(p, definition, name, np.random.default_rng(1)), p.create_target_network
        )
        for name, p in networks.items()
    }
    step = TrainingStep({n: s.function for n, s in states.items()}, networks, rule)
    learner = framework.make_learner(step, states, tuple(networks))
    before = {n: in_order_of_heads(s.arrays("weights")) for n, s in states.items()}
    results = [learner.train(columns, scalars) for _ in range(updates)]
    after = {n: in_order_of_heads(s.arrays("weights")) for n, s in states.items()}
    return before, after, {name: float(loss[0]) for name, loss in results[0].losses.items()}


def descended(losses: Callable[[Weights], Callable[[Weights], dict[str, float]]], weights: Weights) -> Weights:
    """``UPDATES`` steps of gradient descent, gradients by central differences.

    :param losses: of the weights whose values stand wherever no gradient passes, gives the losses of other weights
    """
    for _ in range(UPDATES):
        loss = losses(weights)
        new = {name: [array.copy() for array in arrays] for name, arrays in weights.items()}
        for name, arrays in weights.items():
            for index, array in enumerate(arrays):
                for place in np.ndindex(array.shape):
                    ends = []
                    for change in (1e-5, -1e-5):
                        moved = {n: [a.copy() for a in group] for n, group in weights.items()}
                        moved[name][index][place] += change
                        ends.append(loss(moved)[name])
                    new[name][index][place] -= RATE * (ends[0] - ends[1]) / 2e-5
        weights = new
    return weights


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def assert_equal(ours: Weights, theirs: Weights) -> None:
    for name, arrays in theirs.items():
        for one, other in zip(ours[name], arrays):
            np.testing.assert_allclose(one, other, atol=2e-5)


def log_policy(arrays: list[np.ndarray]) -> np.ndarray:
    return np.log(softmax(STATES @ arrays[0] + arrays[1]))


def mean_entropy(log_probs: np.ndarray) -> float:
    return -(np.exp(log_probs) * log_probs).sum(axis=1).mean()


def test_policy_gradients():
    """Williams 1992: the gradient of log pi(a|s), weighed by the return, and of the entropy."""
    rule = policy_gradient_rule(0.1, None, 2.0)
    columns = BASE | {"extra/advantages": ADVANTAGES}
    before, after, losses = trained({"main": linear([PolicyHeadParameters()])}, rule, columns, None, DISCRETE)

    def loss_of(_: Weights) -> Callable[[Weights], dict[str, float]]:
        def loss(weights: Weights) -> dict[str, float]:
            log_probs = log_policy(weights["main"])
            objective = (log_probs[np.arange(ROWS), TAKEN] * ADVANTAGES).mean()
            return {"main": -2 * objective - 0.1 * mean_entropy(log_probs)}

        return loss

    assert losses["main"] == pytest.approx(loss_of(before)(before)["main"], rel=1e-4)
    assert_equal(after, descended(loss_of, before))


def test_actor_critic():
    """Mnih et al. 2016, algorithm S3, with both losses on one body."""
    rule = actor_critic_rule(0.5, 2.0, 0.1, None)
    columns = BASE | {"extra/advantages": ADVANTAGES, "extra/returns": RETURNS}
    networks = {"main": linear([VHeadParameters(), PolicyHeadParameters()])}
    before, after, losses = trained(networks, rule, columns, None, DISCRETE)

    def loss_of(_: Weights) -> Callable[[Weights], dict[str, float]]:
        def loss(weights: Weights) -> dict[str, float]:
            v = (STATES @ weights["main"][0] + weights["main"][1])[:, 0]
            log_probs = log_policy(weights["main"][2:])
            objective = (log_probs[np.arange(ROWS), TAKEN] * ADVANTAGES).mean()
            return {"main": 0.5 * ((RETURNS - v) ** 2).mean() - 2 * objective - 0.1 * mean_entropy(log_probs)}

        return loss

    assert losses["main"] == pytest.approx(loss_of(before)(before)["main"], rel=1e-4)
    assert_equal(after, descended(loss_of, before))


def test_clipped_ppo():
    """Schulman et al. 2017, equations 7 and 9; of some rows the clipped ratio counts, of others it does not."""
    rule = clipped_ppo_rule(0.4, 0.01, 0.5, 1.0, None)
    columns = BASE | {
        "weights": np.ones(ROWS, np.float32), "extra/advantages": ADVANTAGES, "extra/returns": RETURNS,
        "extra/behaviour_log_probs": np.log(BEHAVIOUR[np.arange(ROWS), TAKEN]),
    }  # fmt: skip
    networks = {"main": linear([VHeadParameters(), PPOHeadParameters()])}
    before, after, losses = trained(networks, rule, columns, {"clipping_decay": 0.5}, DISCRETE)
    clipped = []

    def loss_of(_: Weights) -> Callable[[Weights], dict[str, float]]:
        def loss(weights: Weights) -> dict[str, float]:
            v = (STATES @ weights["main"][0] + weights["main"][1])[:, 0]
            log_probs = log_policy(weights["main"][2:])
            ratio = (np.exp(log_probs) / BEHAVIOUR)[np.arange(ROWS), TAKEN]
            objectives = np.stack([ratio * ADVANTAGES, np.clip(ratio, 0.8, 1.2) * ADVANTAGES])
            clipped.append((objectives[1] < objectives[0]).mean())
            loss = 0.5 * ((RETURNS - v) ** 2).mean() - objectives.min(axis=0).mean() - 0.01 * mean_entropy(log_probs)
            return {"main": loss}

        return loss

    assert losses["main"] == pytest.approx(loss_of(before)(before)["main"], rel=1e-4)
    assert_equal(after, descended(loss_of, before))
    assert 0.1 < clipped[0] < 0.9


@pytest.mark.parametrize("epsilon", [None, 0.2])
def test_ppo_with_a_penalty(epsilon):
    old = BEHAVIOUR.astype(np.float64)
    columns = BASE | {
        "weights": np.ones(ROWS, np.float32), "extra/advantages": ADVANTAGES, "extra/returns": RETURNS,
        "extra/behaviour_log_probs": np.log(BEHAVIOUR[np.arange(ROWS), TAKEN]),
        "extra/behaviour_probabilities": BEHAVIOUR,
    }  # fmt: skip
    networks = {"actor": linear([PPOHeadParameters()]), "critic": linear([VHeadParameters()])}
    rule = ppo_rule(0.01, 0.5, 0.1, None, epsilon)
    before, after, losses = trained(networks, rule, columns, {"kl_coefficient": 0.7}, DISCRETE)

    def loss_of(_: Weights) -> Callable[[Weights], dict[str, float]]:
        def loss(weights: Weights) -> dict[str, float]:
            kernel, bias = weights["actor"]
            new = softmax(STATES @ kernel + bias)
            ratio = (new / old)[np.arange(ROWS), TAKEN]
            objective = ratio * ADVANTAGES
            if epsilon:
                objective = np.minimum(objective, np.clip(ratio, 1 - epsilon, 1 + epsilon) * ADVANTAGES)
            kl = (old * np.log(old / new)).sum(axis=1).mean()
            actor = -objective.mean() + 0.7 * kl + 0.5 * max(0, kl - 2 * 0.01) ** 2
            actor += 0.1 * (new * np.log(new)).sum(axis=1).mean()
            v = (STATES @ weights["critic"][0] + weights["critic"][1])[:, 0]
            return {"actor": actor, "critic": ((v - RETURNS) ** 2).mean()}

        return loss

    for name, loss in loss_of(before)(before).items():
        assert losses[name] == pytest.approx(loss, rel=1e-4)
    if epsilon is None:
        assert_equal(after, descended(loss_of, before))


def test_ppo_with_a_penalty_for_continuous_actions():
    old_mean, old_deviation = RNG.normal(size=(ROWS, 2)), RNG.uniform(0.5, 2, size=(ROWS, 2))
    actions = RNG.normal(size=(ROWS, 2))
    old_log_probs = (-0.5 * ((actions - old_mean) / old_deviation) ** 2 - np.log(old_deviation)).sum(axis=1)
    old_log_probs -= np.log(2 * np.pi)
    columns = BASE | {
        "weights": np.ones(ROWS, np.float32), "extra/advantages": ADVANTAGES, "extra/returns": RETURNS,
        "actions": actions.astype(np.float32), "extra/behaviour_log_probs": old_log_probs.astype(np.float32),
        "extra/behaviour_mean": old_mean.astype(np.float32),
        "extra/behaviour_standard_deviation": old_deviation.astype(np.float32),
    }  # fmt: skip
    networks = {"actor": linear([PPOHeadParameters()]), "critic": linear([VHeadParameters()])}
    rule = ppo_rule(0.01, 1000, 0.01, None)
    before, _, losses = trained(networks, rule, columns, {"kl_coefficient": 0.7}, BOX, updates=1)
    kernel, bias, log_deviation = before["actor"]
    mean, deviation = STATES @ kernel + bias, np.exp(log_deviation)
    log_probs = (-0.5 * ((actions - mean) / deviation) ** 2 - np.log(deviation)).sum(axis=1) - np.log(2 * np.pi)
    kl = np.log(deviation / old_deviation) + (old_deviation**2 + (old_mean - mean) ** 2) / (2 * deviation**2) - 0.5
    kl = kl.sum(axis=1).mean()
    entropy = np.log(deviation).sum() + np.log(2 * np.pi * np.e)
    expected = -(np.exp(log_probs - old_log_probs) * ADVANTAGES).mean()
    expected += 0.7 * kl + 1000 * max(0, kl - 0.02) ** 2 - 0.01 * entropy
    assert losses["actor"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("divergence", "factor"), [(0.02, 1.5), (0.0131, 1.5), (0.0129, 1), (0.01, 1), (0.0071, 1), (0.0069, 1 / 1.5)]
)
def test_the_penalty_adapts(divergence, factor):
    assert adapted_coefficient(2.0, divergence, 0.01) == pytest.approx(2.0 * factor)


def test_the_clipped_value_counts_where_it_is_worse():
    old_values = RNG.normal(size=ROWS).astype(np.float32)
    columns = BASE | {
        "weights": np.ones(ROWS, np.float32), "extra/advantages": ADVANTAGES, "extra/returns": RETURNS,
        "extra/behaviour_log_probs": np.zeros(ROWS, np.float32), "extra/behaviour_values": old_values,
    }  # fmt: skip
    rule = clipped_ppo_rule(0.2, 0.0, 1.0, 0.0, None, 0.3)
    networks = {"main": linear([VHeadParameters(), PPOHeadParameters()])}
    before, after, losses = trained(networks, rule, columns, {"clipping_decay": 1.0}, DISCRETE)

    def loss_of(_: Weights) -> Callable[[Weights], dict[str, float]]:
        def loss(weights: Weights) -> dict[str, float]:
            v = (STATES @ weights["main"][0] + weights["main"][1])[:, 0]
            near = np.clip(v, old_values - 0.3, old_values + 0.3)
            return {"main": np.maximum((v - RETURNS) ** 2, (near - RETURNS) ** 2).mean()}

        return loss

    assert losses["main"] == pytest.approx(loss_of(before)(before)["main"], rel=1e-4)
    assert_equal({"main": after["main"][:2]}, {"main": descended(loss_of, before)["main"][:2]})


@pytest.mark.parametrize(
    ("rule", "heads"),
    [
        (clipped_ppo_rule(0.2, 0.0, 1.0, 1.0, None), {"main": [VHeadParameters(), PPOHeadParameters()]}),
        (ppo_rule(0.01, None, 0.0, None), {"actor": [PPOHeadParameters()], "critic": [VHeadParameters()]}),
    ],
    ids=["clipped", "with a penalty"],
)
def test_actions_that_the_policy_never_drew_do_not_overflow(rule, heads):
    """As those of a heatup: of a density that rounds to 0, and a hundred powers of e likelier after an update."""
    columns = BASE | {
        "weights": np.ones(ROWS, np.float32), "actions": STATES[:, :2], "extra/advantages": -np.ones(ROWS, np.float32),
        "extra/returns": RETURNS, "extra/behaviour_log_probs": np.full(ROWS, -100.0, np.float32),
        "extra/behaviour_mean": np.zeros((ROWS, 2), np.float32),
        "extra/behaviour_standard_deviation": np.ones((ROWS, 2), np.float32),
    }  # fmt: skip
    networks = {name: linear(made) for name, made in heads.items()}
    scalars = {"clipping_decay": 1.0, "kl_coefficient": 0.0}
    _, after, losses = trained(networks, rule, columns, scalars, BOX)
    assert all(np.isfinite(loss) for loss in losses.values())
    assert all(np.isfinite(array).all() for arrays in after.values() for array in arrays)


def test_retrace_by_its_sum():
    """Q_t + E[sum_k discount^k (prod min(1, rho)) delta] (Munos et al. 2016, equation 3), written out."""
    rewards, q, ratios = RNG.normal(size=6), RNG.normal(size=6), RNG.uniform(0, 2, size=6)
    values = RNG.normal(size=7)
    expected = []
    for t in range(6):
        total, trace = q[t], 1.0
        for k in range(t, 6):
            trace *= min(1.0, ratios[k]) if k > t else 1.0
            total += 0.9 ** (k - t) * trace * (rewards[k] + 0.9 * values[k + 1] - q[k])
        expected.append(total)
    np.testing.assert_allclose(retrace_targets(rewards, values, q, ratios, 0.9), expected)


def trust_region(g: np.ndarray, k: np.ndarray, reach: float) -> np.ndarray:
    """argmin |g - z|^2 / 2 with k z <= reach for one row, by bisection on its multiplier."""
    if k @ g <= reach:
        return g
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if k @ (g - middle * k) > reach else (low, middle)
    return g - high * k


@pytest.mark.parametrize("is_trusted", [True, False])
def test_acer(is_trusted):
    retrace = RNG.normal(size=ROWS).astype(np.float32)
    columns = BASE | {"extra/retrace": retrace, "extra/behaviour": BEHAVIOUR}
    networks = {"main": linear([QHeadParameters(), ACERPolicyHeadParameters()], has_target=True)}
    rule = acer_rule(1.5, 0.05 if is_trusted else None, 0.02, 0.5, 1.0, None)
    before, after, losses = trained(networks, rule, columns, None, DISCRETE)
    average = softmax(STATES @ before["main"][2] + before["main"][3])
    corrected = []

    def loss_of(now: Weights) -> Callable[[Weights], dict[str, float]]:
        q, phi = STATES @ now["main"][0] + now["main"][1], softmax(STATES @ now["main"][2] + now["main"][3])
        value, rows = (q * phi).sum(axis=1), np.arange(ROWS)
        rho = phi / BEHAVIOUR
        g = np.maximum(0, 1 - 1.5 / rho) * (q - value[:, None]) - 0.02 * (np.log(phi) + 1)
        corrected.append((rho > 1.5).any())
        g[rows, TAKEN] += np.minimum(1.5, rho[rows, TAKEN]) * (retrace - value) / phi[rows, TAKEN]
        k = -average / phi  # d KL(average || phi) / d phi
        z = np.array([trust_region(*row, 0.05) for row in zip(g, k)]) if is_trusted else g
        corrected.append(np.abs(z - g).max() > 0.01)

        def loss(weights: Weights) -> dict[str, float]:
            q_new = STATES @ weights["main"][0] + weights["main"][1]
            phi_new = softmax(STATES @ weights["main"][2] + weights["main"][3])
            squares = (retrace - q_new[rows, TAKEN]) ** 2
            return {"main": 0.25 * squares.mean() - (z * phi_new).sum(axis=1).mean()}

        return loss

    assert losses["main"] == pytest.approx(loss_of(before)(before)["main"], rel=2e-3)
    expected = descended(loss_of, before)
    assert corrected[0] and corrected[1] == is_trusted, "the rows exercise truncation and the trust region"
    for one, other in zip(after["main"], expected["main"]):
        np.testing.assert_allclose(one, other, atol=1e-4)


class Steps(SmallEnvironment):
    """Three steps of a stair: action 1 goes up and from the last one out, action 0 goes back down to the first. A step
    pays 1, going out nothing, and an episode is cut off after four steps."""

    def observations(self) -> dict[str, Any]:
        return {"observation": VectorObservationSpace(3)}

    def actions(self) -> DiscreteActionSpace:
        return DiscreteActionSpace(2)

    def first_state(self) -> dict[str, np.ndarray]:
        self.place = int(self.rng.integers(3))
        return {"observation": np.eye(3, dtype=np.float32)[self.place]}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        is_out = bool(action) and self.place == 2
        self.place = min(self.place + 1, 2) if action else 0
        self.state = {"observation": np.eye(3, dtype=np.float32)[self.place]}
        return float(not is_out), is_out, self.steps >= 4


def values_of_stair(policy: np.ndarray, discount: float) -> np.ndarray:
    """[3, 2] Q of a policy [3, 2] by the six linear equations Q(s, a) = r + discount sum_b pi(b|s') Q(s', b)."""
    matrix, rewards = np.eye(6), np.ones(6)
    for place in range(3):
        matrix[2 * place, 0:2] -= discount * policy[0]
        if place < 2:
            up = place + 1
            matrix[2 * place + 1, 2 * up : 2 * up + 2] -= discount * policy[up]
    rewards[5] = 0.0
    return np.linalg.solve(matrix, rewards).reshape(3, 2)


def test_the_critic_of_acer_learns_the_values_of_its_policy_from_what_another_one_played(tmp_path):
    """With a value for each state and action, and a policy that stands still but for one change after 400 steps: then
    most of what is replayed is the old one's. Values are those that the equations give, so that episodes which were cut
    off are bootstrapped, those which terminated are not, and actions of the old policy are corrected for."""
    parameters = small_acer()
    network, algorithm = parameters.network_wrappers["main"], parameters.algorithm
    network.input_embedders_parameters["observation"].scheme = EmbedderScheme.Empty
    network.heads_parameters[0].loss_weight, network.heads_parameters[1].loss_weight = 1.0, 0.0
    network.learning_rate = LinearSchedule(0.05, 0.001, 2000)
    algorithm.discount, algorithm.num_steps_between_gradient_updates, algorithm.ratio_of_replay = 0.9, 3, 6
    manager = graph(parameters, Steps, tmp_path, schedule(1200))
    manager.train_and_act(EnvironmentSteps(400))
    online = manager.get_agent().networks["main"].online_network
    first, old = (output.copy() for output in online.predict({"observation": np.eye(3, dtype=np.float32)}))
    logits = np.array([[0.0, 1.5], [0.0, 1.5], [1.5, 0.0]])
    weights = online.get_weights()
    kernels = [i for i, one in enumerate(weights) if one.shape == (3, 2)]
    (policy,) = [i for i in kernels if not np.allclose(weights[i] + weights[i + 1], first, atol=1e-5)]
    weights[policy] = logits.astype(np.float32)
    online.set_weights(weights)
    manager.train_and_act(EnvironmentSteps(800))
    values, policy = online.predict({"observation": np.eye(3, dtype=np.float32)})
    expected, before = values_of_stair(policy, 0.9), values_of_stair(old, 0.9)
    assert np.abs(expected - before).max() > 1, "the two policies are worth different values"
    np.testing.assert_allclose(values, expected, rtol=0, atol=0.25)


@pytest.mark.parametrize("is_target_asked", [True, False])
def test_the_targets_of_acer_bootstrap_from_the_network_that_is_set(tmp_path, is_target_asked):
    """By default from the average policy's, whose weights stand still here while the others learn; probabilities are
    those of the policy that learns."""
    parameters = small_acer()
    parameters.algorithm.use_target_network_for_retrace &= is_target_asked
    parameters.algorithm.rate_for_copying_weights_to_target = 0
    manager = graph(parameters, Steps, tmp_path, schedule(400))
    manager.train_and_act(EnvironmentSteps(400))
    agent = manager.get_agent()
    batch = agent.memory.sample(5, True)
    asked = {
        "observation": np.concatenate([one["observation"] for one in (batch.state_columns, batch.next_state_columns)])
    }
    network, length, rows = agent.networks["main"], len(batch), np.arange(len(batch))
    (learned, policy), (average, _) = (one.predict(asked) for one in (network.online_network, network.target_network))
    assert np.abs(learned - average).max() > 0.1, "the networks have grown apart"
    q = average if is_target_asked else learned
    values, taken = (q * policy).sum(axis=1), q[rows, batch.actions()]
    ratios = policy[rows, batch.actions()] / batch.info("all_action_probabilities")[rows, batch.actions()]
    expected = np.empty(length)
    following = values[-1] * (1 - batch.terminateds()[-1])
    for t in reversed(rows):
        expected[t] = batch.rewards()[t] + 0.5 * following
        following = min(1, ratios[t]) * (expected[t] - taken[t]) + values[t]
    np.testing.assert_allclose(agent.learning_columns(batch)["extra/retrace"], expected, rtol=1e-4, atol=1e-5)


def small_ppo() -> Any:
    agent = shrink(PPOAgentParameters(), 0.02)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    agent.algorithm.discount = 0.5
    agent.algorithm.target_kl_divergence = 0.1
    return agent


def small_acer() -> Any:
    agent = shrink(ACERAgentParameters(), 0.02)
    agent.algorithm.apply_gradients_every_x_episodes = 1
    agent.algorithm.num_steps_between_gradient_updates = 5
    agent.algorithm.num_transitions_to_start_replay = 50
    agent.algorithm.discount = 0.5
    agent.memory.max_size = (MemoryGranularity.Transitions, 500)
    return agent


def acer_within(reach: float, is_trusted: bool) -> Any:
    agent = small_acer()
    agent.algorithm.max_KL_divergence, agent.algorithm.use_trust_region_optimization = reach, is_trusted
    return agent


def ppo_that_penalises(first: float, excess: float, is_penalised: bool) -> Any:
    agent = small_ppo()
    agent.algorithm.initial_kl_coefficient, agent.algorithm.high_kl_penalty_coefficient = first, excess
    agent.algorithm.use_kl_regularization = is_penalised
    return agent


def ppo_with_extras() -> Any:
    agent = clipped_ppo()
    agent.algorithm.clip_value_using_epsilon, agent.algorithm.target_kl_divergence = 0.5, 0.05
    return agent


@pytest.mark.parametrize(
    ("make", "problem", "steps", "reward"),
    [(small_ppo, Bandit, 960, 9.5), (ppo_with_extras, Bandit, 960, 9.5), (small_acer, Bandit, 800, 9.5)],
)
def test_agents_learn_and_their_seed_decides_what(make, problem, steps, reward, tmp_path):
    one, same = (graph(make(), problem, tmp_path, schedule(steps, heatup=0), 1) for _ in range(2))
    one.improve()
    same.improve()
    for a, b in zip(weights_of(one), weights_of(same)):
        np.testing.assert_array_equal(a, b)
    one.evaluate(EnvironmentEpisodes(5))
    assert one.progress.last_evaluation >= reward


def test_ppo_moves_the_mean_of_continuous_actions(tmp_path):
    manager = graph(small_ppo(), Target, tmp_path, schedule(256, heatup=0))
    before = [a.copy() for a in weights_of(manager)]
    manager.improve()
    assert all(np.isfinite(a).all() for a in weights_of(manager))
    assert any(not np.array_equal(a, b) for a, b in zip(before, weights_of(manager)))
    assert manager.get_agent().kl_coefficient != 1.0


def test_no_further_epoch_once_the_policy_is_too_far(tmp_path):
    parameters = clipped_ppo()
    parameters.algorithm.optimization_epochs, parameters.algorithm.target_kl_divergence = 10, 1e-4
    parameters.network_wrappers["main"].learning_rate = 0.05
    manager = graph(parameters, Bandit, tmp_path, schedule(70, heatup=0))
    agent = manager.get_agent()
    epochs: list[float] = []
    make = agent.learning.make_epochs
    agent.learning.make_epochs = lambda *given: (make(*given), epochs.append(agent.learning.divergence))[0]
    manager.train_and_act(EnvironmentSteps(70))
    assert 1 <= len(epochs) < 10 and agent.training_iteration == 1
    assert epochs[-1] > 1.5e-4 and all(divergence <= 1.5e-4 for divergence in epochs[:-1])


@pytest.mark.parametrize(
    ("on", "without_effect", "off"),
    [
        (lambda: acer_within(0.0, True), lambda: acer_within(1e6, True), lambda: acer_within(0.0, False)),
        (
            lambda: ppo_that_penalises(1.0, 1000, True),
            lambda: ppo_that_penalises(0.0, 0.0, True),
            lambda: ppo_that_penalises(1.0, 1000, False),
        ),
    ],
    ids=["trust region", "penalty on the divergence"],
)
def test_what_is_switched_off_is_as_what_has_no_effect(on, without_effect, off, tmp_path):
    managers = [graph(make(), Bandit, tmp_path, schedule(130, heatup=0), 1) for make in (on, without_effect, off)]
    for manager in managers:
        manager.improve()
    changed, same, learned = (weights_of(manager) for manager in managers)
    for one, other in zip(same, learned):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert any(np.abs(one - other).max() > 1e-3 for one, other in zip(changed, learned))


def test_acer_replays_as_often_as_it_is_told(tmp_path):
    parameters = small_acer()
    parameters.algorithm.ratio_of_replay, parameters.algorithm.num_transitions_to_start_replay = 3, 100
    manager = graph(parameters, Bandit, tmp_path, schedule(600, heatup=0))
    manager.train_and_act(EnvironmentSteps(600))
    segments, replaying = 120, 99  # of five steps; the memory has more than 100 after eleven episodes of ten
    replays = manager.get_agent().training_iteration - segments
    assert abs(replays - 3 * replaying) < 4 * np.sqrt(3 * replaying)


def test_acer_learns_from_each_segment_at_once(tmp_path):
    """Algorithm 1 of Wang et al. 2017 has no sum over episodes, whatever ``apply_gradients_every_x_episodes`` says."""
    parameters = small_acer()
    parameters.algorithm.apply_gradients_every_x_episodes, parameters.algorithm.ratio_of_replay = 5, 0
    manager = graph(parameters, Bandit, tmp_path, schedule(25, heatup=0))
    manager.train_and_act(EnvironmentSteps(25))
    assert manager.get_agent().training_iteration == 5


def test_acer_refuses_a_recurrent_network(tmp_path):
    parameters = small_acer()
    parameters.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=4)
    with pytest.raises(CoachError, match=r"set middleware_parameters to FCMiddlewareParameters\(\)"):
        graph(parameters, Bandit, tmp_path)


def test_clipped_ppo_refuses_a_divergence_term_and_names_the_agent_that_has_one():
    algorithm = clipped_ppo().algorithm
    algorithm.use_kl_regularization = True
    assert [message.rpartition(": ")[2] for message in algorithm.unmet()] == [
        "set it to False, or use AdaptivePPO (PPOAgentParameters)"
    ]
