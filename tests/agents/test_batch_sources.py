"""Agents that learn from other sources of batches than what their memory samples."""

from __future__ import annotations

import copy
import csv
import pathlib
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.batches import DataSetPass, MemoryBatches, MixedBatches
from rl_coach.agents.core.signals import RowUnit
from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import Batch, EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.utils import CoachError
from tests.zoo.agents import of_class
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn
from tests.zoo.states import weights_of


def pulls(rows: int = 200) -> Batch:
    """Random pulls of the bandit's arms, each an episode."""
    rng = np.random.default_rng(0)
    lights, arms = rng.integers(2, size=rows), rng.integers(2, size=rows)
    states = {"observation": np.eye(2, dtype=np.float32)[lights]}
    ends = np.ones(rows, bool)
    return Batch.from_columns(states, arms, (lights == arms).astype(np.float32), ends, states)


class Offline(DQNAgent):
    """Learns from recorded columns; its memory stays empty."""

    def make_batches(self) -> Any:
        return DataSetPass(pulls())


class RowsOfEpochs(Offline):
    """Has a row for each pass."""

    row_unit = RowUnit.EPOCH


class RowsOfUpdates(Offline):
    """Has a row for every 40 updates."""

    row_unit = RowUnit.UPDATES
    updates_per_row = 40


class NoPasses(DQNAgent):
    """Wants rows of epochs, and has a memory that knows none."""

    row_unit = RowUnit.EPOCH


class Demonstrated(DQNAgent):
    """Learns from recorded columns, a quarter of each batch, and from what it plays."""

    def make_batches(self) -> Any:
        return MixedBatches([(DataSetPass(pulls()), 0.25), (MemoryBatches(self.memory), 0.75)])


def offline(kind: type = Offline) -> AgentParameters:
    agent = of_class(dqn(), kind)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(0)
    return agent


def test_an_agent_learns_from_a_data_set_without_acting(tmp_path):
    manager = graph(offline(), Bandit, tmp_path, schedule(TrainingSteps(200)))
    agent = manager.get_agent()
    manager.train_and_act(TrainingSteps(200))
    assert agent.training_iteration == 200 and agent.total_steps_counter == 0 and agent.memory.length() == 0
    assert agent.batches.epoch == 200 * 16 // 200
    values = agent.get_all_q_values_for_states([{"observation": light} for light in np.eye(2, dtype=np.float32)])
    np.testing.assert_allclose(values, np.eye(2), atol=0.2)


def test_an_agent_learns_from_demonstrations_and_its_own_experience(tmp_path):
    manager = graph(of_class(dqn(), Demonstrated), Bandit, tmp_path, schedule(400, evaluation=3, heatup=40))
    manager.improve()
    assert np.mean(manager.evaluation_rewards) > 8
    assert manager.get_agent().training_iteration > 100


def test_a_restored_pass_goes_on_exactly(tmp_path):
    first = graph(of_class(dqn(), Demonstrated), Bandit, tmp_path, schedule(10**6, heatup=40), seed=1)
    first.heatup(first.heatup_steps)
    first.train_and_act(EnvironmentEpisodes(4))
    state = copy.deepcopy(first.get_state())
    second = graph(of_class(dqn(), Demonstrated), Bandit, tmp_path, schedule(10**6, heatup=40), seed=2)
    second.set_state(state)
    for manager in (first, second):
        manager.train_and_act(EnvironmentEpisodes(5))
    assert first.get_agent().batches.epoch == second.get_agent().batches.epoch
    for a, b in zip(weights_of(first), weights_of(second)):
        np.testing.assert_array_equal(a, b)


def rows_of(directory: pathlib.Path) -> list[dict[str, str]]:
    (path,) = directory.glob("*.csv")
    return list(csv.DictReader(path.open()))


@pytest.mark.parametrize(
    ("kind", "numbers", "epochs", "updates", "evaluated"),
    [
        (
            RowsOfEpochs,
            ["1", "2", "3", "4"],
            ["1", "2", "3", "4"],
            ["13", "25", "38", "50"],
            [False, True, False, True],
        ),
        (RowsOfUpdates, ["40"], ["3"], ["40"], [True]),
    ],
)
def test_rows_are_of_epochs_or_of_updates(kind, numbers, epochs, updates, evaluated, tmp_path):
    steps = schedule(TrainingSteps(50), evaluate_every=TrainingSteps(25 if kind is RowsOfEpochs else 40), evaluation=2)
    manager = graph(offline(kind), Bandit, tmp_path, steps, writes_csv=True)
    manager.improve()
    manager.close()
    rows = rows_of(tmp_path)
    assert [row["Episode #"] for row in rows] == numbers
    assert [row["Epoch"] for row in rows] == epochs
    assert [row["Training Iter"] for row in rows] == updates
    assert all(float(row["Loss/Mean"]) > 0 and row["Training Reward"] == "" for row in rows)
    assert [row["Evaluation Reward"] != "" for row in rows] == evaluated


def test_rows_go_on_after_a_resume(tmp_path):
    first = graph(offline(RowsOfEpochs), Bandit, tmp_path / "first", schedule(TrainingSteps(100)), writes_csv=True)
    first.train_and_act(TrainingSteps(30))
    second = graph(offline(RowsOfEpochs), Bandit, tmp_path / "second", schedule(TrainingSteps(100)), writes_csv=True)
    second.set_state(copy.deepcopy(first.get_state()))
    for manager in (first, second):
        manager.train_and_act(TrainingSteps(20))
        manager.close()
    whole, rest = rows_of(tmp_path / "first"), rows_of(tmp_path / "second")
    assert [row["Epoch"] for row in whole] == ["1", "2", "3", "4"]
    assert [row["Loss/Mean"] for row in rest] == [row["Loss/Mean"] for row in whole][-len(rest) :] and len(rest) >= 2


def test_rows_of_epochs_require_passes(tmp_path):
    with pytest.raises(CoachError, match="MemoryBatches makes no passes over a data set"):
        graph(of_class(dqn(), NoPasses), Bandit, tmp_path)
