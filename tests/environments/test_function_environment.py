"""Environments that are pure functions, as the environments of agents that no compiled loop knows."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import RunPhase
from rl_coach.environments.gym_environment import GymEnvironment
from rl_coach.environments.gym_levels import is_function_level
from rl_coach.installation import install_command
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace
from rl_coach.utils import CoachError
from tests.frameworks import where_installed

pytestmark = where_installed("jax")

ZOO = "tests.zoo.function_environments"


def environment(level: str, seed: int = 3, **parameters: Any) -> GymEnvironment:
    return GymEnvironment(level, 1, VisualizationParameters(), seed=seed, additional_simulator_parameters=parameters)


def test_an_episode_ends_by_termination_or_by_the_limit():
    walk = environment(f"{ZOO}:walk")
    assert isinstance(walk.action_space, DiscreteActionSpace) and tuple(walk.state_space["observation"].shape) == (3,)
    for _ in range(4):
        response = walk.step(1)
        if response.game_over:
            break
    assert (response.reward, response.terminated) == (1.0, True)
    walk.reset_internal_state()
    for step in range(12):
        response = walk.step(step % 2)
    assert (response.reward, response.game_over, response.terminated) == (0.0, True, False)
    assert response.next_state["observation"][2] == 1.0


def test_actions_outside_of_the_box_are_moved_to_its_bounds():
    one, other = environment(f"{ZOO}:reach"), environment(f"{ZOO}:Reach")
    assert isinstance(one.action_space, BoxActionSpace)
    far, near = one.step(np.array([7.0, -9.0])), other.step(np.array([1.0, -1.0]))
    np.testing.assert_array_equal(far.next_state["observation"], near.next_state["observation"])


def test_a_seed_repeats_episodes_and_an_episode_is_resumed():
    one, other = environment(f"{ZOO}:reach", seed=5), environment(f"{ZOO}:reach", seed=5)
    for each in (one, other):
        each.phase = RunPhase.TRAIN
    for _ in range(3):
        starts = [each.reset_internal_state().next_state["observation"] for each in (one, other)]
        np.testing.assert_array_equal(*starts)
    one.step(np.array([0.5, 0.5]))
    state = one.get_episode_state()
    third = environment(f"{ZOO}:reach", seed=9)
    assert state is not None and third.set_episode_state(state)
    np.testing.assert_array_equal(third.state["observation"], one.state["observation"])


@pytest.mark.parametrize(
    ("level", "is_one"),
    [
        ("gymnax:CartPole-v1", True), ("pgx:connect_four", True), (f"{ZOO}:walk", True), (f"{ZOO}:Walk", True),
        ("CartPole-v1", False), ("tests.zoo.environments:Bandit", False), ("gymnasium_robotics:FetchReach-v4", False),
    ],
)  # fmt: skip
def test_such_levels_are_told_from_others(level, is_one):
    assert is_function_level(level) is is_one


def test_a_step_with_another_number_of_values_is_a_mistake_of_the_user(monkeypatch):
    from tests.zoo.function_environments import Walk

    monkeypatch.setattr(Walk, "step", lambda self, key, state, action, params: (state, 0.0, False))
    with pytest.raises(CoachError, match="step returned 3 values, but six are needed"):
        environment(f"{ZOO}:walk")
    monkeypatch.setattr(Walk, "step", lambda self, key, state, action, params: None)
    with pytest.raises(CoachError, match="step returned a NoneType, but six are needed"):
        environment(f"{ZOO}:walk")


def test_a_reset_with_another_number_of_values_is_a_mistake_of_the_user(monkeypatch):
    from tests.zoo.function_environments import Walk

    monkeypatch.setattr(Walk, "reset", lambda self, key, params: (np.zeros(2), 0, {}))
    with pytest.raises(CoachError, match="reset must return two values"):
        environment(f"{ZOO}:walk")


def test_a_reward_of_several_numbers_is_a_mistake_of_the_user(monkeypatch):
    from tests.zoo.function_environments import Walk

    step = Walk.step

    def act(self, key, state, action, params):
        observation, state, _, *rest = step(self, key, state, action, params)
        return observation, state, np.ones(2), *rest

    monkeypatch.setattr(Walk, "step", act)
    with pytest.raises(CoachError, match=r"reward has the shape \(2,\), but must be one number"):
        environment(f"{ZOO}:walk")


def test_a_mask_in_an_info_is_a_mistake_of_the_user(monkeypatch):
    from tests.zoo.function_environments import Walk

    def step(self: Any, key: Any, state: Any, action: Any, params: Any) -> tuple:
        *answer, _ = walked(self, key, state, action, params)
        return *answer, {"action_mask": np.array([1, 0])}

    walked = Walk.step
    monkeypatch.setattr(Walk, "step", step)
    with pytest.raises(CoachError, match="'action_mask' of an info is not read: return Dict observations"):
        environment(f"{ZOO}:walk")


def test_the_parts_of_a_tuple_may_have_different_shapes(monkeypatch):
    import gymnasium

    from tests.zoo.function_environments import Walk

    own = Walk.reset, Walk.step, Walk.observation_space

    def wide(observation):
        return observation, observation[None]

    def space(self, params):
        low, high = (wide(getattr(own[2](self, params), end)) for end in ("low", "high"))
        return gymnasium.spaces.Tuple([gymnasium.spaces.Box(*ends) for ends in zip(low, high)])

    def begin(self, key, params):
        observation, state = own[0](self, key, params)
        return wide(observation), state

    def act(self, key, state, action, params):
        observation, *rest = own[1](self, key, state, action, params)
        return wide(observation), *rest

    before = environment(f"{ZOO}:walk").step(1).next_state["observation"]
    monkeypatch.setattr(Walk, "observation_space", space)
    monkeypatch.setattr(Walk, "reset", begin)
    monkeypatch.setattr(Walk, "step", act)
    after = environment(f"{ZOO}:walk").step(1).next_state
    assert np.array_equal(after["0"], before) and np.array_equal(after["1"].ravel(), before)


def test_no_info_a_list_and_an_array_of_one_number_are_read(monkeypatch):
    from tests.zoo.function_environments import Walk

    reset, step = Walk.reset, Walk.step

    def begin(self, key, params):
        observation, state = reset(self, key, params)
        return list(observation), state

    def act(self, key, state, action, params):
        observation, state, reward, terminated, truncated, _ = step(self, key, state, action, params)
        return list(observation), state, reward[None], terminated[None], truncated, None

    before = environment(f"{ZOO}:walk").step(1)
    monkeypatch.setattr(Walk, "reset", begin)
    monkeypatch.setattr(Walk, "step", act)
    after = environment(f"{ZOO}:walk").step(1)
    assert (after.reward, after.game_over) == (before.reward, before.game_over)
    assert np.array_equal(after.next_state["observation"], before.next_state["observation"])


def installed(package: str, extra: str) -> pytest.MarkDecorator:
    reason = f"{package} is not installed: {install_command(extra)}"
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=reason)


@installed("gymnax", "gymnax")
def test_cart_pole_of_gymnax_moves_as_that_of_gymnasium():
    import gymnasium

    ours, theirs = environment("gymnax:CartPole-v1"), gymnasium.make("CartPole-v1").unwrapped
    assert ours.reward_space.reward_success_threshold == 475.0
    theirs.reset()
    theirs.state = np.array(ours.state["observation"], np.float64)
    for step in range(8):
        response = ours.step(step % 2)
        observation, reward, terminated, _, _ = theirs.step(step % 2)
        np.testing.assert_allclose(response.next_state["observation"], observation, atol=1e-4)
        assert (response.reward, response.terminated) == (reward, terminated)


@installed("gymnax", "gymnax")
def test_fields_of_gymnax_params_can_be_set():
    pendulum = environment("gymnax:Pendulum-v1", max_steps_in_episode=3)
    responses = [pendulum.step(np.zeros(1)) for _ in range(3)]
    assert [(one.game_over, one.terminated) for one in responses] == [(False, False)] * 2 + [(True, False)]


@installed("gymnax", "gymnax")
def test_an_unknown_level_gets_a_suggestion():
    with pytest.raises(CoachError, match=r"^no level 'gymnax:CartPole-v2'; did you mean 'gymnax:CartPole-v1'"):
        environment("gymnax:CartPole-v2")
    with pytest.raises(CoachError, match=r"; gymnax has .*CartPole-v1, .*SpaceInvaders-MinAtar"):
        environment("gymnax:qqqqqqqqqqqq")


@installed("pgx", "pgx")
def test_a_board_game_is_played_against_random_moves():
    game = environment("pgx:tic_tac_toe")
    rewards = []
    for _ in range(20):
        response = game.reset_internal_state()
        while not response.game_over:
            response = game.step(int(np.flatnonzero(response.next_state["action_mask"])[0]))
        rewards.append(response.reward)
    assert set(rewards) <= {-1.0, 0.0, 1.0} and len(set(rewards)) > 1


@installed("mujoco_playground", "playground")
def test_a_level_of_playground_has_a_limit():
    balance = environment("playground:CartpoleBalance", episode_length=2)
    assert [balance.step(np.zeros(1)).game_over for _ in range(2)] == [False, True]


def test_pythons_numbers_and_other_names_of_parameters():
    assert is_function_level(f"{ZOO}:PlainWalk")
    response = environment(f"{ZOO}:PlainWalk").step(1)
    assert (response.reward, response.game_over) == (1.0, False)
    assert not is_function_level("gymnasium.envs.classic_control:CartPoleEnv")
