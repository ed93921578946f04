"""Writes the demonstrations for presets that imitate: ``python -m benchmarks.demonstrations``.

A linear controller balances the cart pole. The pole never falls. The files have the format of ``coach --play``.
"""

from __future__ import annotations

import pathlib

import gymnasium as gym
import numpy as np

from rl_coach.core_types import Episode, Transition
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity

DIRECTORY = pathlib.Path(__file__).parents[1] / "presets" / "demonstrations"


def balance(state: np.ndarray) -> int:
    """The controller's action, 0 or 1. :param state: position, velocity, angle and angular velocity"""
    position, velocity, angle, rate = state
    return int(0.1 * position + 0.3 * velocity + 3 * angle + rate > 0)


def balanced_episode(environment: gym.Env, seed: int) -> Episode:
    """An episode of 500 steps from the initial state of ``seed``."""
    episode, (state, _), is_over = Episode(), environment.reset(seed=seed), False
    while not is_over:
        action = balance(state)
        next_state, reward, terminated, truncated, _ = environment.step(action)
        is_over = terminated or truncated
        states = {"observation": state}, {"observation": next_state}
        episode.insert(Transition(states[0], action, float(reward), states[1], is_over, terminated=terminated))
        state = next_state
    return episode


def record(path: str | pathlib.Path, episodes: int) -> None:
    """Write demonstrations of the cart pole, one episode for each seed from 0 on."""
    memory = EpisodicExperienceReplay((MemoryGranularity.Episodes, episodes))
    environment = gym.make("CartPole-v1")
    for seed in range(episodes):
        memory.store_episode(balanced_episode(environment, seed))
    memory.save(path)


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    for number in (3, 10):
        record(DIRECTORY / f"cart_pole_{number}.npz", number)
