from __future__ import annotations

import numpy as np
import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.checkpoint import load_checkpoint, save_checkpoint
from rl_coach.core_types import RunPhase
from rl_coach.environments.episode_record import EpisodeRecord, actions_of
from rl_coach.environments.gym_environment import GymEnvironment


def make(level, seed=1, **settings):
    environment = GymEnvironment(
        level=level, seed=seed, frame_skip=1, visualization_parameters=VisualizationParameters(), **settings
    )
    environment.phase = RunPhase.TRAIN
    return environment


def play(environment, steps):
    """Random actions, with new episodes as they come. :return: all that is seen of it"""
    seen = []
    for _ in range(steps):
        if environment.done:
            environment.reset_internal_state()
        response = environment.step(environment.get_random_action())
        seen.append((response.next_state["observation"].copy(), response.reward, response.game_over))
    return seen


@pytest.mark.parametrize("level, steps", [("CartPole-v1", 47), ("Pendulum-v1", 230), ("MountainCar-v0", 30)])
def test_an_episode_goes_on_where_it_was_saved(tmp_path, level, steps):
    environment = make(level)
    environment.reset_internal_state(True)
    play(environment, steps)
    while environment.done:
        play(environment, 1)
    path = save_checkpoint(tmp_path, "0_Step-0.ckpt", {"episode": environment.get_episode_state()}, {})
    restored = make(level, seed=99)
    assert restored.set_episode_state(load_checkpoint(path)[0]["episode"])
    assert restored.total_reward_in_current_episode == environment.total_reward_in_current_episode
    assert restored.episode_idx == environment.episode_idx
    for one, other in zip(play(environment, 300), play(restored, 300)):
        np.testing.assert_array_equal(one[0], other[0])
        assert one[1:] == other[1:]


def test_actions_keep_their_type_where_heatup_ends_within_the_episode(tmp_path):
    record = EpisodeRecord()
    record.begin({}, False, RunPhase.TRAIN)
    record.actions = [np.full(2, 0.1, kind) for kind in (np.float64, np.float64, np.float32, np.float64)]
    path = save_checkpoint(tmp_path, "0_Step-0.ckpt", {"record": record.get_state()}, {})
    restored = actions_of(load_checkpoint(path)[0]["record"])
    assert [(a.dtype, a.tobytes()) for a in restored] == [(a.dtype, a.tobytes()) for a in record.actions]


@pytest.mark.parametrize("actions", [[[0.5, -1.0], [0.25, 1.0]], [[1, 2], [3, 4]]], ids=["numbers", "integers"])
def test_lists_of_numbers_stay_lists(tmp_path, actions):
    record = EpisodeRecord()
    record.begin({}, False, RunPhase.TRAIN)
    record.actions = actions
    path = save_checkpoint(tmp_path, "0_Step-0.ckpt", {"record": record.get_state()}, {})
    restored = actions_of(load_checkpoint(path)[0]["record"])
    assert restored == actions and type(restored[0]) is list and type(restored[0][0]) is type(actions[0][0])


@pytest.mark.parametrize("action", [["left"], [[1.0], [1.0, 2.0]], "left", None])
def test_what_is_no_action_of_numbers_is_not_saved(action):
    record = EpisodeRecord()
    record.begin({}, False, RunPhase.TRAIN)
    record.actions = [action]
    assert record.get_state() is None


def test_an_atari_game_goes_on_from_the_middle_of_its_second_life():
    pytest.importorskip("ale_py")
    environment = make("BreakoutDeterministic-v4")
    environment.reset_internal_state(True)
    lives = environment.info["lives"]
    while environment.info["lives"] == lives:
        play(environment, 1)
    play(environment, 20)
    restored = make("BreakoutDeterministic-v4", seed=99)
    assert restored.set_episode_state(environment.get_episode_state())
    for one, other in zip(play(environment, 400), play(restored, 400)):
        np.testing.assert_array_equal(one[0], other[0])
        assert one[1:] == other[1:]


def test_a_simulator_that_does_not_repeat_is_found_out():
    environment = make("CartPole-v1")
    environment.reset_internal_state(True)
    environment.step(0)
    state = environment.get_episode_state()
    state["start"]["next_seed"] = 2
    assert not make("CartPole-v1").set_episode_state(state)


def test_what_was_not_recorded_from_its_beginning_is_not_saved():
    environment = make("CartPole-v1")
    environment.step(0)
    assert environment.get_episode_state() is None
