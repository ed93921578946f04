"""APPO: updates on segments of older policies against V-trace and PPO's equations in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.appo_agent import APPOAgentParameters
from rl_coach.agents.impala_agent import BEHAVIOUR, IMPALAAgentParameters
from rl_coach.agents.rules.proximal_policy import asynchronous_ppo_rule
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, MiddlewareScheme
from rl_coach.core_types import EnvironmentSteps
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.utils import CoachError
from tests.agents import numpy_rules
from tests.agents.numpy_gradients import adam_of, assert_equal, dense, float64, gradient
from tests.agents.numpy_rules import FixedNetwork, softmax_policy
from tests.agents.test_impala import explicit_sum
from tests.agents.test_received_segments import play_segment, split, weights_of
from tests.frameworks import in_layers_of_keras
from tests.zoo.environments import Bandit, Lottery, Target
from tests.zoo.graphs import graph, schedule

SEGMENT, EPOCHS, EPSILON, DISCOUNT, ENTROPY = 4, 3, 0.1, 0.9, 0.02


def tiny(parameters: AgentParameters) -> AgentParameters:
    """Value and policy on a body of 4 units with a smooth activation."""
    network, algorithm = parameters.network_wrappers["main"], parameters.algorithm
    embedder = network.input_embedders_parameters["observation"]
    embedder.scheme, embedder.activation_function = [Dense(4)], "tanh"
    network.middleware_parameters.scheme = MiddlewareScheme.Empty
    network.learning_rate, network.optimizer_epsilon = 0.03, 1e-4
    algorithm.num_steps_between_gradient_updates, algorithm.segments_per_update = SEGMENT, 2
    algorithm.discount, algorithm.beta_entropy = DISCOUNT, ENTROPY
    return parameters


def appo(epochs: int = EPOCHS) -> AgentParameters:
    agent = tiny(APPOAgentParameters())
    agent.algorithm.optimization_epochs = epochs
    agent.algorithm.clip_likelihood_ratio_using_epsilon = EPSILON
    return agent


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_that_of_the_paper(seed):
    """min(r A, clip(r) A), (V - v)^2 and the entropy, row by row."""
    rng = np.random.default_rng(seed)
    count = 10
    policy, values = softmax_policy(rng.normal(size=(count, 3))), rng.normal(size=count)
    actions, advantages, targets = rng.integers(0, 3, count), rng.normal(size=count), rng.normal(size=count)
    weights = np.where(np.arange(count) < 8, 1 / 8, 0.0)
    before = np.log(rng.uniform(0.05, 0.9, count))
    extra = {"advantages": advantages, "returns": targets, "behaviour_log_probs": before}
    batch = numpy_rules.batch(actions=actions, weights=weights, extra=extra)
    networks = {"main": FixedNetwork([{"v": np.float32(values)}, policy])}
    update = numpy_rules.run(asynchronous_ppo_rule(EPSILON, ENTROPY, 0.5, 1.0, None), networks, batch)
    losses = []
    for row in range(8):
        p = policy["probabilities"][row].astype(np.float64)
        r, a = p[actions[row]] / np.exp(before[row]), advantages[row]
        surrogate = min(r * a, min(max(r, 1 - EPSILON), 1 + EPSILON) * a)
        entropy = -sum(x * np.log(x) for x in p)
        losses.append(0.5 * (values[row] - targets[row]) ** 2 - surrogate - ENTROPY * entropy)
    np.testing.assert_allclose(update.losses["main"], np.mean(losses), rtol=1e-5)


def outputs(weights: list[np.ndarray], states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [B] and probabilities [B, 2]; the policy's weights come before those of the value."""
    hidden = np.tanh(dense(weights, 0, states))
    logits = dense(weights, 1, hidden)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return dense(weights, 2, hidden)[:, 0], exponentials / exponentials.sum(axis=1, keepdims=True)


def reference(learner: Any, weights: list[np.ndarray], optimizer: Any, segments: list[Any]) -> list[np.ndarray]:
    """The weights after an update: V-trace with the old weights, then the epochs."""
    rows: dict[str, list[Any]] = {"states": [], "actions": [], "advantages": [], "targets": [], "before": []}
    for segment in segments:
        states = segment.state_columns["observation"].astype(np.float64)
        following = segment.next_state_columns["observation"][-1:].astype(np.float64)
        values, probabilities = outputs(weights, np.concatenate([states, following]))
        values[-1] *= not segment.terminated_column[-1]
        chosen = probabilities[np.arange(len(segment)), segment.action_column]
        ratios = chosen / np.exp(segment.info(BEHAVIOUR).astype(np.float64))
        rewards = segment.reward_column.astype(np.float64)
        targets = explicit_sum(rewards, values, ratios, DISCOUNT, 1.0, 1.0, 1.0)
        advantages = np.minimum(1.0, ratios) * (rewards + DISCOUNT * np.append(targets[1:], values[-1]) - values[:-1])
        for name, column in zip(rows, (states, segment.action_column, advantages, targets, chosen)):
            rows[name].append(column)
    states, actions, advantages, targets, before = (np.concatenate(column) for column in rows.values())

    def loss(one: list[np.ndarray]) -> float:
        values, p = outputs(one, states)
        ratios = p[np.arange(len(p)), actions] / before
        surrogate = np.minimum(ratios * advantages, np.clip(ratios, 1 - EPSILON, 1 + EPSILON) * advantages)
        entropy = -(p * np.log(p)).sum(axis=1)
        return float(np.mean(0.5 * (values - targets) ** 2 - surrogate - ENTROPY * entropy))

    for _ in range(EPOCHS):
        weights = optimizer(weights, gradient(loss, weights))
    return weights


@in_layers_of_keras
def test_several_updates_are_those_of_the_equations(tmp_path):
    worker, trainer = split(appo, tmp_path)
    learner, player = trainer.get_agent(), worker.get_agent()
    learner.ap.network_wrappers["main"].clip_gradients = None
    rng = np.random.default_rng(3)
    network = player.networks["main"].online_network  # another policy than the one that learns
    network.set_weights([array + rng.normal(scale=0.3, size=array.shape) for array in network.get_weights()])
    weights = float64(learner.networks["main"].state.arrays("weights"))
    optimizer = adam_of(learner.ap.network_wrappers["main"], weights)
    for number in range(3):
        segments = []
        for _ in range(2):
            played = play_segment(worker)
            for row, length in zip(np.cumsum([0, *played.episode_lengths]), played.episode_lengths):
                segments.append(played.columns[row : row + length])
            learner.take_in(played)
        learner.train()
        assert learner.training_iteration == number + 1
        weights = reference(learner, weights, optimizer, segments)
        assert_equal(learner.networks["main"].state.arrays("weights"), weights, 1e-3)
    assert learner.optimizer_steps == 3 * EPOCHS


@pytest.mark.parametrize(("environment", "copies"), [(Lottery, 1), (Lottery, 3), (Target, 2)])
def test_one_epoch_is_the_update_of_impala(environment, copies, tmp_path):
    agents = []
    for name, parameters in (("mine", appo(epochs=1)), ("theirs", tiny(IMPALAAgentParameters()))):
        manager = graph(parameters, environment, tmp_path / name, schedule(1000), copies=copies)
        manager.train_and_act(EnvironmentSteps(SEGMENT * copies * 5))
        agents.append(manager.get_agent())
    assert agents[0].training_iteration == agents[1].training_iteration > 3
    for one, other in zip(*map(weights_of, agents)):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def recurrent() -> AgentParameters:
    agent = appo()
    agent.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters(
        number_of_lstm_cells=4, scheme=MiddlewareScheme.Empty
    )
    return agent


@pytest.mark.parametrize("make", [appo, recurrent])
def test_segments_that_wait_are_part_of_a_checkpoint(make, tmp_path):
    worker, trainer = split(make, tmp_path)
    learner = trainer.get_agent()
    played = play_segment(worker)
    learner.take_in(played)
    learner.train()
    _, other = split(make, tmp_path / "other")
    resumed = other.get_agent()
    resumed.set_state(learner.get_state())
    for _ in range(5):
        played = play_segment(worker)
        for agent in (learner, resumed):
            agent.take_in(played)
            agent.train()
    assert learner.training_iteration == resumed.training_iteration > 1
    for one, other in zip(weights_of(learner), weights_of(resumed)):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda agent: setattr(agent.algorithm, "optimization_epochs", 0), "optimization_epochs is 0"),
        (lambda agent: setattr(agent.algorithm, "clip_likelihood_ratio_using_epsilon", 0), "epsilon is 0"),
        (lambda agent: setattr(agent.algorithm, "c_bar", 2.0), "above rho_bar"),
        (lambda agent: setattr(agent, "exploration", OUProcessParameters()), "needs the probabilities"),
    ],
)
def test_settings_that_do_not_fit_are_refused(change, message, tmp_path):
    agent = APPOAgentParameters()
    change(agent)
    with pytest.raises(CoachError, match=message):
        graph(agent, Target if "probabilities" in message else Bandit, tmp_path)
