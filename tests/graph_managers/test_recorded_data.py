"""Learning from a file: its values are checked, its statistics are known first, and targets move without steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.discrete_cql_agent import DiscreteCQLAgentParameters
from rl_coach.base_parameters import AgentParameters, TaskParameters, VisualizationParameters
from rl_coach.core_types import CsvDataset, EnvironmentSteps, TrainingSteps
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.graph_managers.batch_rl_graph_manager import BatchRLGraphManager
from rl_coach.logger import screen
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.spaces import DiscreteActionSpace, RewardSpace, SpacesDefinition, StateSpace, VectorObservationSpace
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.graphs import schedule
from tests.zoo.parameters import dqn

HEADER = "episode_id,action,reward,state_feature_0,state_feature_1"
RNG = np.random.default_rng(0)
STATES = np.round(RNG.normal([20, -3], [6, 0.01], (120, 2)), 5)


def rows(**cells: Any) -> list[str]:
    """Rows of episodes of six. :param cells: other actions, by ``r`` and the number of the row"""
    found = []
    for row, (one, two) in enumerate(STATES.tolist()):
        found.append(f"{row // 6},{cells.get(f'r{row}', row % 2)},{row % 3},{one},{two}")
    return found


def normalised(agent: AgentParameters, attribute: str = "pre_network_filter") -> AgentParameters:
    filters = InputFilter()
    filters.add_observation_filter("observation", "normal", ObservationNormalizationFilter(-99, 99, name="normal"))
    setattr(agent, attribute, filters)
    return agent


def written(path: Any, lines: list[str], header: str = HEADER) -> CsvDataset:
    path.write_text("\n".join([header, *lines, ""]))
    return CsvDataset(str(path))


def graph(
    tmp_path: Any, agent: AgentParameters, lines: list[str], epochs: int = 3, header: str = HEADER,
    files_before: tuple[CsvDataset, ...] = (), size: int = 1000, **task: Any,
):  # fmt: skip
    agent.memory = EpisodicExperienceReplayParameters()
    agent.memory.max_size = (MemoryGranularity.Transitions, size)
    agent.memory.load_memory_from_file_path = [*files_before, written(tmp_path / "data.csv", lines, header)]
    spaces = SpacesDefinition(
        StateSpace({"observation": VectorObservationSpace(2)}), None, DiscreteActionSpace(2), RewardSpace(1)
    )
    manager = BatchRLGraphManager(
        agent, None, schedule(TrainingSteps(epochs), TrainingSteps(epochs), evaluation=0, heatup=0),
        VisualizationParameters(dump_parameters_documentation=False, dump_csv=False), spaces_definition=spaces,
    )  # fmt: skip
    return manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=1, **task))


@pytest.mark.parametrize(
    "cells, message",
    [
        ({"r7": 5}, "step 6: the action is 5, but the action space has the whole numbers 0 to 1"),
        ({"r3": -1}, "step 3: the action is -1"),
        ({"r0": 0.5}, "step 0: the action is 0.5"),
    ],
)
def test_an_action_that_the_agent_does_not_have_is_one_line(tmp_path, cells, message):
    with pytest.raises(CoachError, match=r"data\.csv") as raised:
        graph(tmp_path, dqn(DDQNAgentParameters()), rows(**cells))
    assert message in str(raised.value)


@pytest.mark.parametrize("size", [1000, 110, 96])
def test_a_step_is_counted_within_its_file(tmp_path, size):
    first = written(tmp_path / "first.csv", rows())
    with pytest.raises(CoachError, match=r"data\.csv', step 6: the action is 5"):
        graph(tmp_path, dqn(DDQNAgentParameters()), rows(r7=5), files_before=(first,), size=size)


def test_probabilities_of_another_number_of_actions_are_one_line(tmp_path):
    lines = [f'{line},"[0.2, 0.3, 0.5]"' for line in rows()]
    with pytest.raises(CoachError, match="of the shape 3, but there are 2 actions"):
        graph(tmp_path, dqn(DDQNAgentParameters()), lines, header=f"{HEADER},all_action_probabilities")


@pytest.mark.parametrize("make", [DDQNAgentParameters, DiscreteCQLAgentParameters])
def test_a_period_in_environment_steps_counts_updates_and_a_line_says_so(tmp_path, make, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(screen, "announce", said.append)

    def run(period: Any) -> list[np.ndarray]:
        agent = dqn(make())
        agent.algorithm.num_steps_between_copying_online_weights_to_target = period
        manager = graph(tmp_path, agent, rows())
        before = manager.get_agent().networks["main"].target_network.get_weights()
        manager.improve()
        after = manager.get_agent().networks["main"].target_network.get_weights()
        assert any(np.any(one != other) for one, other in zip(before, after))
        return after

    by_steps = run(EnvironmentSteps(7))
    assert sum("target networks are updated after every 7 updates" in line for line in said) == 1
    by_updates = run(TrainingSteps(7))
    assert sum("target networks are updated after" in line for line in said) == 1
    for one, other in zip(by_steps, by_updates):
        np.testing.assert_array_equal(one, other)


def test_the_networks_see_states_normalised_by_the_whole_data_set(tmp_path):
    manager = graph(tmp_path, normalised(dqn(DDQNAgentParameters())), rows())
    manager.improve()
    agent = manager.get_agent()
    stored = agent.memory.transitions.state_columns["observation"]
    expected = (stored - stored.mean(axis=0)) / (stored.std(axis=0) + 1e-3)
    seen = agent.pre_network_filter.filter_columns({"observation": stored}, False)["observation"]
    np.testing.assert_allclose(seen, expected, rtol=1e-4, atol=1e-4)
    kept = agent.pre_network_filter.get_state()
    other = graph(tmp_path, normalised(dqn(DDQNAgentParameters())), rows()).get_agent().pre_network_filter
    other.set_state(kept)
    np.testing.assert_array_equal(other.filter_columns({"observation": stored}, False)["observation"], seen)


def test_a_filter_of_the_input_gives_all_rows_the_same_scale(tmp_path):
    memory = graph(tmp_path, normalised(dqn(DDQNAgentParameters()), "input_filter"), rows()).get_agent().memory
    found, raw = memory.transitions.state_columns["observation"][:, 0], STATES[np.arange(120) % 6 < 5, 0]
    slope = np.polyfit(raw, found, 1)
    np.testing.assert_allclose(found, np.polyval(slope, raw), atol=1e-4)
    assert abs(found.mean()) < 0.2 and 0.8 < found.std() < 1.2


@pytest.mark.parametrize("threshold, moves", [(-50.0, 1), (50.0, -1)])
def test_a_learned_alpha_rises_while_the_gap_is_larger_than_its_threshold(tmp_path, threshold, moves):
    agent = dqn(DiscreteCQLAgentParameters())
    agent.algorithm.gap_threshold, agent.algorithm.conservative_weight = threshold, 0.5
    manager = graph(tmp_path, agent, rows())
    manager.improve()
    (log_alpha,) = manager.get_agent().networks["alpha"].online_network.get_weights()
    assert np.sign(log_alpha - np.log(0.5)) == moves
