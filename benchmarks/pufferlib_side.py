"""Trains the works of ``benchmarks.works`` with PufferLib, on PyTorch. Gymnasium's vectorized CartPole is one
environment.

PufferLib has no A2C: the works of A2C use PPO with one epoch and one minibatch.
"""

from __future__ import annotations

import tempfile
from typing import Any, Callable

import pufferlib
import pufferlib.vector
import torch
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from pufferlib import pufferl
from torch import nn

from benchmarks.returns import mean_return
from benchmarks.works import Work


class _CartPoles(pufferlib.PufferEnv):
    """All copies of the environment in one object. The simulator begins new episodes itself."""

    def __init__(self, copies: int, buf: Any = None, seed: int = 0):
        self.simulator = CartPoleVectorEnv(copies)
        self.single_observation_space = self.simulator.single_observation_space
        self.single_action_space = self.simulator.single_action_space
        self.num_agents = copies
        super().__init__(buf)

    def reset(self, seed: int | None = None) -> tuple[Any, list]:
        self.observations[:], _ = self.simulator.reset(seed=seed)
        return self.observations, []

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, list]:
        self.observations[:], self.rewards[:], self.terminals[:], self.truncations[:], _ = self.simulator.step(actions)
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self) -> None:
        self.simulator.close()


class _Policy(nn.Module):
    def __init__(self, inputs: int, hidden: tuple[int, ...], actions: int):
        super().__init__()
        self.hidden_size = hidden[-1]
        self.actor, self.critic = (_network(inputs, hidden, outputs) for outputs in (actions, 1))

    def forward(self, observations: Any, state: Any = None) -> tuple[Any, Any]:
        observations = observations.float()
        return self.actor(observations), self.critic(observations)

    forward_eval = forward


def _network(inputs: int, hidden: tuple[int, ...], outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for units in hidden:
        layers += [nn.Linear(inputs, units), nn.Tanh()]
        inputs = units
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


def train(work: Work, tick: Callable[[int], bool]) -> float:
    """Train until ``tick`` returns True. :return: the mean return after the training"""
    torch.set_num_threads(1)
    environments = pufferlib.vector.make(
        _CartPoles, env_kwargs={"copies": work.environments}, num_envs=1, seed=1, backend=pufferlib.vector.Serial
    )
    pufferl.PuffeRL.print_dashboard = lambda self, *_, **__: None
    policy = _Policy(4, work.hidden, 2)
    trainer = pufferl.PuffeRL(_settings(work), environments, policy)
    while not tick(trainer.global_step):
        trainer.evaluate()
        trainer.train()
    trainer.utilization.stop()
    environments.close()
    with torch.no_grad():
        return mean_return(lambda observations: policy.actor(torch.as_tensor(observations)).argmax(dim=-1))


def _settings(work: Work) -> dict[str, Any]:
    is_a2c = work.algorithm == "a2c"
    return {
        "seed": 1, "torch_deterministic": True, "cpu_offload": False, "device": "cpu", "optimizer": "adam",
        "anneal_lr": False, "precision": "float32", "total_timesteps": 10**9, "gamma": 0.99,
        "learning_rate": 7e-4 if is_a2c else 3e-4, "gae_lambda": 1.0 if is_a2c else 0.95,
        "ent_coef": 0.0 if is_a2c else 0.01, "update_epochs": 1 if is_a2c else work.epochs, "clip_coef": 0.2,
        "vf_coef": 0.5, "vf_clip_coef": 10.0, "max_grad_norm": 0.5, "adam_beta1": 0.9, "adam_beta2": 0.999,
        "adam_eps": 1e-8, "data_dir": tempfile.mkdtemp(), "checkpoint_interval": 10**9, "batch_size": work.rollout,
        "minibatch_size": work.batch_size, "max_minibatch_size": 32768,
        # a minibatch consists of whole segments
        "bptt_horizon": min(work.rollout // work.environments, work.batch_size),
        "compile": False, "compile_mode": "default", "compile_fullgraph": True, "vtrace_rho_clip": 1.0,
        "vtrace_c_clip": 1.0, "prio_alpha": 0.0, "prio_beta0": 0.2, "use_rnn": False, "env": work.level,
        "name": "one", "project": "one",
    }  # fmt: skip
