"""Trains the works of ``benchmarks.works`` with Stable-Baselines3, SB3-Contrib and SBX."""

from __future__ import annotations

import os
from typing import Any

import gymnasium

from benchmarks.returns import mean_return
from benchmarks.works import Work

BUFFER = 40_000


class Training:
    """A model. Each call trains it for some more steps."""

    def __init__(self, model: Any):
        self._model = model

    def __call__(self, steps: int) -> None:
        self._model.learn(steps, reset_num_timesteps=False)

    def mean_return(self) -> float:
        """The mean return of episodes of CartPole, with the most probable actions."""
        return mean_return(lambda observations: self._model.predict(observations, deterministic=True)[0])


def stable_baselines3(work: Work) -> Training:
    """Begin the training of a work with Stable-Baselines3, on PyTorch."""
    import stable_baselines3
    import torch

    # with two threads, small networks are slower and convolutions are faster
    torch.set_num_threads(2 if _is_image(work) else 1)
    return _training(work, stable_baselines3, {"net_arch": list(work.hidden)})


def sbx(work: Work) -> Training:
    """Begin the training of a work with SBX, the version of Stable-Baselines3 for JAX."""
    if work.algorithm not in ("sac", "ddpg", "td3") and not _is_image(work):
        os.environ["NPROC"] = "1"  # one thread, as for PyTorch; XLA reads this before its first computation
    import sbx as library

    return _training(work, library, {"net_arch": list(work.hidden)})


def sb3_contrib(work: Work) -> Training:
    """Begin the training of a work with SB3-Contrib, a package of more algorithms for Stable-Baselines3."""
    import sb3_contrib as library
    import torch

    torch.set_num_threads(1)
    return _training(work, library, {"net_arch": list(work.hidden)})


def _training(work: Work, library: Any, policy: dict) -> Training:
    name = work.algorithm.replace("_", "").upper()
    kind = "CnnPolicy" if _is_image(work) else "MlpPolicy"
    settings: dict[str, Any] = {} if _is_image(work) else {"policy_kwargs": policy}
    if work.algorithm == "ppo":
        settings |= {"n_epochs": work.epochs, "batch_size": work.batch_size}
    if work.algorithm in ("ppo", "a2c"):
        settings |= {"n_steps": work.rollout // work.environments}
    else:
        settings |= {
            "batch_size": work.batch_size, "buffer_size": BUFFER, "learning_starts": work.batch_size,
            "train_freq": work.steps_per_update // work.environments, "gradient_steps": 1,
        }  # fmt: skip
    if work.algorithm in ("dqn", "qr_dqn"):
        settings |= {"target_update_interval": 100, "exploration_fraction": 1e-6, "exploration_final_eps": 0.01}
    if work.algorithm == "qr_dqn":
        settings["policy_kwargs"] = {**policy, "n_quantiles": 50}
    return Training(getattr(library, name)(kind, _environment(work), **settings))


def _is_image(work: Work) -> bool:
    return work.level is not None and "Pong" in work.level


def _environment(work: Work) -> Any:
    from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

    if not _is_image(work):
        name = (work.level or "").rpartition(":")[2]  # gymnax and Gymnasium use the same names
        return DummyVecEnv([lambda: gymnasium.make(name)] * work.environments)
    import ale_py
    from stable_baselines3.common.atari_wrappers import AtariWrapper

    gymnasium.register_envs(ale_py)
    return VecFrameStack(DummyVecEnv([lambda: AtariWrapper(gymnasium.make(work.level))] * work.environments), 4)
