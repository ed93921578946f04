"""Augmented random search: its step against the paper in float64, the episodes that it compares, and its refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.ars_agent import DIRECTION, ARSAgentParameters
from rl_coach.agents.core.experience import ExperienceChunk
from rl_coach.agents.rules.random_search import direction_of, random_search_gradient
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, TrainingSteps
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.utils import CoachError
from tests.agents.test_received_segments import split
from tests.zoo.environments import Bandit, Lottery, MaskedChain, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.states import weights_of


def small(directions: int = 4, top: int | None = None, normalizes: bool = False) -> AgentParameters:
    agent = ARSAgentParameters(normalizes)
    agent.algorithm.num_directions, agent.algorithm.num_top_directions = directions, top
    agent.algorithm.noise, agent.network_wrappers["main"].learning_rate = 0.5, 0.3
    return agent


def step_of_the_paper(weights: Any, played: list[tuple[np.ndarray, float, float]], alpha: float, top: int) -> Any:
    """M + alpha / (b sigma) sum (r+ - r-) delta of the b best, direction by direction (algorithm 2)."""
    ordered = sorted(played, key=lambda one: max(one[1:]), reverse=True)[:top]
    returns = [one for _, plus, minus in ordered for one in (plus, minus)]
    mean = sum(returns) / len(returns)
    sigma = (sum((one - mean) ** 2 for one in returns) / len(returns)) ** 0.5
    total = sum((plus - minus) * delta for delta, plus, minus in ordered)
    return weights + alpha / (top * sigma) * total


@pytest.mark.parametrize("top", [1, 3, 7])
def test_the_gradient_is_the_step_of_the_paper(top):
    rng = np.random.default_rng(top)
    deltas, plus, minus = rng.normal(size=(7, 5)), rng.normal(size=7), rng.normal(size=7)
    weights = rng.normal(size=5)
    expected = step_of_the_paper(weights, list(zip(deltas, plus, minus)), 0.1, top)
    np.testing.assert_allclose(weights - 0.1 * random_search_gradient(deltas, plus, minus, top), expected, rtol=1e-12)


def test_equal_returns_move_nothing():
    gradient = random_search_gradient(np.ones((3, 2)), np.full(3, 7.0), np.full(3, 7.0), 3)
    np.testing.assert_array_equal(gradient, np.zeros(2))


def flat(arrays: Any) -> np.ndarray:
    return np.concatenate([np.ravel(array) for array in arrays]).astype(np.float64)


def noted(manager: Any) -> list[Any]:
    """The transitions that the agent will play."""
    agent, found = manager.get_agent(), []
    store = agent.observe_transition

    def note(transition: Any) -> bool:
        if not agent.is_in_evaluation:
            found.append((transition.info[DIRECTION].tolist(), transition.reward, agent.episode.weights))
        return store(transition)

    agent.observe_transition = note
    return found


@pytest.mark.parametrize("environment", [Bandit, Target])
@pytest.mark.parametrize("top", [None, 2])
def test_an_update_is_the_step_of_the_paper_from_what_was_played(environment, top, tmp_path):
    manager = graph(small(top=top), environment, tmp_path, schedule(10000))
    agent, steps = manager.get_agent(), noted(manager)
    network = agent.networks["main"].online_network
    for update in range(3):
        before = flat(network.get_weights())
        assert update or not before.any()
        manager.train_and_act(TrainingSteps(1))
        played: dict[int, dict[int, float]] = {}
        for (updates, seed, side), reward, weights in steps:
            assert updates == update
            change = side * 0.5 * direction_of(seed, weights)
            np.testing.assert_allclose(flat(weights), before + change, rtol=1e-5, atol=1e-6)
            sides = played.setdefault(seed, {})
            sides[side] = sides.get(side, 0.0) + float(np.float32(reward))
        steps.clear()
        directions = [(direction_of(seed, network.get_weights()), one[1], one[-1]) for seed, one in played.items()]
        expected = step_of_the_paper(before, directions, 0.3, top or 4)
        np.testing.assert_allclose(flat(network.get_weights()), expected, rtol=1e-5, atol=1e-6)
        assert agent.training_iteration == update + 1 and agent.memory.num_transitions() == 0


@pytest.mark.parametrize(("environment", "steps", "best"), [(Bandit, 4000, 9.5), (Target, 6000, -2.5)])
def test_it_learns(environment, steps, best, tmp_path):
    agent = small(directions=4, top=2)
    agent.network_wrappers["main"].learning_rate = 0.1
    agent.algorithm.noise = 0.2
    manager = graph(agent, environment, tmp_path, schedule(steps, evaluation=10))
    manager.improve()
    assert np.mean(manager.evaluation_rewards) >= best


def test_v2_normalises_with_the_states_of_the_updates_before(tmp_path):
    manager = graph(small(normalizes=True), Target, tmp_path, schedule(10000))
    (normalization,) = manager.get_agent().pre_network_filter.observation_filters["observation"].values()
    manager.train_and_act(EnvironmentSteps(20))
    assert normalization.running_observation_stats.n == 0
    manager.train_and_act(TrainingSteps(1))
    assert normalization.running_observation_stats.n == 40  # four directions, two sides, five steps


def test_copies_compare_only_episodes_of_the_present_weights(tmp_path):
    manager = graph(small(), Lottery, tmp_path, schedule(10000), copies=3)
    agent, used = manager.get_agent(), []
    search = agent.search
    agent.search = lambda pairs: (used.append((agent.training_iteration, pairs)), search(pairs))
    steps = noted(manager)
    manager.train_and_act(TrainingSteps(4))
    of = {seed: updates for (updates, seed, _), *_ in steps}
    assert [updates for updates, _ in used] == [0, 1, 2, 3]
    for updates, pairs in used:
        assert len(pairs) >= 4 and all(of[seed] == updates and set(sides) == {1, -1} for seed, sides in pairs.items())


def test_a_worker_tells_the_trainer_which_weights_it_played(tmp_path):
    worker, trainer = split(small, tmp_path)
    player, learner = worker.get_agent(), trainer.get_agent()
    for update in range(3):
        while not learner.should_train():
            worker.act(EnvironmentEpisodes(1))
            columns, lengths = player.memory.take()
            reports = list(player.signals.reports)
            player.signals.reports.clear()
            left = learner.learning.left_to_play()[0]
            assert left > 0
            learner.take_in(ExperienceChunk(sum(lengths), lengths, columns, reports))
        before = flat(learner.networks["main"].online_network.get_weights())
        learner.train()
        assert learner.training_iteration == update + 1
        assert not np.array_equal(before, flat(learner.networks["main"].online_network.get_weights()))
        player.take_policy(learner.acting_policy())
    learner.phase = RunPhase.TRAIN
    worker.act(EnvironmentEpisodes(1))
    columns, lengths = player.memory.take()
    columns.info_columns = {}
    with pytest.raises(CoachError, match="'direction'"):
        learner.take_in(ExperienceChunk(sum(lengths), lengths, columns))


def test_the_return_of_an_episode_that_the_heatup_began_does_not_count(tmp_path):
    manager = graph(small(), Target, tmp_path, schedule(10000))
    agent = manager.get_agent()
    manager.phase = RunPhase.HEATUP
    manager.act(EnvironmentSteps(2))  # an episode has five steps
    manager.phase = RunPhase.TRAIN
    manager.act(EnvironmentSteps(3))
    assert agent.clock.episodes == 1 and agent.learning._present == {}
    manager.act(EnvironmentSteps(5))
    ((_, sides),) = agent.learning._present.items()
    assert set(sides) == {1}


def test_a_checkpoint_continues_exactly(tmp_path):
    managers = [graph(small(normalizes=True), Lottery, tmp_path / name, schedule(10000)) for name in ("one", "other")]
    first, second = (manager.get_agent() for manager in managers)
    managers[0].train_and_act(EnvironmentEpisodes(11))
    second.set_state(first.get_state())
    second.exploration_policy.set_state(first.exploration_policy.get_state())
    environments = [manager.environments[0] for manager in managers]
    environments[1].set_state(environments[0].get_state())
    for manager in managers:
        manager.train_and_act(EnvironmentEpisodes(20))
    assert first.training_iteration == second.training_iteration > 2
    for one, other in zip(*map(weights_of, managers), strict=True):
        np.testing.assert_array_equal(one, other)


def test_masked_actions_are_never_taken(tmp_path):
    manager = graph(small(), MaskedChain, tmp_path, schedule(1000))
    manager.train_and_act(TrainingSteps(3))


def test_a_network_with_hidden_layers_starts_at_its_own_weights(tmp_path):
    agent = small()
    agent.network_wrappers["main"].middleware_parameters.scheme = [Dense(8)]
    agent.algorithm.starts_at_zero = False
    manager = graph(agent, Bandit, tmp_path, schedule(1000))
    assert all(np.any(array) for array in weights_of(manager)[:1])
    manager.train_and_act(TrainingSteps(2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda agent: setattr(agent.algorithm, "num_directions", 0), "num_directions is 0"),
        (lambda agent: setattr(agent.algorithm, "num_top_directions", 9), "num_top_directions is 9"),
        (lambda agent: setattr(agent.algorithm, "noise", 0), "noise is 0"),
        (lambda agent: setattr(agent, "memory", ExperienceReplayParameters()), "complete episodes"),
    ],
)
def test_settings_that_do_not_fit_are_refused(change, message, tmp_path):
    agent = ARSAgentParameters()
    change(agent)
    with pytest.raises(CoachError, match=message):
        graph(agent, Bandit, tmp_path)
