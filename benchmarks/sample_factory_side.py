"""Trains the works of ``benchmarks.works`` with Sample Factory, on PyTorch. One process plays Gymnasium's vectorized
CartPole, and another process learns.

Sample Factory has no A2C: the works of A2C use PPO with one epoch and one minibatch. The mean return is the mean of the
last training episodes, because the policy is in another process and cannot be evaluated here.
"""

from __future__ import annotations

import os
import tempfile
from functools import partial
from typing import Any, Callable

os.environ["OMP_NUM_THREADS"] = "1"  # one thread, also in the processes that Sample Factory starts

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from sample_factory.algo.runners.runner import AlgoObserver
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import make_runner

from benchmarks.works import Work

GROUPS = 2
"""The copies are divided into two groups. While one group makes a step, the policy acts for the other group."""


class _CartPoles(gymnasium.Env):
    """Several copies of the environment in one object. The simulator begins new episodes itself."""

    def __init__(self, copies: int):
        self._simulator = CartPoleVectorEnv(copies)
        self.observation_space = self._simulator.single_observation_space
        self.action_space = self._simulator.single_action_space
        self.num_agents, self.is_multiagent = copies, True

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, list[dict]]:
        observations, _ = self._simulator.reset(seed=seed)
        return observations.astype(np.float32), [{}] * self.num_agents

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict]:
        observations, rewards, terminated, truncated, _ = self._simulator.step(np.asarray(actions, np.int64))
        return observations.astype(np.float32), rewards, terminated, truncated, {}


def _make(copies: int, *_: Any, **__: Any) -> _CartPoles:
    return _CartPoles(copies)


class _Timer(AlgoObserver):
    def __init__(self, tick: Callable[[int], bool]):
        self._tick = tick

    def on_training_step(self, runner: Any, training_iteration_since_resume: int) -> None:
        if self._tick(runner.total_env_steps_since_resume or 0):
            runner.cfg.train_for_env_steps = 0  # the runner ends when it reads this setting again


def train(work: Work, tick: Callable[[int], bool]) -> float:
    """Train until ``tick`` returns True. :return: the mean return of the last training episodes"""
    register_env("cart_poles", partial(_make, work.environments // GROUPS))
    with tempfile.TemporaryDirectory() as folder:
        arguments = _arguments(work, folder)
        parser, _ = parse_sf_args(argv=arguments)
        _, runner = make_runner(parse_full_cfg(parser, arguments))
        runner.register_observer(_Timer(tick))
        runner.init()
        runner.run()
    return float(np.mean(runner.policy_avg_stats["reward"][0]))


def _arguments(work: Work, folder: str) -> list[str]:
    is_a2c = work.algorithm == "a2c"
    settings = {
        "algo": "APPO", "env": "cart_poles", "experiment": "one", "train_dir": folder, "device": "cpu", "seed": 1,
        "serial_mode": False, "async_rl": True, "batched_sampling": True, "num_workers": 1,
        "num_envs_per_worker": GROUPS, "worker_num_splits": GROUPS,
        "rollout": min(work.rollout // work.environments, work.batch_size), "batch_size": work.batch_size,
        "num_batches_per_epoch": work.rollout // work.batch_size, "num_epochs": 1 if is_a2c else work.epochs,
        "use_rnn": False, "recurrence": 1, "with_vtrace": False, "nonlinearity": "tanh",
        "actor_critic_share_weights": False, "normalize_input": False, "normalize_returns": False, "gamma": 0.99,
        "gae_lambda": 1.0 if is_a2c else 0.95, "learning_rate": 7e-4 if is_a2c else 3e-4, "max_grad_norm": 0.5,
        "reward_scale": 0.1, "ppo_clip_ratio": 0.2, "exploration_loss_coeff": 0.0 if is_a2c else 0.01,
        "value_loss_coeff": 0.5, "shuffle_minibatches": True, "save_every_sec": 100_000, "save_best_every_sec": 100_000,
        "experiment_summaries_interval": 10, "log_to_file": False, "decorrelate_envs_on_one_worker": False,
        "decorrelate_experience_max_seconds": 0, "set_workers_cpu_affinity": False,
    }  # fmt: skip
    layers = ["--encoder_mlp_layers", *map(str, work.hidden)]
    return [*(f"--{name}={value}" for name, value in settings.items()), *layers]
