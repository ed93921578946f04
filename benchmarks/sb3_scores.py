"""Stable-Baselines3, trained as a tuned preset of ours says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize, sync_envs_normalization


@dataclass(frozen=True)
class PeerSettings:
    """A training of PPO with normalised observations.

    :param copies: of the environment
    :param period: steps between evaluations of ten episodes
    :param how: arguments of ``PPO``, where they are not its defaults
    """

    level: str
    copies: int
    steps: int
    period: int
    how: dict[str, Any] = field(default_factory=dict)


SETTINGS = {
    "HalfCheetah_PPO": PeerSettings("HalfCheetah-v5", 8, 102_400, 10_240, {"n_steps": 256}),
    "Hopper_PPO": PeerSettings("Hopper-v5", 8, 102_400, 10_240, {"n_steps": 256}),
}
EPISODES_ON_THE_WAY = 10


class _Curve(BaseCallback):
    def __init__(self, evaluated: VecNormalize, period: int):
        super().__init__()
        self.evaluated, self.period = evaluated, period
        self.points: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps and self.num_timesteps % self.period == 0:
            self.note()

    def note(self) -> None:
        """Evaluate now."""
        self.points.append((self.num_timesteps, mean_return(self.model, self.evaluated, EPISODES_ON_THE_WAY)))


def mean_return(model: Any, evaluated: VecNormalize, episodes: int) -> float:
    """The mean return of some episodes, actions without noise."""
    sync_envs_normalization(model.get_env(), evaluated)
    return float(evaluate_policy(model, evaluated, episodes, deterministic=True)[0])


def train(settings: PeerSettings, seed: int, episodes: int) -> tuple[float, list[tuple[int, float]]]:
    """:return: the mean return of some episodes after the last step, and the evaluations on the way"""
    environment = VecNormalize(_copies(settings.level, settings.copies), norm_reward=False)
    evaluated = VecNormalize(_copies(settings.level, 1), norm_reward=False, training=False)
    evaluated.seed(seed + 1000)
    model = PPO("MlpPolicy", environment, seed=seed, device="cpu", **settings.how)
    curve = _Curve(evaluated, settings.period)
    model.learn(settings.steps, curve)
    curve.note()
    return mean_return(model, evaluated, episodes), curve.points


def _copies(level: str, number: int) -> DummyVecEnv:
    return DummyVecEnv([lambda: Monitor(gymnasium.make(level)) for _ in range(number)])
