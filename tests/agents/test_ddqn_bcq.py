"""Batch-constrained double DQN: which actions are familiar, and what is learned from them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.ddqn_bcq_agent import (
    DDQNBCQAgent,
    DDQNBCQAgentParameters,
    KNNParameters,
    NNImitationModelParameters,
)
from rl_coach.agents.rules.familiarity import allowed_or_most_familiar, nearest_distances
from rl_coach.architectures.head_parameters import ClassificationHeadParameters
from rl_coach.base_parameters import AgentParameters, TaskParameters, VisualizationParameters
from rl_coach.core_types import RunPhase, TrainingSteps
from rl_coach.graph_managers.batch_rl_graph_manager import BatchRLGraphManager
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import Bandit, SmallEnvironmentParameters
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn


def constrained(method: Any = None, with_reward_model: bool = False) -> AgentParameters:
    agent = dqn(DDQNBCQAgentParameters())
    agent.memory = EpisodicExperienceReplayParameters()
    agent.algorithm.action_drop_method_parameters = method or KNNParameters()
    main = agent.network_wrappers["main"]
    if with_reward_model:
        agent.network_wrappers["reward_model"] = copy.deepcopy(main)
    if isinstance(method, NNImitationModelParameters):
        imitation = agent.network_wrappers["imitation_model"] = copy.deepcopy(main)
        imitation.heads_parameters = [ClassificationHeadParameters()]
    return agent


def batch_graph(directory: Any, agent: AgentParameters, epochs: int = 4, **task: Any) -> BatchRLGraphManager:
    manager = BatchRLGraphManager(
        agent,
        SmallEnvironmentParameters(Bandit),
        schedule(TrainingSteps(epochs), evaluation=3, heatup=200),
        VisualizationParameters(dump_parameters_documentation=False, dump_csv=False),
        reward_model_num_epochs=5,
    )
    return manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(directory), seed=2, **task))


def test_distances_are_those_to_the_nearest_point_of_each_set():
    rng = np.random.default_rng(0)
    points, known = rng.normal(size=(7, 3)), [rng.normal(size=(5, 3)), np.empty((0, 3)), rng.normal(size=(1, 3))]
    expected = [[min((np.linalg.norm(p - k) for k in some), default=np.inf) for some in known] for p in points]
    np.testing.assert_allclose(nearest_distances(points, known), expected, atol=1e-12)


def test_some_possible_action_is_always_allowed():
    familiarity = np.array([[0.9, 0.5, 0.1], [0.1, 0.2, 0.3], [0.9, 0.8, 0.2]])
    possible = np.array([[True, True, True], [True, True, True], [False, False, True]])
    allowed = allowed_or_most_familiar(familiarity, 0.5, possible)
    assert allowed.tolist() == [[True, True, False], [False, False, True], [False, False, True]]


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("size", [7, 50000])
def test_familiarity_of_neighbours_is_what_loops_over_the_training_data_find(coefficient, size, tmp_path):
    method = KNNParameters()
    method.average_dist_coefficient, method.knn_size = coefficient, size
    manager = batch_graph(tmp_path, constrained(method), epochs=1)
    manager.improve()
    agent = manager.get_agent()
    data = agent.memory.transitions_at(np.arange(agent.memory.num_transitions()))
    train = agent.memory.num_training_transitions()
    states, actions = data.state_columns["observation"], data.action_column
    known = [[states[i] for i in range(train) if actions[i] == action][-size:] for action in range(2)]

    def distance(state: np.ndarray, action: int) -> float:
        return min(float(np.linalg.norm(state - other)) for other in known[action])

    mean = np.mean([[distance(states[i], action) for action in range(2)] for i in range(train)])
    found = data.info("familiar_next_actions")
    for row in range(0, len(data), 9):
        distances = [distance(data.next_state_columns["observation"][row], action) for action in range(2)]
        expected = [one <= coefficient * mean for one in distances]
        if not any(expected):
            expected = [action == int(np.argmin(distances)) for action in range(2)]
        assert found[row].tolist() == expected


def test_a_network_that_imitates_knows_the_actions_of_the_data(tmp_path):
    """A data set in which the arm with the light off is never pulled."""
    method = NNImitationModelParameters()
    method.imitation_model_num_epochs, method.mask_out_actions_threshold = 60, 0.35
    manager = batch_graph(tmp_path, constrained(method), epochs=1)
    manager._heat_up()
    agent = manager.get_agent()
    memory = agent.memory
    data = memory.transitions_at(np.arange(memory.num_transitions()))
    memory.clean()
    for transition in data.transitions:
        transition.action = int(transition.state["observation"].argmax())
        memory.store(transition)
    manager.improvement.begin()
    manager.train_and_act(TrainingSteps(1))
    lights = np.eye(2, dtype=np.float32)
    assert agent.familiar_actions({"observation": lights}).tolist() == [[True, False], [False, True]]
    np.testing.assert_array_equal(
        memory.transitions_at(np.arange(100)).info("familiar_next_actions"),
        memory.transitions_at(np.arange(100)).next_state_columns["observation"],
    )


def test_a_relative_threshold_is_a_share_of_the_largest_probability(tmp_path):
    method = NNImitationModelParameters()
    method.mask_out_actions_threshold, method.threshold_is_relative = 0.9, True
    agent = batch_graph(tmp_path, constrained(method)).get_agent()
    states = {"observation": np.eye(2, dtype=np.float32)}
    probabilities = agent.networks["imitation_model"].online_network.predict(states)
    expected = probabilities >= 0.9 * probabilities.max(axis=1, keepdims=True)
    assert agent.familiar_actions(states).tolist() == expected.tolist()
    method.threshold_is_relative = False
    assert (agent.familiar_actions(states).sum(axis=1) == 1).all()  # none has so large a probability itself


def test_it_acts_among_familiar_actions_if_it_is_told_to(tmp_path, monkeypatch):
    parameters = constrained(NNImitationModelParameters())
    parameters.algorithm.acts_among_familiar_actions = True
    agent = batch_graph(tmp_path, parameters).get_agent()
    assert agent.policy_description() is None
    agent.training_has_begun, state = True, {"observation": np.zeros(2, np.float32)}
    agent.exploration_policy.change_phase(RunPhase.TEST)
    agent.exploration_policy.evaluation_epsilon = 0
    for action in range(2):
        monkeypatch.setattr(agent, "familiar_actions", lambda states, a=action: np.arange(2)[None] == a)
        assert agent.choose_action(state).action == action


def test_an_update_goes_towards_the_value_of_the_best_familiar_action(tmp_path):
    """The target, computed apart: r + discount * Q_target(s', argmax of Q(s', .) over familiar actions)."""
    manager = batch_graph(tmp_path, constrained(), epochs=1)
    manager._heat_up()
    agent = manager.get_agent()
    agent._annotate()
    agent.memory.annotate("familiar_next_actions", np.tile(np.float32([[1, 0], [0, 1]]), (100, 1)))
    batch = agent.memory.transitions_at(np.arange(16))
    q = agent.networks["main"].online_network.predict(batch.state_columns)
    online = agent.networks["main"].online_network.predict(batch.next_state_columns)
    target = agent.networks["main"].target_network.predict(batch.next_state_columns)
    familiar = batch.info("familiar_next_actions") > 0
    best = np.where(familiar, online, -np.inf).argmax(axis=1)
    assert (best != online.argmax(axis=1)).any()  # the constraint decides somewhere
    rows = np.arange(16)
    values = agent.ap.algorithm.discount * (1 - batch.terminated_column) * target[rows, best]
    errors = batch.reward_column + values - q[rows, batch.action_column]
    is_huber = agent.ap.network_wrappers["main"].replace_mse_with_huber_loss
    losses = np.where(np.abs(errors) <= 1, errors**2 / 2, np.abs(errors) - 0.5) if is_huber else errors**2
    assert float(agent.learn_from_batch(batch)[0]) == pytest.approx(losses.mean(), rel=1e-5)


@pytest.mark.parametrize("with_reward_model", [False, True])
def test_it_learns_the_bandit_and_a_resumed_run_has_the_same_familiarity(with_reward_model, tmp_path):
    manager = batch_graph(tmp_path, constrained(with_reward_model=with_reward_model), epochs=8)
    manager.improve()
    assert np.mean(manager.evaluation_rewards) == 10
    state = manager.get_state()
    other = batch_graph(tmp_path / "other", constrained(with_reward_model=with_reward_model), epochs=8)
    other.set_state(state)
    states = {"observation": np.eye(2, dtype=np.float32)}
    np.testing.assert_array_equal(
        manager.get_agent().familiar_actions(states), other.get_agent().familiar_actions(states)
    )


class Selects(DDQNBCQAgent):
    """Selects the next actions itself, as Coach's agent did."""

    calls = 0

    def select_actions(self, next_states: dict[str, np.ndarray], q_st_plus_1: np.ndarray) -> np.ndarray:
        Selects.calls += 1
        chosen = super().select_actions(next_states, q_st_plus_1)
        assert self.familiar_actions(next_states)[np.arange(len(chosen)), chosen].all()
        return chosen


class SelectsParameters(DDQNBCQAgentParameters):
    """Of an agent of a user's."""

    @property
    def path(self) -> str:
        return "tests.agents.test_ddqn_bcq:Selects"


def test_an_agent_of_a_user_may_select_among_familiar_actions(tmp_path):
    agent = dqn(SelectsParameters())
    agent.memory = EpisodicExperienceReplayParameters()
    manager = batch_graph(tmp_path, agent, epochs=2)
    manager.improve()
    assert Selects.calls == manager.get_agent().training_iteration > 0


def test_what_it_needs_is_said_in_a_line(tmp_path):
    with pytest.raises(CoachError, match="learns from a fixed data set: use it in a BatchRLGraphManager"):
        graph(constrained(), Bandit, tmp_path)
    agent = constrained()
    agent.algorithm.action_drop_method_parameters = NNImitationModelParameters()
    with pytest.raises(CoachError, match="needs a network 'imitation_model' with a ClassificationHeadParameters"):
        batch_graph(tmp_path, agent)
    agent.algorithm.action_drop_method_parameters = 0.35
    with pytest.raises(CoachError, match=r"must be KNNParameters\(\) or NNImitationModelParameters\(\)"):
        batch_graph(tmp_path, agent)
