from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from rl_coach.core_types import RunPhase
from rl_coach.environments import gym_environment
from rl_coach.environments.gym_environment import Atari, GymEnvironmentParameters, GymVectorEnvironment
from rl_coach.filters.filter import NoInputFilter, NoOutputFilter
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, VectorObservationSpace
from rl_coach.utils import CoachError


def rollout(environment, actions=None, steps=60):
    """The observations of some steps from a new episode on; random actions unless they are given."""
    observations = [environment.reset_internal_state().next_state["observation"]]
    for step in range(steps if actions is None else len(actions)):
        response = environment.step(environment.get_random_action() if actions is None else actions[step])
        observations.append(response.next_state["observation"])
        if response.game_over:
            observations.append(environment.reset_internal_state().next_state["observation"])
    return np.concatenate(observations)


def test_parameters_have_coachs_defaults():
    parameters = GymEnvironmentParameters("CartPole-v1")
    assert parameters.path == "rl_coach.environments.gym_environment:GymEnvironment"
    assert (parameters.random_initialization_steps, parameters.max_over_num_frames) == (0, 1)
    assert parameters.additional_simulator_parameters == {}
    assert parameters.additional_simulator_parameters is not GymEnvironmentParameters().additional_simulator_parameters
    vector = GymVectorEnvironment("CartPole-v1")
    assert vector.frame_skip == 1
    assert isinstance(vector.default_input_filter, NoInputFilter)
    assert isinstance(vector.default_output_filter, NoOutputFilter)
    atari = Atari("PongDeterministic-v4")
    assert (atari.frame_skip, atari.max_over_num_frames, atari.random_initialization_steps) == (4, 2, 30)
    assert atari.default_input_filter is gym_environment.AtariInputFilter


def test_the_module_brings_no_simulator():
    heavy = ["gymnasium", "ale_py", "mujoco", "pygame", "imageio", "tensorflow", "keras", "pandas"]
    program = f"import sys, rl_coach.environments.gym_environment; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_names_that_bring_more_are_imported_on_demand():
    assert issubclass(gym_environment.MaxOverFramesAndFrameskipEnvWrapper, gymnasium.Wrapper)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gym_environment.nothing  # noqa: B018


def test_the_atari_schedule_is_that_of_the_papers():
    pytest.importorskip("rl_coach.graph_managers.graph_manager")
    schedule = gym_environment.atari_schedule
    assert schedule.improve_steps.num_steps == 50_000_000
    assert schedule.steps_between_evaluation_periods.num_steps == 250_000
    assert schedule.evaluation_steps.num_steps == 135_000
    assert schedule.heatup_steps.num_steps == 50_000
    assert gym_environment.atari_schedule is not schedule


def test_the_first_episode_is_gymnasiums_own(make_environment):
    environment = make_environment("CartPole-v1", seed=5)
    raw = gymnasium.make("CartPole-v1")
    observation, _ = raw.reset(seed=5)
    np.testing.assert_array_equal(environment.reset_internal_state().next_state["observation"], observation)
    for action in (0, 1, 1, 0, 1):
        response = environment.step(action)
        observation, reward, terminated, _, _ = raw.step(action)
        np.testing.assert_array_equal(response.next_state["observation"], observation)
        assert (response.reward, response.terminated) == (reward, terminated)


@pytest.mark.parametrize("level", ["CartPole-v1", "InvertedPendulum-v5", "FrozenLake-v1"])
def test_one_seed_gives_one_trajectory(make_environment, level):
    first, again, other = (rollout(make_environment(level, seed=seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or not np.array_equal(first, other)


def test_without_a_seed_trajectories_differ(make_environment):
    first, other = (make_environment("CartPole-v1").reset_internal_state() for _ in range(2))
    assert not np.array_equal(first.next_state["observation"], other.next_state["observation"])


@pytest.mark.parametrize("level", ["CartPole-v1", "InvertedPendulum-v5", "FrozenLake-v1", "Taxi-v3"])
def test_a_restored_environment_goes_on_with_the_same_episodes(make_environment, level):
    environment, restored = make_environment(level, seed=1), make_environment(level, seed=2)
    environment.phase = RunPhase.TRAIN
    rollout(environment)
    restored.set_state(environment.get_state())
    np.testing.assert_array_equal(rollout(environment), rollout(restored))
    assert restored.episode_idx <= environment.episode_idx


def test_a_state_has_plain_leaves(make_environment):
    def check(value):
        if isinstance(value, dict):
            assert all(isinstance(key, str) for key in value)
            return all(check(part) for part in value.values())
        return value is None or isinstance(value, (int, float, bool, str, np.ndarray))

    for level in ("CartPole-v1", "PongDeterministic-v4"):
        assert check(make_environment(level, seed=1).get_state())


def test_an_ended_pole_is_terminated_and_a_time_limit_only_truncates(make_environment):
    environment = make_environment("CartPole-v0", seed=0)
    environment.reset_internal_state()
    while not (response := environment.step(0)).game_over:
        pass
    assert response.terminated
    environment = make_environment("Pendulum-v1", seed=0)
    environment.reset_internal_state()
    responses = [environment.step(np.zeros(1)) for _ in range(200)]
    assert [response.game_over for response in responses] == [False] * 199 + [True]
    assert not responses[-1].terminated


def test_the_levels_threshold_counts_unless_the_preset_has_its_own(make_environment):
    assert make_environment("CartPole-v0").reward_space.reward_success_threshold == 195
    custom = make_environment("CartPole-v0", custom_reward_threshold=150, target_success_rate=0.8)
    assert custom.reward_space.reward_success_threshold == 150
    assert custom.get_target_success_rate() == 0.8


def test_mujoco(make_environment):
    environment = make_environment("Hopper-v2", seed=0)
    assert isinstance(environment.action_space, BoxActionSpace)
    assert tuple(environment.state_space["observation"].shape) == (11,)
    response = environment.step(np.array([5.0, -5.0, 0.0]))
    assert np.isfinite(response.reward)
    assert environment.reward_space.reward_success_threshold == 3800


class SmallRewards(gymnasium.Env):
    """Rewards of 0.1 in 16 bits, which stop growing at 256 if they are summed in 16 bits."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), np.float16(0.1), False, False, {}


def test_the_total_of_rewards_of_16_bits_is_exact(make_environment):
    environment = make_environment(f"{__file__}:SmallRewards", seed=1)
    for _ in range(4000):
        environment.step(0)
    assert environment.total_reward_in_current_episode == pytest.approx(4000 * float(np.float16(0.1)))


def test_a_frame_skip_repeats_the_action_and_sums_the_rewards(make_environment):
    environment = make_environment("CartPole-v1", seed=1, frame_skip=3)
    raw = gymnasium.make("CartPole-v1")
    raw.reset(seed=1)
    environment.reset_internal_state()
    response = environment.step(1)
    for _ in range(3):
        observation, *_ = raw.step(1)
    np.testing.assert_array_equal(response.next_state["observation"], observation)
    assert response.reward == 3


def test_an_environment_that_skips_frames_itself_is_told_how_many(make_environment):
    level = "rl_coach.environments.mujoco.pendulum_with_goals:PendulumWithGoals"
    environment = make_environment(level, seed=1, frame_skip=10)
    assert environment.env.unwrapped.frameskip == 10
    assert environment.step(np.zeros(1)).reward == -1


def test_taxi_masks_its_actions(make_environment):
    environment = make_environment("Taxi-v3", seed=0)
    assert environment.state_space.action_mask_name == "action_mask"
    response = environment.reset_internal_state()
    for _ in range(50):
        mask = response.next_state["action_mask"]
        action = environment.get_random_action()
        assert mask[action] == 1
        response = environment.step(action)
    assert response.next_state["observation"].sum() == 1


def test_goal_environments_set_the_goal(make_environment):
    level = "rl_coach.environments.toy_problems.bit_flip:BitFlip"
    parameters = GymVectorEnvironment(level)
    parameters.additional_simulator_parameters = {"bit_length": 20, "mean_zero": True}
    environment = make_environment(parameters, seed=1)
    assert environment.goal_space is environment.state_space["desired_goal"]
    response = environment.step(3)
    np.testing.assert_array_equal(response.goal, response.next_state["desired_goal"])
    assert set(response.next_state) == {"state", "desired_goal", "achieved_goal"}


CUSTOM = """
import gymnasium as gym, numpy as np

class Combination(gym.Env):
    def __init__(self, numbers=3):
        self.observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
        self.action_space = gym.spaces.MultiDiscrete([2, numbers])
        self.buffer = np.zeros(2, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.buffer[:] = 0
        return self.buffer, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.buffer += 0.1
        return self.buffer, float(action[0] * 10 + action[1]), False, False, {}

class Old(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def seed(self, seed=None):
        self.rng = np.random.RandomState(seed)

    def reset(self):
        return self.rng.rand(2)

    def step(self, action):
        return self.rng.rand(2), 1.0, bool(action), {}

    def get_keys_to_action(self):
        return {(ord("a"),): 0, "d": 1}

class Strange(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Text(3)

class Picky(Combination):
    def __init__(self):
        super().__init__()
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        observation, _ = super().reset(seed=seed)
        return observation, {"action_mask": np.array([0, 0, 1], np.int8)}

    def step(self, action):
        assert action == 2
        return self.buffer, 0.0, False, False, {"action_mask": np.array([0, 0, 1], np.int8)}
"""


def test_a_users_environment_with_combined_actions(make_environment, level_file):
    parameters = GymVectorEnvironment(level_file(CUSTOM, "Combination"))
    parameters.additional_simulator_parameters = {"numbers": 4}
    environment = make_environment(parameters, seed=1)
    assert isinstance(environment.action_space, DiscreteActionSpace)
    assert environment.action_space.num_actions == 8
    assert [environment.step(action).reward for action in (0, 3, 4, 7)] == [0, 3, 10, 13]


def test_an_environment_that_reuses_its_buffer_is_copied_from(make_environment, level_file):
    environment = make_environment(level_file(CUSTOM, "Combination"))
    first = environment.reset_internal_state().next_state["observation"]
    second = environment.step(0).next_state["observation"]
    np.testing.assert_array_equal(first, [0, 0])
    np.testing.assert_allclose(second, [0.1, 0.1])


def test_an_environment_written_for_the_older_gym(make_environment, level_file):
    environment, again = (make_environment(level_file(CUSTOM, "Old"), seed=3) for _ in range(2))
    assert isinstance(environment.state_space["observation"], VectorObservationSpace)
    np.testing.assert_array_equal(rollout(environment, [0, 1, 0, 0]), rollout(again, [0, 1, 0, 0]))
    response = environment.step(1)
    assert (response.game_over, response.terminated) == (True, True)
    assert response.next_state["observation"].dtype == np.float64


def test_an_environment_is_never_asked_for_a_masked_action(make_environment, level_file):
    environment = make_environment(level_file(CUSTOM, "Picky"))
    assert environment.get_random_action() == 2


def test_actions_without_a_counterpart_are_an_error(make_environment, level_file):
    with pytest.raises(CoachError, match="Strange': the action space Text"):
        make_environment(level_file(CUSTOM, "Strange"))


def test_no_level_is_an_error(make_environment):
    with pytest.raises(CoachError, match="-lvl"):
        make_environment(GymVectorEnvironment())


def test_a_level_without_images_says_so(make_environment, level_file):
    with pytest.raises(CoachError, match="returns no images"):
        make_environment("CartPole-v1").get_rendered_image()
