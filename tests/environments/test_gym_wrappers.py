from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from rl_coach.environments.gym_wrappers import MaxOverFramesAndFrameskipEnvWrapper, OldApiEnvironment, present_space


class Frames(gym.Env):
    """Frame t shows t in pixel t; the reward of a frame is its number; the episode ends with frame ``last``."""

    def __init__(self, last):
        self.observation_space = gym.spaces.Box(0, 255, (12,), np.uint8)
        self.action_space = gym.spaces.Discrete(2)
        self.last = last

    def reset(self, *, seed=None, options=None):
        self.frame = 0
        return np.zeros(12, np.uint8), {}

    def step(self, action):
        self.frame += 1
        observation = np.eye(12, dtype=np.uint8)[self.frame] * self.frame
        return observation, float(self.frame), self.frame == self.last, False, {}


@pytest.mark.parametrize(
    ("frameskip", "max_over", "seen"), [(4, 2, [3, 4]), (4, 1, [4]), (1, 1, [1]), (3, 5, [1, 2, 3])]
)
def test_the_last_frames_are_merged_and_all_rewards_summed(frameskip, max_over, seen):
    env = MaxOverFramesAndFrameskipEnvWrapper(Frames(12), frameskip, max_over)
    env.reset()
    observation, reward, terminated, _, _ = env.step(0)
    assert observation[observation > 0].tolist() == seen
    assert reward == sum(range(1, frameskip + 1))
    assert not terminated


def test_frames_in_one_array_are_merged():
    class OneArray(Frames):
        screen = np.zeros(12, np.uint8)

        def step(self, action):
            self.screen[:], *rest = super().step(action)
            return self.screen, *rest

    env = MaxOverFramesAndFrameskipEnvWrapper(OneArray(12), 4, 3)
    env.reset()
    assert np.flatnonzero(env.step(0)[0]).tolist() == [2, 3, 4]


@pytest.mark.parametrize(("last", "seen"), [(1, [1]), (2, [2]), (3, [3]), (4, [3, 4])])
def test_skipping_stops_where_the_episode_ends(last, seen):
    env = MaxOverFramesAndFrameskipEnvWrapper(Frames(last), 4, 2)
    env.reset()
    observation, reward, terminated, _, _ = env.step(0)
    assert observation[observation > 0].tolist() == seen
    assert reward == sum(range(1, last + 1))
    assert terminated


def test_unread_atari_frames_count_like_read_ones():
    def play(env, skip):
        frames, rewards = [], 0.0
        env.reset(seed=1)
        for action in [1, 2, 3, 0, 1, 5] * 20:
            for _ in range(skip):
                observation, reward, _, _, info = env.step(action)
                rewards += reward
            frames.append(observation)
        return np.stack(frames), rewards, info["frame_number"]

    gym.register_envs(pytest.importorskip("ale_py"))
    options = {"frameskip": 1, "repeat_action_probability": 0.0, "disable_env_checker": True}
    skipping = MaxOverFramesAndFrameskipEnvWrapper(gym.make("ALE/Pong-v5", **options).unwrapped, 4, 1)
    assert skipping._blind_step is not None
    single, skipped = play(gym.make("ALE/Pong-v5", **options).unwrapped, 4), play(skipping, 1)
    np.testing.assert_array_equal(skipped[0], single[0])
    assert skipped[1:] == single[1:]


class OldEnvironment:
    """Written for gym 0.21, from which it takes nothing here."""

    class Box:
        low, high, dtype = np.zeros(2, np.float32), np.ones(2, np.float32), np.dtype(np.float32)

    class Discrete:
        n = 2

    observation_space, action_space = Box(), Discrete()

    def seed(self, seed=None):
        self.seeded_with = seed
        return [seed]

    def reset(self):
        return np.zeros(2, np.float32)

    def step(self, action):
        return np.ones(2, np.float32), 1.0, action > 0, {"TimeLimit.truncated": action == 2}

    def render(self, mode="human"):
        return mode


def test_an_environment_of_the_older_interface_speaks_the_present_one():
    old = OldEnvironment()
    env = OldApiEnvironment(old)
    assert env.observation_space == gym.spaces.Box(0, 1, (2,), np.float32)
    assert env.action_space == gym.spaces.Discrete(2)
    observation, info = env.reset(seed=7)
    assert (observation.tolist(), info, old.seeded_with) == ([0, 0], {}, 7)
    assert env.step(0)[2:4] == (False, False)
    assert env.step(1)[2:4] == (True, False)
    assert env.step(2)[2:4] == (False, True)
    assert env.render() == "rgb_array"
    assert env.unwrapped is old
    env.close()


def test_an_environment_of_the_present_interface_needs_no_adapter():
    env = OldApiEnvironment(Frames(5))
    env.reset(seed=1)
    assert env.step(0)[1] == 1.0
    assert not env.is_needed


class NoInfos(Frames):
    def reset(self, **given):
        return super().reset(**given)[0], None

    def step(self, action):
        return (*super().step(action)[:4], None)


def test_an_info_of_none_is_an_empty_one():
    env = OldApiEnvironment(NoInfos(5))
    assert env.reset(seed=1)[1] == {} and env.step(0)[4] == {}
    assert env.is_needed


def test_older_spaces_are_told_by_their_names():
    class Dict:
        spaces = {"a": OldEnvironment.Discrete(), "b": OldEnvironment.Box()}

    assert present_space(Dict())["a"] == gym.spaces.Discrete(2)
    space = gym.spaces.MultiBinary(3)
    assert present_space(space) is space
