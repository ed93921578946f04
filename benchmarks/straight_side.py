"""Trains the works of ``benchmarks.works`` with plain loops in JAX, as in PureJaxRL (Lu et al. 2022): one function has
the algorithm and an environment of gymnax. Such a loop has no signals, filters or checkpoints, so it shows the highest
speed of a compiled loop.

Networks, sizes, minibatches and optimizers are the same as in Coach's training of the same work.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.works import Work

DISCOUNT, GAE_LAMBDA, CLIPPING, ENTROPY_WEIGHT = 0.99, 0.95, 0.2, 0.01
TARGET_PERIOD, EPSILON_STEPS, LAST_EPSILON = 100, 1_000, 0.01


class StraightLoop:
    """The training of a work. Each call makes some environment steps and the training that is due.

    :raises ImportError: if gymnax is not installed, or this module has no loop for the work
    """

    def __init__(self, work: Work):
        import gymnax

        loops = {"ppo": _ppo, "dqn": _dqn}
        module, _, name = (work.level or "").partition(":")
        if module != "gymnax" or work.algorithm not in loops:
            raise ImportError(f"{work.name} is not for a straight loop")
        begin, iterate, self._steps = loops[work.algorithm](work, *gymnax.make(name))

        def many(carry: Any, count: Any) -> Any:
            return jax.lax.fori_loop(0, count, lambda _, one: iterate(one), carry)

        self._many = jax.jit(many, donate_argnums=0)
        self._carry = jax.jit(begin)(jax.random.key(1))
        self._known = np.zeros(2)

    def __call__(self, steps: int) -> None:
        self._carry = jax.block_until_ready(self._many(self._carry, -(-steps // self._steps)))

    def mean_return(self) -> float:
        """The mean return of the episodes that have ended since the previous call of this function."""
        totals = self._carry["copies"]["totals"]
        known, self._known = self._known, np.array([totals["returns"], totals["ended"]])
        returns, ended = self._known - known
        return float(returns / ended)


class _Copies:
    """Copies of an environment. They sum the rewards and steps of each episode, like PureJaxRL's ``LogWrapper``."""

    def __init__(self, environment: Any, params: Any, count: int):
        self._reset = jax.vmap(partial(environment.reset, params=params))
        self._step = jax.vmap(partial(environment.step, params=params))
        self.count = count

    def begin(self, key: Any) -> dict[str, Any]:
        observations, states = self._reset(jax.random.split(key, self.count))
        none = jnp.zeros(self.count)
        totals = {
            "return": none,
            "length": none,
            "returns": jnp.zeros(()),
            "lengths": jnp.zeros(()),
            "ended": jnp.zeros(()),
        }
        return {"observations": observations, "states": states, "totals": totals}

    def step(self, key: Any, copies: dict[str, Any], actions: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Make a step. :return: the copies after the step, and the columns of the step, one row for each copy"""
        following, states, rewards, terminated, truncated, info = self._step(
            jax.random.split(key, self.count), copies["states"], actions
        )
        ended, old = terminated | truncated, copies["totals"]
        returns, lengths = old["return"] + rewards, old["length"] + 1
        totals = {
            "return": jnp.where(ended, 0.0, returns),
            "length": jnp.where(ended, 0.0, lengths),
            "returns": old["returns"] + jnp.sum(jnp.where(ended, returns, 0.0)),
            "lengths": old["lengths"] + jnp.sum(jnp.where(ended, lengths, 0.0)),
            "ended": old["ended"] + jnp.sum(ended),
        }
        played = {
            "observations": copies["observations"], "actions": actions, "rewards": rewards, "terminated": terminated,
            "ended": ended, "next_observations": info["final_observation"],
        }  # fmt: skip
        return {"observations": following, "states": states, "totals": totals}, played


def _layers(key: Any, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    keys, glorot = jax.random.split(key, len(sizes) - 1), jax.nn.initializers.glorot_uniform()
    return [{"kernel": glorot(k, (n, m)), "bias": jnp.zeros(m)} for k, n, m in zip(keys, sizes, sizes[1:])]


def _forward(layers: list[dict[str, Any]], inputs: Any, activation: Callable[[Any], Any]) -> Any:
    for layer in layers[:-1]:
        inputs = activation(inputs @ layer["kernel"] + layer["bias"])
    return inputs @ layers[-1]["kernel"] + layers[-1]["bias"]


def _ppo(work: Work, environment: Any, params: Any) -> tuple[Callable, Callable, int]:
    copies = _Copies(environment, params, work.environments)
    length = work.rollout // work.environments
    optimizer = optax.adam(3e-4)
    num_inputs, num_actions = environment.observation_space(params).shape[0], environment.action_space(params).n

    def begin(key: Any) -> dict[str, Any]:
        key, of_policy, of_critic, of_copies = jax.random.split(key, 4)
        weights = {
            "policy": _layers(of_policy, (num_inputs, *work.hidden, num_actions)),
            "critic": _layers(of_critic, (num_inputs, *work.hidden, 1)),
        }
        return {"key": key, "weights": weights, "slots": optimizer.init(weights), "copies": copies.begin(of_copies)}

    def outputs(weights: Any, observations: Any) -> tuple[Any, Any]:
        values = _forward(weights["critic"], observations, jnp.tanh)[..., 0]
        return values, jax.nn.log_softmax(_forward(weights["policy"], observations, jnp.tanh))

    def of_actions(log_policy: Any, actions: Any) -> Any:
        return jnp.take_along_axis(log_policy, actions[..., None], axis=-1)[..., 0]

    def loss(weights: Any, batch: dict[str, Any]) -> Any:
        values, log_policy = outputs(weights, batch["observations"])
        ratios = jnp.exp(of_actions(log_policy, batch["actions"]) - batch["log_probabilities"])
        clipped = jnp.clip(ratios, 1 - CLIPPING, 1 + CLIPPING)
        gain = jnp.mean(jnp.minimum(ratios * batch["advantages"], clipped * batch["advantages"]))
        entropy = -jnp.mean(jnp.sum(jnp.exp(log_policy) * log_policy, axis=-1))
        return 0.5 * jnp.mean((values - batch["returns"]) ** 2) - gain - ENTROPY_WEIGHT * entropy

    def iterate(carry: dict[str, Any]) -> dict[str, Any]:
        key, of_playing, of_epochs = jax.random.split(carry["key"], 3)
        weights = carry["weights"]

        def play(now: dict[str, Any], key: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            of_action, of_step = jax.random.split(key)
            values, log_policy = outputs(weights, now["observations"])
            actions = jax.random.categorical(of_action, log_policy)
            now, played = copies.step(of_step, now, actions)
            return now, played | {"values": values, "log_probabilities": of_actions(log_policy, actions)}

        now, played = jax.lax.scan(play, carry["copies"], jax.random.split(of_playing, length))
        next_values = outputs(weights, played["next_observations"])[0] * ~played["terminated"]
        deltas = played["rewards"] + DISCOUNT * next_values - played["values"]
        goes_on = ~played["ended"].at[-1].set(True)

        def back(advantage: Any, row: tuple[Any, Any]) -> tuple[Any, Any]:
            advantage = row[0] + DISCOUNT * GAE_LAMBDA * row[1] * advantage
            return advantage, advantage

        _, advantages = jax.lax.scan(back, jnp.zeros(copies.count), (deltas, goes_on), reverse=True)
        batch = {
            "observations": played["observations"], "actions": played["actions"],
            "log_probabilities": played["log_probabilities"], "returns": advantages + played["values"],
            "advantages": (advantages - advantages.mean()) / (advantages.std() + 1e-8),
        }  # fmt: skip
        batch = jax.tree.map(lambda column: column.reshape(work.rollout, *column.shape[2:]), batch)

        def epoch(learned: tuple[Any, Any], key: Any) -> tuple[tuple[Any, Any], None]:
            order = jax.random.permutation(key, work.rollout)
            minibatches = jax.tree.map(
                lambda column: column[order].reshape(-1, work.batch_size, *column.shape[1:]), batch
            )

            def update(learned: tuple[Any, Any], minibatch: dict[str, Any]) -> tuple[tuple[Any, Any], Any]:
                weights, slots = learned
                value, gradients = jax.value_and_grad(loss)(weights, minibatch)
                changes, slots = optimizer.update(gradients, slots, weights)
                return (optax.apply_updates(weights, changes), slots), value

            learned, _ = jax.lax.scan(update, learned, minibatches)
            return learned, None

        (weights, slots), _ = jax.lax.scan(epoch, (weights, carry["slots"]), jax.random.split(of_epochs, work.epochs))
        return {"key": key, "weights": weights, "slots": slots, "copies": now}

    return begin, iterate, work.rollout


def _dqn(work: Work, environment: Any, params: Any) -> tuple[Callable, Callable, int]:
    copies, count = _Copies(environment, params, work.environments), work.environments
    capacity, optimizer = work.memory // count, optax.adam(2.5e-4)
    num_inputs, num_actions = environment.observation_space(params).shape[0], environment.action_space(params).n
    kept = ("observations", "actions", "rewards", "terminated", "next_observations")

    def begin(key: Any) -> dict[str, Any]:
        key, of_weights, of_copies = jax.random.split(key, 3)
        weights = _layers(of_weights, (num_inputs, *work.hidden, num_actions))
        now = copies.begin(of_copies)
        _, example = copies.step(key, now, jnp.zeros(count, jnp.int32))
        buffer = {name: jnp.zeros((capacity, *example[name].shape), example[name].dtype) for name in kept}
        target = jax.tree.map(jnp.copy, weights)
        return {
            "key": key, "weights": weights, "target": target, "slots": optimizer.init(weights), "copies": now,
            "buffer": buffer, "step": jnp.int32(0),
        }  # fmt: skip

    def loss(weights: Any, target: Any, batch: dict[str, Any]) -> Any:
        following = jnp.max(_forward(target, batch["next_observations"], jax.nn.relu), axis=-1)
        aims = batch["rewards"] + DISCOUNT * ~batch["terminated"] * following
        q = _forward(weights, batch["observations"], jax.nn.relu)
        chosen = jnp.take_along_axis(q, batch["actions"][:, None], axis=1)[:, 0]
        return jnp.mean((chosen - jax.lax.stop_gradient(aims)) ** 2)

    def iterate(carry: dict[str, Any]) -> dict[str, Any]:
        key, of_chance, of_action, of_step, of_batch = jax.random.split(carry["key"], 5)
        weights, target, step, now = carry["weights"], carry["target"], carry["step"], carry["copies"]
        best = jnp.argmax(_forward(weights, now["observations"], jax.nn.relu), axis=-1)
        epsilon = jnp.maximum(LAST_EPSILON, 1 - step * count / EPSILON_STEPS)
        is_random = jax.random.uniform(of_chance, (count,)) < epsilon
        actions = jnp.where(is_random, jax.random.randint(of_action, (count,), 0, num_actions), best)
        now, played = copies.step(of_step, now, actions.astype(jnp.int32))
        buffer = {name: column.at[step % capacity].set(played[name]) for name, column in carry["buffer"].items()}
        stored = jnp.minimum(step + 1, capacity) * count
        rows = jax.random.randint(of_batch, (work.batch_size,), 0, stored)
        batch = {name: column.reshape(-1, *column.shape[2:])[rows] for name, column in buffer.items()}
        gradients = jax.grad(loss)(weights, target, batch)
        changes, slots = optimizer.update(gradients, carry["slots"], weights)
        weights = optax.apply_updates(weights, changes)
        is_due = (step + 1) * count // TARGET_PERIOD > step * count // TARGET_PERIOD
        target = jax.tree.map(lambda new, old: jnp.where(is_due, new, old), weights, target)
        return {
            "key": key, "weights": weights, "target": target, "slots": slots, "copies": now, "buffer": buffer,
            "step": step + 1,
        }  # fmt: skip

    return begin, iterate, count
