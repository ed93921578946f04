"""A trainer's loop as programs written for Coach have it: transitions come out of a memory backend, one by one."""

from __future__ import annotations

import os

import numpy as np
import pytest

from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, Transition
from rl_coach.data_stores.data_store import SyncFiles
from rl_coach.memories.backend.memory_impl import get_memory_backend
from rl_coach.memories.backend.redis import RedisPubSubMemoryBackendParameters
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import clipped_ppo, dqn

pytest.importorskip("redis")
LENGTH = 5  # of an episode


def transitions(count: int) -> list[Transition]:
    state = {"observation": np.ones(2, np.float32)}
    return [
        Transition(
            state=dict(state), action=i % 2, reward=float(i), next_state=dict(state), game_over=i % LENGTH == LENGTH - 1
        )
        for i in range(count)
    ]


def test_what_workers_stored_is_fetched_and_learned_from(tmp_path):
    from rl_coach.orchestrators.embedded_redis import EmbeddedRedis

    redis = EmbeddedRedis(tmp_path)
    redis.start()
    try:
        backend = RedisPubSubMemoryBackendParameters("127.0.0.1", redis.port, "run", {"redis_password": redis.password})
        parameters = dqn()
        parameters.memory.register_var("memory_backend_params", backend)
        trainer = graph(parameters, Bandit, tmp_path, schedule(100))
        trainer.setup_memory_backend()
        sender = get_memory_backend(backend)
        for transition in transitions(40):
            sender.store(transition)
        sender.flush()
        with trainer.phase_context(RunPhase.TRAIN):
            trainer.fetch_from_worker(EnvironmentEpisodes(2))
            counter = trainer.current_step_counter
            first = counter[EnvironmentSteps]
            assert first >= 10 and counter[EnvironmentEpisodes] == first // LENGTH
            if first < 40:
                trainer.fetch_from_worker(EnvironmentSteps(40 - first))
            assert (counter[EnvironmentSteps], counter[EnvironmentEpisodes]) == (40, 8)
            trainer.train()
    finally:
        redis.stop()
    agent = trainer.get_agent()
    assert agent.memory.length() == 40 and agent.training_iteration > 0
    assert sorted(agent.memory.sample(500).rewards().tolist())[-1] <= 39


def test_episodes_of_an_on_policy_agent_are_closed(tmp_path):
    trainer = graph(clipped_ppo(), Bandit, tmp_path, schedule(100))
    with trainer.phase_context(RunPhase.TRAIN):
        for transition in transitions(2 * LENGTH + 1):
            trainer.emulate_act_on_trainer(EnvironmentSteps(1), transition)
    agent = trainer.get_agent()
    assert agent.current_episode == 2 and agent.memory.num_complete_episodes() == 2
    assert agent.total_reward_in_current_episode == 10.0


def test_workers_are_told_by_files_beside_the_checkpoints(tmp_path):
    trainer = graph(dqn(), Bandit, tmp_path, schedule(100))
    directory = tmp_path / "checkpoints"
    trainer.task_parameters.checkpoint_save_dir = str(directory)
    trainer.signal_ready()
    assert not directory.exists()
    directory.mkdir()
    trainer.signal_ready()
    trainer.flush_finished()
    assert set(os.listdir(directory)) == {SyncFiles.TRAINER_READY.value, SyncFiles.FINISHED.value}
