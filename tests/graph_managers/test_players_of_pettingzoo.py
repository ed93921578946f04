"""Agents that learn in parallel environments of users: masks, infos, failures, and players that come and go."""

from __future__ import annotations

from typing import Any

import pytest

from rl_coach.utils import CoachError, TrainingError
from tests.zoo import parameters
from tests.zoo.graphs import schedule
from tests.zoo.players import players_graph

pytest.importorskip("pettingzoo", reason="PettingZoo is not installed: pip install 'rl_coach[multi-agent]'")
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters


def played(directory: Any, done_condition: Any = all, agents: int = 1, **settings: Any) -> Any:
    """A graph after a short run. :param settings: of the environment"""
    environment = PettingZooEnvironmentParameters("tests.zoo.parallel_players:Scripted")
    environment.additional_simulator_parameters = settings
    short = schedule(48, heatup=24, evaluation=0)
    graph = players_graph(
        [parameters.dqn() for _ in range(agents)], environment, directory, short, done_condition=done_condition
    )
    graph.improve()
    return graph


def stored(agent: Any) -> list[tuple[float, float, float, bool]]:
    """(step, next step, reward, terminated) of each transition in the memory."""
    rows = [agent.memory.get(index) for index in range(agent.memory.num_transitions())]
    return [
        (row.state["observation"][0], row.next_state["observation"][0], row.reward, bool(row.terminated))
        for row in rows
    ]


def stay(come: int, leave: int) -> list[tuple[float, float, float, bool]]:
    return [(step, step + 1, 1.0, step + 1 == leave) for step in range(come, leave)]


@pytest.mark.parametrize(
    "stays", [[(0, 3), (6, 9)], [(0, 3), (4, 12)], [(2, 5), (7, 12)], [(4, 12)]], ids=lambda stays: str(stays)
)
def test_a_player_that_comes_back_has_an_episode_for_each_stay(stays, tmp_path):
    agents = played(tmp_path, agents=2, present={"a": [(0, 12)], "b": stays}).get_agents()
    wanted = [row for come, leave in stays for row in stay(come, leave)]
    found = stored(agents["agent_1"])
    assert found == (wanted * 12)[: len(found)] and len(found) >= 2 * len(wanted)
    assert agents["agent_1"].clock.episodes == len(stays) * (72 // 12)
    assert stored(agents["agent_0"])[:12] == stay(0, 12)


def test_a_player_that_comes_back_is_played_by_the_agent_of_the_others(tmp_path):
    (agent,) = played(tmp_path, present={"a": [(0, 12)], "b": [(0, 3), (6, 9)]}).get_agents().values()
    rows = [row for row in stored(agent) if row[1] - row[0] != 1.0]
    assert rows == [], "no transition leads from one stay into the next"
    assert len(stored(agent)) == 6 * (12 + 6)


@pytest.mark.parametrize("mask", [[0, 1], [True, False]])
def test_a_mask_in_the_infos_decides(mask, tmp_path):
    (environment,) = played(tmp_path, mask=mask).environments
    assert len(environment.env.taken) > 100 and all(mask[action] for _, action in environment.env.taken)


def test_a_mask_may_come_first_with_the_first_step(tmp_path):
    (environment,) = played(tmp_path, mask=[0, 1], masks_from=1).environments
    forbidden = [action for _, action in environment.env.taken if action == 0]
    assert len(forbidden) <= len(environment.env.taken) / environment.env.LENGTH, "only where there was no mask"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mask": [0, 1, 1]}, "the action_mask of player 'a' has the shape (3,), which does not fit its actions"),
        ({"mask": [0.3, -2.0]}, "the action_mask of player 'a' has other numbers than 0 and 1: [0.3, -2.0]"),
        ({"mask": [0, 1], "masks_from": 5}, "the action_mask of player 'a' is missing in the first state"),
        ({"actions": (2, 3)}, "'a' and 'b', which have different spaces (actions: 2 discrete actions and 3 discrete"),
        ({"actions": (3, 2)}, "'a' and 'b', which have different spaces (actions: 3 discrete actions and 2 discrete"),
    ],
)
def test_masks_and_spaces_that_would_have_no_effect_are_refused(settings, message, tmp_path):
    with pytest.raises(CoachError) as refusal:
        played(tmp_path, **settings)
    assert message in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("infos", ["none", "empty"])
def test_missing_infos_are_empty_ones(infos, tmp_path):
    (agent,) = played(tmp_path, infos=infos).get_agents().values()
    assert stored(agent)[:2] == [(0, 1, 1.0, False)] * 2


@pytest.mark.parametrize("fails_in", ["reset", "step"])
def test_a_failure_names_its_own_line_and_nothing_hides_it(fails_in, tmp_path):
    with pytest.raises(
        TrainingError, match=r"environment .* failed .*RuntimeError: the licence server does not answer"
    ):
        played(tmp_path, fails_in=fails_in)


def test_an_episode_of_the_run_ends_with_the_first_player_that_leaves_if_any_ends_it(tmp_path):
    graph = played(tmp_path, done_condition=any, present={"a": [(0, 12)], "b": [(0, 3), (6, 9)]})
    (agent,) = graph.get_agents().values()
    assert max(row[1] for row in stored(agent)) == 3.0
    assert graph.environments[0].episode_idx >= 20
