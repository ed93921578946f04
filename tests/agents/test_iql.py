"""Updates of implicit Q-learning against the paper in NumPy, and the settings that it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.iql_agent import IQLAgentParameters
from rl_coach.agents.rules.implicit_q_learning import LARGEST_WEIGHT
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters, MiddlewareScheme, TaskParameters, VisualizationParameters
from rl_coach.core_types import RunPhase, TrainingSteps
from rl_coach.graph_managers.batch_rl_graph_manager import BatchRLGraphManager
from rl_coach.utils import CoachError
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
from tests.zoo.environments import SmallEnvironment, SmallEnvironmentParameters, Target
from tests.zoo.graphs import graph, schedule

SIZE, UPDATES = 8, 4


def tiny(expectile: float, beta: float) -> AgentParameters:
    """A policy and a V of 4 units and critics of 3, with smooth activations."""
    agent = IQLAgentParameters()
    for network in agent.network_wrappers.values():
        network.batch_size, network.learning_rate, network.optimizer_epsilon = SIZE, 0.01, 1e-4
    for name in ("policy", "v"):
        embedder = agent.network_wrappers[name].input_embedders_parameters["observation"]
        embedder.scheme, embedder.activation_function = [Dense(4)], "tanh"
        agent.network_wrappers[name].middleware_parameters.scheme = MiddlewareScheme.Empty
    head = agent.network_wrappers["q"].heads_parameters[0]
    head.network_layers_sizes, head.activation_function = (3,), "tanh"
    agent.algorithm.expectile, agent.algorithm.inverse_temperature = expectile, beta
    agent.algorithm.discount = 0.9
    agent.algorithm.rate_for_copying_weights_to_target = 0.3
    return agent


def built(parameters: AgentParameters, directory: Any, problem: type[SmallEnvironment] = Target) -> Any:
    manager = BatchRLGraphManager(
        parameters, SmallEnvironmentParameters(problem), schedule(TrainingSteps(1), heatup=40),
        VisualizationParameters(dump_csv=False), train_to_eval_ratio=1,
    )  # fmt: skip
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(directory), seed=1))
    manager._heat_up()
    agent = manager.get_agent()
    agent.phase = RunPhase.TRAIN
    return agent


def state_value(weights: list[np.ndarray], states: np.ndarray) -> np.ndarray:
    return dense(weights, 1, np.tanh(dense(weights, 0, states)))[:, 0]


def critics(weights: list[np.ndarray], states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """[B, 2]: the weights of a layer come for both critics before those of the next layer."""
    joined = np.concatenate([states, actions], axis=1)
    return np.concatenate([dense(weights, 2 + i, np.tanh(dense(weights, i, joined))) for i in range(2)], axis=1)


def log_density(weights: list[np.ndarray], states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    hidden = np.tanh(dense(weights, 0, states))
    log_deviation, mean = np.clip(dense(weights, 1, hidden), -5, 2), np.tanh(dense(weights, 2, hidden))
    squares = ((actions - mean) / np.exp(log_deviation)) ** 2
    return (-0.5 * squares - log_deviation - 0.5 * np.log(2 * np.pi)).sum(axis=1)


def reference(agent: Any, columns: dict[str, np.ndarray]) -> dict[str, Any]:
    """Kostrikov et al. 2022, algorithm 1 with equations 5 to 7."""
    algorithm, parameters = agent.ap.algorithm, agent.ap.network_wrappers
    tau, beta = algorithm.expectile, algorithm.inverse_temperature
    weights = {name: float64(agent.networks[name].state.arrays("weights")) for name in ("policy", "q", "v")}
    target = float64(agent.networks["q"].state.arrays("target_weights"))
    optimizers = {name: adam_of(parameters[name], weights[name]) for name in weights}
    largest = 0.0
    for number in range(UPDATES):
        batch = one_update(columns, number, SIZE)
        s, s_t, a = batch["states/observation"], batch["next_states/observation"], batch["actions"]
        q = critics(target, s, a).min(axis=1)

        def v_loss(v: list, q: Any = q, s: Any = s) -> float:
            losses = [(tau if u > 0 else 1 - tau) * u * u for u in q - state_value(v, s)]
            return float(np.mean(losses))

        weights["v"] = optimizers["v"](weights["v"], gradient(v_loss, weights["v"]))
        importance = np.exp(beta * (q - state_value(weights["v"], s)))
        largest = max(largest, importance.max())
        bounded = np.minimum(importance, LARGEST_WEIGHT)
        y = batch["rewards"] + batch["discounts"] * state_value(weights["v"], s_t)

        def policy_loss(policy: list, bounded: Any = bounded, s: Any = s, a: Any = a) -> float:
            return -float(np.mean(bounded * log_density(policy, s, a)))

        def q_loss(q: list, y: Any = y, s: Any = s, a: Any = a) -> float:
            return float(np.mean(((critics(q, s, a) - y[:, None]) ** 2).sum(axis=1)))

        for name, loss in (("policy", policy_loss), ("q", q_loss)):
            weights[name] = optimizers[name](weights[name], gradient(loss, weights[name]))
        target = moved(target, weights["q"], algorithm.rate_for_copying_weights_to_target)
    return {**weights, "target": target, "largest": largest}


@in_layers_of_keras
@pytest.mark.parametrize("expectile, beta", [(0.7, 3.0), (0.9, 40.0)])
def test_several_updates_are_those_of_the_paper(expectile, beta, tmp_path):
    agent, fresh = (built(tiny(expectile, beta), tmp_path / str(number)) for number in range(2))
    batches = recorded_columns(agent)
    float(agent.update_loop.learn(UPDATES))
    columns = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    assert np.abs(columns["actions"]).max() <= 1 and "extra/noise" not in columns
    expected = reference(fresh, columns)
    assert bool(expected["largest"] > LARGEST_WEIGHT) is (beta > 30)  # both sides of the bound
    for name in ("policy", "q", "v"):
        assert_equal(agent.networks[name].state.arrays("weights"), expected[name])
    assert_equal(agent.networks["q"].state.arrays("target_weights"), expected["target"])


def test_it_needs_data_and_a_mean_action(tmp_path):
    with pytest.raises(CoachError, match="use it in a BatchRLGraphManager"):
        graph(IQLAgentParameters(), Target, tmp_path)
    sampling = IQLAgentParameters()
    sampling.algorithm.use_deterministic_for_evaluation = False
    with pytest.raises(CoachError, match="learns only its mean action"):
        built(sampling, tmp_path)
