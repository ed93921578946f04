"""Trains the agents of ``benchmarks.offline`` with d3rlpy."""

from __future__ import annotations

import pathlib
from typing import Any

import d3rlpy
import gymnasium
import numpy as np
from d3rlpy.models.encoders import VectorEncoderFactory

from benchmarks.offline import EPISODES, Comparison
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity

_NETWORK, _SQUARE = VectorEncoderFactory([256, 512]), VectorEncoderFactory([256, 256])
_PENDULUM = {"batch_size": 256, "gamma": 0.98, "action_scaler": d3rlpy.preprocessing.MinMaxActionScaler(-2.0, 2.0)}


def _actor_critic(config: Any, network: VectorEncoderFactory, learning_rates: tuple[float, float], **how: Any) -> Any:
    return config(
        actor_encoder_factory=network,
        critic_encoder_factory=_SQUARE,
        actor_learning_rate=learning_rates[0],
        critic_learning_rate=learning_rates[1],
        **_PENDULUM,
        **how,
    )


def algorithm(preset: str) -> Any:
    """The algorithm of d3rlpy with the settings of a preset. All other settings are d3rlpy's defaults."""
    if preset == "CartPole_DiscreteCQL_BatchRL":
        # the preset's weight: both losses are half of the squared error here, because errors are below 1
        return d3rlpy.algos.DiscreteCQLConfig(
            batch_size=128, gamma=0.98, learning_rate=1e-4, target_update_interval=100, alpha=0.005,
            encoder_factory=_NETWORK, optim_factory=d3rlpy.optimizers.AdamFactory(weight_decay=1e-4),
        ).create()  # fmt: skip
    if preset == "Pendulum_IQL_BatchRL":
        how = {"expectile": 0.9, "weight_temp": 10.0, "value_encoder_factory": _NETWORK}
        return _actor_critic(d3rlpy.algos.IQLConfig, _NETWORK, (3e-4, 3e-4), **how).create()
    if preset == "Pendulum_TD3BC_BatchRL":
        return _actor_critic(d3rlpy.algos.TD3PlusBCConfig, _SQUARE, (1e-3, 1e-3), alpha=20.0).create()
    # d3rlpy's loss has the squared error without the factor 1/2, so the weight is twice Coach's. A learned factor of
    # the penalty begins with 1: the rate 0 keeps it constant
    how = {"conservative_weight": 0.2, "alpha_learning_rate": 0.0, "temp_learning_rate": 3e-4, "soft_q_backup": True}
    return _actor_critic(d3rlpy.algos.CQLConfig, _NETWORK, (1e-3, 1e-3), n_action_samples=3, **how).create()


def score_of(comparison: Comparison, data: pathlib.Path, seed: int) -> float:
    """Train on recorded data. :return: the mean return of ``EPISODES`` evaluation episodes"""
    d3rlpy.seed(seed)
    learner = algorithm(comparison.preset)
    learner.fit(
        _data_set(data), comparison.updates, comparison.updates, show_progress=False,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
    )  # fmt: skip
    environment = gymnasium.make(comparison.level)
    return float(np.mean([_episode(learner, environment, 1000 * seed + number) for number in range(EPISODES)]))


def _data_set(data: pathlib.Path) -> Any:
    memory = EpisodicExperienceReplay((MemoryGranularity.Transitions, 10**6))
    memory.load(data)
    rows = memory.transitions
    is_discrete = rows.action_column.ndim == 1
    return d3rlpy.dataset.MDPDataset(
        rows.state_columns["observation"].astype(np.float32),
        rows.action_column[:, None] if is_discrete else rows.action_column.astype(np.float32),
        rows.reward_column[:, None],
        rows.terminated_column.astype(np.float32),
        (rows.game_over_column & ~rows.terminated_column).astype(np.float32),
    )


def _episode(learner: Any, environment: gymnasium.Env, seed: int) -> float:
    total, (state, _), is_over = 0.0, environment.reset(seed=seed), False
    while not is_over:
        action = learner.predict(np.asarray(state, np.float32)[None])[0]
        state, reward, terminated, truncated, _ = environment.step(action)
        total, is_over = total + float(reward), terminated or truncated
    return total
