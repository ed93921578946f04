"""Trains the works of ``benchmarks.works`` with rejax, as one compiled program with gymnax' CartPole."""

from __future__ import annotations

import os
from typing import Any, Callable

from benchmarks.returns import mean_return
from benchmarks.works import Work

STEPS_OF_A_CALL = 131_072
BUFFER = 40_000


def train(work: Work, tick: Callable[[int], bool]) -> float:
    """Train until ``tick`` returns True. :return: the mean return after the training"""
    os.environ["NPROC"] = "1"  # one thread: XLA reads this before its first computation
    import jax
    from rejax import get_algo

    kind, settings = get_algo(work.algorithm), _ppo(work) if work.algorithm == "ppo" else _dqn(work)
    of_a_call = work.rollout * max(1, STEPS_OF_A_CALL // work.rollout)
    algorithm = kind.create(
        env=(work.level or "").rpartition(":")[2], gamma=0.99, total_timesteps=of_a_call, eval_freq=of_a_call,
        skip_initial_evaluation=True, num_envs=work.environments, **settings,
    )  # fmt: skip
    algorithm = algorithm.replace(eval_callback=lambda *_: ())
    go_on = jax.jit(lambda state: algorithm.train(train_state=state)[0])
    state = jax.jit(algorithm.init_state)(jax.random.key(1))
    made = 0
    while not tick(made):
        state = jax.block_until_ready(go_on(state))
        made += of_a_call
    act = jax.jit(jax.vmap(algorithm.make_act(state), in_axes=(0, None)))
    return mean_return(lambda observations: act(observations, jax.random.key(2)))


def _ppo(work: Work) -> dict[str, Any]:
    return {
        "num_steps": work.rollout // work.environments, "num_minibatches": work.rollout // work.batch_size,
        "num_epochs": work.epochs, "gae_lambda": 0.95, "learning_rate": 3e-4, "max_grad_norm": 0.5, "ent_coef": 0.01,
        "agent_kwargs": {"hidden_layer_sizes": work.hidden, "activation": "tanh"},
    }  # fmt: skip


def _dqn(work: Work) -> dict[str, Any]:
    return {
        "buffer_size": BUFFER, "fill_buffer": 4 * work.batch_size, "batch_size": work.batch_size, "num_epochs": 1,
        "target_update_freq": 100, "learning_rate": 2.5e-4, "eps_end": 0.01, "exploration_fraction": 0.01,
        "agent_kwargs": {"activation": "relu"},  # rejax' DQN always has 64 x 64 units
    }  # fmt: skip
