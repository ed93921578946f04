"""The works in other libraries, where they are installed (the extra ``bench``)."""

from __future__ import annotations

import os
from typing import Any, Callable

import gymnasium

from benchmarks.works import Work

BUFFER = 40_000


def stable_baselines3(work: Work) -> Callable[[int], None]:
    """Stable-Baselines3, on PyTorch.

    :raises ImportError: it is not installed
    """
    import stable_baselines3
    import torch

    # two threads slow the small networks down and speed the convolutions up
    torch.set_num_threads(2 if _is_image(work) else 1)
    return _runner(work, stable_baselines3, {"net_arch": list(work.hidden)})


def sbx(work: Work) -> Callable[[int], None]:
    """SBX, Stable-Baselines3's sibling on JAX.

    :raises ImportError: it is not installed
    """
    if work.algorithm != "sac" and not _is_image(work):
        os.environ["NPROC"] = "1"  # the same there; what XLA reads before its first computation
    import sbx as library

    return _runner(work, library, {"net_arch": list(work.hidden)})


def _runner(work: Work, library: Any, policy: dict) -> Callable[[int], None]:
    environment = _environment(work)
    kind = "CnnPolicy" if _is_image(work) else "MlpPolicy"
    if work.algorithm == "dqn":
        model = library.DQN(
            kind, environment, batch_size=work.batch_size, buffer_size=BUFFER, learning_starts=work.batch_size,
            train_freq=work.steps_per_update, gradient_steps=1, target_update_interval=100, exploration_fraction=1e-6,
            exploration_final_eps=0.01, policy_kwargs={} if _is_image(work) else policy,
        )  # fmt: skip
    elif work.algorithm == "ppo":
        model = library.PPO(
            kind, environment, n_steps=2048 // work.environments, n_epochs=10, batch_size=work.batch_size,
            policy_kwargs=policy,
        )  # fmt: skip
    else:
        model = library.SAC(
            kind, environment, batch_size=work.batch_size, buffer_size=BUFFER, learning_starts=work.batch_size,
            train_freq=1, gradient_steps=1, policy_kwargs=policy,
        )  # fmt: skip

    def run(steps: int) -> None:
        model.learn(steps, reset_num_timesteps=False)

    return run


def _is_image(work: Work) -> bool:
    return work.level is not None and "Pong" in work.level


def _environment(work: Work) -> Any:
    from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

    if not _is_image(work):
        return DummyVecEnv([lambda: gymnasium.make(work.level)] * work.environments)
    import ale_py
    from stable_baselines3.common.atari_wrappers import AtariWrapper

    gymnasium.register_envs(ale_py)
    return VecFrameStack(DummyVecEnv([lambda: AtariWrapper(gymnasium.make(work.level))]), 4)


PEERS: dict[str, Callable[[Work], Callable[[int], None]]] = {"sb3": stable_baselines3, "sbx": sbx}
