"""Behavioural cloning: what it learns, and from which files."""

from __future__ import annotations

import pathlib
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from benchmarks.demonstrations import balance
from rl_coach.agents.bc_agent import BCAgentParameters
from rl_coach.base_parameters import AgentParameters, TaskParameters, VisualizationParameters
from rl_coach.core_types import CsvDataset, EnvironmentEpisodes, EnvironmentSteps, TrainingSteps, Transition
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import graph, schedule


def cloning(recorded: Any, updates: int = 8) -> AgentParameters:
    agent = BCAgentParameters()
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(0)
    agent.algorithm.num_consecutive_training_steps = updates
    agent.exploration.evaluation_epsilon = 0
    agent.network_wrappers["main"].learning_rate = 0.001
    agent.memory.load_memory_from_file_path = recorded
    return agent


def demonstrate(path: pathlib.Path, episodes: int) -> None:
    """Write episodes of ``balance`` in Coach's CSV layout."""
    environment = gym.make("CartPole-v1")
    lines = ["action,all_action_probabilities,episode_id,reward," + ",".join(f"state_feature_{i}" for i in range(4))]
    for episode in range(episodes):
        state, _ = environment.reset(seed=episode)
        over = False
        while not over:
            action = balance(state)
            probabilities = [1 - action, action]
            lines.append(f'{action},"{probabilities}",{episode},1,' + ",".join(map(str, state)))
            state, _, terminated, truncated, _ = environment.step(action)
            over = terminated or truncated
    assert len(lines) == 500 * episodes + 1  # it balances for the whole episode
    path.write_text("\n".join(lines))


def test_ten_demonstrations_teach_the_cart_pole(tmp_path):
    demonstrate(tmp_path / "ten.csv", episodes=10)
    agent = cloning(None)
    agent.memory = EpisodicExperienceReplayParameters()
    agent.memory.load_memory_from_file_path = CsvDataset(str(tmp_path / "ten.csv"), is_episodic=True)
    manager = BasicRLGraphManager(
        agent,
        GymVectorEnvironment(level="CartPole-v1"),
        schedule(TrainingSteps(3000), evaluation=30),
        VisualizationParameters(dump_parameters_documentation=False, dump_csv=False),
    )
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=1))
    manager.improve()
    assert manager.get_agent().training_iteration == 3000 and manager.get_agent().total_steps_counter == 0
    assert manager.evaluation_rewards == [500] * 30


def saved_memory(path: pathlib.Path, states: np.ndarray, actions: np.ndarray) -> str:
    memory = ExperienceReplay((MemoryGranularity.Transitions, 1000))
    for state, action in zip(states, actions):
        memory.store(Transition({"observation": state}, action, 0.0, {"observation": state}, True))
    memory.save(str(path))
    return str(path)


def test_the_policy_becomes_the_frequencies_of_the_demonstrations(tmp_path):
    """Of a softmax, the maximum of the likelihood is the share of each action in each state."""
    states = np.repeat(np.eye(2, dtype=np.float32), 100, axis=0)
    actions = np.concatenate([np.arange(100) < 25, np.arange(100) < 60]).astype(int)
    agent = cloning(saved_memory(tmp_path / "shares.npz", states, actions))
    agent.network_wrappers["main"].learning_rate, agent.network_wrappers["main"].batch_size = 0.003, 200
    manager = graph(agent, Bandit, tmp_path, schedule(TrainingSteps(600)))
    manager.train_and_act(TrainingSteps(600))
    (probabilities,) = manager.get_agent().get_prediction([{"observation": one} for one in np.eye(2, dtype=np.float32)])
    np.testing.assert_allclose(probabilities, [[0.75, 0.25], [0.4, 0.6]], atol=0.06)


def test_its_loss_is_the_mean_negative_log_likelihood(tmp_path):
    states = np.eye(2, dtype=np.float32)[[0, 1, 0, 1]]
    actions = np.array([0, 0, 1, 1])
    agent = cloning(saved_memory(tmp_path / "four.npz", states, actions))
    manager = graph(agent, Bandit, tmp_path, schedule(TrainingSteps(8)))
    learner = manager.get_agent()
    batch = learner.memory.transitions_at(np.arange(4))
    (before,) = learner.get_prediction([{"observation": state} for state in states])
    expected = -np.log(before[np.arange(4), actions]).mean()
    assert float(learner.learn_from_batch(batch)[0]) == pytest.approx(expected, rel=1e-5)


def test_continuous_actions_are_learned_too(tmp_path):
    states = np.random.default_rng(0).uniform(-1, 1, (400, 1)).astype(np.float32)
    actions = np.where(states > 0, 0.5, -0.5).astype(np.float32)
    agent = cloning(saved_memory(tmp_path / "box.npz", states, actions))
    manager = graph(agent, Target, tmp_path, schedule(TrainingSteps(2000), evaluation=1))
    manager.improve()
    means = manager.get_agent().get_prediction([{"observation": np.float32([x])} for x in (-0.6, 0.6)])[0]
    np.testing.assert_allclose(means, [[-0.5], [0.5]], atol=0.1)


def test_an_evaluation_chooses_the_most_probable_action(tmp_path):
    states = np.eye(2, dtype=np.float32)[np.arange(200) % 2]
    agent = cloning(saved_memory(tmp_path / "lights.npz", states, np.arange(200) % 2))
    manager = graph(agent, Bandit, tmp_path, schedule(TrainingSteps(400), evaluation=5))
    manager.improve()
    assert manager.evaluation_rewards == [10] * 5
    manager.evaluate(EnvironmentEpisodes(2))
