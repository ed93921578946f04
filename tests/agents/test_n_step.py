"""DQN with n-step rewards: what is stored, what is bootstrapped, and the loss, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.episodic.episodic_hindsight_experience_replay import (
    EpisodicHindsightExperienceReplayParameters,
    HindsightGoalSelectionMethod,
)
from rl_coach.spaces import GoalsSpace, ReachingGoal
from rl_coach.utils import CoachError
from tests.zoo import parameters
from tests.zoo.environments import Bandit, Lottery
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn

N, DISCOUNT = 3, 0.9


def played(episodic: bool, whole: bool, tmp_path: Any, returns: list[float] | None = None) -> tuple[Any, list[list]]:
    """An agent that has acted for a while, and the steps that it took, by episode.

    :param returns: where the episodes' discounted returns go that the agent reports
    """
    agent_params = dqn()
    agent_params.algorithm.n_step, agent_params.algorithm.discount = N, DISCOUNT
    agent_params.algorithm.store_transitions_only_when_episodes_are_terminated = whole
    agent_params.network_wrappers["main"].replace_mse_with_huber_loss = False
    if episodic:
        agent_params.memory = EpisodicExperienceReplayParameters()
        agent_params.memory.n_step = N
    manager = graph(agent_params, Lottery, tmp_path, schedule(100, heatup=40))
    agent = manager.get_agent()
    episodes: list[list[tuple]] = [[]]
    take = agent.update_transition_before_adding_to_replay_buffer

    def noted(transition: Any) -> Any:
        state, following = transition.state["observation"], transition.next_state["observation"]
        episodes[-1].append((state, transition.action, transition.reward, following, transition.terminated))
        if transition.game_over:
            episodes.append([])
        return take(transition)

    agent.update_transition_before_adding_to_replay_buffer = noted
    if returns is not None:
        agent.discounted_return.add_sample = returns.append
    manager.heatup(EnvironmentSteps(80))
    return agent, [episode for episode in episodes if episode]


def by_definition(episodes: list[list[tuple]]) -> list[tuple]:
    """R = sum_{k<n} discount^k r_{t+k}, bootstrapped from s_{t+n} with discount^n, cut at the episode's end (Hessel et
    al. 2018, section 3)."""
    rows = []
    for episode in episodes:
        for t, (state, action, *_) in enumerate(episode):
            steps = episode[t : t + N]
            reward = sum(DISCOUNT**k * step[2] for k, step in enumerate(steps))
            rows.append((state, action, reward, steps[-1][3], DISCOUNT ** len(steps) * (1 - steps[-1][4])))
    return rows


@pytest.mark.parametrize("episodic, whole", [(False, False), (False, True), (True, False)])
def test_what_is_stored_and_learned_from_is_what_the_definition_says(episodic, whole, tmp_path):
    agent, episodes = played(episodic, whole, tmp_path)
    expected = by_definition(episodes)
    batch = agent.memory.transitions
    columns = agent.learning_columns(batch)
    assert len(batch) == len(expected) > 30 and any(len(episode) < N for episode in episodes)
    np.testing.assert_array_equal(columns["states/observation"], [row[0] for row in expected])
    np.testing.assert_array_equal(columns["actions"], [row[1] for row in expected])
    np.testing.assert_allclose(columns["rewards"], [row[2] for row in expected], rtol=1e-6)
    np.testing.assert_array_equal(columns["next_states/observation"], [row[3] for row in expected])
    np.testing.assert_allclose(columns["discounts"], [row[4] for row in expected], rtol=1e-6)


def test_the_loss_is_that_of_the_definition(tmp_path):
    agent, episodes = played(False, False, tmp_path)
    main = agent.networks["main"]
    main.update_online_network(0.0)
    states, actions, rewards, following, discounts = map(np.asarray, zip(*by_definition(episodes)))
    q = main.online_network.predict({"observation": states.astype(np.float32)})
    q_next = main.target_network.predict({"observation": following.astype(np.float32)})
    errors = rewards + discounts * q_next.max(axis=1) - q[np.arange(len(actions)), actions]
    loss, _, _ = agent.learn_from_batch(agent.memory.transitions)
    np.testing.assert_allclose(loss, np.mean(errors**2), rtol=1e-4)


def test_the_last_steps_of_an_open_episode_wait_for_theirs(tmp_path):
    agent_params = dqn()
    agent_params.algorithm.n_step = N
    manager = graph(agent_params, Bandit, tmp_path, schedule(100))
    agent = manager.get_agent()
    manager.act(EnvironmentSteps(5))
    assert agent.episode.buffer.length() == 5 and agent.memory.num_transitions() == 5 - N + 1
    manager.act(EnvironmentSteps(5))
    assert agent.memory.num_transitions() == 10, "the episode has ended: nothing is left behind"


@pytest.mark.parametrize("episodic, whole", [(False, False), (False, True), (True, False)])
def test_the_discounted_return_is_that_of_the_whole_episode(episodic, whole, tmp_path):
    returns: list[float] = []
    _, episodes = played(episodic, whole, tmp_path, returns)
    expected = [sum(DISCOUNT**k * step[2] for k, step in enumerate(episode)) for episode in episodes]
    assert len(returns) > 5 and any(len(episode) > N for episode in episodes)
    np.testing.assert_allclose(returns, expected[: len(returns)], rtol=1e-6)


def by_hindsight() -> AgentParameters:
    agent = dqn()
    agent.memory = EpisodicHindsightExperienceReplayParameters()
    agent.memory.hindsight_transitions_per_regular_transition = 1
    agent.memory.hindsight_goal_selection_method = HindsightGoalSelectionMethod.Final
    agent.memory.goals_space = GoalsSpace("observation", ReachingGoal(0.1), GoalsSpace.DistanceMetric.Euclidean)
    return agent


GO_BY_SINGLE_REWARDS = [
    parameters.policy_gradients, parameters.actor_critic, parameters.clipped_ppo, parameters.ppo, parameters.acer,
    parameters.n_step_q, parameters.mixed_monte_carlo, parameters.persistent_advantage_learning, by_hindsight,
    parameters.munchausen, parameters.pqn, parameters.direct_future_prediction,
]  # fmt: skip
KNOW_WHOLE_RETURNS = [
    parameters.policy_gradients, parameters.mixed_monte_carlo, parameters.persistent_advantage_learning,
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "n_step"),
    [*((make, N) for make in GO_BY_SINGLE_REWARDS), *((make, 1) for make in KNOW_WHOLE_RETURNS)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_sums_of_rewards_are_refused_where_single_ones_are_learned_from(make, n_step, tmp_path):
    agent = make()
    agent.algorithm.n_step = n_step
    advice = "does not support n-step sums of rewards: set algorithm.n_step to -1"
    with pytest.raises(CoachError, match=f"algorithm.n_step is {n_step}, and .* {advice}"):
        graph(agent, Bandit, tmp_path)


def test_a_single_reward_is_one_for_agents_that_learn_no_returns(tmp_path):
    agent = parameters.clipped_ppo()
    agent.algorithm.n_step = 1
    graph(agent, Bandit, tmp_path).improve()


def test_no_number_of_steps_is_refused(tmp_path):
    agent_params = dqn()
    agent_params.algorithm.n_step = 0
    with pytest.raises(CoachError, match="n_step"):
        graph(agent_params, Bandit, tmp_path)
