"""The most that Coach could make of Keras 3 on PyTorch: ``python -m benchmarks.torch_ceiling``.

For W2, W3v and W4: only what the networks of a step cost, with random numbers in place of an environment, a memory and
all else. Beside it, the whole step of Coach on JAX. Needs ``.[bench,jax]``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from typing import Any, Callable

from benchmarks.measured import in_own_process
from benchmarks.works import WORKS, Work

SECONDS = 5.0
NAMES = ("W2", "W3v", "W4")


def main() -> None:
    """Measure in turn, and print the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_ceiling", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=NAMES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(steps_per_second(WORKS[options.one]))
        return
    for name in NAMES:
        ceilings, coach = [], []
        for _ in range(options.rounds):
            command = [sys.executable, "-m", "benchmarks.torch_ceiling", "--one", name]
            environment = {**os.environ, "KERAS_BACKEND": "torch"}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            ceilings.append(float(done.stdout))
            measured = in_own_process("jax", name, 1.0)
            assert measured is not None
            coach.append(measured.steps_per_second)
        torch, jax = statistics.median(ceilings), statistics.median(coach)
        print(f"{name}: networks on PyTorch alone {torch:,.0f} steps/s, Coach on JAX {jax:,.0f}: {torch / jax:.2f}")


def steps_per_second(work: Work) -> float:
    """Environment steps a second that the networks of a work allow."""
    import torch

    torch.set_num_threads(1 if work.hidden[0] < 256 else 2)
    step, steps = {"dqn": _dqn, "ppo": _ppo, "sac": _sac}[work.algorithm](work)
    for _ in range(3):
        step()
    began, made = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        step()
        made += steps
    return made / (time.perf_counter() - began)


def _network(inputs: int, hidden: tuple[int, ...], activation: str, outputs: int) -> Any:
    import keras

    layers = [keras.layers.Dense(units, activation) for units in hidden]
    return keras.Sequential([keras.Input((inputs,)), *layers, keras.layers.Dense(outputs)])


def _learns(networks: list[Any], learning_rate: float) -> Callable[[Any], None]:
    """A function that moves networks by the gradient of a loss."""
    import keras
    import torch

    variables = [variable for network in networks for variable in network.trainable_variables]
    optimizer = keras.optimizers.Adam(learning_rate)
    optimizer.build(variables)

    def learn(loss: Any) -> None:
        gradients = torch.autograd.grad(loss, [variable.value for variable in variables])
        with torch.no_grad():
            optimizer.apply(list(gradients), variables)

    return learn


def _dqn(work: Work) -> tuple[Callable[[], None], int]:
    import torch

    online, target = (_network(4, work.hidden, "relu", 2) for _ in range(2))
    learn = _learns([online], 2.5e-4)
    one, many = torch.randn(1, 4), torch.randn(work.batch_size, 4)
    actions = torch.randint(0, 2, (work.batch_size, 1))

    def step() -> None:
        with torch.no_grad():
            online(one)
            aims = 1.0 + 0.99 * target(many).amax(dim=1)
        learn(((online(many).gather(1, actions)[:, 0] - aims) ** 2).mean())

    return step, 1


def _ppo(work: Work) -> tuple[Callable[[], None], int]:
    import torch

    policy, critic = (_network(4, work.hidden, "tanh", outputs) for outputs in (2, 1))
    learn = _learns([policy, critic], 3e-4)
    observations, minibatch = torch.randn(work.environments, 4), torch.randn(work.batch_size, 4)
    actions, old = torch.randint(0, 2, (work.batch_size, 1)), torch.randn(work.batch_size)

    def update() -> None:
        log_policy = torch.log_softmax(policy(minibatch), dim=1)
        ratio = torch.exp(log_policy.gather(1, actions)[:, 0] - old)
        gain = torch.minimum(ratio * old, ratio.clamp(0.8, 1.2) * old).mean()
        entropy = -(log_policy.exp() * log_policy).sum(dim=1).mean()
        learn(0.5 * ((critic(minibatch)[:, 0] - old) ** 2).mean() - gain - 0.01 * entropy)

    def phase() -> None:
        with torch.no_grad():
            for _ in range(work.rollout // work.environments):
                policy(observations), critic(observations)
        for _ in range(work.epochs * work.rollout // work.batch_size):
            update()

    return phase, work.rollout


def _sac(work: Work) -> tuple[Callable[[], None], int]:
    import torch

    policy = _network(3, work.hidden, "relu", 2)
    critics, targets = ([_network(4, work.hidden, "relu", 1) for _ in range(2)] for _ in range(2))
    of_critics, of_policy = _learns(critics, 3e-4), _learns([policy], 3e-4)
    one, states, actions = torch.randn(1, 3), torch.randn(work.batch_size, 3), torch.randn(work.batch_size, 1)

    def sampled(states: Any) -> tuple[Any, Any]:
        mean, log_deviation = policy(states).chunk(2, dim=1)
        noise = torch.randn_like(mean)
        action = torch.tanh(mean + log_deviation.exp() * noise)
        return action, (-0.5 * noise**2 - log_deviation - torch.log(1 - action**2 + 1e-6)).sum(dim=1)

    def smallest(networks: list[Any], actions: Any) -> Any:
        return torch.minimum(*(network(torch.cat([states, actions], dim=1))[:, 0] for network in networks))

    def step() -> None:
        with torch.no_grad():
            sampled(one)
            following, density = sampled(states)
            aims = 0.1 + 0.99 * (smallest(targets, following) - 0.2 * density)
        inputs = torch.cat([states, actions], dim=1)
        of_critics(sum(((critic(inputs)[:, 0] - aims) ** 2).mean() for critic in critics))
        drawn, density = sampled(states)
        of_policy((0.2 * density - smallest(critics, drawn)).mean())
        with torch.no_grad():
            for critic, target in zip(critics, targets):
                for new, old in zip(critic.variables, target.variables):
                    old.value.lerp_(new.value, 0.005)

    return step, 1


if __name__ == "__main__":
    main()
