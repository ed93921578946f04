"""Trains the works of ``benchmarks.works`` with skrl, on PyTorch, with Gymnasium's vectorized CartPole."""

from __future__ import annotations

import tempfile
from typing import Any, Callable

import gymnasium
import torch
from skrl.agents.torch.a2c import A2C, A2C_CFG
from skrl.agents.torch.base import ExperimentCfg
from skrl.agents.torch.dqn import DQN, DQN_CFG
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer
from torch import nn

from benchmarks.returns import mean_return
from benchmarks.works import Work

BUFFER = 40_000
ENDLESS = 10**9


class _Over(Exception):
    """Raised to end the loop of skrl's trainer."""


class _Policy(CategoricalMixin, Model):
    def __init__(self, spaces: dict[str, Any], work: Work):
        Model.__init__(self, **spaces)
        CategoricalMixin.__init__(self)
        self.net = _network(self.num_observations, work.hidden, self.num_actions, nn.Tanh)

    def compute(self, inputs: dict[str, Any], role: str) -> tuple[Any, dict]:
        return self.net(inputs["observations"]), {}


class _Value(DeterministicMixin, Model):
    def __init__(self, spaces: dict[str, Any], work: Work, outputs: int = 1, activation: Any = nn.Tanh):
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = _network(self.num_observations, work.hidden, outputs, activation)

    def compute(self, inputs: dict[str, Any], role: str) -> tuple[Any, dict]:
        return self.net(inputs["observations"]), {}


def _network(inputs: int, hidden: tuple[int, ...], outputs: int, activation: Any) -> nn.Sequential:
    layers: list[nn.Module] = []
    for units in hidden:
        layers += [nn.Linear(inputs, units), activation()]
        inputs = units
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


def train(work: Work, tick: Callable[[int], bool]) -> float:
    """Train until ``tick`` returns True. :return: the mean return after the training"""
    torch.set_num_threads(1)
    simulator = gymnasium.make_vec(work.level, num_envs=work.environments, vectorization_mode="vector_entry_point")
    environment = wrap_env(simulator)
    kind, models, settings, rows = _parts(work, environment)
    every = rows if work.algorithm != "dqn" else 50

    class Timed(kind):  # type: ignore[misc, valid-type]
        def pre_interaction(self, *, timestep: int, timesteps: int) -> None:
            if timestep % every == 0 and tick(timestep * work.environments):
                raise _Over
            super().pre_interaction(timestep=timestep, timesteps=timesteps)

    agent = Timed(
        models=models, device="cpu", cfg=settings,
        memory=RandomMemory(memory_size=rows, num_envs=work.environments, device="cpu"),
        observation_space=environment.observation_space, action_space=environment.action_space,
    )  # fmt: skip
    flags = {"timesteps": ENDLESS, "headless": True, "disable_progressbar": True, "close_environment_at_exit": False}
    try:
        SequentialTrainer(env=environment, agents=agent, cfg=flags).train()
    except _Over:
        net = models["q_network" if work.algorithm == "dqn" else "policy"].net
    with torch.no_grad():
        return mean_return(lambda observations: net(torch.as_tensor(observations)).argmax(dim=-1))


def _parts(work: Work, environment: Any) -> tuple[type, dict[str, Any], Any, int]:
    """The agent's class, its networks, its settings, and the number of rows of its memory."""
    spaces = {
        "observation_space": environment.observation_space, "action_space": environment.action_space, "device": "cpu",
    }  # fmt: skip
    common = {
        "discount_factor": 0.99,
        "experiment": ExperimentCfg(directory=tempfile.mkdtemp(), write_interval=0, checkpoint_interval=0),
    }
    if work.algorithm == "dqn":
        updates = work.steps_per_update // work.environments
        starts = max(1, 4 * work.batch_size // work.environments)
        models = {
            name: _Value(spaces, work, environment.action_space.n, nn.ReLU)
            for name in ("q_network", "target_q_network")
        }
        return DQN, models, DQN_CFG(
            **common, batch_size=work.batch_size, update_interval=updates, learning_rate=2.5e-4, polyak=1.0,
            target_update_interval=max(1, 100 // work.environments), learning_starts=starts, random_timesteps=starts,
            exploration_scheduler=lambda timestep, timesteps: 0.01,
        ), BUFFER // work.environments  # fmt: skip
    models = {"policy": _Policy(spaces, work), "value": _Value(spaces, work)}
    length = work.rollout // work.environments
    if work.algorithm == "a2c":
        return A2C, models, A2C_CFG(
            **common, rollouts=length, mini_batches=1, gae_lambda=1.0, learning_rate=7e-4, grad_norm_clip=0.5,
        ), length  # fmt: skip
    return PPO, models, PPO_CFG(
        **common, rollouts=length, learning_epochs=work.epochs, mini_batches=work.rollout // work.batch_size,
        gae_lambda=0.95, learning_rate=3e-4, grad_norm_clip=0.5, value_clip=0.0, value_loss_scale=0.5,
        entropy_loss_scale=0.01,
    ), length  # fmt: skip
