"""Agents that imitate actions of several parts: a distribution for each part, from data in several forms."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rl_coach.agents.acer_agent import ACERAgentParameters
from rl_coach.agents.bc_agent import BCAgentParameters
from rl_coach.agents.gail_agent import GAILAgentParameters
from rl_coach.agents.impala_agent import BEHAVIOUR, IMPALAAgentParameters
from rl_coach.core_types import CsvDataset, EnvironmentSteps, TrainingSteps, Transition
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.memories.episodic.episodic_experience_replay import (
    EpisodicExperienceReplay,
    EpisodicExperienceReplayParameters,
)
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.policy import Policy
from rl_coach.utils import CoachError
from tests.zoo.graphs import graph, schedule

COUNTS = (3, 2)
EPISODES, LENGTH = 20, 5


class Choices(gymnasium.Env):
    """The observation is a number; the right action is its remainders. The reward is 1 if both parts are right."""

    observation_space = spaces.Box(0, 1, (6,), np.float32)
    action_space = spaces.MultiDiscrete(COUNTS, start=(0, 5))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.look(), {}

    def look(self):
        self.number = int(self.np_random.integers(6))
        return np.eye(6, dtype=np.float32)[self.number]

    def step(self, action):
        assert self.action_space.contains(action)
        reward = float((action == [self.number % 3, 5 + self.number % 2]).all())
        self.steps += 1
        return self.look(), reward, False, self.steps >= LENGTH, {}


LEVEL = f"{__name__}:Choices"


def demonstrations() -> tuple[np.ndarray, np.ndarray]:
    """[N, 6] states, and [N, 2] their right actions, each part from 0 on."""
    numbers = np.random.default_rng(0).integers(6, size=EPISODES * LENGTH)
    return np.eye(6, dtype=np.float32)[numbers], np.stack([numbers % 3, numbers % 2], axis=1)


def saved(directory: Any) -> str:
    memory = EpisodicExperienceReplay((MemoryGranularity.Transitions, 1000))
    states, actions = demonstrations()
    for row, (state, action) in enumerate(zip(states, actions)):
        following = states[(row + 1) % len(states)]
        memory.store(Transition({"observation": state}, action, 1.0, {"observation": following}, row % LENGTH == 4))
    path = str(directory / "demonstrations.npz")
    memory.save(path)
    return path


def written(directory: Any) -> CsvDataset:
    lines = ["action_0,action_1,episode_id,reward," + ",".join(f"state_feature_{i}" for i in range(6))]
    for row, (state, action) in enumerate(zip(*demonstrations())):
        lines.append(",".join(map(str, [*action, row // LENGTH, 1, *state])))
    path = directory / "demonstrations.csv"
    path.write_text("\n".join(lines))
    return CsvDataset(str(path), is_episodic=True)


def minari_set(directory: Any) -> str:
    minari = pytest.importorskip("minari")
    from minari.data_collector import EpisodeBuffer

    states, actions = demonstrations()
    buffers = [
        EpisodeBuffer(
            id=number,
            observations=np.append(states[rows], states[:1], axis=0),
            actions=actions[rows] + [0, 5],
            rewards=np.ones(LENGTH),
            terminations=np.zeros(LENGTH, bool),
            truncations=np.arange(LENGTH) == LENGTH - 1,
        )
        for number, rows in enumerate(np.split(np.arange(len(states)), EPISODES))
    ]
    name = "coach/choices-v0"
    minari.create_dataset_from_buffers(
        name, buffers, observation_space=Choices.observation_space, action_space=Choices.action_space
    )
    return f"minari:{name}"


@pytest.mark.parametrize("recorded", [saved, written, minari_set])
def test_cloning_learns_each_part(recorded, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    agent = BCAgentParameters()
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(0)
    agent.algorithm.num_consecutive_training_steps = 8
    agent.network_wrappers["main"].learning_rate = 0.01
    agent.memory = EpisodicExperienceReplayParameters()
    agent.memory.load_memory_from_file_path = recorded(tmp_path)
    agent.exploration.evaluation_epsilon = 0
    manager = graph(agent, GymVectorEnvironment(level=LEVEL), tmp_path, schedule(TrainingSteps(100), evaluation=4))
    manager.improve()
    assert manager.evaluation_rewards == [LENGTH] * 4


def test_random_actions_of_a_cloned_policy_are_choices(tmp_path):
    agent = BCAgentParameters()
    agent.exploration.evaluation_epsilon = 1.0
    manager = graph(agent, GymVectorEnvironment(level=LEVEL), tmp_path, schedule(20))
    manager.heatup(EnvironmentSteps(10))
    manager.improve()
    manager.export_policy(str(tmp_path / "policy"))
    policy = Policy.load(tmp_path / "policy", seed=0)
    state = np.eye(6, dtype=np.float32)[0]
    drawn = {tuple(policy.act(state, deterministic=False).tolist()) for _ in range(100)}
    assert drawn == {(first, second) for first in range(3) for second in (5, 6)}


def test_a_discriminator_judges_each_part(tmp_path):
    agent = GAILAgentParameters()
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    agent.memory.load_memory_from_file_path = saved(tmp_path)
    manager = graph(agent, GymVectorEnvironment(level=LEVEL), tmp_path, schedule(1500))
    manager.improve()
    learner, (states, actions) = manager.get_agent(), demonstrations()
    logits = learner.networks["discriminator"].online_network.predict({"observation": states})
    assert logits.shape == (len(states), 2, 3)
    wrong = np.stack([(actions[:, 0] + 1) % 3, 1 - actions[:, 1]], axis=1)

    def judged(given: np.ndarray) -> float:
        return float(np.mean([row[0, one[0]] + row[1, one[1]] for row, one in zip(logits, given)]))

    assert judged(actions) > judged(wrong) + 1


def test_impala_stores_the_probability_of_all_parts(tmp_path):
    manager = graph(IMPALAAgentParameters(), GymVectorEnvironment(level=LEVEL), tmp_path, schedule(20))
    agent, stored = manager.get_agent(), []
    seen = agent.update_transition_before_adding_to_replay_buffer

    def record(transition: Transition) -> Transition:
        stored.append((seen(transition).info[BEHAVIOUR], agent.episode.last_action_info))
        return transition

    agent.update_transition_before_adding_to_replay_buffer = record
    manager.improve()
    for log_prob, chosen in stored:
        probabilities = chosen.all_action_probabilities
        assert probabilities.shape == (2, 3) and probabilities[1, 2] == 0
        expected = np.log(probabilities[0, chosen.action[0]] * probabilities[1, chosen.action[1]])
        assert log_prob == pytest.approx(expected, abs=1e-5)
    assert len(stored) == 20


def test_agents_of_one_number_say_so_if_choices_are_not_combined(tmp_path):
    environment = GymVectorEnvironment(level=LEVEL)
    environment.combines_choices = False
    with pytest.raises(
        CoachError, match=r"env_params\.combines_choices is False: set it to True, or choose ClippedPPO or A2C"
    ):
        graph(ACERAgentParameters(), environment, tmp_path, schedule(20))
