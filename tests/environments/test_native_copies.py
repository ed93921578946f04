"""Copies that are one vector environment: their episodes are those of ordinary copies."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.environments.environment_copies import EnvironmentCopies
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.environments.native_copies import NativeCopies
from rl_coach.graph_managers.building import make_copies
from rl_coach.utils import CoachError, TrainingError
from tests.zoo.environments import Bandit, SmallEnvironmentParameters
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn
from tests.zoo.states import weights_of


@pytest.fixture
def start(in_training):
    """Starts copies of a level, three of CartPole by default, and closes them after the test."""

    def make(vectorization="native", level="CartPole-v1", seed=1, visualization=None, **settings):
        parameters = GymVectorEnvironment(level)
        changes = {"seed": seed, "num_environments": 3, "vectorization": vectorization, **settings}
        for name, value in changes.items():
            setattr(parameters, name, value)
        return in_training(make_copies(parameters, visualization or VisualizationParameters()))

    return make


class Vector(SyncVectorEnv):
    """CartPoles of a user's, as one vector environment that begins episodes when it is told."""

    def __init__(self, num_envs, max_episode_steps, mode=AutoresetMode.DISABLED):
        poles = [lambda: TimeLimit(CartPoleEnv(), max_episode_steps)] * num_envs
        super().__init__(poles, autoreset_mode=mode)

    def step(self, actions):
        if (actions == 7).any():
            raise RuntimeError("no such action")
        return super().step(actions)


@pytest.fixture
def registered():
    """A level with a vector environment of its own."""
    gymnasium.register("CoachTest-v0", CartPoleEnv, max_episode_steps=100, vector_entry_point=Vector)
    yield "CoachTest-v0"
    del gymnasium.registry["CoachTest-v0"]


def play(copies, steps, actions=None):
    """All responses in order: those that begin episodes, and those to random actions.

    :param actions: draws the actions
    """
    rng, due, responses = actions or np.random.default_rng(0), {0: True, 1: True, 2: True}, []
    for _ in range(steps):
        begun = copies.begin_episodes(due) if due else {}
        answers = copies.step_all(rng.integers(2, size=3).tolist())
        due = {index: False for index, answer in enumerate(answers) if answer.game_over}
        responses += [*begun.values(), *answers]
    return responses


def assert_equal(found, expected):
    assert len(found) == len(expected)
    for own, other in zip(found, expected):
        observation = own.next_state["observation"]
        assert observation.dtype == other.next_state["observation"].dtype
        np.testing.assert_allclose(observation, other.next_state["observation"], rtol=1e-6, atol=1e-7)
        outcomes = [(one.reward, one.game_over, one.terminated, one.goal) for one in (own, other)]
        assert outcomes[0] == outcomes[1]
        assert type(own.reward) is float and type(own.game_over) is bool


def balance(observation):
    return int(observation[2] + observation[3] > 0)


def test_episodes_are_those_of_ordinary_copies(start):
    native, sync = start(), start("sync")
    assert_equal(play(native, 300), play(sync, 300))
    assert native.state_space["observation"].shape == sync.state_space["observation"].shape
    assert native.reward_space.reward_success_threshold == sync.reward_space.reward_success_threshold
    assert native.action_space.sample() == sync.action_space.sample()


def test_a_vector_environment_of_a_users(start, registered):
    assert_equal(play(start(level=registered), 200), play(start("sync", registered), 200))


@pytest.mark.parametrize(("level", "limit"), [("CartPole-v0", 200), ("CartPole-v1", 500)])
def test_time_limits_end_episodes_without_terminating_them(start, level, limit):
    copies = start(level=level)
    for _ in range(2):
        responses = list(copies.begin_episodes({0: True, 1: True, 2: True}).values())
        for step in range(limit):
            assert not any(response.game_over for response in responses), step
            responses = copies.step_all([balance(response.next_state["observation"]) for response in responses])
        assert all(response.game_over and not response.terminated for response in responses)


def test_no_observation_is_lost_where_an_episode_ends(start):
    copies = start()
    before = list(copies.begin_episodes({0: True, 1: True, 2: True}).values())
    while not (answers := copies.step_all([1, 0, balance(before[2].next_state["observation"])]))[0].game_over:
        before = answers
    assert abs(answers[0].next_state["observation"][2]) > 12 * np.pi / 180 and answers[0].terminated
    first = copies.begin_episodes({0: False})[0]
    assert np.abs(first.next_state["observation"]).max() <= 0.05 and (first.reward, first.game_over) == (0.0, False)
    after = copies.step_all([1, 0, 0])
    # one step of 0.02 seconds away from the first observation, and the other poles went on
    change = after[0].next_state["observation"] - first.next_state["observation"]
    assert change[0] == pytest.approx(0.02 * first.next_state["observation"][1], abs=1e-6)
    assert 0.15 < change[1] < 0.25
    moved = after[2].next_state["observation"][0] - answers[2].next_state["observation"][0]
    assert moved == pytest.approx(0.02 * answers[2].next_state["observation"][1], abs=1e-6)


def test_seeds_make_runs_repeatable(start):
    one, same, other = play(start(), 100), play(start(), 100), play(start(seed=9), 100)
    assert_equal(one, same)
    assert one[0].next_state["observation"][0] != other[0].next_state["observation"][0]


def test_episodes_go_on_where_they_were_saved(start):
    copies, restored = start(), start(seed=50)
    assert copies.get_episode_state() is None
    play(copies, 40)
    assert restored.set_episode_state(copies.get_episode_state())
    actions = [[1, 0, 1], [0, 1, 1], [1, 1, 0]]
    assert_equal(*([one for row in actions for one in each.step_all(row)] for each in (restored, copies)))
    assert_equal(play(restored, 100), play(copies, 100))


def test_a_simulator_that_cannot_be_saved_begins_other_episodes(start, registered):
    copies, restored = start(level=registered), start(level=registered)
    first = play(copies, 60)
    assert copies.get_episode_state() is None
    restored.set_state(copies.get_state())
    assert play(restored, 1)[0].next_state["observation"][0] != first[0].next_state["observation"][0]


def test_states_of_other_copies_are_refused(start, monkeypatch):
    copies = start()
    monkeypatch.setattr(copies, "_saved", None)  # as those of a vector environment that cannot be restored
    with pytest.raises(CoachError, match=r"not stepped with env_params.vectorization 'native'"):
        copies.set_state(start("sync").get_state())
    with pytest.raises(CoachError, match=r"were stepped with env_params.vectorization 'native'"):
        start("sync").set_state(copies.get_state())


@pytest.mark.parametrize(
    "level", ["Acrobot-v1", "gymnasium.envs.classic_control.cartpole:CartPoleEnv", "gymnasium:Pendulum-v1"]
)
def test_levels_without_a_vector_environment(start, level):
    with pytest.raises(CoachError, match=r"no vector environment of its own: set .* to 'sync' or 'async'") as error:
        start(level=level)
    assert level in str(error.value)


def test_environments_of_other_simulators_have_none():
    parameters = SmallEnvironmentParameters(Bandit)
    parameters.seed, parameters.num_environments, parameters.vectorization = 1, 2, "native"
    with pytest.raises(CoachError, match="no vector environment of its own"):
        make_copies(parameters, VisualizationParameters())


def test_settings_that_a_vector_environment_does_not_have(start):
    with pytest.raises(CoachError, match=r"skips no frames.*'sync' or 'async'"):
        start(frame_skip=2)
    with pytest.raises(CoachError, match=r"gravity.*additional_simulator_parameters"):
        start(additional_simulator_parameters={"gravity": 3})
    shown = VisualizationParameters()
    shown.render = True
    with pytest.raises(CoachError, match="cannot be drawn: leave out --render"):
        start(visualization=shown)


def test_additional_simulator_parameters_reach_it(start):
    copies = start(additional_simulator_parameters={"sutton_barto_reward": True})
    assert {response.reward for response in play(copies, 60)} == {0.0, -1.0}


def test_an_error_of_the_simulator_names_the_level(start, registered):
    copies = start(level=registered)
    copies.begin_episodes({0: True, 1: True, 2: True})
    with pytest.raises(TrainingError, match=f"vector environment of '{registered}' failed.*no such action"):
        copies.step_all([7, 0, 0])


def test_auto_is_native_where_the_episodes_are_the_same():
    def kind_of(level, **settings):
        parameters = GymVectorEnvironment(level)
        parameters.num_environments, parameters.seed, parameters.vectorization = 2, 1, "auto"
        visualization = VisualizationParameters(**settings.pop("visualization", {}))
        for name, value in settings.items():
            setattr(parameters, name, value)
        copies = make_copies(parameters, visualization)
        copies.close()
        return type(copies)

    assert kind_of("CartPole-v1") is NativeCopies
    assert kind_of("CartPole-v1", vectorization="sync") is EnvironmentCopies
    assert kind_of("CartPole-v1", visualization={"dump_gifs": True}) is EnvironmentCopies
    assert kind_of("Pendulum-v1") is EnvironmentCopies


@pytest.mark.parametrize("steps", [3, 60])
def test_native_copies_continue_a_checkpoint_of_sync_copies_exactly(steps, tmp_path):
    """As older checkpoints have them: in the middle of episodes, which were played one by one."""

    def make(vectorization):
        environment = GymVectorEnvironment("CartPole-v1")
        environment.vectorization = vectorization
        return graph(dqn(), environment, tmp_path / vectorization, schedule(1000), seed=3, copies=3)

    before = make("sync")
    before.train_and_act(EnvironmentSteps(steps))
    path = before.save_checkpoint()
    after = make("auto")
    after.restore_checkpoint(path, continue_run=True)
    assert type(after.environments[0]) is NativeCopies
    for manager in (before, after):
        manager.train_and_act(EnvironmentSteps(60))
    for one, other in zip(weights_of(before), weights_of(after), strict=True):
        np.testing.assert_array_equal(one, other)
    assert after.get_agent().memory.num_transitions() == steps + 60
