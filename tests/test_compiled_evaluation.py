"""Evaluations beside a compiled loop: their episodes are those that are played step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgent
from rl_coach.architectures.jax_components.compiled_evaluation import JaxCompiledEvaluation
from rl_coach.base_parameters import AgentParameters, Frameworks
from rl_coach.compiled_level_manager import CompiledLevelManager
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from tests.frameworks import FRAMEWORK
from tests.samples import one_in
from tests.zoo import continuous
from tests.zoo.graphs import compiled, schedule
from tests.zoo.parameters import actor_critic, clipped_ppo, dqn, pqn, recurrent_ppo, with_normalized_observations
from tests.zoo.states import rows

pytestmark = pytest.mark.skipif(
    FRAMEWORK is not Frameworks.jax, reason="loops are compiled on JAX (COACH_TEST_FRAMEWORK)"
)


def replaying(parameters: AgentParameters) -> AgentParameters:
    """The agent on uniform replay, which learns after every four steps."""
    size = parameters.memory.max_size
    parameters.memory = ExperienceReplayParameters()
    parameters.memory.max_size = size
    parameters.algorithm.act_for_full_episodes = False
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(4)
    return parameters


def rescaled(parameters: AgentParameters) -> AgentParameters:
    parameters.input_filter = InputFilter()
    parameters.input_filter.add_reward_filter("rescale", RewardRescaleFilter(0.5))
    return parameters


def together(parameters: AgentParameters) -> AgentParameters:
    parameters.algorithm.learns_from_copies_together = True
    return parameters


def with_gaussian_noise(parameters: AgentParameters) -> AgentParameters:
    parameters.exploration = AdditiveNoiseParameters()
    return parameters


AGENTS = {
    "ppo": lambda: (with_normalized_observations(rescaled(clipped_ppo())), "walk"),
    "continuous-ppo": lambda: (with_gaussian_noise(clipped_ppo()), "reach"),
    "recurrent-ppo": lambda: (recurrent_ppo(), "recall"),
    "a2c": lambda: (together(actor_critic()), "walk"),
    "pqn": lambda: (pqn(), "walk"),
    "dqn": lambda: (replaying(dqn()), "walk"),
    "ddpg": lambda: (with_gaussian_noise(replaying(continuous.ddpg())), "reach"),
    "td3": lambda: (replaying(continuous.td3()), "reach"),
    "sac": lambda: (replaying(continuous.maximum_entropy()), "reach"),
}


def without_randomness(parameters: AgentParameters) -> AgentParameters:
    for name in ("evaluation_noise", "evaluation_epsilon"):
        if hasattr(parameters.exploration, name):
            setattr(parameters.exploration, name, 0.0)
    return parameters


@pytest.mark.parametrize("name", one_in(2, list(AGENTS)))
def test_its_episodes_are_those_that_are_played_step_by_step(name, tmp_path, monkeypatch):
    written, counts = [], []
    for way in ("called", "stepped"):
        parameters, level = AGENTS[name]()
        steps = schedule(300, evaluate_every=100, evaluation=4)
        manager = compiled(without_randomness(parameters), tmp_path / way, level, steps=steps)
        if way == "stepped":
            monkeypatch.setattr(CompiledLevelManager, "_evaluates_by_steps", True)
            monkeypatch.setattr(JaxCompiledEvaluation, "play", None)
        assert isinstance(manager.level_managers[0], CompiledLevelManager)
        manager.improve()
        counts.append(dict(manager.total_steps_counters[RunPhase.TEST].counters))
        manager.close()
        written.append(rows(tmp_path / way))
    assert counts[0] == counts[1] and counts[0][EnvironmentEpisodes] == 12
    columns = ("Evaluation Reward", "Shaped Evaluation Reward", "Success Rate", "Total steps", "Loss/Mean")
    values = [[[float(row.get(one) or "nan") for one in columns] for row in table] for table in written]
    np.testing.assert_allclose(*values, rtol=1e-5, atol=1e-6)
    assert np.isfinite(np.array(values[0])[:, 0]).sum() == 3


def actions_in_evaluations(manager: Any, number: int) -> np.ndarray:
    """[number, D], actions in one state."""
    import jax

    part, learner = manager.level_managers[0]._part, manager.get_agent().update_loop.learner
    state = {name: one.layout.unpack(learner.ops, one.variables) for name, one in learner.networks.items()}
    size = manager.level_managers[0].environment.state_space["observation"].shape[0]
    states = {"observation": np.full((1, size), 0.2, np.float32)}

    def one(key: Any) -> Any:
        return part.evaluate(key, learner.views(state), states, {})[0][0]

    return np.asarray(jax.vmap(one)(jax.random.split(jax.random.key(0), number)))


@pytest.mark.parametrize("name", ["continuous-ppo", "ddpg"])
def test_noise_is_that_of_evaluations(name, tmp_path):
    parameters, level = AGENTS[name]()
    parameters.exploration.evaluation_noise = 0.03
    manager = compiled(parameters, tmp_path, level)
    actions = actions_in_evaluations(manager, 4000)
    np.testing.assert_allclose(actions.std(axis=0), 0.03 * 2.0, rtol=0.1)  # a share of the range
    manager.close()


def test_epsilon_is_that_of_evaluations(tmp_path):
    parameters, level = AGENTS["dqn"]()
    parameters.exploration.evaluation_epsilon = 0.2
    manager = compiled(parameters, tmp_path, level)
    actions = actions_in_evaluations(manager, 4000)
    best = np.bincount(actions).max() / 4000
    assert best == pytest.approx(1 - 0.2 * (1 - 1 / 2), abs=0.03)
    manager.close()


@pytest.mark.parametrize("is_deterministic", [True, False])
def test_sac_draws_in_evaluations_only_if_it_is_told_to(is_deterministic, tmp_path):
    parameters, level = AGENTS["sac"]()
    parameters.algorithm.use_deterministic_for_evaluation = is_deterministic
    manager = compiled(parameters, tmp_path, level)
    assert bool(np.all(actions_in_evaluations(manager, 50).std(axis=0) < 1e-6)) is is_deterministic
    manager.close()


def test_a_long_episode_is_played_in_several_calls(tmp_path, monkeypatch):
    monkeypatch.setattr("rl_coach.compiled_level_manager._SECONDS_PER_STEP", 0.0)  # a step in each call
    manager = compiled(clipped_ppo(), tmp_path, steps=schedule(64, evaluation=3))
    with manager.evaluation() as rewards:
        while len(rewards) < 3:
            manager.act(EnvironmentEpisodes(1))
            rewards.append(manager.episode_reward())
    steps = manager.total_steps_counters[RunPhase.TEST][EnvironmentSteps]
    assert rewards == manager.evaluation_rewards and steps > 3
    manager.close()


@pytest.mark.parametrize("is_of_class", [True, False])
def test_what_an_agent_of_a_user_does_with_an_evaluated_episode_is_done(is_of_class, tmp_path, monkeypatch):
    manager = compiled(clipped_ppo(), tmp_path, steps=schedule(64, evaluation=3))
    agent, seen = manager.get_agent(), []
    recorded = ClippedPPOAgent.record_evaluated

    def record_evaluated(self: Any, steps: int, reward: float, shaped_reward: float) -> None:
        seen.append(steps)
        recorded(self, steps, reward, shaped_reward)

    if is_of_class:
        monkeypatch.setattr(ClippedPPOAgent, "record_evaluated", record_evaluated)
    else:
        agent.record_evaluated = record_evaluated.__get__(agent)
    manager.evaluate(EnvironmentEpisodes(3))
    assert sum(seen) == manager.total_steps_counters[RunPhase.TEST][EnvironmentSteps] > 0 and len(seen) == 3
    manager.close()
