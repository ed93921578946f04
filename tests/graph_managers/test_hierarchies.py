"""Graphs of several levels: how they are built, and that they go on exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.ddpg_agent import DDPGAgentParameters
from rl_coach.base_parameters import TaskParameters, TaskRole, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.filters.action.box_masking import BoxMasking
from rl_coach.filters.filter import NoOutputFilter, OutputFilter
from rl_coach.graph_managers.hrl_graph_manager import HRLGraphManager
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import SmallEnvironmentParameters
from tests.zoo.goals import WalkToGoal, hierarchy, levels, places, with_hindsight
from tests.zoo.graphs import schedule
from tests.zoo.states import differences, final_state, rows_of


@pytest.mark.resume
def test_a_hierarchy_goes_on_in_the_middle_of_an_episode(tmp_path):
    whole = hierarchy(tmp_path / "whole", steps=240)
    whole.run()
    first = hierarchy(tmp_path / "parts", steps=120)
    first.run()
    assert not first.reset_required and first.get_agents()[0].training_iteration > 0
    parts = tmp_path / "parts"
    second = hierarchy(parts, steps=240, resume=True, checkpoint_restore_path=str(parts), seed=None)
    assert len(second.get_agents()[0].episode.buffer.transitions) > 0
    second.run()
    assert differences(final_state(tmp_path / "whole"), final_state(parts)) == []
    files = sorted(path.name for path in parts.glob("*.csv"))
    assert len(files) == 2
    for name in files:
        assert rows_of(parts / name) == rows_of(tmp_path / "whole" / name)


def test_evaluations_change_nothing(tmp_path):
    one, other = (hierarchy(tmp_path / name) for name in ("one", "other"))
    other.steps_between_evaluation_periods = EnvironmentSteps(35)
    for manager in (one, other):
        manager.improve()
    for agent, twin in zip(one.get_agents(), other.get_agents()):
        assert agent.training_iteration == twin.training_iteration > 0
        for name, network in agent.networks.items():
            for a, b in zip(network.online_network.get_weights(), twin.networks[name].online_network.get_weights()):
                np.testing.assert_array_equal(a, b)


def ddpg_levels(count: int) -> list[Any]:
    agents = [with_hindsight(DDPGAgentParameters()) for _ in range(count)]
    for agent in agents:
        agent.memory.hindsight_transitions_per_regular_transition = 0
    for agent in agents[1:]:
        agent.algorithm.in_action_space = places()
    return agents


def hrl(agents: list[Any], steps: Any, directory: Any, **task: Any) -> HRLGraphManager:
    environment = SmallEnvironmentParameters(WalkToGoal)
    environment.default_output_filter = OutputFilter
    manager = HRLGraphManager(agents, environment, schedule(60), VisualizationParameters(), steps)
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(directory), seed=2, **task))
    return manager


@pytest.mark.parametrize(
    "steps", [EnvironmentSteps(4), [EnvironmentSteps(1), EnvironmentSteps(3), EnvironmentSteps(2)]]
)
def test_three_levels_take_as_many_steps_as_they_are_given(steps, tmp_path):
    manager = hrl(ddpg_levels(3), steps, tmp_path)
    given = [4, 4, 4] if isinstance(steps, EnvironmentSteps) else [1, 3, 2]
    assert [level.name for level in manager.level_managers] == ["level_0", "level_1", "level_2"]
    assert [level.steps_limit.num_steps for level in manager.level_managers] == given
    parameters = manager.agents_params
    assert [one.is_a_highest_level_agent for one in parameters] == [True, False, False]
    assert [one.is_a_lowest_level_agent for one in parameters] == [False, False, True]
    # the environment's default output filter is one for its actions, which only the bottom level chooses
    assert [type(agent.output_filter) for agent in manager.get_agents()] == [
        NoOutputFilter,
        NoOutputFilter,
        OutputFilter,
    ]
    with manager.phase_context(RunPhase.TRAIN):
        manager.act(EnvironmentEpisodes(3))
    played = [agent.memory.get_all_complete_episodes() for agent in manager.get_agents()]
    for episodes, most in zip(played[1:], given[1:]):
        assert max(map(len, episodes)) == most
        lasts = [episode.transitions[-1] for episode in episodes if len(episode) == most]
        assert all(last.game_over for last in lasts) and not all(last.terminated for last in lasts)


def test_a_levels_own_output_filter_stays(tmp_path):
    agents = ddpg_levels(2)
    agents[0].output_filter = OutputFilter()
    agents[0].output_filter.add_action_filter("mask", BoxMasking(-0.5, 0.5))
    manager = hrl(agents, EnvironmentSteps(2), tmp_path)
    manager.heatup(EnvironmentSteps(60))
    goals = manager.get_agents()[1].memory.transitions.state_columns["desired_goal"]
    assert len(goals) >= 60 and -0.5 <= goals.min() < 0 < goals.max() <= 0.5


@pytest.mark.parametrize(
    ("steps", "count", "message"),
    [
        ([EnvironmentSteps(1)], 2, "needs one number for each agent, not 1"),
        (EnvironmentSteps(1), 0, "0 agents"),
        (EnvironmentEpisodes(1), 2, "steps_limit of level 'level_1'"),
    ],
)
def test_mistakes(steps, count, message, tmp_path):
    with pytest.raises(CoachError, match=message):
        hrl(ddpg_levels(count) if count else [], steps, tmp_path)


def test_a_hierarchy_is_one_process_and_one_environment(tmp_path):
    with pytest.raises(CoachError, match="cannot be split"):
        hierarchy(tmp_path, role=TaskRole.TRAINING)
    environment = SmallEnvironmentParameters(WalkToGoal)
    environment.num_environments = 2
    manager = HRLGraphManager(levels(), environment, schedule(60), VisualizationParameters(), EnvironmentSteps(2))
    with pytest.raises(CoachError, match="num_environments to 1"):
        manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path)))
