"""FastTD3: updates against the paper's equations in NumPy, its noise, and where it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents import fast_td3_agent
from rl_coach.agents.fast_td3_agent import FastTD3AgentParameters
from rl_coach.agents.rules.fast_td3 import fast_td3_stages
from rl_coach.architectures.head_parameters import TD3VHeadParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters, Frameworks, MiddlewareScheme
from rl_coach.core_types import EnvironmentSteps
from rl_coach.schedules import LevelsOfCopies
from rl_coach.spaces import BoxActionSpace
from rl_coach.utils import CoachError
from tests.agents import numpy_rules
from tests.agents.numpy_gradients import (
    adam_of,
    assert_equal,
    dense,
    float64,
    gradient,
    moved,
    one_update,
    recorded_columns,
)
from tests.frameworks import FRAMEWORK, in_layers_of_keras
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import compiled, graph, schedule
from tests.zoo.states import weights_of

ATOMS, LOW, HIGH = 11, -6.0, 1.0
SUPPORT = np.linspace(LOW, HIGH, ATOMS)
SIZE, UPDATES, DISCOUNT = 6, 4, 0.9


def tiny(copies: int = 1) -> AgentParameters:
    """An actor of 4 units and critics of 3, with smooth activations."""
    agent = FastTD3AgentParameters()
    agent.pre_network_filter.remove_observation_filter("observation", "normalize")
    actor, critic = agent.network_wrappers["actor"], agent.network_wrappers["critic"]
    for network in (actor, critic):
        network.batch_size, network.learning_rate, network.optimizer_epsilon = SIZE, 0.01, 1e-4
    embedder = actor.input_embedders_parameters["observation"]
    embedder.scheme, embedder.activation_function = [Dense(4)], "tanh"
    actor.middleware_parameters.scheme = MiddlewareScheme.Empty
    critic.heads_parameters[0].network_layers_sizes, critic.heads_parameters[0].activation_function = (3,), "tanh"
    algorithm = agent.algorithm
    algorithm.v_min, algorithm.v_max, algorithm.atoms = LOW, HIGH, ATOMS
    algorithm.discount, algorithm.policy_noise, algorithm.noise_clipping = DISCOUNT, 0.3, 0.4
    algorithm.num_consecutive_playing_steps = EnvironmentSteps(copies)
    agent.memory.max_size = (agent.memory.max_size[0], 500)
    return agent


def softmax(logits: np.ndarray) -> np.ndarray:
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def projection(returns: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Algorithm 1 of C51, return by return, with lower and upper neighbours."""
    found, step = np.zeros_like(probabilities), (HIGH - LOW) / (ATOMS - 1)
    for row, (values, shares) in enumerate(zip(returns, probabilities)):
        for value, share in zip(values, shares):
            b = (min(max(value, LOW), HIGH) - LOW) / step
            lower, upper = int(np.floor(b)), int(np.ceil(b))
            if lower == upper:
                found[row, lower] += share
            else:
                found[row, lower] += share * (upper - b)
                found[row, upper] += share * (b - lower)
    return found


def target_of(rewards: Any, discounts: Any, z_t: np.ndarray) -> np.ndarray:
    """[B, N], of the target critics' distributions [B, 2, N]."""
    chosen = np.stack([one[np.argmin(one @ SUPPORT)] for one in z_t])
    return projection(rewards[:, None] + discounts[:, None] * SUPPORT, chosen)


class Critics:
    """Critics that give the same whatever the weights, and note which actions they are asked about."""

    def __init__(self, online: np.ndarray, target: np.ndarray):
        self.outputs = [self._of(online), self._of(target)]
        self.asked: list[Any] = []

    @staticmethod
    def _of(logits: np.ndarray) -> dict[str, np.ndarray]:
        probabilities = softmax(logits)
        means = (probabilities @ SUPPORT).astype(np.float32)
        return {
            "log_distribution": np.log(probabilities).astype(np.float32), "quantiles": means[..., None],
            "q1": means[:, 0],
        }  # fmt: skip

    def online(self, states: dict[str, Any]) -> Any:
        return self.outputs[:1]

    def target(self, states: dict[str, Any]) -> Any:
        self.asked.append(np.asarray(states["action"]))
        return self.outputs[1:]


class Policy:
    """An actor with the same actions in all states."""

    def __init__(self, actions: np.ndarray):
        self.actions = actions.astype(np.float32)

    def online(self, states: dict[str, Any]) -> Any:
        return [{"action": self.actions, "pre_activation": self.actions}]


@pytest.mark.parametrize("seed", range(3))
def test_the_losses_are_those_of_the_paper(seed):
    rng = np.random.default_rng(seed)
    online, target = rng.normal(size=(SIZE, 2, ATOMS)), 2 * rng.normal(size=(SIZE, 2, ATOMS))
    actions, noise = rng.uniform(-1, 1, (SIZE, 2)), 3 * rng.normal(size=(SIZE, 2))
    rewards, discounts = rng.normal(size=SIZE), np.where(np.arange(SIZE) % 3 == 0, 0.0, DISCOUNT)
    space = BoxActionSpace(2, low=np.array([-1.0, -1.0]), high=np.array([1.0, 1.0]))
    stages = fast_td3_stages(0.3, 0.4, space, 0.0, SUPPORT.astype(np.float32))
    critics = Critics(online, target)
    networks = {"actor": Policy(actions), "critic": critics}
    batch = numpy_rules.batch(
        actions=actions.astype(np.float32), rewards=rewards, discounts=discounts, extra={"noise": noise}
    )
    losses = [numpy_rules.run(stage.rule, networks, batch).losses for stage in stages]

    smoothed = np.clip(np.float32(actions) + np.clip(0.3 * np.float32(noise), -0.4, 0.4), -1, 1)
    np.testing.assert_allclose(critics.asked[0], smoothed, rtol=1e-6)
    expected = target_of(np.float32(rewards).astype(float), np.float32(discounts).astype(float), softmax(target))
    cross_entropies = -(expected[:, None] * np.log(softmax(online))).sum(axis=(1, 2))
    np.testing.assert_allclose(losses[0]["critic"], cross_entropies.mean(), rtol=1e-5)
    np.testing.assert_allclose(losses[1]["actor"], -(softmax(online) @ SUPPORT).min(axis=1).mean(), rtol=1e-5)


def critic_logits(weights: list[np.ndarray], states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """[B, 2, N]: the weights of a layer come for both critics before those of the next layer."""
    joined = np.concatenate([states, actions], axis=1)
    return np.stack([dense(weights, 2 + i, np.tanh(dense(weights, i, joined))) for i in range(2)], axis=1)


def actions_of(weights: list[np.ndarray], states: np.ndarray) -> np.ndarray:
    """The target's problem has actions from -2 to 4."""
    return 1.0 + 3.0 * np.tanh(dense(weights, 1, np.tanh(dense(weights, 0, states))))


@in_layers_of_keras
def test_several_updates_are_those_of_the_paper(tmp_path):
    managers = [graph(tiny(), Target, tmp_path / str(number), schedule(1000, heatup=40)) for number in range(2)]
    for manager in managers:
        manager.heatup(EnvironmentSteps(40))
    agent, fresh = (manager.get_agent() for manager in managers)
    batches = recorded_columns(agent)
    float(agent.update_loop.learn(UPDATES))
    columns = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    weights = {name: float64(fresh.networks[name].state.arrays("weights")) for name in ("actor", "critic")}
    target = float64(fresh.networks["critic"].state.arrays("target_weights"))
    optimizers = {name: adam_of(fresh.ap.network_wrappers[name], weights[name]) for name in weights}
    for number in range(UPDATES):
        b = one_update(columns, number, SIZE)
        s, s_t, a = b["states/observation"], b["next_states/observation"], b["actions"]
        noise = np.clip(0.3 * b["extra/noise"], -0.4, 0.4)
        a_t = np.clip(actions_of(weights["actor"], s_t) + noise, -2, 4)
        y = target_of(b["rewards"], b["discounts"], softmax(critic_logits(target, s_t, a_t)))

        def critic_loss(w: list, s: Any = s, a: Any = a, y: Any = y) -> float:
            return float(-(y[:, None] * np.log(softmax(critic_logits(w, s, a)))).sum(axis=(1, 2)).mean())

        weights["critic"] = optimizers["critic"](weights["critic"], gradient(critic_loss, weights["critic"]))

        def actor_loss(w: list, s: Any = s, critic: Any = weights["critic"]) -> float:
            return float(-(softmax(critic_logits(critic, s, actions_of(w, s))) @ SUPPORT).min(axis=1).mean())

        if number % 2 == 1:
            weights["actor"] = optimizers["actor"](weights["actor"], gradient(actor_loss, weights["actor"]))
        target = moved(target, weights["critic"], 0.1)
    for name in weights:
        assert_equal(agent.networks[name].state.arrays("weights"), weights[name], 1e-3)
    assert_equal(agent.networks["critic"].state.arrays("target_weights"), target, 1e-3)


def test_each_copy_has_its_level_of_noise_for_a_while():
    levels = LevelsOfCopies(0.1, 0.5, steps=3)
    levels.copies = 4
    found = levels.values_at(0, 24).reshape(6, 4)
    np.testing.assert_array_equal(found[:3], np.repeat(found[:1], 3, axis=0))
    np.testing.assert_array_equal(found[3:], np.repeat(found[3:4], 3, axis=0))
    assert len(np.unique(found)) == 8 and found.min() >= 0.1 and found.max() <= 0.5
    assert [levels.value_at(step) for step in (0, 5, 23)] == [found[0, 0], found[1, 1], found[5, 3]]
    many = LevelsOfCopies(0.1, 0.5)
    many.copies = 4000
    spread = many.values_at(0, 4000)
    np.testing.assert_allclose([spread.mean(), spread.std()], [0.3, 0.4 / 12**0.5], atol=0.01)


def test_a_run_tells_the_noise_the_number_of_copies(tmp_path):
    manager = graph(tiny(3), Target, tmp_path, schedule(1000), copies=3)
    assert manager.get_agent().exploration_policy.noise_schedule.copies == 3


def test_it_learns(tmp_path):
    agent = tiny(8)
    for network in agent.network_wrappers.values():
        network.batch_size = 64
    agent.algorithm.num_consecutive_training_steps = 4
    agent.algorithm.discount = 0.3
    agent.algorithm.policy_noise = 0.001
    manager = graph(agent, Target, tmp_path, schedule(3000, evaluation=10, heatup=80), copies=8)
    manager.improve()
    assert np.mean(manager.evaluation_rewards) >= -2.5


@pytest.mark.skipif(FRAMEWORK is not Frameworks.jax, reason="loops are compiled on JAX (COACH_TEST_FRAMEWORK)")
def test_it_runs_in_a_compiled_loop(tmp_path):
    manager = compiled(tiny(4), tmp_path, "reach", copies=4)
    manager.improve()
    agent = manager.get_agent()
    assert agent.training_iteration > 0
    assert agent.exploration_policy.noise_schedule.copies == 4


def test_a_checkpoint_continues_exactly(tmp_path):
    managers = [graph(tiny(), Target, tmp_path / name, schedule(10000)) for name in ("one", "other")]
    managers[0].train_and_act(EnvironmentSteps(30))
    first, second = (manager.get_agent() for manager in managers)
    second.set_state(first.get_state())
    for agent in (first, second):
        float(agent.update_loop.learn(3))
    for one, other in zip(*map(weights_of, managers), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda agent: setattr(agent.algorithm, "v_min", 300.0), "v_min is 300.0; it must be below v_max"),
        (lambda agent: setattr(agent.algorithm, "atoms", 1), "atoms is 1"),
        (lambda agent: setattr(agent.algorithm, "use_target_network_for_evaluation", True), "has no target"),
        (
            lambda agent: setattr(agent.network_wrappers["critic"], "heads_parameters", [TD3VHeadParameters()]),
            "log_distribution and quantiles",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(change, message, tmp_path):
    agent = FastTD3AgentParameters()
    change(agent)
    with pytest.raises(CoachError, match=message):
        graph(agent, Target, tmp_path)


def test_it_is_for_continuous_actions(tmp_path):
    with pytest.raises(CoachError, match="is for continuous actions"):
        graph(FastTD3AgentParameters(), Bandit, tmp_path)


def test_levels_out_of_order_are_refused():
    for values in ((0.5, 0.1), (-0.1, 0.5), (0.1, 0.5, 0)):
        with pytest.raises(ValueError, match="LevelsOfCopies needs"):
            LevelsOfCopies(*values)


def test_the_networks_are_those_of_the_paper():
    critic = fast_td3_agent.FastTD3CriticNetworkParameters()
    assert critic.heads_parameters[0].network_layers_sizes == (1024, 512, 256) and critic.batch_size == 32768
