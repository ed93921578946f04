"""SimbaV2's networks and updates, as settings of soft actor-critic, against a recomputation in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.hypersphere import LerpBlock, SphereEmbedding
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentSteps, RunPhase, TrainingSteps
from rl_coach.utils import CoachError
from tests.agents.numpy_gradients import (
    adam_of,
    assert_equal,
    float64,
    gradient,
    moved,
    one_update,
    recorded_columns,
)
from tests.frameworks import in_layers_of_keras
from tests.zoo.continuous import simba_v2
from tests.zoo.environments import Target
from tests.zoo.graphs import graph
from tests.zoo.parameters import soft_actor_critic

SIZE, UPDATES, UNITS, EXPANSION, ATOMS, SHIFT = 6, 2, 3, 2, 7, 3.0
Weights = list[np.ndarray]


def tiny() -> AgentParameters:
    """A policy and critics of three units, with distributions over seven returns."""
    agent = simba_v2()
    for network in agent.network_wrappers.values():
        network.batch_size, network.learning_rate, network.optimizer_epsilon = SIZE, 0.01, 1e-4
    policy, head = agent.network_wrappers["policy"], agent.network_wrappers["q"].heads_parameters[0]
    policy.middleware_parameters.scheme = head.scheme = [SphereEmbedding(UNITS, SHIFT), LerpBlock(expansion=EXPANSION)]
    head.num_atoms, head.v_min, head.v_max = ATOMS, -2.0, 2.0
    agent.algorithm.num_consecutive_training_steps = UPDATES
    agent.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
    return agent


def unit(x: np.ndarray, axis: int = -1) -> np.ndarray:
    return x / np.linalg.norm(x, axis=axis, keepdims=True)


def features(x: np.ndarray, kernels: Weights, scale: np.ndarray, inner: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Embedding and one block: kernels [D + 1, d], [d, 2 d] and [2 d, d]; the trained vectors as they are stored."""
    h = unit(np.concatenate([x, np.full((len(x), 1), SHIFT)], axis=1)) @ kernels[0]
    h = unit(scale * h)  # it starts at sqrt(2 / d) and is stored as such
    hidden = np.maximum(inner * (h @ kernels[1]), 0)
    towards = unit((hidden + 1e-8) @ kernels[2])
    step = alpha * (1 / 2) * np.sqrt(UNITS)  # stored as 1 / sqrt(d) where it is 1 / (L + 1), with L = 1
    return unit((1 - step) * h + step * towards)


def output(h: np.ndarray, first: np.ndarray, scale: np.ndarray, second: np.ndarray, offset: np.ndarray) -> np.ndarray:
    return (scale * (h @ first)) @ second + offset


def sampled(weights: Weights, states: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """tanh of a Gaussian draw, and the logarithm of its density."""
    embedding, scale, outward, inner, inward, alpha, *heads = weights
    h = features(states, [embedding, outward, inward], scale, inner, alpha)
    log_deviation = np.clip(output(h, heads[0], heads[1], heads[4], heads[5]), -20, 2)
    mean = output(h, heads[2], heads[3], heads[6], heads[7])
    u = mean + np.exp(log_deviation) * noise
    log_density = -0.5 * noise**2 - log_deviation - 0.5 * np.log(2 * np.pi) - np.log(1 - np.tanh(u) ** 2)
    return np.tanh(u), log_density.sum(axis=1)


def distributions(weights: Weights, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """[B, 2, atoms] log probabilities; each layer's weights come for both critics before those of the next layer."""
    x, found = np.concatenate([states, actions], axis=1), []
    for critic in range(2):
        embedding, scale, outward, inner, inward, alpha, first, last_scale = weights[critic:16:2]
        second, offset = weights[16 + 2 * critic : 18 + 2 * critic]
        logits = output(
            features(x, [embedding, outward, inward], scale, inner, alpha), first, last_scale, second, offset
        )
        logits = logits - logits.max(axis=1, keepdims=True)
        found.append(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))
    return np.stack(found, axis=1)


SUPPORT = np.linspace(-2, 2, ATOMS)


def on_support(returns: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Bellemare et al. 2017, algorithm 1, one atom after the other. :param returns: [B, atoms]"""
    found, step = np.zeros_like(returns), SUPPORT[1] - SUPPORT[0]
    for b, i in np.ndindex(returns.shape):
        place = (np.clip(returns[b, i], SUPPORT[0], SUPPORT[-1]) - SUPPORT[0]) / step
        low = min(int(np.floor(place)), ATOMS - 2)
        found[b, low] += probabilities[b, i] * (low + 1 - place)
        found[b, low + 1] += probabilities[b, i] * (place - low)
    return found


def projected(weights: Weights) -> Weights:
    """All kernels with columns of norm 1."""
    return [w / np.linalg.norm(w, axis=0) if w.ndim == 2 else w for w in weights]


def reference(agent: Any, columns: dict[str, np.ndarray]) -> dict[str, Weights]:
    parameters = agent.ap.network_wrappers
    names = ("policy", "q", "temperature")
    weights = {name: float64(agent.networks[name].state.arrays("weights")) for name in names}
    target = float64(agent.networks["q"].state.arrays("target_weights"))
    optimizers = {name: adam_of(parameters[name], weights[name]) for name in names}
    for number in range(UPDATES):
        batch = one_update(columns, number, SIZE)
        s, s_t, a = batch["states/observation"], batch["next_states/observation"], batch["actions"]
        temperature = np.exp(weights["temperature"][0])
        a_t, log_density_t = sampled(weights["policy"], s_t, batch["extra/next_noise"])
        z_t = np.exp(distributions(target, s_t, a_t))
        lower = z_t[np.arange(SIZE), (z_t @ SUPPORT).argmin(axis=1)]
        soft = SUPPORT[None] - temperature * log_density_t[:, None]
        wanted = on_support(batch["rewards"][:, None] + batch["discounts"][:, None] * soft, lower)

        def q_loss(q: Weights, wanted: Any = wanted, s: Any = s, a: Any = a) -> float:
            return -float((wanted[:, None] * distributions(q, s, a)).sum(axis=(1, 2)).mean())

        weights["q"] = projected(optimizers["q"](weights["q"], gradient(q_loss, weights["q"])))

        def policy_loss(
            policy: Weights, q: Any = weights["q"], s: Any = s, batch: Any = batch, temperature: Any = temperature
        ) -> float:
            actions, log_density = sampled(policy, s, batch["extra/noise"])
            values = np.exp(distributions(q, s, actions)) @ SUPPORT
            return float((temperature * log_density - values.min(axis=1)).mean())

        _, log_density = sampled(weights["policy"], s, batch["extra/noise"])
        weights["policy"] = projected(optimizers["policy"](weights["policy"], gradient(policy_loss, weights["policy"])))
        slope = [np.array(-(np.mean(log_density) - 1.0))]  # the target entropy is -1 for one element
        weights["temperature"] = optimizers["temperature"](weights["temperature"], slope)
        target = moved(target, weights["q"], agent.ap.algorithm.rate_for_copying_weights_to_target)
    return {**weights, "target": target}


@in_layers_of_keras
def test_several_updates_are_those_of_the_paper(tmp_path):
    agents = []
    for number in range(2):  # one learns, the reference begins where the other one is
        manager = graph(tiny(), Target, tmp_path / str(number))
        manager.heatup(EnvironmentSteps(40))
        agents.append(manager.get_agent())
    agent, fresh = agents
    batches = recorded_columns(agent)
    agent.phase = RunPhase.TRAIN
    float(agent.update_loop.learn(UPDATES))
    columns = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    expected = reference(fresh, columns)
    for name in ("policy", "q", "temperature"):
        assert_equal(agent.networks[name].state.arrays("weights"), expected[name])
    assert_equal(agent.networks["q"].state.arrays("target_weights"), expected["target"])
    for name in ("policy", "q"):
        kernels = kernels_of(agent, name)
        norms = np.concatenate([np.linalg.norm(kernel, axis=0) for kernel in kernels])
        np.testing.assert_allclose(norms, 1, atol=1e-6)
        assert any(not np.array_equal(one, other) for one, other in zip(kernels, kernels_of(fresh, name), strict=True))


def kernels_of(agent: Any, name: str) -> list[np.ndarray]:
    return [w for w in agent.networks[name].state.arrays("weights") if w.ndim == 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_quantiles": 5}, "needs num_quantiles 1"),
        ({"v_max": -5.0}, r"v_min is -5.0; it must be below v_max, which is -5.0"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(change, message, tmp_path):
    agent = simba_v2()
    for name, value in change.items():
        setattr(agent.network_wrappers["q"].heads_parameters[0], name, value)
    with pytest.raises(CoachError, match=message):
        graph(agent, Target, tmp_path)


def test_distributions_need_the_update_without_a_value_network(tmp_path):
    agent = soft_actor_critic()
    agent.network_wrappers["q"].heads_parameters[0].num_atoms = 11
    with pytest.raises(CoachError, match=r"num_atoms above 1 needs .*use_value_network=False"):
        graph(agent, Target, tmp_path)
