"""MAPPO, VDN and QMIX against their papers' equations in NumPy and in float64, on frameworks with float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.ddqn_agent import greedy_by_online
from rl_coach.agents.dqn_agent import greedy_by_target
from rl_coach.agents.rules.mappo import mappo_rule
from rl_coach.agents.rules.value_decomposition import joint_value, value_decomposition_rule
from rl_coach.architectures.update import LearningBatch
from rl_coach.base_parameters import Frameworks
from tests.agents.numpy_gradients import gradient
from tests.agents.numpy_rules import FixedNetwork
from tests.frameworks import FRAMEWORK, run_on, starts_another_framework, where_installed

B, N, A, E = 5, 3, 4, 6
RTOL = 1e-5 if FRAMEWORK is Frameworks.tensorflow else 1e-6
DTYPE = np.float32 if FRAMEWORK is Frameworks.tensorflow else np.float64


@pytest.fixture(autouse=True)
def _double_precision():
    if FRAMEWORK is not Frameworks.jax:
        yield
        return
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield


def operations() -> Any:
    if FRAMEWORK is Frameworks.torch:
        from rl_coach.architectures.torch_components import ops

        return ops
    return pytest.importorskip("keras").ops


def arrays(value: Any) -> Any:
    """The framework's arrays of NumPy arrays in nested dicts and lists."""
    if isinstance(value, dict):
        return {name: arrays(one) for name, one in value.items()}
    if isinstance(value, list):
        return [arrays(one) for one in value]
    if not isinstance(value, np.ndarray):
        return value
    value = value.astype(np.int32 if value.dtype.kind == "i" else DTYPE)
    if FRAMEWORK is Frameworks.torch:
        import torch

        return torch.tensor(value)
    if FRAMEWORK is Frameworks.jax:
        import jax.numpy as jnp

        return jnp.asarray(value)
    return operations().convert_to_tensor(value)


def number(value: Any) -> np.ndarray:
    return np.asarray(value, np.float64)


class Data:
    """Columns and outputs of networks. The third player is absent in row 1, and waits in the next state of row 2."""

    def __init__(self, seed: int = 0):
        rng = self.rng = np.random.default_rng(seed)
        self.present, self.next_present = np.ones((B, N)), np.ones((B, N))
        self.present[1, 2] = self.next_present[1, 2] = self.next_present[2, 2] = 0
        self.mask, self.next_mask = (self.masks(present) for present in (self.present, self.next_present))
        self.actions = np.array([[rng.choice(np.flatnonzero(one)) for one in row] for row in self.mask])
        self.rewards, self.discounts = rng.normal(size=B), np.array([0.9, 0.9, 0.9, 0.0, 0.9])
        self.weights = np.array([1.0, 0.5, 0.25, 1.0, 0.0])
        self.q, self.q_next, self.q_target = (
            rng.normal(size=(B, N, A)) * present[..., None]
            for present in (self.present, self.next_present, self.next_present)
        )
        self.mixing, self.mixing_target = self.hypernetwork(), self.hypernetwork()

    def masks(self, present: np.ndarray) -> np.ndarray:
        mask = (self.rng.random((B, N, A)) < 0.6).astype(float)
        mask[..., 1] = 1.0
        return np.where(present[..., None] > 0, mask, np.eye(A)[0])

    def hypernetwork(self) -> dict[str, np.ndarray]:
        sizes = {"weights_1": (B, N, E), "offsets_1": (B, E), "weights_2": (B, E), "offset_2": (B,)}
        return {name: self.rng.normal(size=size) for name, size in sizes.items()}

    def batch(self, **columns: Any) -> LearningBatch:
        states = {"which": "states", "action_mask": self.mask, "present": self.present}
        following = {"which": "next_states", "action_mask": self.next_mask, "present": self.next_present}
        found = {
            "states": states, "next_states": following, "actions": self.actions, "rewards": self.rewards,
            "discounts": self.discounts, "weights": self.weights, "extra": {}, "scalars": {}, **columns,
        }  # fmt: skip
        return LearningBatch(**{name: arrays(value) for name, value in found.items()})


def mixed(q: np.ndarray, mixing: dict[str, np.ndarray] | None, row: int) -> float:
    """Q_tot of one row, player by player and unit by unit."""
    if mixing is None:
        return float(sum(q))
    total = mixing["offset_2"][row]
    for unit in range(E):
        inside = mixing["offsets_1"][row, unit]
        for player in range(N):
            inside += abs(mixing["weights_1"][row, player, unit]) * q[player]
        total += abs(mixing["weights_2"][row, unit]) * (inside if inside > 0 else np.exp(inside) - 1)
    return float(total)


@pytest.mark.parametrize("mixes", [False, True], ids=["vdn", "qmix"])
@pytest.mark.parametrize("is_double", [False, True], ids=["target", "double"])
@pytest.mark.parametrize("is_huber", [False, True], ids=["squares", "huber"])
def test_the_joint_value_goes_towards_the_target_of_the_best_allowed_actions(mixes, is_double, is_huber):
    data = Data()
    networks: dict[str, Any] = {
        "main": FixedNetwork(*arrays([[{"q": data.q}], [{"q": data.q_next}], [{"q": data.q_target}]]))
    }
    if mixes:
        networks["mixer"] = FixedNetwork(*arrays([[data.mixing], None, [data.mixing_target]]))
    select = greedy_by_online if is_double else greedy_by_target
    weights = {"main": 2.0, **({"mixer": 3.0} if mixes else {})}
    rule = value_decomposition_rule(is_huber, "action_mask", select, is_double, weights)
    update = rule(operations(), networks, data.batch())

    errors, losses = np.zeros(B), np.zeros(B)
    for row in range(B):
        chosen = []
        for player in range(N):
            allowed = [action for action in range(A) if data.next_mask[row, player, action]]
            values = (data.q_next if is_double else data.q_target)[row, player]
            chosen.append(data.q_target[row, player, max(allowed, key=values.__getitem__)])
        target = data.rewards[row] + data.discounts[row] * mixed(chosen, data.mixing_target if mixes else None, row)
        taken = [data.q[row, player, data.actions[row, player]] for player in range(N)]
        errors[row] = target - mixed(taken, data.mixing if mixes else None, row)
        size = abs(errors[row])
        losses[row] = (size**2 / 2 if size < 1 else size - 0.5) if is_huber else size**2
    np.testing.assert_allclose(number(update.errors), errors, rtol=RTOL, atol=RTOL)
    mean = (losses * data.weights).sum() / 4
    assert update.losses.keys() == weights.keys()
    for name, weight in weights.items():
        np.testing.assert_allclose(number(update.losses[name]), weight * mean, rtol=RTOL)


def test_an_absent_player_adds_nothing_to_the_sum():
    data = Data()
    rows = number(joint_value(operations(), *arrays([data.q[:, :, 0]]), None))
    np.testing.assert_allclose(rows[1], data.q[1, :2, 0].sum(), rtol=RTOL)


def slopes_of_mixer(q: np.ndarray, mixing: dict[str, np.ndarray]) -> np.ndarray:
    """[B, N], the derivative of Q_tot by each player's value, by the framework's own differentiation."""
    ops, q, mixing = operations(), arrays(q), arrays(mixing)
    if FRAMEWORK is Frameworks.torch:
        q.requires_grad_(True)
        joint_value(ops, q, mixing).sum().backward()
        return number(q.grad)
    if FRAMEWORK is Frameworks.jax:
        import jax

        return number(jax.grad(lambda values: joint_value(ops, values, mixing).sum())(q))
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(q)
        total = tf.reduce_sum(joint_value(ops, q, mixing))
    return number(tape.gradient(total, q))


@pytest.mark.parametrize("seed", range(3))
def test_the_mixer_never_falls_in_the_value_of_a_player(seed):
    data = Data(seed)
    q = data.rng.normal(scale=3.0, size=(B, N))
    slopes = slopes_of_mixer(q, data.mixing)
    assert (slopes > 0).all()
    expected = gradient(lambda x: sum(mixed(x[0][row], data.mixing, row) for row in range(B)), [q])[0]
    np.testing.assert_allclose(slopes, expected, rtol=1e-4)


@pytest.mark.parametrize("value_epsilon", [None, 0.1])
def test_mappo_clips_the_ratio_of_each_present_player(value_epsilon):
    data, rng = Data(), np.random.default_rng(9)
    logits, old_logits = rng.normal(size=(B, N, A)), rng.normal(size=(B, N, A))
    values, advantages, returns, old_values = rng.normal(size=(4, B))

    def probabilities(of: np.ndarray) -> np.ndarray:
        exponentials = np.exp(of)
        return exponentials / exponentials.sum(axis=-1, keepdims=True)

    policy = {"probabilities": probabilities(logits), "log_probabilities": np.log(probabilities(logits))}
    networks = {
        "actor": FixedNetwork([arrays(policy)]),
        "critic": FixedNetwork([arrays({"v": values})]),
    }
    extra = {
        "advantages": advantages, "returns": returns, "behaviour_values": old_values,
        "behaviour_probabilities": probabilities(old_logits),
    }  # fmt: skip
    batch = data.batch(extra=extra, scalars={"clipping_decay": np.array(0.5)})
    update = mappo_rule(0.4, 0.01, 2.0, 0.5, "action_mask", value_epsilon)(operations(), networks, batch)

    objective, entropies, clipped, count = 0.0, 0.0, 0, 0
    for row in range(B):
        for player in range(N):
            if not data.present[row, player] or not data.weights[row]:
                continue
            count += 1
            allowed, action = data.mask[row, player], data.actions[row, player]
            new = policy["probabilities"][row, player] * allowed
            new, old = new / new.sum(), probabilities(old_logits)[row, player] * allowed
            ratio = new[action] / (old[action] / old.sum())
            clipped += abs(ratio - 1) > 0.2
            own = min(ratio * advantages[row], min(max(ratio, 0.8), 1.2) * advantages[row])
            objective += data.weights[row] * own
            entropies -= data.weights[row] * sum(p * np.log(p) for p in new if p > 0)
    assert 0 < clipped < count, "both branches of the minimum are tested"
    actor = -2.0 * objective / count - 0.01 * entropies / count
    errors = (values - returns) ** 2
    if value_epsilon is not None:
        near = old_values + np.clip(values - old_values, -value_epsilon, value_epsilon)
        errors = np.maximum(errors, (near - returns) ** 2)
    critic = 0.5 * (errors * data.weights).sum() / 4
    np.testing.assert_allclose(number(update.losses["actor"]), actor, rtol=RTOL)
    np.testing.assert_allclose(number(update.losses["critic"]), critic, rtol=RTOL)
    np.testing.assert_allclose(number(update.signals["Entropy"]), entropies / count, rtol=RTOL)


@starts_another_framework
@pytest.mark.parametrize("other", [pytest.param(name, marks=where_installed(name)) for name in ("jax", "torch")])
def test_the_same_on_the_other_frameworks(other):
    run_on(other, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__)
