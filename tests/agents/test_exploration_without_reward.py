"""TD3 that explores by novelty, towards goals of its own, or at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.td3_exp_agent import (
    RandomAgentParameters,
    TD3ExplorationAgentParameters,
    TD3GoalBasedAgentParameters,
    TD3IntrinsicRewardAgentParameters,
)
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.spaces import ImageObservationSpace, VectorObservationSpace
from rl_coach.utils import CoachError
from tests.zoo.continuous import exploring
from tests.zoo.environments import Target
from tests.zoo.graphs import graph, schedule


class TargetWithGoal(Target):
    """As ``Target``, with room for an observation beside a goal's."""

    def observations(self) -> dict[str, Any]:
        return {**super().observations(), "obs-goal": VectorObservationSpace(2)}

    def first_state(self) -> dict[str, np.ndarray]:
        return {**super().first_state(), "obs-goal": np.zeros(2, np.float32)}


def goal_based() -> AgentParameters:
    return exploring(TD3GoalBasedAgentParameters, "obs-goal")


def test_what_has_been_seen_becomes_less_novel(tmp_path):
    manager = graph(exploring(TD3ExplorationAgentParameters), Target, tmp_path)
    manager.heatup(EnvironmentSteps(60))
    agent = manager.get_agent()
    batch = agent.memory.newest_transitions(40)
    before = agent.calculate_novelty(batch).mean()
    constant = agent.networks["constant"].online_network.get_weights()
    for _ in range(5):
        agent.train_rnd()
    assert agent.calculate_novelty(batch).mean() < 0.8 * before
    for one, other in zip(constant, agent.networks["constant"].online_network.get_weights()):
        np.testing.assert_array_equal(one, other)


def test_novelty_is_the_reward(tmp_path):
    manager = graph(exploring(TD3IntrinsicRewardAgentParameters), Target, tmp_path)
    manager.heatup(EnvironmentSteps(60))
    agent = manager.get_agent()
    batch = agent.memory.newest_transitions(16)
    stored = batch.reward_column.copy()
    inputs = {"observation": agent.rnd.observations["observation"].normalize(batch.next_state_columns["observation"])}
    known, guessed = (agent.networks[name].online_network.predict(inputs) for name in ("constant", "predictor"))
    expected = ((known - guessed) ** 2).mean(axis=1) / agent.rnd.returns.std[0]
    np.testing.assert_allclose(agent.learning_columns(batch)["rewards"], expected, rtol=1e-5)
    np.testing.assert_array_equal(batch.reward_column, stored)


class Pictures(Target):
    """As ``Target``, with a picture as bright as the target is high."""

    def observations(self) -> dict[str, Any]:
        return {**super().observations(), "camera": ImageObservationSpace(np.array([40, 36, 1]), high=255)}

    def first_state(self) -> dict[str, np.ndarray]:
        state = super().first_state()
        return {**state, "camera": np.full((40, 36, 1), 100 + 100 * state["observation"][0], np.uint8)}


def test_a_picture_of_what_is_novel(tmp_path):
    imageio = pytest.importorskip("imageio.v2")
    parameters = exploring(TD3ExplorationAgentParameters)
    parameters.algorithm.env_obs_key = "camera"
    manager = graph(parameters, Pictures, tmp_path)
    manager.heatup(EnvironmentSteps(60))
    agent = manager.get_agent()
    picture = imageio.imread(agent.save_rnd_images(str(tmp_path / "pictures")))
    assert picture.shape == (400, 360)
    shown = picture[::40, ::36].ravel()  # one brightness for each
    everything = agent.memory.get_all_complete_episodes_transitions()
    novelty, brightness = agent.calculate_novelty(everything), everything.next_state_columns["camera"][:, 0, 0, 0]
    assert shown[0] == brightness[novelty.argmin()] and shown[-1] == brightness[novelty.argmax()]


def test_no_picture_of_what_is_none(tmp_path):
    manager = graph(exploring(TD3ExplorationAgentParameters), Target, tmp_path)
    manager.heatup(EnvironmentSteps(60))
    with pytest.raises(CoachError, match="env_obs_key is 'observation', of shape"):
        manager.get_agent().save_rnd_images()


def test_returns_of_novelty_are_discounted_over_time(tmp_path):
    agent = graph(exploring(TD3IntrinsicRewardAgentParameters), Target, tmp_path).get_agent()
    agent.ap.algorithm.discount = 0.5
    agent.update_intrinsic_returns_estimate(np.array([1.0, 2.0, 4.0]))
    assert agent.rnd.returns.mean[0] == pytest.approx(np.mean([1.0, 2.5, 5.25]))


def test_goals_are_later_steps_of_the_episode(tmp_path):
    manager = graph(goal_based(), TargetWithGoal, tmp_path)
    manager.heatup(EnvironmentSteps(60))
    agent = manager.get_agent()
    columns = agent.learning_columns(agent.memory.newest_transitions(16))
    everything = agent.memory.get_all_complete_episodes_transitions()
    states = everything.state_columns["observation"][:, 0].tolist()
    following = everything.next_state_columns["observation"][:, 0].tolist()
    lengths = agent.memory.episode_lengths()
    episode_of = np.repeat(np.arange(len(lengths)), lengths)
    for row in range(16):
        now, goal = columns["states/obs-goal"][row]
        step, aim = states.index(now), following.index(goal)
        assert episode_of[step] == episode_of[aim] and aim >= step
        reached = aim == step
        assert columns["rewards"][row] == (0 if reached else -1)
        assert columns["discounts"][row] == pytest.approx(0 if reached else agent.ap.algorithm.discount)


def test_goals_where_the_agent_is_need_no_action(tmp_path):
    parameters = goal_based()
    parameters.algorithm.identity_goal_sample_rate = 1.0
    manager = graph(parameters, TargetWithGoal, tmp_path)
    manager.heatup(EnvironmentSteps(60))
    agent = manager.get_agent()
    columns = agent.learning_columns(agent.memory.newest_transitions(16))
    np.testing.assert_array_equal(columns["states/obs-goal"][:, 0], columns["states/obs-goal"][:, 1])
    assert not columns["actions"].any() and not columns["rewards"].any() and not columns["discounts"].any()


def test_it_goes_to_the_most_novel_observation(tmp_path):
    manager = graph(goal_based(), TargetWithGoal, tmp_path, schedule(40, heatup=40))
    manager.improve()
    agent = manager.get_agent()
    agent.generate_goal()
    everything = agent.memory.newest_transitions(10**6)
    novelty = agent.calculate_novelty(everything)
    is_goal = everything.next_state_columns["observation"][:, 0] == agent.goal[0]
    assert novelty[is_goal].max() >= np.median(novelty)
    agent.phase = RunPhase.TEST
    state = {"observation": np.array([0.3], np.float32), "obs-goal": np.zeros(2, np.float32)}
    joined = {"obs-goal": np.array([[0.3, agent.goal[0]]], np.float32)}
    expected = agent.networks["actor"].online_network.predict(joined)
    np.testing.assert_allclose(agent.predict_states([state]), expected, rtol=1e-6)


def test_a_random_agent_learns_nothing(tmp_path):
    manager = graph(exploring(RandomAgentParameters), Target, tmp_path, schedule(60, heatup=40))
    manager.improve()
    agent = manager.get_agent()
    assert agent.training_iteration == 0
    actions = agent.memory.newest_transitions(50).actions()
    assert actions.min() < -1 and actions.max() > 3


@pytest.mark.parametrize(
    "make", [pytest.param(TD3IntrinsicRewardAgentParameters, marks=pytest.mark.slow), TD3GoalBasedAgentParameters]
)
def test_they_train_and_save_the_memory(make, tmp_path):
    is_goal = make is TD3GoalBasedAgentParameters
    parameters = exploring(make, "obs-goal" if is_goal else "observation")
    parameters.algorithm.replay_buffer_save_steps = 30
    parameters.algorithm.replay_buffer_save_path = str(tmp_path / "saved")
    parameters.algorithm.td3_training_ratio = 0.5
    manager = graph(parameters, TargetWithGoal if is_goal else Target, tmp_path / "run", schedule(60, heatup=40))
    manager.improve()
    agent = manager.get_agent()
    assert 20 <= agent.training_iteration <= 30
    assert list((tmp_path / "saved").glob("replay_buffer_*.npz"))


@pytest.mark.parametrize(
    ("environment", "seen", "message"),
    [
        (Target, "observation", r"agent_obs_key .* is 'observation', which is not an observation of shape \[2\]"),
        (TargetWithGoal, "observation", r"which is not an observation of shape \[2\]"),
        (TargetWithGoal, "elsewhere", r"agent_obs_key .* is 'elsewhere', which is not an observation of shape \[2\]"),
        (TargetWithGoal, "unseen", r"agent_obs_key .* is 'obs-goal', and network 'actor' does not see it"),
    ],
)
def test_goals_that_the_policy_would_not_see_are_refused(environment, seen, message, tmp_path):
    parameters = exploring(TD3GoalBasedAgentParameters, "observation")
    parameters.algorithm.agent_obs_key = "obs-goal" if seen == "unseen" else seen
    with pytest.raises(CoachError, match=message):
        graph(parameters, environment, tmp_path)


def test_an_observation_that_is_not_there_is_refused(tmp_path):
    parameters = exploring(TD3ExplorationAgentParameters)
    parameters.algorithm.env_obs_key = "camera"
    with pytest.raises(CoachError, match=r"env_obs_key .* is 'camera', .* set it to one of 'observation'"):
        graph(parameters, Target, tmp_path)
