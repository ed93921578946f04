"""Atari games in ALE's vector environment, against the ordinary ones."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.architectures.layers import Conv2d
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, RunPhase
from rl_coach.environments import native_atari
from rl_coach.environments.gym_environment import Atari, AtariInputFilter
from rl_coach.filters.filter import NoInputFilter
from rl_coach.graph_managers.building import make_copies
from rl_coach.utils import CoachError
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn

pytest.importorskip("ale_py", minversion="0.12")

ALL = {0: True, 1: True}
WITHOUT_FIRE, WITH_LIVES = "FreewayDeterministic-v4", "BreakoutDeterministic-v4"


@pytest.fixture
def start(in_training):
    """Starts two copies of a game, without no-ops by default, and closes them after the test."""

    def make(level=WITHOUT_FIRE, vectorization="native", input_filter=None, seed=1, **settings):
        parameters = Atari(level)
        changes = {
            "seed": seed,
            "num_environments": 2,
            "vectorization": vectorization,
            "random_initialization_steps": 0,
        }
        for name, value in {**changes, **settings}.items():
            setattr(parameters, name, value)
        return in_training(make_copies(parameters, VisualizationParameters(), input_filter))

    return make


def play(copies, steps, index=0):
    """The responses of one copy to random actions, its first one before them."""
    rng = np.random.default_rng(0)
    yield copies.begin_episodes(ALL)[index]
    for _ in range(steps):
        yield copies.step_all(rng.integers(copies.action_space.num_actions, size=2).tolist())[index]


def outcome(response):
    return response.reward, response.game_over, response.terminated, response.info["lives"]


def lose_a_life(copies):
    """Stand still until the first copy has lost a life."""
    lives = copies.step_all([0, 0])[0].info["lives"]
    for _ in range(500):
        responses = copies.step_all([0, 0])
        if responses[0].info["lives"] < lives:
            return responses
    raise AssertionError("no life was lost")


@pytest.mark.parametrize("level", [WITHOUT_FIRE, "AsterixDeterministic-v4", "FreewayNoFrameskip-v4", "ALE/Asterix-v5"])
def test_whole_screens_are_those_of_ordinary_copies(start, level):
    settings = {"additional_simulator_parameters": {"repeat_action_probability": 0.0}, "input_filter": NoInputFilter()}
    native, sync = start(level, **settings), start(level, "sync", **settings)
    for own, other in zip(play(native, 150), play(sync, 150), strict=True):
        assert outcome(own) == outcome(other)
        if own.game_over:
            return
        np.testing.assert_array_equal(own.next_state["observation"], other.next_state["observation"])


def test_only_the_last_frame_is_seen_if_none_are_merged(start):
    settings = {"max_over_num_frames": 1, "input_filter": NoInputFilter()}
    for own, other in zip(play(start(**settings), 30), play(start(vectorization="sync", **settings), 30), strict=True):
        np.testing.assert_array_equal(own.next_state["observation"], other.next_state["observation"])


def test_grey_images_pass_through_the_filters_and_are_nearly_theirs(start):
    native, sync = start(), start(vectorization="sync")
    filters = [AtariInputFilter(), AtariInputFilter()]
    differences = []
    for own, other in zip(play(native, 60), play(sync, 60), strict=True):
        assert own.next_state["observation"].shape == (84, 84)
        (made,), (expected,) = (one.filter(response) for one, response in zip(filters, (own, other)))
        stacks = [np.asarray(response.next_state["observation"]) for response in (made, expected)]
        assert stacks[0].shape == stacks[1].shape == (84, 84, 4) and stacks[0].dtype == stacks[1].dtype == np.uint8
        differences.append(np.abs(stacks[0].astype(int) - stacks[1]))
    assert 0 < np.max(differences) <= 32
    assert 0 < np.mean(np.array(differences) > 0) < 0.05


def test_other_filters_get_whole_screens(start):
    copies = start(input_filter=NoInputFilter())
    assert copies.begin_episodes(ALL)[0].next_state["observation"].shape == (210, 160, 3)


def test_rewards_are_the_games_own(start):
    rewards = {response.reward for response in play(start("AsterixDeterministic-v4"), 300)}
    assert max(rewards) > 1 and all(type(reward) is float for reward in rewards)


def test_a_lost_life_ends_a_training_episode_but_not_the_game(start):
    copies = start(WITH_LIVES)
    copies.begin_episodes(ALL)
    ended = lose_a_life(copies)[0]
    assert ended.game_over and ended.terminated and ended.info["lives"] == 4
    first = copies.begin_episodes({0: False})[0]
    np.testing.assert_array_equal(first.next_state["observation"], ended.next_state["observation"])
    assert (first.reward, first.game_over, first.info["lives"]) == (0.0, False, 4)
    answers = copies.step_all([0, 0])
    assert answers[0].info["lives"] == 4 and not answers[0].game_over
    frames = answers[1].info["episode_frame_number"]
    assert copies.begin_episodes({0: True})[0].info["lives"] == 5
    assert copies.step_all([0, 0])[1].info["episode_frame_number"] == frames + 4


def test_only_the_games_end_ends_the_episode_if_lives_do_not_count(start):
    copies = start(WITH_LIVES, life_loss_ends_training_episode=False)
    copies.begin_episodes(ALL)
    assert not lose_a_life(copies)[0].game_over
    for step in range(3000):
        answers = copies.step_all([step % 2, 0])
        if answers[0].game_over:
            break
    assert answers[0].terminated and answers[0].info["lives"] == 0
    assert copies.begin_episodes({0: False})[0].info["lives"] == 5


def test_games_begin_with_single_no_ops(start):
    copies = start(random_initialization_steps=7, no_ops_last_single_frames=True)
    frames = [copies.begin_episodes(ALL)[index].info["episode_frame_number"] for _ in range(40) for index in ALL]
    assert set(frames) == set(range(8))


def test_fire_lasts_one_frame(start):
    copies = start(WITH_LIVES)
    assert copies.begin_episodes(ALL)[0].info["episode_frame_number"] == 1


@pytest.mark.parametrize("vectorization", ["native", "sync"])
def test_time_limits_end_games_without_terminating_them(start, vectorization):
    limit = {"max_num_frames_per_episode": 40}
    copies = start(vectorization=vectorization, additional_simulator_parameters=limit)
    for _ in range(2):
        *before, last = play(copies, 10)
        assert not any(response.game_over for response in before)
        assert last.game_over and not last.terminated
        assert copies.begin_episodes({0: False})[0].info["episode_frame_number"] == 0


def test_seeds_make_games_repeatable(start):
    settings = {"random_initialization_steps": 30, "no_ops_last_single_frames": True}
    level = "ALE/Asterix-v5"  # with sticky actions

    def played(seed):
        return [response.next_state["observation"].sum() for response in play(start(level, seed=seed, **settings), 60)]

    assert played(3) == played(3)
    assert played(3) != played(4)
    assert played(2**32 - 1) != played(3)


def test_an_agent_trains_on_its_images_and_is_evaluated_in_an_ordinary_game(tmp_path):
    agent, environment = dqn(), Atari("PongDeterministic-v4")
    network = agent.network_wrappers["main"]
    network.input_embedders_parameters["observation"].scheme = [Conv2d(4, 8, 8)]
    environment.vectorization, environment.random_initialization_steps = "native", 0
    environment.additional_simulator_parameters = {"max_num_frames_per_episode": 60}
    plan = schedule(40, evaluation=1, heatup=20)
    manager = graph(agent, environment, tmp_path, plan, copies=2)
    manager.improve()
    assert manager.get_agent().training_iteration > 0
    stored = manager.get_agent().memory.get_transition(0).state["observation"]
    assert np.asarray(stored).shape == (84, 84, 4)
    assert type(manager.level_managers[0].evaluation_environment).__name__ == "GymEnvironment"
    assert manager.total_steps_counters[RunPhase.TEST][EnvironmentEpisodes] == 1
    manager.close()


def test_games_cannot_be_saved(start):
    copies = start()
    list(play(copies, 3))
    assert copies.get_episode_state() is None
    start().set_state(copies.get_state())


@pytest.mark.parametrize(
    ("level", "settings", "message"),
    [
        (WITHOUT_FIRE, {"random_initialization_steps": 30}, "no_ops_last_single_frames to True, or .* to 0"),
        ("Pong-ramDeterministic-v4", {"default_input_filter": None}, "screens, not 'ram'"),
        ("Pong-v4", {"frame_skip": 1}, "random number of frames: set env_params.frame_skip"),
        (WITHOUT_FIRE, {"max_over_num_frames": 3}, "merges two frames: set env_params.max_over_num_frames"),
    ],
)
def test_what_ale_cannot_do_is_refused(start, level, settings, message):
    with pytest.raises(CoachError, match=f"{message}.*; or set .* to 'sync' or 'async'"):
        start(level, **settings)


def test_an_old_version_is_refused(start, monkeypatch):
    monkeypatch.setattr(native_atari.metadata, "version", lambda name: "0.11.2")
    with pytest.raises(CoachError, match=r"ale-py 0.11.2 does not reset single games: .*'ale-py>=0.12'; or"):
        start()


def test_arguments_that_it_does_not_have(start):
    with pytest.raises(CoachError, match=r"difficulty.*additional_simulator_parameters"):
        start(additional_simulator_parameters={"difficulty": 0})
