"""Agents that learn from other sources of batches than what their memory samples."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from rl_coach.agents.core.batches import DataSetPass, MemoryBatches, MixedBatches
from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import Batch, EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
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
