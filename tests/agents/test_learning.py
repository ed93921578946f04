"""Every agent learns a small problem, its seed alone decides what it learns, and evaluations change nothing."""

from __future__ import annotations

import csv
import pathlib
import resource
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.policy_optimization_agent import PolicyGradientRescaler
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import Frameworks
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps, Transition
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK, agents_of_zoo
from tests.samples import one_in
from tests.zoo.environments import Bandit, Lottery, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import (
    PROBLEMS,
    actor_critic,
    clipped_ppo,
    dqn,
    neural_episodic_control,
    policy_gradients,
    prioritized,
    soft_actor_critic,
)
from tests.zoo.states import weights_of

STATM = pathlib.Path("/proc/self/statm")


# of agents that differ in a setting, one learns where there is little time
LONG = ("rainbow", "redq", "droq", "crossq", "tqc", "maximum_entropy with gSDE")


# `make test` runs all of these agents on JAX, and a third of them on TensorFlow
SHARE = 3 if FRAMEWORK is Frameworks.tensorflow else 1


@pytest.mark.parametrize("name", one_in(SHARE, agents_of_zoo(PROBLEMS, slow=LONG)))
def test_agents_learn_and_their_seed_decides_what(name, tmp_path):
    parameters, problem, steps, reward = PROBLEMS[name]
    one, same, other = (graph(parameters(), problem, tmp_path, schedule(steps, heatup=40), seed) for seed in (1, 1, 2))
    assert any(not np.array_equal(a, b) for a, b in zip(weights_of(one), weights_of(other)))
    one.improve()
    same.improve()
    for a, b in zip(weights_of(one), weights_of(same)):
        np.testing.assert_array_equal(a, b)
    assert one.get_agent().training_iteration > 0
    one.evaluate(EnvironmentEpisodes(5))
    assert one.progress.last_evaluation >= reward


def segments() -> Any:
    agent = policy_gradients()
    agent.algorithm.num_steps_between_gradient_updates = 4
    return agent


def recurrent() -> Any:
    agent = actor_critic()
    agent.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters(
        number_of_lstm_cells=4, scheme=[Dense(4)]
    )
    agent.algorithm.num_steps_between_gradient_updates = 6
    return agent


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [(dqn, Bandit), (segments, Bandit), (recurrent, Bandit), (clipped_ppo, Bandit), (actor_critic, Target)],
)
def test_evaluations_in_the_middle_of_episodes_change_nothing(parameters, problem, tmp_path):
    without = graph(parameters(), problem, tmp_path, schedule(85, heatup=40))
    with_evaluations = graph(parameters(), problem, tmp_path, schedule(85, evaluate_every=7, evaluation=1, heatup=40))
    without.improve()
    with_evaluations.improve()
    assert without.get_agent().training_iteration == with_evaluations.get_agent().training_iteration > 0
    for a, b in zip(weights_of(without), weights_of(with_evaluations)):
        np.testing.assert_array_equal(a, b)


def test_continuous_policies_learn(tmp_path):
    agent = clipped_ppo()
    manager = graph(agent, Target, tmp_path, schedule(640, heatup=40))
    manager.evaluate(EnvironmentEpisodes(10))
    before = manager.progress.last_evaluation
    manager.improve()
    manager.evaluate(EnvironmentEpisodes(10))
    assert manager.progress.last_evaluation > before / 2  # rewards are negative


@pytest.mark.parametrize(
    "rescaler",
    [
        PolicyGradientRescaler.TOTAL_RETURN,
        PolicyGradientRescaler.FUTURE_RETURN,
        PolicyGradientRescaler.FUTURE_RETURN_NORMALIZED_BY_EPISODE,
        PolicyGradientRescaler.FUTURE_RETURN_NORMALIZED_BY_TIMESTEP,
    ],
)
def test_rescalers_of_policy_gradients(rescaler, tmp_path):
    parameters = policy_gradients()
    parameters.algorithm.policy_gradient_rescaler = rescaler
    agent = graph(parameters, Bandit, tmp_path).get_agent()
    agent.return_means.push(np.array([5.0, 4.0, 3.0]))
    agent.mean_discounted_return, agent.std_discounted_return = 50.0, 9.0  # of an earlier episode
    expected = {
        PolicyGradientRescaler.TOTAL_RETURN: [3.0, 3.0],
        PolicyGradientRescaler.FUTURE_RETURN: [3.0, 1.0],
        PolicyGradientRescaler.FUTURE_RETURN_NORMALIZED_BY_EPISODE: [1.0, -1.0],
        PolicyGradientRescaler.FUTURE_RETURN_NORMALIZED_BY_TIMESTEP: [-1.0, -2.0],
    }[rescaler]
    np.testing.assert_allclose(agent.rescaled(np.array([3.0, 1.0]), first=1), expected)


def test_mean_returns_reach_as_far_as_the_episode(tmp_path):
    """Agents of users read them at each step of the episode in progress."""
    agent = graph(policy_gradients(), Bandit, tmp_path).get_agent()
    agent.return_means.push(np.array([5.0, 4.0]))
    agent.return_means.push(np.array([3.0]))
    for _ in range(4):
        agent.current_episode_buffer.insert(Transition({"observation": np.zeros(1)}, 0, 1.0))
    assert agent.mean_return_over_multiple_episodes.tolist() == [4, 4, 0, 0]


@pytest.mark.parametrize("parameters", [neural_episodic_control, soft_actor_critic])
def test_recurrent_networks_are_refused_where_transitions_come_alone(parameters, tmp_path):
    agent = parameters()
    network = list(agent.network_wrappers.values())[-1]
    network.middleware_parameters = LSTMMiddlewareParameters()
    network.use_separate_networks_per_head = False
    with pytest.raises(CoachError, match="learns from each state without the states before it"):
        graph(agent, Target if parameters is soft_actor_critic else Bandit, tmp_path)


def test_policies_of_unknown_action_spaces_are_refused(tmp_path):
    with pytest.raises(
        CoachError,
        match=r"^DQN is for discrete actions. .* has continuous actions: use SAC, TD3, DDPG, ClippedPPO or A2C",
    ):
        graph(dqn(), Target, tmp_path)
    with pytest.raises(
        CoachError, match=r"is for continuous actions. .* has discrete actions: use DQN, Rainbow, ClippedPPO or A2C"
    ):
        graph(soft_actor_critic(), Bandit, tmp_path)


@pytest.mark.parametrize("parameters", [dqn, prioritized])
def test_the_last_training_phase_is_cut_to_the_updates_wanted(parameters, tmp_path):
    agent = parameters()
    agent.algorithm.num_consecutive_training_steps = 3
    agent.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(5)
    schedule_parameters = schedule(1, heatup=40)
    schedule_parameters.improve_steps = TrainingSteps(11)
    manager = graph(agent, Bandit, tmp_path, schedule_parameters)
    manager.improve()
    agent = manager.get_agent()
    assert agent.training_iteration == agent.networks["main"].state.updates == 11
    assert agent.last_target_network_update_step == 10
    if agent.memory.draws_many_batches:
        assert agent.update_loop.learner.num_compilations == 1  # three updates in a loop, or fewer, with the targets'


def test_batches_without_duplicates_are_drawn_one_by_one(tmp_path):
    parameters = dqn()
    parameters.algorithm.num_consecutive_training_steps = 3
    parameters.memory.allow_duplicates_in_batch_sampling = False
    manager = graph(parameters, Bandit, tmp_path, schedule(4, heatup=20))  # fewer transitions than three batches have
    manager.improve()
    assert manager.get_agent().training_iteration == 6


def test_ppo_over_episodes_of_any_length_compiles_few_steps(tmp_path):
    parameters = clipped_ppo()
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentEpisodes(3)
    parameters.algorithm.act_for_full_episodes = False
    manager = graph(parameters, Lottery, tmp_path, schedule(120))
    manager.improve()
    agent = manager.get_agent()
    assert agent.training_iteration > 4
    assert agent.update_loop.learner.num_compilations == 1


def test_losses_of_agents_that_learn_between_episodes_are_written(tmp_path):
    parameters = policy_gradients()
    parameters.algorithm.apply_gradients_every_x_episodes = 1
    manager = graph(parameters, Bandit, tmp_path, schedule(50), seed=0, writes_csv=True)
    manager.improve()
    manager.close()
    (path,) = tmp_path.glob("*.csv")
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["Training Iter"]) for row in rows] == [1, 2, 3, 4, 5]
    assert all(np.isfinite(float(row[name])) for row in rows for name in ("Loss/Mean", "Learning Rate/Mean"))


@pytest.mark.skipif(not STATM.exists(), reason="reads the process's size as Linux tells it")
def test_memory_stays_flat_over_many_replayed_steps(tmp_path):
    parameters = dqn()
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(20)
    manager = graph(parameters, Bandit, tmp_path, schedule(10**9, heatup=40))
    manager.heatup(EnvironmentSteps(500))
    manager.train_and_act(EnvironmentSteps(5_000))
    before = resident_mebibytes()
    manager.train_and_act(EnvironmentSteps(50_000))
    grown = resident_mebibytes() - before
    assert manager.get_agent().memory.num_transitions() == 500
    assert grown < 8, f"grew by {grown:.1f} MiB"


def resident_mebibytes() -> float:
    """What the process holds in memory now."""
    pages = int(STATM.read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
