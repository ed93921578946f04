"""Agents that play a team: joint transitions, masks, exact continuation, refusals, and a game that needs the mixer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach import make_agent
from rl_coach.agents.mappo_agent import MAPPOAgentParameters
from rl_coach.agents.qmix_agent import QMIXAgentParameters
from rl_coach.agents.vdn_agent import VDNAgentParameters
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.environments.multi_agent_environment import PlayersResponse
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.policy.export import policy_of
from rl_coach.policy.policy import Policy
from rl_coach.presets.TwoStep_QMIX import two_step_game
from rl_coach.schedules import ConstantSchedule
from rl_coach.spaces import BoxActionSpace, ImageObservationSpace, VectorObservationSpace
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.graph_managers.test_multi_agent_graph_manager import learned
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import clipped_ppo, dqn, mappo, qmix, vdn
from tests.zoo.players import Leaving, players_graph

TEAMS = [mappo, vdn, qmix]
TWO_STEPS = "rl_coach.environments.toy_problems.two_step_game:TwoStepGame"


def kept(agent: AgentParameters) -> AgentParameters:
    """The agent with a memory that is never cleaned."""
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(10**6)
    return agent


def transitions(memory: Any) -> list[Any]:
    """All stored transitions, in order."""
    if isinstance(memory, EpisodicExperienceReplay):
        return list(memory.get_all_complete_episodes_transitions())
    return [memory.get_transition(index) for index in range(memory.num_transitions())]


class Log:
    """All answers of an environment and all actions, in order."""

    def __init__(self, environment: Any):
        self.steps: list[tuple[Any, PlayersResponse]] = []
        take, respond = environment._take_actions, environment._respond

        def taken(actions: dict[str, Any]) -> None:
            self.steps.append((dict(actions), None))
            take(actions)

        def responded() -> PlayersResponse:
            response = respond()
            if self.steps and self.steps[-1][1] is None:
                self.steps[-1] = (self.steps[-1][0], response)
            else:
                self.steps.append((None, response))
            return response

        environment._take_actions, environment._respond = taken, responded


def scripted(make: Any, directory: Any, done_condition: Any = all, **settings: Any) -> tuple[Any, Log]:
    """The agent of a team after a short run among players that come and go, and the log of what happened."""
    pytest.importorskip("pettingzoo", reason="PettingZoo is not installed: pip install 'rl_coach[multi-agent]'")
    environment = PettingZooEnvironmentParameters("tests.zoo.parallel_players:Scripted")
    environment.additional_simulator_parameters = settings
    manager = players_graph(
        kept(make()), environment, directory, schedule(48, heatup=24), done_condition=done_condition
    )
    log = Log(manager.environments[0])
    manager.improve()
    return manager.get_agents()["agent"], log


@pytest.mark.parametrize("make", TEAMS)
@pytest.mark.parametrize(
    ("mask", "stays"),
    [
        (None, [(0, 12)]), ([0, 1], [(0, 12)]), (None, [(0, 3), (6, 9)]), ([0, 1], [(0, 3), (6, 9)]),
        (None, [(2, 5), (7, 12)]),
    ],
    ids=str,
)  # fmt: skip
def test_joint_transitions_are_what_the_environment_tells(make, mask, stays, tmp_path):
    agent, log = scripted(make, tmp_path, present={"a": [(0, 12)], "b": stays}, mask=mask)
    rows, row = transitions(agent.memory), 0
    for (_, before), (actions, after) in zip(log.steps, log.steps[1:]):
        if actions is None:  # a reset
            continue
        stored = rows[row]
        row += 1
        for state, response in ((stored.state, before), (stored.next_state, after)):
            for number, player in enumerate(("a", "b")):
                acts = player in response.to_act
                assert state["present"][number] == acts or response.game_over
                told = response.answers[player].next_state["observation"] if player in response.answers else [0, 0]
                np.testing.assert_array_equal(state["observation"][number], [*told, *np.eye(2)[number]])
                if not response.game_over:
                    np.testing.assert_array_equal(state["action_mask"][number], (mask or [1, 1]) if acts else [1, 0])
            np.testing.assert_array_equal(state["state"], state["observation"][:, :2].ravel())
        assert {player: stored.action[number] for number, player in enumerate("ab") if player in actions} == actions
        assert stored.reward == sum(answer.reward for answer in after.answers.values())
        assert stored.game_over == stored.terminated == after.game_over
    assert row == len(rows) == 72
    assert agent.clock.steps == 72 and agent.clock.episodes == 6


@pytest.mark.parametrize("make", TEAMS)
def test_a_team_whose_episode_is_cut_is_bootstrapped_with_the_players_that_are_left(make, tmp_path):
    agent, _ = scripted(make, tmp_path, done_condition=any, present={"a": [(0, 12)], "b": [(0, 3)]})
    last = transitions(agent.memory)[2]
    assert last.game_over and not last.terminated
    assert last.next_state["present"].tolist() == [1, 0]
    assert last.next_state["action_mask"].tolist() == [[1, 1], [1, 0]]


def test_a_team_begins_another_episode_when_a_player_comes_back_after_all_have_left(tmp_path):
    present = {"a": [(0, 12)], "b": [(0, 3), (6, 9)], "c": [(0, 2), (6, 8)]}
    environment = PettingZooEnvironmentParameters("tests.zoo.parallel_players:Scripted")
    environment.additional_simulator_parameters = {"present": present, "actions": (2, 2, 2)}
    agents = {"alone": dqn(), "team": kept(vdn())}
    seats = {"a": "alone", "b": "team", "c": "team"}
    manager = players_graph(agents, environment, tmp_path, schedule(24), agent_of=seats, done_condition=all)
    manager.improve()
    rows = transitions(manager.get_agents()["team"].memory)
    assert [row.state["observation"][0, 0] for row in rows] == [0, 1, 2, 6, 7, 8] * 2
    assert [row.state["present"].tolist() for row in rows[:3]] == [[1, 1], [1, 1], [1, 0]]
    assert [bool(row.terminated) for row in rows] == [False, False, True] * 4
    assert [row.reward for row in rows] == [2, 2, 1] * 4
    assert manager.get_agents()["alone"].clock.steps == 24


@pytest.mark.parametrize("make", TEAMS)
def test_batches_of_many_rows_are_learned_from(make, tmp_path):
    agent = make()
    for network in agent.network_wrappers.values():
        network.batch_size = 200  # JAX has another form for 512 rows, and there is a row for each player
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(240)
    manager = players_graph(agent, Leaving, tmp_path, schedule(240), done_condition=any)
    manager.improve()
    assert manager.get_agents()["agent"].clock.updates > 0


@pytest.mark.parametrize("make", TEAMS)
def test_the_exported_policy_acts_as_the_evaluated_agent(make, tmp_path):
    manager = players_graph(make(), Leaving, tmp_path / "run", schedule(80, heatup=40))
    manager.improve()
    agent = manager.get_agents()["agent"]
    for name, data in policy_of(agent, {"framework": FRAMEWORK.name}).items():
        (tmp_path / name).write_bytes(data)
    policy, rng, actions = Policy.load(tmp_path), np.random.default_rng(0), set()
    agent.phase = RunPhase.TEST
    for _ in range(10):
        state = {
            "observation": rng.normal(size=(3, 4)).astype(np.float32),
            "present": np.array([1, 1, 0], np.float32), "action_mask": np.array([[1, 1], [1, 1], [1, 0]], np.float32),
        }  # fmt: skip
        action = agent.choose_action(state).action
        given = {**state, "action_mask": state["action_mask"].ravel()}
        np.testing.assert_array_equal(policy.act(given, deterministic=True), action)
        assert action[2] == 0
        actions.add(tuple(action))
    assert len(actions) > 1


def test_each_player_explores_by_itself(tmp_path):
    agent_params = kept(vdn())
    agent_params.exploration.epsilon_schedule = ConstantSchedule(0.5)
    manager = players_graph(agent_params, Leaving, tmp_path, schedule(20))
    policy = manager.get_agents()["agent"].exploration_policy
    values = np.tile([1.0, 0.0], (3, 1))
    actions = np.array([policy.get_action(values, np.ones((3, 2)))[0] for _ in range(4000)])
    np.testing.assert_allclose(actions.mean(axis=0), 0.25, atol=0.04)
    both = (actions[:, 0] * actions[:, 1]).mean()
    assert both == pytest.approx(1 / 16, abs=0.02), "a random action of one player says nothing about the others"


@pytest.mark.parametrize("make", TEAMS)
def test_a_run_goes_on_exactly_in_the_middle_of_an_episode(make, tmp_path):
    def at(steps: int) -> Any:
        return schedule(steps, heatup=41, evaluate_every=EnvironmentSteps(50), evaluation=1)

    def run(steps: int, name: str, **settings: Any) -> Any:
        manager = players_graph(make(), Leaving, tmp_path / name, at(steps), done_condition=all, **settings)
        manager.improve()
        return manager

    whole, first = run(123, "whole"), run(63, "parts")
    second = run(123, "parts", seed=9, restore=first.last_checkpoint_path)
    agent = whole.get_agents()["agent"]
    assert agent.clock.updates > 0
    assert learned(second.get_agents()["agent"]) == learned(agent)


def test_the_central_state_is_the_one_of_the_environment(tmp_path):
    manager = players_graph(kept(qmix()), PettingZooEnvironmentParameters(TWO_STEPS), tmp_path, schedule(8))
    manager.improve()
    rows = transitions(manager.get_agents()["agent"].memory)
    assert all(row.state["state"].shape == (3,) for row in rows)
    assert all(row.state["state"][0] == 1 for row in rows[::2])
    assert [int(row.next_state["state"].argmax()) for row in rows[::2]] == [1 + row.action[0] for row in rows[::2]]


@pytest.mark.parametrize("kind, found", [(VDNAgentParameters, 7.0), (QMIXAgentParameters, 8.0)])
def test_qmix_finds_the_action_that_a_sum_of_values_hides(kind, found, tmp_path):
    environment = PettingZooEnvironmentParameters(TWO_STEPS)
    agent_params = kind()
    two_step_game(agent_params, environment)
    for network in agent_params.network_wrappers.values():
        network.learning_rate = 0.002
    manager = players_graph(agent_params, environment, tmp_path, schedule(4000, heatup=200, evaluation=1))
    manager.improve()
    assert manager.evaluation_rewards[-1] == found


class Continuous(Leaving):
    """Players with continuous actions."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.action_space = [BoxActionSpace(2, -1.0, 1.0) for _ in self.lengths]


class Pictures(Leaving):
    """Players that see images."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.state_space.sub_spaces["observation"] = ImageObservationSpace((8, 8, 3), 255)


class Different(Leaving):
    """Players that see different things."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        spaces = [type(self.state_space)({"observation": VectorObservationSpace(1 + i)}) for i in range(3)]
        self.state_space = spaces


class InTurn(Leaving):
    """Players that take turns."""

    takes_turns = True


@pytest.mark.parametrize("make", TEAMS)
@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (Continuous, "agent 'agent' plays a team and needs players with discrete actions, not BoxActionSpace: choose"),
        (Pictures, "agent 'agent' plays a team and needs players with vectors as observations, not images: set env_p"),
        (Different, "agent 'agent' cannot play both 'agent_0' and 'agent_1', which have different spaces (observation"),
        (InTurn, "agent 'agent' needs players that act at the same time, but the players of level 'InTurn' take turns"),
    ],
)
def test_players_that_cannot_be_a_team_are_refused(make, environment, message, tmp_path):
    with pytest.raises(CoachError) as refusal:
        players_graph(make(), environment, tmp_path)
    assert message in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["MAPPO", "VDN", "QMIX"])
def test_other_loops_refuse_a_team(name, tmp_path):
    with pytest.raises(
        CoachError, match=f"it plays several players; use it in a MultiAgentGraphManager.*Spread_{name}"
    ):
        make_agent(name, "CartPole-v1")
    parameters = {"MAPPO": MAPPOAgentParameters, "VDN": VDNAgentParameters, "QMIX": QMIXAgentParameters}[name]()
    with pytest.raises(CoachError, match="agent 'agent' plays a team of players: use it in a MultiAgentGraphManager"):
        graph(parameters, Bandit, tmp_path)


def test_independent_learners_stay_independent(tmp_path):
    manager = players_graph(clipped_ppo(), Leaving, tmp_path, schedule(20), done_condition=all)
    manager.improve()
    assert manager.get_agents()["agent"].parallel is not None
    assert not manager.environments[0].tells_central_state
