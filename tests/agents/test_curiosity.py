"""Curiosity: its updates, statistics and PPO's two values against the paper in NumPy, and the agents that have it."""

from __future__ import annotations

import csv
import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.curiosity import CuriousBatches
from rl_coach.agents.curiosity import RNDParameters
from rl_coach.agents.rules.proximal_policy import clipped_ppo_rule
from rl_coach.agents.td3_exp_agent import TD3IntrinsicRewardAgentParameters
from rl_coach.base_parameters import Frameworks
from rl_coach.own_loop import make_agent
from rl_coach.spaces import ImageObservationSpace, VectorObservationSpace
from rl_coach.utils import CoachError
from tests.agents.numpy_gradients import adam_of, assert_equal, dense, float64
from tests.agents.numpy_rules import FixedNetwork, batch, run
from tests.frameworks import FRAMEWORK, in_layers_of_keras
from tests.samples import one_in
from tests.zoo import continuous, parameters
from tests.zoo.agents import CoachDQN, of_class
from tests.zoo.environments import Bandit, Lottery, Target
from tests.zoo.graphs import compiled, graph, schedule
from tests.zoo.parameters import clipped_ppo, curious, dqn

COEFFICIENT, DISCOUNT, LAMBDA = 0.7, 0.8, 0.95


def trained(agent: Any, environment: Any, directory: Any, steps: int = 200, **how: Any) -> Any:
    manager = graph(agent, environment, directory, schedule(steps, heatup=140), **how)
    manager.improve()
    return manager.get_agent()


def weights_of(agent: Any, name: str) -> list[np.ndarray]:
    return float64(agent.networks[name].state.arrays("weights"))


def leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 0.2 * x)


def features_of(predictor: list[np.ndarray], constant: list[np.ndarray], x: np.ndarray) -> tuple[list, np.ndarray]:
    """The predictor's layers for inputs [B, D], and the features that it should predict (appendix A.3)."""
    layers = [x, leaky(dense(predictor, 0, x))]
    for number in (1, 2):
        layers.append(np.maximum(dense(predictor, number, layers[-1]), 0))
    layers.append(dense(predictor, 3, layers[-1]))
    return layers, dense(constant, 1, leaky(dense(constant, 0, x)))


def gradient_of(predictor: list[np.ndarray], layers: list[np.ndarray], slope: np.ndarray) -> list[np.ndarray]:
    """Back-propagation. :param slope: [B, 512], of the loss by the predictor's features"""
    found: list[np.ndarray] = []
    for number in (3, 2, 1, 0):
        found = [layers[number].T @ slope, slope.sum(axis=0), *found]
        if number:
            below = 0.2 if number == 1 else 0.0
            slope = slope @ predictor[2 * number].T * np.where(layers[number] > 0, 1.0, below)
    return found


@in_layers_of_keras
def test_an_update_is_that_of_the_paper(tmp_path):
    """Burda et al. 2018, sections 2.2 and 2.4. The predictor rewards the batch first, and learns from it then."""
    agent = trained(curious(dqn(), coefficient=COEFFICIENT, update_proportion=0.5), Lottery, tmp_path)
    rows = agent.memory.sample(16)
    columns = agent.update_loop.columns(rows)
    before = {name: weights_of(agent, name) for name in ("predictor", "constant")}
    main = agent.networks["main"].get_state()
    network = agent.networks["predictor"]
    adam = adam_of(network.network_parameters, before["predictor"])
    size, adam.step = len(before["predictor"]), network.state.updates
    slots = float64(network.state.arrays("slots"))
    adam.means, adam.squares = slots[:size], slots[size:]
    result = agent.update_loop.update(columns)

    x, taught = columns["extra/novel/observation"].astype(np.float64), columns["extra/teaches_predictor"]
    layers, known = features_of(before["predictor"], before["constant"], x)
    misses = layers[-1] - known
    errors = np.mean(misses**2, axis=1)
    assert 0 < taught.sum() < len(taught)
    assert result.losses["predictor"][0] == pytest.approx(errors[taught > 0].mean(), rel=1e-5)
    slope = 2 * misses / misses.shape[1] * taught[:, None] / taught.sum()
    expected = adam(before["predictor"], gradient_of(before["predictor"], layers, slope))
    assert_equal(network.state.arrays("weights"), expected)
    for one, same in zip(weights_of(agent, "constant"), before["constant"], strict=True):
        np.testing.assert_array_equal(one, same)

    # the rest of the update is DQN's, for the sum of both rewards
    intrinsic = errors / np.sqrt(agent.curiosity.returns.var[0])
    assert result.signals["Intrinsic Reward"][0] == pytest.approx(intrinsic.mean(), rel=1e-5)
    plain = graph(dqn(), Lottery, tmp_path / "plain").get_agent()
    plain.networks["main"].set_state(main)
    summed = plain.learning_columns(rows)
    summed["rewards"] = (rows.reward_column + COEFFICIENT * intrinsic).astype(np.float32)
    assert result.losses["main"][0] == pytest.approx(plain.update_loop.update(summed).losses["main"][0], rel=1e-5)
    np.testing.assert_array_equal(rows.reward_column, agent.learning_columns(rows)["rewards"])


def test_observations_and_returns_are_normalized_by_all_that_was_seen(tmp_path):
    """Section 2.4. The returns of each actor continue over the ends of episodes."""
    agent = graph(curious(dqn(), intrinsic_discount=DISCOUNT), Lottery, tmp_path, copies=2).get_agent()
    rng, curiosity = np.random.default_rng(0), agent.curiosity
    steps = rng.normal(3.0, 2.0, (64, 2, 2)).astype(np.float32)
    for step in steps:
        curiosity.see({"observation": step}, np.arange(2))
    seen = steps.reshape(-1, 2).astype(np.float64)
    normalized = np.clip((seen - seen.mean(axis=0)) / seen.std(axis=0), -5, 5)
    np.testing.assert_allclose(curiosity.inputs({"observation": seen})["observation"], normalized, rtol=1e-5, atol=1e-6)
    far = curiosity.inputs({"observation": np.array([[100.0, -100.0]])})["observation"]
    np.testing.assert_array_equal(far, [[5, -5]])
    novelty = curiosity.of(curiosity.inputs({"observation": seen})).reshape(64, 2)
    returns = np.zeros((64, 2))
    for t in range(64):
        returns[t] = novelty[t] + (DISCOUNT * returns[t - 1] if t else 0.0)
    assert curiosity.scale == pytest.approx(1 / returns.std(), rel=1e-6)


def test_steps_of_evaluations_are_not_seen(tmp_path):
    manager = graph(curious(dqn()), Lottery, tmp_path, schedule(60, 20, 3, heatup=40))
    manager.improve()
    agent = manager.get_agent()
    agent.curiosity._take_seen()
    assert agent.curiosity.returns.n == agent.total_steps_counter


def values_of(agent: Any, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[B] each, the extrinsic and the intrinsic values of states."""
    network = agent.networks["main"].online_network
    outputs = dict(zip(network.output_names, network.predict({"observation": states}), strict=True))
    return outputs["output_0_v"].astype(np.float64), outputs["output_2_v"].astype(np.float64)


def generalized(rewards: Any, values: Any, following: Any, goes_on: Any, discount: float) -> np.ndarray:
    """[T], generalised advantages. :param goes_on: [T], the sum reaches into the next step"""
    advantages = np.zeros(len(rewards) + 1)
    for t in reversed(range(len(rewards))):
        later = advantages[t + 1] if goes_on[t] else 0.0
        advantages[t] = rewards[t] + discount * following[t] - values[t] + discount * LAMBDA * later
    return advantages[:-1]


def checked(agent: Any, batch: Any) -> dict[str, np.ndarray]:
    """PPO's columns, after a comparison with Burda et al. 2018, section 2.3, step by step and actor by actor."""
    states, next_states = batch.state_columns["observation"], batch.next_state_columns["observation"]
    (values, own_values), (following, own_following) = values_of(agent, states), values_of(agent, next_states)
    x = agent.curiosity.inputs({"observation": next_states})["observation"]
    known, guessed = (
        np.asarray(agent.networks[name].online_network.predict({"observation": x}), np.float64)
        for name in ("constant", "predictor")
    )
    novelty = np.mean((known - guessed) ** 2, axis=1) / np.sqrt(agent.curiosity.returns.var[0])
    columns = type(agent).fill_advantages(agent, batch)
    order = getattr(batch, "order", np.arange(len(batch)))
    copies = getattr(batch, "shape", (len(batch), 1))[1]
    total, returns = np.zeros(len(batch)), np.zeros(len(batch))
    for actor in range(copies):
        rows = sorted(np.flatnonzero(order % copies == actor), key=lambda row: order[row])
        over = batch.game_over_column[rows].astype(bool)
        over[-1] = True
        after = np.where(batch.terminated_column[rows], 0.0, following[rows])
        extrinsic = generalized(batch.reward_column[rows], values[rows], after, ~over, 0.5)
        # the next state of an episode's last step is the first of the next episode
        next_values = np.append(own_values[rows][1:], own_following[rows[-1]])
        intrinsic = generalized(novelty[rows], own_values[rows], next_values, np.ones(len(rows)), DISCOUNT)
        total[rows] = extrinsic + COEFFICIENT * intrinsic
        returns[rows] = intrinsic + own_values[rows]
    np.testing.assert_allclose(columns["extra/intrinsic_returns"], returns, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(columns["extra/advantages"], (total - total.mean()) / total.std(), rtol=1e-3, atol=1e-4)
    return columns


@pytest.mark.parametrize("copies", [1, 3])
def test_ppo_adds_the_advantages_of_two_values(copies, tmp_path):
    """Each has its own discount. Only the intrinsic return continues over the ends of episodes."""
    settings = curious(clipped_ppo(), coefficient=COEFFICIENT, intrinsic_discount=DISCOUNT)
    settings.algorithm.discount, settings.algorithm.gae_lambda = 0.5, LAMBDA
    manager = graph(settings, Lottery, tmp_path, schedule(256, heatup=140), copies=copies)
    agent, phases = manager.get_agent(), []

    def fill(batch: Any) -> dict[str, np.ndarray]:
        phases.append(len(batch))
        return checked(agent, batch)

    agent.fill_advantages = fill
    manager.improve()
    assert len(phases) >= 3
    assert (agent.parallel is None) == (copies == 1)


@pytest.mark.parametrize("value_epsilon", [None, 0.2])
def test_ppo_learns_two_values(value_epsilon):
    rng = np.random.default_rng(0)
    value, own, old, old_own, returns, own_returns, advantages = rng.normal(size=(7, 5)).astype(np.float32)
    log_probs = np.log(np.full((5, 2), 0.5, np.float32))
    heads = [{"v": value}, {"probabilities": np.exp(log_probs), "log_probabilities": log_probs}, {"v": own}]
    extra = {
        "advantages": advantages, "behaviour_log_probs": log_probs[:, 0], "returns": returns, "behaviour_values": old,
        "intrinsic_returns": own_returns, "behaviour_intrinsic_values": old_own,
    }  # fmt: skip
    learned = batch(actions=np.zeros(5, int), extra=extra, scalars={"clipping_decay": 1.0})
    update = run(clipped_ppo_rule(0.2, 0.0, 0.5, 1.0, None, value_epsilon), {"main": FixedNetwork(heads)}, learned)

    def loss(v: np.ndarray, before: np.ndarray, target: np.ndarray) -> float:
        squares = (v - target) ** 2
        if value_epsilon is not None:
            squares = np.maximum(squares, (before + np.clip(v - before, -0.2, 0.2) - target) ** 2)
        return float(squares.mean())

    both = loss(value, old, returns), loss(own, old_own, own_returns)
    assert update.losses["main"] == pytest.approx(0.5 * sum(both) - advantages.mean(), rel=1e-5)
    assert update.signals["Intrinsic Value Loss"] == pytest.approx(both[1], rel=1e-5)


def single_steps(agent: Any) -> Any:
    agent.algorithm.n_step = 1
    return agent


CURIOUS = {
    "dueling": (parameters.dueling, Bandit, 1),
    "prioritized": (parameters.prioritized, Bandit, 3),
    "munchausen": (parameters.munchausen, Bandit, 1),
    "categorical": (parameters.categorical, Bandit, 1),
    "rainbow": (lambda: single_steps(parameters.rainbow()), Bandit, 1),
    "apex": (lambda: single_steps(parameters.apex()), Bandit, 1),
    "quantile_regression": (parameters.quantile_regression, Bandit, 1),
    "bootstrapped": (parameters.bootstrapped, Bandit, 1),
    "normalized_advantages": (parameters.normalized_advantages, Target, 1),
    "ddpg": (continuous.ddpg, Target, 1),
    "td3": (continuous.td3, Target, 3),
    "wolpertinger": (continuous.wolpertinger, Target, 1),
    "soft_actor_critic": (parameters.soft_actor_critic, Target, 3),
    "tqc": (continuous.tqc, Target, 1),
    "recurrent_ppo": (parameters.recurrent_ppo, Bandit, 3),
}


@pytest.mark.parametrize("name", one_in(3, list(CURIOUS)))
def test_agents_with_curiosity(name, tmp_path):
    make, environment, copies = CURIOUS[name]
    manager = graph(curious(make()), environment, tmp_path, schedule(200, heatup=140), copies=copies)
    agent = manager.get_agent()
    before = {network: weights_of(agent, network) for network in ("predictor", "constant")}
    manager.improve()
    assert any((one != same).any() for one, same in zip(weights_of(agent, "predictor"), before["predictor"]))
    for one, same in zip(weights_of(agent, "constant"), before["constant"], strict=True):
        np.testing.assert_array_equal(one, same)
    signals = {signal.name for signal in agent.signals.episode_signals}
    assert {"Intrinsic Reward", "Predictor Loss"} <= signals
    assert agent.curiosity.returns.n >= 256


class Seen(Bandit):
    """As ``Bandit``, with a picture and a vector in place of its observation."""

    def observations(self) -> dict[str, Any]:
        return {"camera": ImageObservationSpace(np.array([40, 36, 1]), high=255), "gear": VectorObservationSpace(2)}

    def first_state(self) -> dict[str, np.ndarray]:
        gear = np.eye(2, dtype=np.float32)[self.rng.integers(2)]
        return {"camera": self.rng.integers(0, 255, (40, 36, 1)).astype(np.uint8), "gear": gear}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        reward = float(self.state["gear"][action])
        self.state = self.first_state()
        return reward, False, self.steps >= 10


@pytest.mark.parametrize(("make", "embedded"), one_in(3, [*product([dqn, clipped_ppo], [None, "camera"])]))
def test_all_observations_count_or_those_that_are_embedded(make, embedded, tmp_path):
    settings = make()
    settings.curiosity = RNDParameters()
    if embedded:
        embedders = settings.curiosity.network.input_embedders_parameters
        embedders[embedded] = embedders.pop("observation")
    agent = trained(settings, Seen, tmp_path, 70)
    assert agent.curiosity.names == ([embedded] if embedded else ["camera", "gear"])
    kernels = [array for array in weights_of(agent, "constant") if array.ndim == 4]
    assert len(kernels) == 3


def test_the_coefficient_0_leaves_the_agent_alone(tmp_path):
    plain, watched = (
        trained(agent, Lottery, tmp_path / str(number))
        for number, agent in enumerate((dqn(), curious(dqn(), coefficient=0.0)))
    )
    columns = plain.update_loop.columns(rows := plain.memory.sample(16))
    watched.networks["main"].set_state(plain.networks["main"].get_state())
    losses = [agent.update_loop.update(one).losses["main"][0] for agent, one in
              ((plain, columns), (watched, watched.update_loop.columns(rows)))]  # fmt: skip
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert isinstance(watched.batches, CuriousBatches) and plain.curiosity is None


def _n_step() -> Any:
    agent = dqn()
    agent.algorithm.n_step = 3
    return agent


@pytest.mark.parametrize(
    ("make", "environment", "line"),
    [
        (parameters.actor_critic, Bandit, r"ActorCriticAgent\) does not learn from the rewards of single steps"),
        (parameters.ppo, Bandit, r"PPOAgent\) does not learn from the rewards of single steps"),
        (parameters.neural_episodic_control, Bandit, r"NECAgent\) does not learn from the rewards of single steps"),
        (parameters.mixed_monte_carlo, Bandit, r"MixedMonteCarloAgent\) does not learn from the rewards"),
        (parameters.pqn, Bandit, r"PQNAgent\) does not learn from the rewards of single steps"),
        (lambda: continuous.exploring(TD3IntrinsicRewardAgentParameters), Target, "TD3IntrinsicRewardAgent"),
        (_n_step, Bandit, "algorithm.n_step is 3, and curiosity rewards single steps: set it to 1"),
        (parameters.recurrent_dqn, Bandit, "learns from sequences, and curiosity rewards single transitions"),
    ],
)
def test_agents_without_curiosity_refuse_it(make, environment, line, tmp_path):
    settings = make()
    settings.curiosity = RNDParameters()
    with pytest.raises(CoachError, match=line):
        graph(settings, environment, tmp_path)


def test_a_users_update_that_would_not_use_it_is_refused(tmp_path):
    with pytest.raises(CoachError, match=r"CoachDQN.* curiosity has no effect on it"):
        graph(of_class(curious(dqn()), CoachDQN), Bandit, tmp_path)


def test_a_batch_size_without_effect_is_refused(tmp_path):
    settings = curious(dqn())
    settings.curiosity.network.batch_size = 32
    with pytest.raises(CoachError, match=r"curiosity.network.batch_size has no effect"):
        graph(settings, Bandit, tmp_path)


@pytest.mark.skipif(FRAMEWORK is not Frameworks.jax, reason="loops are compiled on JAX")
def test_a_loop_with_curiosity_is_not_compiled(tmp_path, capsys):
    compiled(curious(dqn()), tmp_path).close()
    assert "the loop is not compiled as a whole: the agent has an intrinsic reward" in " ".join(
        capsys.readouterr().out.split()
    )


def test_make_agent_takes_curiosity():
    agent = make_agent("DQN", "CartPole-v1", seed=0, curiosity=RNDParameters(coefficient=0.5), framework=FRAMEWORK.name)
    agent.learn(200)
    assert agent._core.curiosity.parameters.coefficient == 0.5 and agent._core.curiosity.returns.n >= 128


def coach(place: Any, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "rl_coach", *arguments]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=500)


def test_on_the_command_line(tmp_path):
    settings = "agent_params.curiosity=RNDParameters(coefficient=0.5, update_proportion=0.25)"
    short = "; heatup_steps=EnvironmentSteps(200); improve_steps=EnvironmentSteps(300)"
    done = coach(tmp_path, "-p", "CartPole_DQN", "-f", FRAMEWORK.name, "--seed", "1", "-cp", settings + short)
    assert done.returncode == 0, done.stderr
    (table,) = tmp_path.rglob("worker_0*.csv")
    with open(table) as file:
        last = list(csv.DictReader(file))[-1]
    assert float(last["Intrinsic Reward/Mean"]) > 0 and float(last["Predictor Loss/Mean"]) > 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["-p", "CartPole_DQN", "-dc", "-n", "2"], "its curiosity only measures steps that this process plays"),
        (["-p", "CartPole_A3C"], "does not learn from the rewards of single steps"),
        (["-p", "CartPole_DDQN_BatchRL"], "learns from recorded data"),
        (["-p", "CartPole_DQN", "-f", "mxnet"], "learns only on TensorFlow, JAX, PyTorch, and this run is on MXNet"),
    ],
)
def test_the_command_refuses_it_in_one_line(arguments, line, tmp_path):
    done = coach(tmp_path, *arguments, "-cp", "agent_params.curiosity=RNDParameters()")
    assert done.returncode == 2 and line in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
