"""Agents that learn from segments: how many are gathered for an update, and what a recurrent network starts from."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.architectures.policies import log_probability
from rl_coach.core_types import EnvironmentSteps, TrainingSteps
from rl_coach.schedules import LinearSchedule
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import actor_critic, clipped_ppo, dqn, policy_gradients


@pytest.mark.parametrize("copies, steps, updates", [(1, 120, 2), (3, 120, 2), (8, 160, 2)])
def test_an_update_is_made_of_as_many_episodes_as_were_gathered(copies, steps, updates, tmp_path):
    """Episodes have ten steps. One environment: after 5 and 10 of 12 episodes; three: after 6 and 12, which were played
    with one policy; eight: after 8 and 16."""
    parameters = policy_gradients()
    parameters.algorithm.apply_gradients_every_x_episodes = 5
    manager = graph(parameters, Bandit, tmp_path, schedule(steps), seed=0, copies=copies)
    rows: list[int] = []
    agent = manager.get_agent()
    update = agent.update_loop.update
    agent.update_loop.update = lambda columns: rows.append(int(np.count_nonzero(columns["weights"]))) or update(columns)
    manager.train_and_act(EnvironmentSteps(steps))
    assert agent.training_iteration == len(rows) == updates
    assert rows == [10 * (5 if copies == 1 else 2 * copies if copies == 3 else copies)] * updates


@pytest.mark.parametrize(("length", "copies"), [(3, 1), (4, 1), (4, 3)])
def test_a_recurrent_policy_is_learned_from_the_state_that_acted(length, copies, tmp_path):
    """Segments of three or four steps of episodes of ten, also in several copies of the environment: the probabilities
    that the updates see are those that the actions were drawn with."""
    parameters = actor_critic()
    network = parameters.network_wrappers["main"]
    network.middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=8)
    network.learning_rate = 0.0
    parameters.algorithm.num_steps_between_gradient_updates = length
    manager = graph(parameters, Bandit, tmp_path, schedule(100), seed=0, copies=copies)
    agent = manager.get_agent()
    acted: list[list[float]] = [[] for _ in range(copies)]
    learned: list[list[float]] = [[] for _ in range(copies)]
    choose, rule = agent.choose_action, agent.make_update_rule()

    def copy_index() -> int:
        return 0 if agent.parallel is None else agent.parallel.index

    def noted(state: Any) -> Any:
        chosen = choose(state)
        acted[copy_index()].append(chosen.all_action_probabilities[chosen.action])
        return chosen

    def rule_with_policy(ops: Any, networks: Any, batch: Any) -> Any:
        policy = networks["main"].online(batch.states)[1]
        update = rule(ops, networks, batch)
        update.values["log_prob"] = log_probability(ops, policy, batch.actions)
        return update

    update = agent.update_loop.update

    def noted_update(columns: Any) -> Any:
        result = update(columns)
        learned[copy_index()].extend(np.exp(result.values["log_prob"][0][: np.count_nonzero(columns["weights"])]))
        return result

    agent.choose_action, agent.make_update_rule = noted, lambda: rule_with_policy
    agent.update_loop.update = noted_update
    manager.train_and_act(EnvironmentSteps(20 * copies))
    for one, other in zip(learned, acted):
        assert len(one) == len(other) == 20
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_what_all_copies_played_makes_one_update(tmp_path):
    """A2C: four copies and segments of four steps make updates of sixteen rows, across the ends of episodes of ten."""
    parameters = actor_critic()
    parameters.algorithm.learns_from_copies_together = True
    parameters.algorithm.num_steps_between_gradient_updates = 4
    manager = graph(parameters, Bandit, tmp_path, schedule(160), seed=0, copies=4)
    agent = manager.get_agent()
    weights: list[np.ndarray] = []
    update = agent.update_loop.update
    agent.update_loop.update = lambda columns: weights.append(columns["weights"]) or update(columns)
    manager.train_and_act(EnvironmentSteps(160))
    assert len(weights) == agent.training_iteration == 10
    for row in weights:
        np.testing.assert_allclose(row[row > 0], np.full(16, 1 / 16))


@pytest.mark.parametrize(
    ("copies", "episodes", "together"),
    [(3, 1, True), *(pytest.param(*one, marks=pytest.mark.slow) for one in [(1, 3, False), (2, 4, False)])],
)
def test_sequences_that_make_one_update_start_from_the_states_that_acted(copies, episodes, together, tmp_path):
    """Segments of four steps of episodes of ten, of several lengths then, side by side in one batch."""
    parameters = actor_critic()
    network = parameters.network_wrappers["main"]
    network.middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=8)
    network.learning_rate = 0.0
    parameters.algorithm.num_steps_between_gradient_updates = 4
    parameters.algorithm.apply_gradients_every_x_episodes = episodes
    parameters.algorithm.learns_from_copies_together = together
    manager = graph(parameters, Bandit, tmp_path, schedule(1000), seed=0, copies=copies)
    agent = manager.get_agent()
    acted: list[float] = []
    learned: list[float] = []
    choose, rule, update = agent.choose_action, agent.make_update_rule(), agent.update_loop.update

    def noted(state: Any) -> Any:
        chosen = choose(state)
        acted.append(chosen.all_action_probabilities[chosen.action])
        return chosen

    def rule_with_policy(ops: Any, networks: Any, batch: Any) -> Any:
        policy = networks["main"].online(batch.states)[1]
        found = rule(ops, networks, batch)
        found.values["log_prob"] = log_probability(ops, policy, batch.actions)
        return found

    def noted_update(columns: Any, **how: Any) -> Any:
        result = update(columns, **how)
        learned.extend(np.exp(result.values["log_prob"][0][columns["weights"] > 0]))
        return result

    agent.choose_action, agent.make_update_rule = noted, lambda: rule_with_policy
    agent.update_loop.update = noted_update
    manager.train_and_act(EnvironmentSteps(120))
    assert len(learned) == len(acted) == 120 and agent.training_iteration < 120 / 4
    np.testing.assert_allclose(np.sort(learned), np.sort(acted), rtol=1e-5, atol=1e-6)


def test_a_training_step_of_ppo_is_all_that_is_learned_before_it_plays_on(tmp_path):
    """Four training steps are four phases, and a schedule of the learning rate goes by them, though each makes four
    epochs of minibatches."""
    parameters = clipped_ppo()
    parameters.network_wrappers["main"].learning_rate = LinearSchedule(1e-3, 0, 10)
    manager = graph(parameters, Bandit, tmp_path, schedule(TrainingSteps(4)), seed=0, writes_csv=True)
    manager.improve()
    manager.close()
    agent = manager.get_agent()
    assert agent.training_iteration == 4
    assert agent.networks["main"].state.updates > 4 * 4 * 3
    (path,) = tmp_path.glob("*.csv")
    with open(path, newline="") as file:
        rates = [float(row["Learning Rate/Mean"]) for row in csv.DictReader(file) if row["Learning Rate/Mean"]]
    np.testing.assert_allclose(rates, [9e-4, 8e-4, 7e-4, 6e-4], rtol=1e-5)


def test_ppo_learns_from_all_that_it_played(tmp_path):
    """64 steps are asked for, and episodes of ten are played to their end: 70 rows."""
    manager = graph(clipped_ppo(), Bandit, tmp_path, schedule(70))
    agent = manager.get_agent()
    rows: list[int] = []
    fill = agent.fill_advantages
    agent.fill_advantages = lambda batch: rows.append(len(batch)) or fill(batch)
    train = agent.train_network
    learned: list[int] = []
    agent.train_network = lambda columns, epochs: learned.append(len(columns["weights"])) or train(columns, epochs)
    manager.train_and_act(EnvironmentSteps(70))
    assert rows == learned == [70]


def test_the_update_of_the_targets_is_in_the_row_of_its_episode(tmp_path):
    """Targets are updated after 25 steps, in the third episode of ten steps each."""
    parameters = dqn()
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
    parameters.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(25)
    manager = graph(parameters, Bandit, tmp_path, schedule(60), seed=0, writes_csv=True)
    manager.improve()
    manager.close()
    (path,) = tmp_path.glob("*.csv")
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["Update Target Network"]) for row in rows] == [0, 0, 1, 0, 1, 0]
    estimates = ("Inverse Propensity Score", "Direct Method Reward", "Doubly Robust", "Weighted Importance Sampling")
    assert {row[name] for row in rows for name in ("Epoch", *estimates, "Sequential Doubly Robust")} == {""}
