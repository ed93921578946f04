"""Agents that learn from segments: how many are gathered for an update, and what a recurrent network starts from."""

from __future__ import annotations

import csv
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import TaskParameters
from rl_coach.command_line import preset_catalogue
from rl_coach.core_types import EnvironmentSteps, TrainingSteps
from rl_coach.schedules import LinearSchedule
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import Bandit, CountingEnvironmentParameters, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import actor_critic, clipped_ppo, dqn, policy_gradients

LARGEST_DIFFERENCE = 1e-6  # between the policy that acted and the policy that is learned from


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


def policies(agent: Any) -> tuple[dict[int, list[np.ndarray]], dict[int, list[np.ndarray]]]:
    """The policy at each step as it acted and as updates see it, by environment; probabilities or means, [A] each."""
    acted: dict[int, list[np.ndarray]] = defaultdict(list)
    learned: dict[int, list[np.ndarray]] = defaultdict(list)
    predict, rule, update = agent.acting_prediction, agent.make_update_rule(), agent.update_loop.update

    def environment() -> int:
        return 0 if agent.parallel is None else agent.parallel.index

    def noted_prediction(state: Any) -> Any:
        outputs = predict(state)
        acted[environment()].append(np.ravel(outputs[0]))
        return outputs

    def rule_with_policy(ops: Any, networks: Any, batch: Any) -> Any:
        found, outputs = rule(ops, networks, batch), networks["main"].online(batch.states)[1]
        policy = outputs["mean"] if "mean" in outputs else outputs["probabilities"]
        found.values.update({f"policy {column}": policy[:, column] for column in range(policy.shape[-1])})
        return found

    def noted_update(columns: Any, **how: Any) -> Any:
        result = update(columns, **how)
        names = sorted(name for name in result.values if name.startswith("policy "))
        policy = np.stack([result.values[name][0] for name in names], axis=1)
        learned[environment()].extend(policy[columns["weights"] > 0])
        return result

    agent.acting_prediction, agent.make_update_rule = noted_prediction, lambda: rule_with_policy
    agent.update_loop.update = noted_update
    return acted, learned


def recurrent(segment: int) -> Any:
    parameters = actor_critic()
    network = parameters.network_wrappers["main"]
    network.middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=8)
    network.learning_rate = 0.0
    parameters.algorithm.num_steps_between_gradient_updates = segment
    return parameters


@pytest.mark.parametrize(("length", "copies", "problem"), [
    (3, 1, Bandit),
    (4, 3, Target),
    *(
        pytest.param(length, copies, problem, marks=pytest.mark.slow)
        for length, copies, problem in [(3, 1, Target), (4, 1, Bandit), (4, 1, Target), (4, 3, Bandit)]
    ),
])  # fmt: skip
def test_a_recurrent_policy_is_learned_from_the_state_that_acted(length, copies, problem, tmp_path):
    """Segments of three or four steps of episodes of ten (of five with continuous actions), also in several copies of
    the environment."""
    manager = graph(recurrent(length), problem, tmp_path, schedule(100), seed=0, copies=copies)
    acted, learned = policies(manager.get_agent())
    manager.train_and_act(EnvironmentSteps(20 * copies))
    assert len(acted) == len(learned) == copies
    for index, steps in acted.items():
        assert len(steps) == len(learned[index]) == 20
        np.testing.assert_allclose(learned[index], steps, rtol=0, atol=LARGEST_DIFFERENCE)


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize(
    ("preset", "level", "package"),
    [
        ("Mujoco_A3C_LSTM", "inverted_pendulum", "mujoco"),
        pytest.param("Atari_A3C_LSTM", "pong", "ale_py", marks=pytest.mark.slow),
    ],
)
def test_the_recurrent_presets_learn_from_the_states_that_acted(preset, level, package, copies, tmp_path):
    pytest.importorskip(package)
    manager = preset_catalogue.load(preset)
    manager.env_params.level.select(level)
    manager.env_params.num_environments = copies
    manager.agent_params.network_wrappers["main"].learning_rate = 0.0
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=3))
    agent = manager.get_agent()
    acted, learned = policies(agent)
    manager.train_and_act(EnvironmentSteps(100 * copies))
    manager.close()
    assert agent.training_iteration >= 5 * copies
    for index in range(copies):
        count = len(learned[index])
        assert count >= 80
        np.testing.assert_allclose(learned[index], acted[index][:count], rtol=0, atol=LARGEST_DIFFERENCE)


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
    parameters = recurrent(4)
    parameters.algorithm.apply_gradients_every_x_episodes = episodes
    parameters.algorithm.learns_from_copies_together = together
    manager = graph(parameters, Bandit, tmp_path, schedule(1000), seed=0, copies=copies)
    agent = manager.get_agent()
    by_environment, by_update = policies(agent)
    manager.train_and_act(EnvironmentSteps(120))
    acted, learned = (np.concatenate(list(found.values()))[:, 0] for found in (by_environment, by_update))
    assert len(learned) == len(acted) == 120 and agent.training_iteration < 120 / 4
    np.testing.assert_allclose(np.sort(learned), np.sort(acted), rtol=0, atol=LARGEST_DIFFERENCE)


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


@pytest.mark.parametrize("copies", [2, 3])
def test_ppo_learns_from_several_environments_before_an_episode_ends(copies, tmp_path):
    parameters = clipped_ppo()
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(30)
    manager = graph(parameters, CountingEnvironmentParameters(1000), tmp_path, copies=copies)
    agent, learned = manager.get_agent(), []
    learn = agent.learn_from_played
    agent.learn_from_played = lambda columns: (learned.append(len(columns["weights"])), learn(columns))[1]
    manager.train_and_act(EnvironmentSteps(90))
    assert learned == [30, 30, 30]
