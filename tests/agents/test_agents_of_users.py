"""Agents as people wrote them for Coach run as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.agent import Agent
from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgent
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters
from rl_coach.core_types import ActionInfo
from rl_coach.exploration_policies.greedy import GreedyParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from tests.agents.small_problems import Bandit, dqn, graph, policy_gradients, prioritized, schedule, weights_of


class CoachDQN(DQNAgent):
    """Computes its targets in NumPy."""

    def learn_from_batch(self, batch):
        network_keys = self.ap.network_wrappers["main"].input_embedders_parameters.keys()
        q_st_plus_1, TD_targets = self.networks["main"].parallel_prediction(
            [
                (self.networks["main"].target_network, batch.next_states(network_keys)),
                (self.networks["main"].online_network, batch.states(network_keys)),
            ]
        )
        selected_actions = self.select_actions(batch.next_states(network_keys), q_st_plus_1)
        TD_errors = []
        for i in range(batch.size):
            new_target = (
                batch.rewards()[i]
                + (1.0 - batch.terminateds()[i]) * self.ap.algorithm.discount * (q_st_plus_1[i][selected_actions[i]])
            )
            TD_errors.append(np.abs(new_target - TD_targets[i, batch.actions()[i]]))
            TD_targets[i, batch.actions()[i]] = new_target
        importance_weights = self.update_transition_priorities_and_get_weights(TD_errors, batch)
        result = self.networks["main"].train_and_sync_networks(
            batch.states(network_keys), TD_targets, importance_weights=importance_weights
        )
        total_loss, losses, unclipped_grads = result[:3]
        return total_loss, losses, unclipped_grads


class SelectingDQN(DQNAgent):
    """Chooses for itself what to bootstrap from."""

    def select_actions(self, next_states, q_st_plus_1):
        assert set(next_states) == {"observation"}
        return np.argmax(q_st_plus_1, axis=1)


class CoachPG(PolicyGradientsAgent):
    """Computes its advantages in NumPy."""

    def learn_from_batch(self, batch):
        network_keys = self.ap.network_wrappers["main"].input_embedders_parameters.keys()
        targets = self.rescaled(batch.n_step_discounted_rewards(), self.last_gradient_update_step_idx)
        result = self.networks["main"].train_and_sync_networks(
            {**batch.states(network_keys), "output_0_0": batch.actions()}, targets
        )
        return result[:3]


class ExtendedPG(PolicyGradientsAgent):
    """Looks on while its parent learns."""

    def learn_from_batch(self, batch):
        self.seen = getattr(self, "seen", 0) + batch.size
        return super().learn_from_batch(batch)


class Alternating(Agent):
    """Has no networks and learns nothing."""

    @property
    def is_on_policy(self) -> bool:
        return False

    def choose_action(self, curr_state):
        return ActionInfo(self.current_episode_steps_counter % 2)


def of_class(parameters: AgentParameters, agent: type) -> AgentParameters:
    """The parameters, of a class that says which agent they are for."""
    kind = type("Parameters", (type(parameters),), {"path": property(lambda self: f"{__name__}:{agent.__name__}")})
    parameters.__class__ = kind
    return parameters


def trained(parameters: AgentParameters, tmp_path: Any, steps: int = 60) -> Any:
    manager = graph(parameters, Bandit, tmp_path, schedule(steps))
    manager.improve()
    return manager


def with_statistics(parameters: AgentParameters) -> AgentParameters:
    parameters.pre_network_filter = InputFilter()
    parameters.pre_network_filter.add_observation_filter(
        "observation", "normalize", ObservationNormalizationFilter(name="normalize")
    )
    parameters.algorithm.update_pre_network_filters_state_on_train = True
    return parameters


@pytest.mark.parametrize("base", [dqn, prioritized, lambda: with_statistics(dqn())], ids=["dqn", "per", "filtered"])
def test_q_learning_in_numpy_learns_what_the_update_rule_learns(base, tmp_path):
    built_in = trained(of_class(base(), DQNAgent), tmp_path)
    for agent in (CoachDQN, SelectingDQN):
        own = trained(of_class(base(), agent), tmp_path)
        assert own.get_agent().training_iteration == built_in.get_agent().training_iteration > 20
        for a, b in zip(weights_of(own), weights_of(built_in)):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


def test_policy_gradients_in_numpy_learn_what_the_update_rule_learns(tmp_path):
    def parameters() -> Any:
        agent = with_statistics(policy_gradients())
        agent.algorithm.apply_gradients_every_x_episodes = 1
        agent.algorithm.num_steps_between_gradient_updates = 4
        return agent

    built_in = trained(parameters(), tmp_path)
    for kind in (CoachPG, ExtendedPG):
        own = trained(of_class(parameters(), kind), tmp_path)
        assert own.get_agent().training_iteration == built_in.get_agent().training_iteration == 18
        for a, b in zip(weights_of(own), weights_of(built_in)):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)
    assert own.get_agent().seen == 60


def test_an_agent_without_networks_acts(tmp_path):
    parameters = AgentParameters(AlgorithmParameters(), GreedyParameters(), ExperienceReplayParameters(), {})
    manager = trained(of_class(parameters, Alternating), tmp_path)
    memory = manager.get_agent().memory
    assert memory.num_transitions() == 100
    np.testing.assert_array_equal([memory.get(i).action for i in range(-10, 0)], [1, 0] * 5)


def test_an_agent_without_an_update_rule_says_what_is_missing(tmp_path):
    parameters = of_class(dqn(), Alternating)
    with pytest.raises(NotImplementedError, match="Alternating has no update rule"):
        trained(parameters, tmp_path)
