"""Self-play: a learner against past policies of its own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.self_play import ELO_STEP, FrozenPlayer, SelfPlay, SelfPlayParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, TrainingSteps
from rl_coach.environments.observation_space_type import ObservationSpaceType
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters
from rl_coach.utils import CoachError
from tests.zoo import parameters
from tests.zoo.graphs import schedule
from tests.zoo.players import players_graph
from tests.zoo.states import differences, leaves

PLAYERS = ("player_1", "player_2")


def tictactoe() -> PettingZooEnvironmentParameters:
    pytest.importorskip("pettingzoo", reason="PettingZoo is not installed: pip install 'rl_coach[multi-agent]'")
    environment = PettingZooEnvironmentParameters("pettingzoo.classic.tictactoe_v3")
    environment.observation_space_type = ObservationSpaceType.Vector
    return environment


def game(directory: Any, steps: Any = 400, agent: Any = None, **settings: Any) -> Any:
    own = {name: settings.pop(name) for name in ("learner", "every", "pool_size", "newest_share") if name in settings}
    own.setdefault("every", TrainingSteps(20))
    return players_graph(
        agent or parameters.dqn(), tictactoe(), directory, schedule(steps, heatup=50),
        self_play=SelfPlayParameters(**own), **settings,
    )  # fmt: skip


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Two states, without the policies' files: TensorFlow numbers the layers of all networks of a process."""
    first, second = ({path: leaf for path, leaf in leaves(state) if "/files/" not in path} for state in (one, other))
    return not differences(first, second)


def test_the_learner_plays_each_side_and_opponents_come_from_the_pool(tmp_path):
    manager = game(tmp_path, every=TrainingSteps(10), pool_size=3)
    players = manager.level_managers[0].agent
    seats: Counter[str] = Counter()
    opponents: Counter[Any] = Counter()
    begin = players.reset_internal_state

    def count() -> None:
        begin()
        seats.update(players.played_by("agent_0"))
        opponents.update(one.member for one in players._frozen.values())

    players.reset_internal_state = count
    manager.improve()
    games = sum(seats.values())
    assert set(seats) == set(PLAYERS) and abs(seats["player_1"] - games / 2) < 3 * np.sqrt(games) / 2
    frozen = manager.get_agents()["agent_0"].clock.updates // 10
    assert frozen >= 8 and set(opponents) <= {None, *range(frozen)}
    assert opponents[None] > 0 and len(opponents) > 5
    pool = [member["number"] for member in players.self_play.get_state()["pool"]]
    assert pool[-3:] == [frozen - 3, frozen - 2, frozen - 1] and len(pool) <= 4, "the oldest goes between two games"


def test_only_the_learner_learns_and_only_from_its_own_steps(tmp_path):
    manager = game(tmp_path)
    manager.improve()
    agent = manager.get_agents()["agent_0"]
    steps = sum(manager.total_steps_counters[phase][EnvironmentSteps] for phase in (RunPhase.HEATUP, RunPhase.TRAIN))
    assert list(manager.get_agents()) == ["agent_0"] and 0.4 < agent.clock.steps / steps < 0.6
    rewards = {agent.memory.get_transition(i).reward for i in range(agent.memory.num_transitions())}
    assert rewards <= {-1.0, 0.0, 1.0}


def test_a_frozen_policy_stays_as_it_was(tmp_path):
    manager = game(tmp_path, every=EnvironmentEpisodes(5), newest_share=1.0)
    self_play = manager.level_managers[0].agent.self_play
    manager.train_and_act(EnvironmentSteps(100))
    first = self_play.get_state()["pool"][0]["files"]["model.onnx"].copy()
    manager.train_and_act(EnvironmentSteps(200))
    again = next(member for member in self_play.get_state()["pool"] if member["number"] == 0)
    assert np.array_equal(first, again["files"]["model.onnx"])
    assert not np.array_equal(first, self_play.get_state()["pool"][-1]["files"]["model.onnx"])


def test_ratings_are_elos():
    self_play = SelfPlay(SelfPlayParameters(), np.random.SeedSequence(0))

    class Signal:
        samples: list[float] = []

        def add_sample(self, value: float) -> None:
            self.samples.append(value)

    class Learner:
        def register_signal(self, name: str) -> Signal:
            assert name == "Elo"
            return Signal()

    self_play.connect(Learner())
    at_random = [FrozenPlayer(None)]
    self_play.record(1.0, at_random, RunPhase.TRAIN)  # expected 1/2
    assert self_play.rating == ELO_STEP / 2
    self_play.record(0.0, at_random, RunPhase.TRAIN)
    expected = 1 / (1 + 10 ** (-8 / 400))
    assert self_play.rating == pytest.approx(8 + 16 * (0.5 - expected), abs=1e-12)
    before = self_play.rating
    self_play.record(-1.0, at_random, RunPhase.TEST)
    assert self_play.rating == before and Signal.samples == [8.0, before]


def test_a_run_goes_on_exactly_in_the_middle_of_a_game(tmp_path):
    whole = game(tmp_path / "whole", 301)
    whole.improve()
    first = game(tmp_path / "parts", 153)
    first.improve()
    assert not first.reset_required, "saved in the middle of a game"
    second = game(tmp_path / "parts", 301, seed=9, restore=first.last_checkpoint_path)
    second.improve()
    found, expected = (one.level_managers[0].agent.get_state() for one in (second, whole))
    for name in ("networks", "memory", "exploration", "rng", "clock"):
        assert same(found["agents"]["agent_0"][name], expected["agents"]["agent_0"][name]), name
    assert same(found["self_play"], expected["self_play"])


@pytest.mark.parametrize(
    "settings",
    [{}, {"pool_size": 1, "every": EnvironmentSteps(1)}, {"every": TrainingSteps(10**6)}],
    ids=["pool", "small pool", "random opponents"],
)
def test_an_evaluation_in_the_middle_of_a_game_changes_nothing(tmp_path, settings):
    found = []
    for evaluates in (False, True):
        manager = game(tmp_path / str(evaluates), 10**6, newest_share=0.0, **settings)
        manager.train_and_act(EnvironmentSteps(152))
        for _ in range(12):
            manager.train_and_act(EnvironmentSteps(1))
            if evaluates:
                manager.evaluate(EnvironmentEpisodes(1))
        manager.train_and_act(EnvironmentSteps(100))
        state = manager.level_managers[0].agent.get_state()
        learned = {name: state["agents"]["agent_0"][name] for name in ("networks", "memory", "clock")}
        found.append({"self_play": state["self_play"], **learned})
    assert same(found[0], found[1])


def test_an_unknown_learner_is_refused(tmp_path):
    with pytest.raises(CoachError, match=r"self_play\.learner: no agent 'agent_7'; did you mean 'agent_0'"):
        game(tmp_path, learner="agent_7")
