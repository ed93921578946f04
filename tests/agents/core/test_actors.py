"""Episodes in several copies of an environment, without an agent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from rl_coach.agents.core.actor import Actor
from rl_coach.agents.core.actors import Actors
from rl_coach.agents.core.episode import EpisodeInProgress
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.exploration_policies.greedy import Greedy
from rl_coach.filters.filter import NoInputFilter, NoOutputFilter
from rl_coach.spaces import DiscreteActionSpace


class Player:
    """Counts in each episode."""

    def __init__(self) -> None:
        self.ap, self.episode_class = SimpleNamespace(algorithm=AlgorithmParameters()), EpisodeInProgress
        parts = NoInputFilter(), NoOutputFilter(), Greedy(DiscreteActionSpace(2))
        self.actor = Actor(self, episode(0), *parts)
        self.count = 0
        self.seen: list[int] = []
        self.is_recurrent, self.networks = False, {}
        self.episode_state = SimpleNamespace(names={"count"}, require_declared=lambda made: None)
        self.asked: list[list[Any]] = []

    def put_episode_aside(self) -> EpisodeInProgress:
        return self.actor.put_aside()

    def take_up_episode(self, taken: EpisodeInProgress, is_restored: bool = False) -> None:
        self.actor.take_up(taken)

    def predict_states(self, states: list[Any]) -> list[Any]:
        self.asked.append(states)
        return [state["n"] * 10 for state in states]


def episode(number: int) -> EpisodeInProgress:
    made = EpisodeInProgress(AlgorithmParameters())
    made.curr_state = {"n": number}
    return made


def with_states(actors: Actors) -> Actors:
    for number, made in enumerate(actors.episodes):
        made.curr_state = {"n": number}
    return actors


def three() -> tuple[Player, Actors]:
    player = Player()
    return player, with_states(Actors(player, 3))


def test_each_environment_keeps_what_belongs_to_its_episode():
    player, parallel = three()
    assert parallel.count == 3 and parallel.index == 0
    for index in parallel:
        player.count += index + 1
    for _ in parallel:
        player.count += 10
    assert [player.count for _ in parallel] == [11, 12, 13]
    parallel.enter(1)
    assert parallel.index == 1 and player.actor.episode.curr_state == {"n": 1}


def test_an_attribute_that_is_changed_in_place_belongs_to_one_episode():
    player = Player()
    player.episode_state.names = {"seen"}
    player.seen = []
    actors = Actors(player, 3)
    for _ in range(2):
        for index in actors:
            player.seen.append(index)
    assert [player.seen for _ in actors] == [[0, 0], [1, 1], [2, 2]]


def test_a_new_episode_of_the_present_environment_counts():
    player, parallel = three()
    parallel.enter(2)
    player.actor.episode = episode(7)
    assert [one.curr_state["n"] for one in parallel.episodes] == [0, 1, 7]
    assert list(parallel) == [0, 1, 2]
    assert [one.curr_state["n"] for one in parallel.episodes] == [0, 1, 7]


def test_all_episodes_are_put_aside_and_taken_up():
    player, parallel = three()
    for index in parallel:
        player.count = index + 5
    aside = parallel.put_aside()
    player.actor.episode, player.count = episode(9), 99
    parallel.take_up(aside)
    assert parallel.index == 0 and player.count == 5
    assert [player.count for _ in parallel] == [5, 6, 7]


def test_networks_are_asked_once_for_all():
    player, parallel = three()
    assert not parallel.are_asked_together
    parallel.ask_together({index: one.curr_state for index, one in enumerate(parallel.episodes)})
    assert parallel.are_asked_together
    assert [(parallel.state["n"], parallel.prediction) for _ in parallel] == [(0, 0), (1, 10), (2, 20)]
    assert player.asked == [[{"n": 0}, {"n": 1}, {"n": 2}]]
    parallel.ask_together({2: {"n": 4}})
    parallel.enter(2)
    assert parallel.prediction == 40
    parallel.ask_together({})
    assert not parallel.are_asked_together


def test_actors_are_asked_together_only_while_they_act():
    player: Any
    player, parallel = three()
    player.acts_by_networks, player.run_pre_network_filter_for_inference = True, lambda state: state
    player.act = lambda: (parallel.state["n"], parallel.prediction)
    assert parallel.act([2, 0]) == {2: (2, 20), 0: (0, 0)}
    assert player.asked == [[{"n": 2}, {"n": 0}]] and not parallel.are_asked_together


def test_a_new_episode_keeps_the_goal_of_the_level_above():
    player: Any
    player, _ = three()
    player.signals = SimpleNamespace(begin_episode=lambda episodes, writes_steps: None)
    player.clock, player.writes_steps = SimpleNamespace(episodes=0), False
    before = player.actor.episode
    before.incoming_goal, before.is_tested, before.steps = np.array([2.0]), True, 3
    player.actor.begin()
    after = player.actor.episode
    assert after is not before and after.steps == 0
    assert after.incoming_goal is before.incoming_goal and after.is_tested
