"""PQN: the lambda-returns that it learns, against a recomputation in float64, and how it plays and learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.pqn_agent import PQNAgentParameters
from rl_coach.architectures.layers import LayerNorm
from rl_coach.base_parameters import AgentParameters, EmbedderScheme, MiddlewareScheme
from rl_coach.core_types import Batch
from rl_coach.utils import CoachError
from tests.zoo.environments import Bandit, Lottery, MaskedChain
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import pqn, recurrent_dqn

DISCOUNT = 0.9


def linear_pqn(q_lambda: float) -> AgentParameters:
    """PQN whose values are a product of the state, so that they are recomputed by one line."""
    agent = pqn()
    agent.algorithm.q_lambda, agent.algorithm.discount = q_lambda, DISCOUNT
    network = agent.network_wrappers["main"]
    network.input_embedders_parameters["observation"].scheme = EmbedderScheme.Empty
    network.middleware_parameters.scheme = MiddlewareScheme.Empty
    network.learning_rate = 0.1
    return agent


class Phases:
    """The phases of a run: what was played, the weights before the updates, and the columns that were learned from."""

    def __init__(self, parameters: AgentParameters, problem: Any, directory: Any, copies: int):
        self.manager = graph(parameters, problem, directory, schedule(300), copies=copies)
        self.agent: Any = self.manager.get_agent()
        self.seen: list[tuple[Batch, list[np.ndarray], dict[str, np.ndarray]]] = []
        self.make_columns = self.agent.learning_columns
        self.agent.learning_columns = self.columns
        self.manager.improve()

    def columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns = self.make_columns(batch)
        self.seen.append((batch, self.agent.networks["main"].online_network.get_weights(), columns))
        return columns


def q_values(weights: list[np.ndarray], observation: np.ndarray) -> np.ndarray:
    return np.asarray(observation, np.float64).ravel() @ weights[0].astype(np.float64) + weights[1]


def lambda_return(batch: Batch, weights: list[np.ndarray], t: int, q_lambda: float) -> float:
    """(1 - lambda) sum_n lambda^(n-1) G^n + lambda^(N-1) G^N, where G^n sums n rewards and bootstraps from the best
    action, and N rewards are left of the episode: the definition, not the recursion."""
    actions = slice(0, 2)  # a third one is never allowed
    rewards, last = 0.0, t
    while not batch.game_over_column[last] and last + 1 < len(batch):
        last += 1
    total = 0.0
    for n, row in enumerate(range(t, last + 1), start=1):
        rewards += DISCOUNT ** (n - 1) * float(batch.reward_column[row])
        following = q_values(weights, batch.next_state_columns["observation"][row])[actions].max()
        n_step = rewards + DISCOUNT**n * following * (not batch.terminated_column[row])
        share = q_lambda ** (n - 1) * (1.0 if row == last else 1 - q_lambda)
        total += share * n_step
    return total


@pytest.mark.parametrize("q_lambda", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("problem", [Lottery, MaskedChain])
def test_targets_are_lambda_returns_of_the_network_that_played(q_lambda, copies, problem, tmp_path):
    phases = Phases(linear_pqn(q_lambda), problem, tmp_path, copies)
    assert len(phases.seen) > 3
    for batch, weights, columns in phases.seen:
        expected = [lambda_return(batch, weights, t, q_lambda) for t in range(len(batch))]
        np.testing.assert_allclose(columns["extra/returns"], expected, rtol=1e-5, atol=1e-5)
    terminated = np.concatenate([batch.terminated_column[batch.game_over_column > 0] for batch, *_ in phases.seen])
    assert terminated.any()
    assert copies == 1 or not terminated.all()  # the episodes that went on were cut, so that they are bootstrapped


def test_each_step_is_learned_from_in_one_phase_as_often_as_there_are_epochs(tmp_path):
    parameters = linear_pqn(0.6)
    parameters.algorithm.optimization_epochs, parameters.network_wrappers["main"].batch_size = 3, 16
    phases = Phases(parameters, Lottery, tmp_path, 4)
    assert [len(batch) for batch, *_ in phases.seen] == [64] * len(phases.seen)
    assert phases.agent.training_iteration == len(phases.seen)
    assert phases.agent.optimizer_steps == len(phases.seen) * 3 * 4
    assert phases.agent.memory.num_transitions() < 64


def test_it_has_layer_normalisation_and_no_target_network(tmp_path):
    parameters = PQNAgentParameters()
    network = parameters.network_wrappers["main"]
    schemes = [*network.input_embedders_parameters["observation"].scheme, *network.middleware_parameters.scheme]
    assert sum(isinstance(layer, LayerNorm) for layer in schemes) == 2
    agent = graph(parameters, Bandit, tmp_path).get_agent()
    assert not agent.networks["main"].has_target
    light = np.array([0.0, 1.0], np.float32)
    near, far = (agent.get_state_embedding({"observation": scale * light}) for scale in (1e2, 1e4))
    np.testing.assert_allclose(near, far, atol=1e-4)  # however far the states are from those that were seen


def test_a_recurrent_network_is_refused(tmp_path):
    parameters = pqn()
    recurrent = recurrent_dqn().network_wrappers["main"].middleware_parameters
    parameters.network_wrappers["main"].middleware_parameters = recurrent
    with pytest.raises(CoachError, match="recurrent"):
        graph(parameters, Bandit, tmp_path)


def test_it_learns_in_several_copies(tmp_path):
    plan = schedule(1280, evaluate_every=1280, evaluation=20)
    manager = graph(pqn(), Bandit, tmp_path, plan, copies=4)
    manager.improve()
    assert manager.progress.last_evaluation >= 9.5
