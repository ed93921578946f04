"""Recurrent agents that learn from sequences out of a memory: they start from the states that acted, and remember."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.sequences import Sequences, rows_of
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import MiddlewareScheme
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from tests.zoo.environments import Bandit, Lottery, Recall, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import recurrent_ppo, with_normalized_observations

LARGEST_DIFFERENCE = 1e-6  # between the policy that acted and the policy that is learned from


def test_episodes_are_cut_into_sequences_that_begin_anew():
    """Episodes of 5 and 2 steps in sequences of 3: rows 0-2, 3-4, 5-6."""
    sequences = Sequences(np.array([4, 6]), 3)
    column = np.arange(7.0)
    assert sequences.starts.tolist() == [0, 3, 5]
    np.testing.assert_array_equal(sequences.cut({"x": column})["x"], [[0, 1, 2], [3, 4, 4], [5, 6, 6]])
    np.testing.assert_array_equal(sequences.joined(sequences.cut({"x": column})["x"]), column)
    columns = sequences.learning_columns({"x": column, "weights": np.full(7, 2.0, np.float32)})
    np.testing.assert_array_equal(columns["x"], [0, 1, 2, 3, 4, 4, 5, 6, 6])
    np.testing.assert_array_equal(columns["weights"], [2, 2, 2, 2, 2, 0, 2, 2, 0])
    np.testing.assert_array_equal(rows_of(np.array([[1, -1]]), 3), [[3, 4, 5, -1, -1, -1]])


def policies(agent: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """A number of the policy at each step as it acted, and at each row as each update sees it."""
    acted: list[Any] = []
    learned: list[Any] = []
    predict, rule, update = agent.acting_prediction, agent.make_update_rule(), agent.update_loop.update

    def noted_prediction(state: Any) -> Any:
        outputs = predict(state)
        acted.append(np.ravel(outputs[0])[0])
        return outputs

    def rule_with_policy(ops: Any, networks: Any, batch: Any) -> Any:
        found, outputs = rule(ops, networks, batch), networks["main"].online(batch.states)[1]
        found.values["policy"] = (outputs["mean"] if "mean" in outputs else outputs["probabilities"])[:, 0]
        return found

    def noted_update(columns: Any, indices: Any, **how: Any) -> Any:
        result = update(columns, indices=indices, **how)
        rows = indices[: how["count"]]
        learned.extend(result.values["policy"][(rows >= 0) & (columns["weights"][rows] > 0)])
        return result

    agent.acting_prediction, agent.make_update_rule = noted_prediction, lambda: rule_with_policy
    agent.update_loop.update = noted_update
    return acted, learned


@pytest.mark.parametrize(
    ("problem", "copies", "batch_size"), [(Lottery, 1, 12), (Bandit, 1, 1000), (Lottery, 3, 16), (Target, 2, 16)]
)
def test_ppo_learns_from_the_states_that_acted(problem, copies, batch_size, tmp_path):
    """Episodes of 1 to 10 steps in sequences of 4, cut off in the middle where there are several copies."""
    parameters = recurrent_ppo()
    parameters.network_wrappers["main"].learning_rate = 0.0
    parameters.network_wrappers["main"].batch_size = batch_size
    parameters.algorithm.optimization_epochs = 2
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(30)
    manager = graph(parameters, problem, tmp_path, schedule(1000), seed=0, copies=copies)
    agent = manager.get_agent()
    acted, learned = policies(agent)
    manager.train_and_act(EnvironmentSteps(90))
    assert agent.training_iteration >= 2 and len(learned) >= 2 * 60
    used = np.sort(acted[: len(learned) // 2])
    np.testing.assert_allclose(np.sort(learned)[::2], used, rtol=0, atol=LARGEST_DIFFERENCE)
    np.testing.assert_allclose(np.sort(learned)[1::2], used, rtol=0, atol=LARGEST_DIFFERENCE)


def test_the_ratio_of_ppo_starts_at_one_though_filters_learn(tmp_path):
    """Statistics between memory and network change what it sees, and what came before acted with older ones."""
    parameters = with_normalized_observations(recurrent_ppo())
    parameters.network_wrappers["main"].learning_rate = 0.0
    manager = graph(parameters, Lottery, tmp_path, schedule(200), seed=0)
    manager.train_and_act(EnvironmentSteps(200))
    assert manager.get_agent().training_iteration > 1
    assert manager.get_agent().divergence < 1e-9


def test_a_step_in_which_the_network_is_not_asked_is_remembered_too(tmp_path):
    """The heatup acts at random, and the state that is stored goes on."""
    manager = graph(recurrent_ppo(), Bandit, tmp_path, schedule(100, heatup=10), seed=0)
    manager.heatup(EnvironmentSteps(10))
    agent = manager.get_agent()
    batch = agent.memory.get_all_complete_episodes_transitions()
    states = np.asarray(batch.info("recurrent_state_lstm_h"))
    agent.reset_internal_state()
    network = agent.networks["main"].online_network
    for row, state in enumerate(states):
        np.testing.assert_array_equal(network.recurrent_state["lstm_h"][0], state)
        network.predict({"observation": batch.state_columns["observation"][row : row + 1]})


def recalled(parameters: Any, steps: int, directory: Any) -> float:
    """The mean return of 40 evaluated episodes of ``Recall`` after so many steps."""
    manager = graph(parameters, Recall, directory, schedule(steps), seed=0)
    manager.train_and_act(EnvironmentSteps(steps))
    manager.evaluate(EnvironmentEpisodes(40))
    return float(np.mean(manager.evaluation_rewards))


def ppo_that_remembers() -> Any:
    parameters = recurrent_ppo(16)
    parameters.algorithm.discount, parameters.algorithm.beta_entropy = 0.95, 0.005
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(128)
    parameters.network_wrappers["main"].batch_size = 64
    parameters.network_wrappers["main"].middleware_parameters.sequence_length = 8
    return parameters


def without_memory(parameters: Any) -> Any:
    parameters.network_wrappers["main"].middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Empty)
    return parameters


def test_ppo_with_an_lstm_remembers_what_it_saw(tmp_path):
    assert recalled(ppo_that_remembers(), 4000, tmp_path) > 0.9


def test_ppo_without_one_does_not(tmp_path):
    assert recalled(without_memory(ppo_that_remembers()), 1000, tmp_path) < 0.6
