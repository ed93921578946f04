"""Trains Stable-Baselines3 with the settings of Coach's tuned presets, to compare the scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gymnasium
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack, VecNormalize, sync_envs_normalization

from rl_coach.utils import short_dynamic_import


@dataclass(frozen=True)
class PeerSettings:
    """The settings of a training.

    :param copies: number of copies of the environment
    :param period: steps between two evaluations
    :param how: arguments of the algorithm that differ from its defaults
    :param episodes: number of episodes of an evaluation during training
    :param algorithm: ``PPO`` or ``SAC``, or ``ARS``, ``RecurrentPPO`` or ``TRPO`` of sb3-contrib
    :param normalizes: True: observations are normalised by their running mean and deviation
    :param pictures: number of stacked pictures in an observation, for an environment with pictures; 0 for other
        environments
    :param held: number of steps for which an action is repeated
    """

    level: str
    copies: int
    steps: int
    period: int
    how: dict[str, Any] = field(default_factory=dict)
    episodes: int = 10
    algorithm: str = "PPO"
    normalizes: bool = False
    pictures: int = 0
    held: int = 1

    @property
    def sees_frames(self) -> bool:
        """True if observations are stacks of images."""
        return self.is_atari or self.pictures > 0

    @property
    def is_atari(self) -> bool:
        """True if the environment is an Atari game."""
        return "NoFrameskip" in self.level


SETTINGS = {
    "HalfCheetah_PPO": PeerSettings("HalfCheetah-v5", 8, 102_400, 10_240, {"n_steps": 256}, normalizes=True),
    "Hopper_PPO": PeerSettings("Hopper-v5", 8, 102_400, 10_240, {"n_steps": 256}, normalizes=True),
    "Pong_PPO": PeerSettings(
        "PongNoFrameskip-v4",
        8,
        1_310_720,
        65_536,
        {
            "n_steps": 128,
            "batch_size": 256,
            "n_epochs": 4,
            "learning_rate": 2.5e-4,
            "clip_range": 0.1,
            "ent_coef": 0.01,
        },
        episodes=3,
    ),
    "CartPole_ARS": PeerSettings(
        "CartPole-v1", 1, 100_000, 20_000, {"n_delta": 2, "delta_std": 0.1, "learning_rate": 0.1}, algorithm="ARS"
    ),
    "CartPole_RecurrentPPO": PeerSettings(
        "rl_coach.environments.toy_problems.cart_pole_without_velocity:CartPoleWithoutVelocity",
        8,
        102_400,
        10_240,
        {
            "n_steps": 32,
            "batch_size": 256,
            "n_epochs": 20,
            "gae_lambda": 0.8,
            "gamma": 0.98,
            "learning_rate": lambda left: 0.001 * left,
            "clip_range": lambda left: 0.2 * left,
            "policy_kwargs": {"lstm_hidden_size": 64},
        },
        algorithm="RecurrentPPO",
    ),
    "CartPole_TRPO": PeerSettings(
        "CartPole-v1",
        2,
        100_352,
        10_240,
        {"n_steps": 512, "batch_size": 512, "cg_damping": 0.001, "gae_lambda": 0.98, "n_critic_updates": 20},
        algorithm="TRPO",
    ),
    "InvertedPendulum_TRPO": PeerSettings(
        "InvertedPendulum-v5",
        2,
        102_400,
        10_240,
        {"n_steps": 1024, "cg_max_steps": 25, "n_critic_updates": 20},
        algorithm="TRPO",
        normalizes=True,
    ),
    "Pendulum_SimbaV2": PeerSettings("Pendulum-v1", 1, 20_000, 2_000, {"learning_rate": 1e-3}, algorithm="SAC"),
    "PendulumPixels_DrQv2": PeerSettings(
        "rl_coach.environments.toy_problems.pendulum_pixels:PendulumPixels",
        1,
        16_000,
        1_600,
        {"learning_rate": 5e-4, "batch_size": 128, "learning_starts": 1_000, "buffer_size": 20_000},
        episodes=5,
        algorithm="SAC",
        pictures=3,
        held=2,
    ),
}


class _Curve(BaseCallback):
    def __init__(self, evaluated: VecEnv, settings: PeerSettings):
        super().__init__()
        self.evaluated, self.settings = evaluated, settings
        self.points: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self.settings.period * (len(self.points) + 1):
            self.note()

    def note(self) -> None:
        """Evaluate, and add the result to the curve."""
        self.points.append((self.num_timesteps, mean_return(self.model, self.evaluated, self.settings.episodes)))


def mean_return(model: Any, evaluated: VecEnv, episodes: int) -> float:
    """The mean return of ``episodes`` episodes, with actions without noise."""
    if isinstance(evaluated, VecNormalize):
        sync_envs_normalization(model.get_env(), evaluated)
    return float(evaluate_policy(model, evaluated, episodes, deterministic=True)[0])


def train(settings: PeerSettings, seed: int, episodes: int) -> tuple[float, list[tuple[int, float]]]:
    """Train with a seed.

    :return: the mean return of ``episodes`` episodes after training; [steps, mean return] of each evaluation
    """
    environment, evaluated = _copies(settings, settings.copies), _copies(settings, 1)
    if settings.normalizes:
        environment = VecNormalize(environment, norm_reward=False)
        evaluated = VecNormalize(evaluated, norm_reward=False, training=False)
    evaluated.seed(seed + 1000)
    policy = "CnnPolicy" if settings.sees_frames else _POLICIES.get(settings.algorithm, "MlpPolicy")
    model = _algorithm(settings.algorithm)(policy, environment, seed=seed, device="cpu", **settings.how)
    curve = _Curve(evaluated, settings)
    model.learn(settings.steps, curve)
    curve.note()
    return mean_return(model, evaluated, episodes), curve.points


_POLICIES = {"RecurrentPPO": "MlpLstmPolicy", "ARS": "LinearPolicy"}


def _algorithm(name: str) -> Any:
    if name in ("PPO", "SAC"):
        return {"PPO": PPO, "SAC": SAC}[name]
    import sb3_contrib

    return getattr(sb3_contrib, name)


class _Held(gymnasium.Wrapper):
    """An environment that repeats each action for ``held`` steps. It adds an axis of channels to pictures."""

    def __init__(self, settings: PeerSettings):
        pictures = _environment(settings.level)
        with_channels = gymnasium.wrappers.ReshapeObservation(pictures, (*pictures.observation_space.shape, 1))
        super().__init__(Monitor(with_channels))
        self._held = settings.held

    def step(self, action: Any) -> Any:
        rewards = 0.0
        for _ in range(self._held):
            state, reward, terminated, truncated, info = self.env.step(action)
            rewards += float(reward)
            if terminated or truncated:
                break
        return state, rewards, terminated, truncated, info


def _environment(level: str) -> Any:
    """Create an environment. :param level: a name of Gymnasium, or ``module:Class``"""
    return short_dynamic_import(level)() if ":" in level else gymnasium.make(level)


def _copies(settings: PeerSettings, number: int) -> VecEnv:
    if settings.pictures:
        return VecFrameStack(DummyVecEnv([lambda: _Held(settings) for _ in range(number)]), settings.pictures)
    if not settings.is_atari:
        return DummyVecEnv([lambda: Monitor(_environment(settings.level)) for _ in range(number)])
    import ale_py

    gymnasium.register_envs(ale_py)
    return VecFrameStack(
        DummyVecEnv([lambda: AtariWrapper(Monitor(gymnasium.make(settings.level))) for _ in range(number)]), 4
    )
