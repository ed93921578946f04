"""Evaluations leave no trace in what is trained."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rl_coach.base_parameters import TaskParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.filters.reward.reward_ewma_normalization_filter import RewardEwmaNormalizationFilter
from rl_coach.filters.reward.reward_normalization_filter import RewardNormalizationFilter
from tests.frameworks import FRAMEWORK
from tests.zoo.runs import graph_of
from tests.zoo.states import differences, leaves

TRAINED = ("networks", "memory", "exploration", "filters", "rng", "action_rng", "counters")


class RemembersAll(ObservationFilter):
    """A user's filter: the mean of its episode so far is taken away, and it counts what it has seen since ever."""

    def __init__(self):
        super().__init__()
        self.seen, self.episode = 0, []

    def filter(self, observation, update_internal_state=True):
        if update_internal_state:
            self.seen += 1
            self.episode.append(observation)
        return observation + 1e-3 * self.seen - 0.1 * np.mean(self.episode, axis=0)

    def get_filtered_observation_space(self, input_observation_space):
        return input_observation_space

    def reset(self):
        self.episode = []

    def suspend(self):
        return self.episode

    def resume(self, suspended):
        self.episode = suspended

    def get_state(self):
        return {"seen": self.seen}

    def set_state(self, state):
        self.seen = state["seen"]


def filters():
    chain = InputFilter()
    chain.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
    chain.add_observation_filter("observation", "mine", RemembersAll())
    chain.add_reward_filter("normalize", RewardNormalizationFilter())
    chain.add_reward_filter("ewma", RewardEwmaNormalizationFilter())
    return chain


def created_graph(name, directory, evaluation=0, between=37, **changes):
    graph = graph_of(name, 150)
    graph.evaluation_steps = EnvironmentEpisodes(evaluation)
    graph.steps_between_evaluation_periods = EnvironmentSteps(between)
    for attribute, value in changes.items():
        setattr(graph.agent_params, attribute, value)
    return graph.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(directory), seed=5))


def trained(name, directory, evaluation, **changes):
    """All that training has made, after a run with evaluations in the middle of its episodes."""
    graph = created_graph(name, directory, evaluation, **changes)
    graph.improve()
    state = graph.get_agent().get_state()
    return dict(leaves({part: state[part] for part in TRAINED}))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("DQN", {"input_filter": filters()}),
        ("ClippedPPO", {"input_filter": filters()}),
        pytest.param("DDQN with noisy layers", {}, marks=pytest.mark.slow),
        ("actor-critic with an LSTM", {}),
    ],
)
def test_training_is_the_same_with_and_without(tmp_path, name, changes):
    without = trained(name, tmp_path / "without", 0, **changes)
    assert differences(without, trained(name, tmp_path / "with", 2, **changes)) == []


def test_statistics_are_of_heatup_and_training_alone(tmp_path):
    graph = created_graph("DQN", tmp_path, input_filter=filters())
    agent = graph.get_agent()
    statistics = agent.input_filter.observation_filters["observation"]["normalize"].running_observation_stats
    graph.heatup(EnvironmentSteps(20))
    heated = statistics.n
    graph.train_and_act(EnvironmentSteps(20))
    before = statistics.n
    assert before > heated > 0
    with graph.phase_context(RunPhase.TEST):
        graph.act(EnvironmentEpisodes(1))
        assert statistics.n == before
        assert agent.input_filter.observation_filters["observation"]["mine"].episode
    assert statistics.n == before


def test_an_evaluated_state_is_normalised_as_the_policy_does(tmp_path):
    graph = created_graph("DQN", tmp_path, input_filter=filters())
    agent = graph.get_agent()
    graph.heatup(EnvironmentSteps(20))
    normalize = agent.input_filter.observation_filters["observation"]["normalize"]
    agent.input_filter.remove_observation_filter("observation", "mine")
    with graph.phase_context(RunPhase.TEST):
        graph.act(EnvironmentSteps(3))
        response = graph.level_managers[0].last_env_response
    expected = normalize.filter(response.next_state["observation"], update_internal_state=False)
    assert response.next_state["observation"].shape == (4,)
    np.testing.assert_array_equal(agent.input_filter.filter_evaluated(response).next_state["observation"], expected)


def test_a_run_that_only_evaluates_changes_no_statistics(tmp_path):
    before = created_graph("DQN", tmp_path / "trained", input_filter=filters())
    before.heatup(EnvironmentSteps(20))
    checkpoint = before.save_checkpoint()
    graph = graph_of("DQN", 150)
    graph.agent_params.input_filter = filters()
    task = TaskParameters(
        FRAMEWORK, experiment_path=str(tmp_path), evaluate_only=30, checkpoint_restore_path=checkpoint
    )
    graph.create_graph(task)
    statistics = [graph.get_agent().input_filter.observation_filters["observation"]["normalize"]]
    statistics += graph.get_agent().input_filter.reward_filters.values()
    states = [dict(leaves(one.get_state())) for one in statistics]
    assert states[0]["/count"] > 20
    graph.run()
    for one, state in zip(statistics, states):
        assert differences(state, dict(leaves(one.get_state()))) == []


def test_a_run_that_only_evaluates_tells_of_itself_alone(tmp_path):
    before = created_graph("DQN", tmp_path / "trained", evaluation=2)
    before.heatup(EnvironmentSteps(20))
    before.train_and_act(EnvironmentSteps(40))
    before.evaluate(EnvironmentEpisodes(2))
    before.train_and_act(EnvironmentSteps(40))
    checkpoint = before.save_checkpoint()
    graph = graph_of("DQN", 150)
    task = TaskParameters(
        FRAMEWORK, experiment_path=str(tmp_path / "evaluated"), evaluate_only=30, checkpoint_restore_path=checkpoint
    )
    graph.create_graph(task)
    graph.run()
    graph.close()
    (path,) = (tmp_path / "evaluated").glob("*.csv")
    rows = pd.read_csv(path)
    assert rows["Episode Length"].sum() == graph.status().steps >= 30
    assert "Training Reward" not in rows or rows["Training Reward"].isna().all()
    assert "Loss/Mean" not in rows or rows["Loss/Mean"].isna().all()
    assert rows["Evaluation Reward"].notna().sum() == 1
