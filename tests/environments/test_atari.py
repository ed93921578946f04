from __future__ import annotations

import logging

import numpy as np
import pytest

from rl_coach.core_types import RunPhase
from rl_coach.environments.environment import SingleLevelSelection
from rl_coach.environments.gym_environment import Atari, AtariInputFilter, atari_deterministic_v4
from rl_coach.spaces import ImageObservationSpace

pytest.importorskip("ale_py")


def parameters_of(game="breakout", **changes):
    level = SingleLevelSelection(atari_deterministic_v4)
    level.select(game)
    parameters = Atari(level)
    for name, value in changes.items():
        setattr(parameters, name, value)
    return parameters


def frame_number(environment):
    return environment.env.unwrapped.ale.getEpisodeFrameNumber()


def lose_a_life(environment):
    while not environment.step(0).info["lives"] < 5:
        assert environment.current_episode_steps_counter < 500
    return environment.last_env_response


def test_an_action_lasts_four_frames(make_environment):
    environment = make_environment(parameters_of("pong"), seed=1)
    environment.reset_internal_state(True)
    before = frame_number(environment)
    environment.step(2)
    assert frame_number(environment) == before + 4


def test_observations_are_coloured_images(make_environment):
    environment = make_environment(parameters_of("pong"), seed=1)
    assert isinstance(environment.state_space["observation"], ImageObservationSpace)
    assert environment.step(0).next_state["observation"].shape == (210, 160, 3)
    assert environment.action_space.get_description(1) == "FIRE"


def test_games_begin_with_a_random_number_of_no_ops(make_environment):
    environment = make_environment(parameters_of("pong"), seed=1)
    beginnings = []
    for _ in range(12):
        environment.reset_internal_state(force_environment_reset=True)
        beginnings.append(frame_number(environment) // 4 - 1)
    assert len(set(beginnings)) > 3
    assert all(0 <= steps <= 30 for steps in beginnings)
    assert environment.current_episode_steps_counter == 0


@pytest.mark.parametrize(("are_frames", "frames_of_each"), [(False, 4), (True, 1)])
def test_no_ops_last_as_long_as_actions_or_single_frames(make_environment, are_frames, frames_of_each):
    parameters = parameters_of("pong", no_ops_last_single_frames=are_frames, random_initialization_steps=7)
    environment = make_environment(parameters, seed=1)
    frames = []
    for _ in range(20):
        environment.reset_internal_state(force_environment_reset=True)
        frames.append(frame_number(environment) - 4)  # the last four are those of FIRE
        assert environment.state["observation"].shape == (210, 160, 3)
    assert set(frames) <= {frames_of_each * count for count in range(8)}
    assert len(set(frames)) > 4 and max(frames) > 3 * frames_of_each
    before = frame_number(environment)
    environment.step(0)
    assert frame_number(environment) == before + 4


def test_a_lost_life_ends_a_training_episode_but_not_the_game(make_environment):
    environment = make_environment(parameters_of(random_initialization_steps=0), seed=1)
    environment.phase = RunPhase.TRAIN
    environment.reset_internal_state(True)
    response = lose_a_life(environment)
    assert response.game_over and response.terminated
    environment.reset_internal_state()
    assert environment.env.unwrapped.ale.lives() == 4
    assert not environment.step(0).game_over
    environment.reset_internal_state(force_environment_reset=True)
    assert environment.env.unwrapped.ale.lives() == 5


@pytest.mark.parametrize(("phase", "ends"), [(RunPhase.TEST, True), (RunPhase.TRAIN, False)])
def test_elsewhere_only_the_games_end_ends_the_episode(make_environment, phase, ends):
    parameters = parameters_of(random_initialization_steps=0, life_loss_ends_training_episode=ends)
    environment = make_environment(parameters, seed=1)
    environment.phase = phase
    environment.reset_internal_state(True)
    assert not lose_a_life(environment).game_over
    steps = 0
    while not (response := environment.step(0)).game_over:
        steps += 1
        assert steps < 1000, "FIRE was not pressed after a lost life"
    assert response.info["lives"] == 0
    environment.reset_internal_state()
    assert environment.env.unwrapped.ale.lives() == 5


def test_one_seed_gives_one_game(make_environment):
    def play(seed):
        environment = make_environment(parameters_of("pong"), seed=seed)
        environment.reset_internal_state()
        return [environment.step(environment.get_random_action()).next_state["observation"].sum() for _ in range(40)]

    assert play(1) == play(1)
    assert play(1) != play(2)


@pytest.mark.parametrize("level", ["BreakoutDeterministic-v4", "MontezumaRevenge-v0"])
def test_a_restored_game_goes_on_with_the_same_episodes(make_environment, level):
    def play(environment):
        environment.reset_internal_state(force_environment_reset=True)
        return [environment.step(environment.get_random_action()).next_state["observation"] for _ in range(30)]

    environment, restored = (make_environment(Atari(level), seed=seed) for seed in (1, 2))
    play(environment)
    restored.set_state(environment.get_state())
    np.testing.assert_array_equal(play(environment), play(restored))


def test_the_lasers_of_space_invaders_are_seen(make_environment, caplog):
    with caplog.at_level(logging.WARNING, logger="rl_coach"):
        environment = make_environment(parameters_of("space_invaders"))
    assert environment.frame_skip == environment.env.frameskip == 3
    assert "3 frames" in caplog.text


def test_the_input_filter_stacks_small_grey_images(make_environment):
    environment = make_environment(parameters_of("pong"), seed=1)
    input_filter = AtariInputFilter()
    space = environment.state_space["observation"]
    assert tuple(input_filter.get_filtered_observation_space("observation", space).shape) == (84, 84, 4)
    response = environment.step(0)
    response.reward = 7.0
    filtered = input_filter.filter(response)[0]
    assert filtered.reward == 1
    image = np.asarray(filtered.next_state["observation"])
    assert (image.shape, image.dtype) == ((84, 84, 4), np.uint8)
    assert response.next_state["observation"].shape == (210, 160, 3)
