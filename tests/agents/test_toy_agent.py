"""A new agent with a new head is two short places, and trains on every framework."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from rl_coach.core_types import EnvironmentEpisodes
from rl_coach.utils import CoachError
from tests.zoo import qv_agent
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn
from tests.zoo.qv_agent import QVAgentParameters, qv_rule


def test_it_is_written_in_at_most_sixty_lines_and_learns(tmp_path):
    assert len(pathlib.Path(qv_agent.__file__).read_text().splitlines()) <= 60
    manager = graph(dqn(QVAgentParameters()), Bandit, tmp_path, schedule(400, heatup=40))
    manager.improve()
    assert manager.get_agent().update_loop.learner.step.stages[0].rule is qv_rule
    manager.evaluate(EnvironmentEpisodes(5))
    assert manager.progress.last_evaluation >= 9.5


def test_a_column_of_a_wrong_shape_stops_it_with_its_name(tmp_path):
    agent = graph(dqn(QVAgentParameters()), Bandit, tmp_path, schedule(10, heatup=40)).get_agent()
    columns = {
        "states/observation": np.zeros((4, 2), np.float32),
        "next_states/observation": np.zeros((4, 2), np.float32),
        "actions": np.zeros(4, np.int64),
        "rewards": np.zeros((4, 1), np.float32),
        "discounts": np.ones(4, np.float32),
        "weights": np.ones(4, np.float32),
    }
    with pytest.raises(CoachError, match=r"'rewards' has shape \(4, 1\)"):
        agent.update_loop.learner.train(columns)
