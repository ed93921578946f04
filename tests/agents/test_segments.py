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


@pytest.mark.parametrize("length", [3, 4])
def test_a_recurrent_policy_is_learned_from_the_state_that_acted(length, tmp_path):
    """Segments of three or four steps of episodes of ten: the probabilities that the update sees are those that the
    actions were drawn with."""
    parameters = actor_critic()
    network = parameters.network_wrappers["main"]
    network.middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=8)
    network.learning_rate = 0.0
    parameters.algorithm.num_steps_between_gradient_updates = length
    manager = graph(parameters, Bandit, tmp_path, schedule(100))
    agent = manager.get_agent()
    acted: list[float] = []
    choose, rule = agent.choose_action, agent.make_update_rule()

    def noted(state: Any) -> Any:
        chosen = choose(state)
        acted.append(np.log(chosen.all_action_probabilities[chosen.action]))
        return chosen

    def rule_with_policy(ops: Any, networks: Any, batch: Any) -> Any:
        policy = networks["main"].online(batch.states)[1]
        update = rule(ops, networks, batch)
        update.values["log_prob"] = log_probability(ops, policy, batch.actions)
        return update

    learned: list[float] = []
    update = agent.update_loop.update

    def noted_update(columns: Any) -> Any:
        result = update(columns)
        learned.extend(result.values["log_prob"][0][: np.count_nonzero(columns["weights"])])
        return result

    agent.choose_action, agent.make_update_rule = noted, lambda: rule_with_policy
    agent.update_loop.update = noted_update
    manager.train_and_act(EnvironmentSteps(20))
    assert len(learned) == len(acted) == 20
    np.testing.assert_allclose(learned, acted, atol=2e-6)


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
        updates = [int(row["Update Target Network"]) for row in csv.DictReader(file)]
    assert updates == [0, 0, 1, 0, 1, 0]
