"""With ``act_beside_learning`` an agent acts with the policy that it had before the last update."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.utils import CoachError
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import clipped_ppo, dqn, soft_actor_critic
from tests.zoo.states import rows


def beside(parameters: AgentParameters) -> AgentParameters:
    parameters.algorithm.act_beside_learning = True
    return parameters


def trained(parameters: AgentParameters, directory: Any, steps: int = 3) -> BasicRLGraphManager:
    """A graph whose agent has made so many updates, one after each step."""
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
    manager = graph(parameters, Bandit, directory, schedule(400, heatup=40))
    manager.heatup(EnvironmentSteps(40))
    manager.train_and_act(EnvironmentSteps(steps))
    return manager


def predictions(manager: BasicRLGraphManager) -> np.ndarray:
    online = manager.get_agent().networks["main"].online_network
    rng = np.random.default_rng(0)
    shape = (5, *manager.get_agent().spaces.state["observation"].shape)
    return online.predict({"observation": rng.normal(size=shape).astype(np.float32)})


def test_it_acts_with_the_policy_before_the_last_update(tmp_path):
    manager = trained(beside(dqn()), tmp_path)
    network = manager.get_agent().networks["main"]
    newest = network.online_network.get_weights()
    acted_with = predictions(manager)
    manager.train_and_act(EnvironmentSteps(1))
    after = predictions(manager)
    network.online_network.set_weights(newest)  # what is replaced by hand counts at once
    np.testing.assert_array_equal(predictions(manager), after)
    assert not np.allclose(after, acted_with)


def test_an_evaluation_goes_by_the_newest_policy_and_changes_nothing(tmp_path):
    manager = trained(beside(dqn()), tmp_path)
    agent = manager.get_agent()
    acted_with = predictions(manager)
    agent.phase = RunPhase.TEST
    newest = predictions(manager)
    agent.phase = RunPhase.TRAIN
    np.testing.assert_array_equal(predictions(manager), acted_with)
    network = agent.networks["main"].online_network
    network.set_weights(network.get_weights())
    np.testing.assert_array_equal(predictions(manager), newest)
    assert not np.allclose(newest, acted_with)


@pytest.mark.parametrize(("agent", "environment"), [(dqn, Bandit), (soft_actor_critic, Target)])
def test_how_long_an_update_takes_changes_nothing(agent, environment, tmp_path):
    for name in ("one", "other"):
        parameters = beside(agent())
        manager = graph(parameters, environment, tmp_path / name, schedule(150, 50, 2, heatup=40), writes_csv=True)
        if name == "other":
            learn = manager.get_agent().learning.learn
            manager.get_agent().learning.learn = lambda left, learn=learn: float(learn(left))  # waits for each
        manager.improve()
    assert rows(tmp_path / "one") == rows(tmp_path / "other")


def test_agents_that_need_the_newest_policy_refuse(tmp_path):
    with pytest.raises(
        CoachError, match=r"cannot act during its updates: algorithm.act_beside_learning needs an agent"
    ):
        graph(beside(clipped_ppo()), Bandit, tmp_path)
