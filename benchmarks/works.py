"""The works that the benchmarks measure. A work is a list of settings. Each library makes its agent from them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """The settings of a training: one agent in one environment.

    :param algorithm: ``null``, ``dqn``, ``qr_dqn``, ``ppo``, ``a2c``, ``sac``, ``ddpg``, ``td3`` or ``dreamer_v3``
    :param level: the Gymnasium id; None for an environment that does nothing
    :param hidden: the units of each hidden layer
    :param batch_size: transitions in one update
    :param steps: environment steps that are timed
    :param warm_up: environment steps before the timed ones; everything is compiled in them
    :param steps_per_update: environment steps for each update of agents with a replay memory
    :param environments: copies of the environment that are stepped together
    :param rollout: environment steps between two training phases of PPO and A2C, the sum over all copies
    :param epochs: number of epochs in a training phase of PPO
    :param memory: the largest number of transitions in a replay memory
    :param seeds: number of runs, each with ``steps / seeds`` steps; see ``seeds_side``
    """

    name: str
    title: str
    algorithm: str
    level: str | None
    hidden: tuple[int, ...]
    batch_size: int
    steps: int
    warm_up: int
    steps_per_update: int = 1
    environments: int = 1
    rollout: int = 2048
    epochs: int = 10
    memory: int = 40_000
    seeds: int = 1

    @property
    def is_cart_pole(self) -> bool:
        """True if the environment is CartPole, of Gymnasium or of gymnax."""
        return (self.level or "").endswith("CartPole-v1")


SEQUENCE = 64
"""Steps of each sequence of DreamerV3."""

WORKS = {
    work.name: work
    for work in (
        Work(
            "W0", "the loop alone: an environment that does nothing, random actions", "null", None, (), 0, 50_000, 2_000
        ),
        Work(
            "W1",
            "DQN CartPole, 256 x 512, batch 32, one update a step",
            "dqn",
            "CartPole-v1",
            (256, 512),
            32,
            4_000,
            1_500,
        ),
        Work(
            "W2", "DQN CartPole, 64 x 64, batch 32, one update a step", "dqn", "CartPole-v1", (64, 64), 32, 6_000, 1_500
        ),
        Work(
            "W3",
            "PPO CartPole, 64 x 64 tanh, 2048 steps, 10 epochs, minibatch 64",
            "ppo",
            "CartPole-v1",
            (64, 64),
            64,
            5 * 2048,
            3 * 2048,
        ),
        Work(
            "W3v",
            "PPO CartPole, the same with 8 environments of 256 steps",
            "ppo",
            "CartPole-v1",
            (64, 64),
            64,
            10 * 2048,
            3 * 2048,
            environments=8,
        ),
        Work(
            "W4",
            "SAC Pendulum, 256 x 256, batch 256, one update a step",
            "sac",
            "Pendulum-v1",
            (256, 256),
            256,
            1_000,
            600,
        ),
        Work(
            "W5",
            "DQN Pong, Nature CNN, batch 32, one update per 4 steps",
            "dqn",
            "PongNoFrameskip-v4",
            (512,),
            32,
            600,
            400,
            4,
        ),
        Work(
            "W6",
            "DDPG Pendulum, 400 x 300, batch 64, one update a step",
            "ddpg",
            "Pendulum-v1",
            (400, 300),
            64,
            2_000,
            1_000,
        ),
        Work(
            "W6t",
            "TD3 Pendulum, 400 x 300, batch 100, one update a step",
            "td3",
            "Pendulum-v1",
            (400, 300),
            100,
            2_000,
            1_000,
        ),
        Work(
            "W7",
            "QR-DQN CartPole, 64 x 64, 50 quantiles, batch 32, one update a step",
            "qr_dqn",
            "CartPole-v1",
            (64, 64),
            32,
            6_000,
            1_500,
        ),
        Work(
            "W8",
            "A2C CartPole, 64 x 64 tanh, 8 environments of 5 steps",
            "a2c",
            "CartPole-v1",
            (64, 64),
            40,
            40_000,
            8_000,
            environments=8,
            rollout=40,
        ),
        Work(
            "W9",
            "PPO Pong, Nature CNN, 8 environments of 128 steps, 4 epochs, minibatch 256",
            "ppo",
            "PongNoFrameskip-v4",
            (512,),
            256,
            3 * 1024,
            2 * 1024,
            environments=8,
            rollout=1024,
            epochs=4,
        ),
        Work(
            "W11",
            "PPO CartPole of gymnax, in a compiled loop: 64 x 64 tanh, 8 environments of 256 steps, 10 epochs",
            "ppo",
            "gymnax:CartPole-v1",
            (64, 64),
            64,
            100 * 2048,
            3 * 2048,
            environments=8,
        ),
        Work(
            "W12",
            "DQN CartPole of gymnax, in a compiled loop: 64 x 64, 8 environments, batch 32, one update per 8 steps",
            "dqn",
            "gymnax:CartPole-v1",
            (64, 64),
            32,
            400_000,
            20_000,
            8,
            environments=8,
        ),
        Work(
            "W13",
            "eight seeds of W11 as whole commands, 204,800 steps each",
            "ppo",
            "gymnax:CartPole-v1",
            (64, 64),
            64,
            8 * 100 * 2048,
            0,
            environments=8,
            seeds=8,
        ),
        Work(
            "W13d",
            "eight seeds of W12 as whole commands, 400,000 steps each",
            "dqn",
            "gymnax:CartPole-v1",
            (64, 64),
            32,
            8 * 400_000,
            0,
            8,
            environments=8,
            seeds=8,
        ),
        Work(
            "W14",
            "PPO CartPole, 64 x 64 tanh, 64 environments of 128 steps, 4 epochs, minibatch 1024",
            "ppo",
            "CartPole-v1",
            (64, 64),
            1024,
            40 * 8192,
            10 * 8192,
            environments=64,
            rollout=64 * 128,
            epochs=4,
        ),
        Work(
            "W15",
            "A2C CartPole, 64 x 64 tanh, 64 environments of 5 steps",
            "a2c",
            "CartPole-v1",
            (64, 64),
            320,
            1_250 * 320,
            250 * 320,
            environments=64,
            rollout=64 * 5,
        ),
        Work(
            "W16",
            "PPO CartPole, 64 x 64 tanh, 256 environments of 32 steps, 2 epochs, minibatch 2048",
            "ppo",
            "CartPole-v1",
            (64, 64),
            2048,
            60 * 8192,
            15 * 8192,
            environments=256,
            rollout=256 * 32,
            epochs=2,
        ),
        Work(
            "W17",
            "DQN CartPole, 64 x 64, 64 environments, batch 256, one update per 64 steps",
            "dqn",
            "CartPole-v1",
            (64, 64),
            256,
            128_000,
            32_000,
            64,
            environments=64,
        ),
        Work(
            "W18",
            "PPO CartPole of gymnax, in a compiled loop: 64 x 64 tanh, 256 environments of 32 steps, 2 epochs",
            "ppo",
            "gymnax:CartPole-v1",
            (64, 64),
            2048,
            240 * 8192,
            32 * 8192,
            environments=256,
            rollout=256 * 32,
            epochs=2,
        ),
        Work(
            "W19",
            "DreamerV3 CartPole, size1m, 16 sequences of 64 steps, one update a step",
            "dreamer_v3",
            "CartPole-v1",
            (),
            16 * 64,
            24,
            6,
        ),
    )
}
