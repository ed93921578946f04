"""Masked actions are neither taken nor counted on; episodes that are cut off go on in what is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.actor_critic_agent import generalized_advantages
from rl_coach.core_types import Batch, Transition
from tests.zoo.agents import SelectingDQN, of_class
from tests.zoo.environments import Bandit, MaskedChain
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import actor_critic, clipped_ppo, ddqn, dqn, policy_gradients, prioritized
from tests.zoo.states import weights_of

TEMPTING = 1000.0


def own_selection() -> Any:
    return of_class(dqn(), SelectingDQN)


def tempt(manager: Any, value: float) -> None:
    """Make the masked third action the best one by far, online and in the target."""
    network = manager.get_agent().networks["main"]
    weights = network.online_network.get_weights()
    bias = max(i for i, w in enumerate(weights) if w.shape == (3,))
    weights[bias][2] = value
    network.online_network.set_weights(weights)
    if network.has_target:
        network.update_target_network()


@pytest.mark.parametrize("parameters", [dqn, ddqn, prioritized, own_selection])
def test_a_masked_action_of_huge_value_is_never_bootstrapped_from(parameters, tmp_path):
    manager = graph(parameters(), MaskedChain, tmp_path, schedule(150, heatup=40))
    tempt(manager, TEMPTING)
    manager.improve()
    states = {"observation": np.eye(5, dtype=np.float32)}
    q = manager.get_agent().networks["main"].online_network.predict(states)
    assert manager.get_agent().training_iteration > 50
    assert np.abs(q[:, :2]).max() < 3
    assert q[:, 2].min() > TEMPTING / 2


@pytest.mark.parametrize("parameters", [policy_gradients, actor_critic, clipped_ppo])
def test_a_policy_never_takes_a_masked_action(parameters, tmp_path):
    manager = graph(parameters(), MaskedChain, tmp_path, schedule(150, heatup=40))
    tempt(manager, 15.0)
    manager.improve()  # the environment refuses masked actions
    assert all(np.isfinite(array).all() for array in weights_of(manager))


def transitions(endings: list[tuple[bool, bool]]) -> list[Transition]:
    """Steps of the bandit, with (game_over, terminated) of each."""
    rng = np.random.default_rng(0)
    states = [{"observation": rng.normal(size=2).astype(np.float32)} for _ in range(len(endings) + 1)]
    return [
        Transition(states[i], i % 2, float(i + 1), states[i + 1], game_over, terminated=terminated)
        for i, (game_over, terminated) in enumerate(endings)
    ]


def test_only_termination_stops_bootstrapping_in_the_columns(tmp_path):
    agent = graph(dqn(), Bandit, tmp_path).get_agent()
    columns = agent.learning_columns(Batch(transitions([(False, False), (True, False), (True, True)])))
    np.testing.assert_array_equal(columns["discounts"], np.multiply([1, 1, 0], np.float32(agent.ap.algorithm.discount)))


@pytest.mark.parametrize("terminated", [False, True])
def test_actor_critic_values_what_follows_a_segment_unless_it_terminated(terminated, tmp_path):
    agent = graph(actor_critic(), Bandit, tmp_path).get_agent()
    steps = transitions([(False, False), (False, False), (terminated, terminated)])
    columns = agent.learning_columns(Batch(steps))
    states = np.stack([t.state["observation"] for t in steps] + [steps[-1].next_state["observation"]])
    values = agent.networks["main"].online_network.predict({"observation": states})[0]
    last = 0.0 if terminated else values[-1]
    returns = [1 + 0.5 * (2 + 0.5 * (3 + 0.5 * last)), 2 + 0.5 * (3 + 0.5 * last), 3 + 0.5 * last]
    np.testing.assert_allclose(columns["extra/returns"], returns, rtol=1e-5)
    np.testing.assert_allclose(columns["extra/advantages"], returns - values[:-1], rtol=1e-4)
    np.testing.assert_allclose(columns["weights"], 1 / 3)


def test_ppo_keeps_episodes_apart(tmp_path):
    agent = graph(clipped_ppo(), Bandit, tmp_path).get_agent()
    steps = transitions([(False, False), (True, False), (False, False), (True, True)])
    columns = agent.fill_advantages(Batch(steps))
    network = agent.networks["main"].online_network
    states, following = (np.stack([getattr(t, a)["observation"] for t in steps]) for a in ("state", "next_state"))
    values, probabilities = network.predict({"observation": states})
    after = network.predict({"observation": following})[0]
    first, first_targets = generalized_advantages(np.array([1.0, 2.0]), np.append(values[:2], after[1]), 0.5, 0.95)
    second, second_targets = generalized_advantages(np.array([3.0, 4.0]), np.append(values[2:], 0.0), 0.5, 0.95)
    advantages = np.concatenate([first, second])
    normalized = (advantages - advantages.mean()) / advantages.std()
    np.testing.assert_allclose(columns["extra/advantages"], normalized, rtol=1e-4)
    np.testing.assert_allclose(columns["extra/returns"], np.append(first_targets, second_targets), rtol=1e-5)
    log_probs = np.log(probabilities[np.arange(4), [0, 1, 0, 1]])
    np.testing.assert_allclose(columns["extra/behaviour_log_probs"], log_probs, rtol=1e-5)
