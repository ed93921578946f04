"""Each network of soft actor-critic descends its own loss alone, and actions stay within their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.rules.soft_actor_critic import soft_actor_critic_rule
from rl_coach.architectures.update import TrainingStep, Update
from rl_coach.core_types import Batch, RunPhase, Transition
from tests.zoo.environments import Target
from tests.zoo.graphs import graph
from tests.zoo.parameters import soft_actor_critic

NETWORKS = ("policy", "q", "v")


def only(names: tuple[str, ...]) -> Any:
    """The rule with the losses of some networks left out."""
    full = soft_actor_critic_rule()

    def rule(ops: Any, networks: dict, batch: Any) -> Update:
        update = full(ops, networks, batch)
        return Update({name: update.losses[name] for name in names})

    return rule


@pytest.fixture(scope="module")
def agent(tmp_path_factory: Any) -> Any:
    return graph(soft_actor_critic(), Target, tmp_path_factory.mktemp("sac")).get_agent()


def replayed(agent: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    states = [{"observation": rng.normal(size=1).astype(np.float32)} for _ in range(9)]
    actions = rng.uniform(-2, 4, (8, 1))
    return agent.learning_columns(
        Batch([Transition(states[i], actions[i], float(i), states[i + 1], i == 7) for i in range(8)])
    )


def after_update(agent: Any, names: tuple[str, ...], columns: dict[str, np.ndarray]) -> dict[str, list[np.ndarray]]:
    """The weights after an update with the losses of some networks; the agent's own stay as they were."""
    before = {name: network.get_state() for name, network in agent.networks.items()}
    functions = {name: network.state.function for name, network in agent.networks.items()}
    step = TrainingStep(functions, agent.ap.network_wrappers, only(names))
    states = {name: network.state for name, network in agent.networks.items()}
    agent.networks["policy"].framework.make_learner(step, states, ()).train(columns)
    after = {name: network.online_network.get_weights() for name, network in agent.networks.items()}
    for name, network in agent.networks.items():
        network.set_state(before[name])
    return after


def equal(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-7) for a, b in zip(one, other))


def test_each_loss_moves_its_own_network_alone(agent):
    columns = replayed(agent)
    before = {name: network.online_network.get_weights() for name, network in agent.networks.items()}
    together = after_update(agent, NETWORKS, columns)
    for name in NETWORKS:
        alone = after_update(agent, (name,), columns)
        assert not equal(alone[name], before[name])
        assert equal(alone[name], together[name]), f"another loss moves '{name}'"
        for other in set(NETWORKS) - {name}:
            assert all(np.array_equal(a, b) for a, b in zip(alone[other], before[other])), f"'{name}' moves '{other}'"


def test_the_gradients_of_the_policy_are_logged_as_coach_does(tmp_path):
    """A step of SGD moves each weight by the learning rate times its gradient."""
    parameters = soft_actor_critic()
    policy = parameters.network_wrappers["policy"]
    policy.optimizer_type, policy.learning_rate = "SGD", 0.5
    agent = graph(parameters, Target, tmp_path).get_agent()
    before = agent.networks["policy"].online_network.get_weights()
    result = agent.update_loop.update(replayed(agent))
    after = agent.networks["policy"].online_network.get_weights()
    moved = sum(np.abs(new - old).sum(dtype=np.float64) for old, new in zip(before, after))
    assert moved > 1e-3
    np.testing.assert_allclose(result.signals["Policy_grads_sumabs"], [moved / 0.5], rtol=1e-4)


def test_networks_see_actions_scaled_to_one(agent):
    columns = replayed(agent)
    assert np.abs(columns["actions"]).max() <= 1.0
    steps = [Transition({"observation": np.zeros(1)}, np.array([a]), 0.0, None, False) for a in (-2.0, 1.0, 4.0)]
    np.testing.assert_allclose(agent.learning_columns(Batch(steps))["actions"].ravel(), [-1, 0, 1])


def test_actions_are_within_bounds_and_deterministic_in_evaluation(agent):
    state = {"observation": np.array([0.5], np.float32)}
    before = agent.phase
    agent.phase = RunPhase.TRAIN
    actions = np.array([agent.choose_action(state).action for _ in range(50)])
    agent.phase = RunPhase.TEST
    evaluated = [agent.choose_action(state).action for _ in range(2)]
    agent.phase = before
    assert actions.min() >= -2 and actions.max() <= 4 and len(np.unique(actions)) > 40
    np.testing.assert_array_equal(*evaluated)
    mean, _ = agent.get_prediction(state)
    np.testing.assert_allclose(evaluated[0], 1 + 3 * np.tanh(mean[0]), rtol=1e-6)
