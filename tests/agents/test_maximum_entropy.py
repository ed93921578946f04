"""Updates of soft actor-critic without a value network, and of what followed it, against the papers in NumPy."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from rl_coach.agents.rules.soft_actor_critic import critic_losses
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentSteps, RunPhase, TrainingSteps
from rl_coach.utils import CoachError
from tests.agents.numpy_gradients import (
    adam_of,
    assert_equal,
    dense,
    float64,
    gradient,
    moved,
    one_update,
    recorded_columns,
)
from tests.agents.numpy_rules import ops
from tests.zoo.continuous import crossq, droq, maximum_entropy, redq, tqc
from tests.zoo.environments import Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import soft_actor_critic

SIZE, UPDATES = 6, 4


def tiny(agent: AgentParameters) -> AgentParameters:
    """A policy of 4 units and critics of 3, with smooth activations."""
    for network in agent.network_wrappers.values():
        network.batch_size, network.learning_rate, network.optimizer_epsilon = SIZE, 0.01, 1e-4
    policy, q = agent.network_wrappers["policy"], agent.network_wrappers["q"]
    policy.input_embedders_parameters["observation"].activation_function = "tanh"
    policy.input_embedders_parameters["observation"].scheme[0].units = 4
    q.heads_parameters[0].network_layers_sizes = (3,)
    q.heads_parameters[0].activation_function = "tanh"
    agent.algorithm.num_consecutive_training_steps = UPDATES
    agent.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
    return agent


def without_target() -> AgentParameters:
    agent = maximum_entropy()
    agent.network_wrappers["q"].create_target_network = False
    return agent


def droq_without_dropout() -> AgentParameters:
    agent = droq()
    agent.network_wrappers["q"].heads_parameters[0].dropout_rate = 0  # nobody knows which units it would leave out
    return agent


def renormalized_crossq() -> AgentParameters:
    agent = crossq()
    agent.network_wrappers["q"].heads_parameters[0].batch_renorm_warm_up = 2  # of four updates
    return agent


def with_a_fixed_temperature() -> AgentParameters:
    agent = maximum_entropy()
    agent.algorithm.temperature = 0.3
    return agent


def sampled(weights: list[np.ndarray], states: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """tanh of a Gaussian draw, and the log of its density by the change of variables; the layer that is clipped
    afterwards comes first among the weights."""
    hidden = np.tanh(dense(weights, 0, states))
    log_deviation, mean = np.clip(dense(weights, 1, hidden), -20, 2), dense(weights, 2, hidden)
    u = mean + np.exp(log_deviation) * noise
    log_density = -0.5 * noise**2 - log_deviation - 0.5 * np.log(2 * np.pi) - np.log(1 - np.tanh(u) ** 2)
    return np.tanh(u), log_density.sum(axis=1)


Moments = list[tuple[np.ndarray, np.ndarray]]


def critics_of(
    weights: list[np.ndarray],
    states: np.ndarray,
    actions: np.ndarray,
    head: Any,
    running: Moments | None = None,
    correct: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None,
) -> tuple[np.ndarray, Moments]:
    """[B, critics, quantiles], and mean and variance of each batch normalisation: the batch's, unless ``running`` are
    given. Each layer's weights come for all critics before those of the next layer.

    :param correct: ``correct(number, mean, variance)`` gives r and d of each batch renormalisation; None for 1 and 0
    """
    given, used = iter(weights), []

    def of_each_critic(size: int) -> list[list[np.ndarray]]:
        return [[next(given) for _ in range(size)] for _ in range(head.num_critics)]

    def dense_layer(xs: list[np.ndarray]) -> list[np.ndarray]:
        return [x @ kernel + bias for x, (kernel, bias) in zip(xs, of_each_critic(2))]

    def batchnorm(xs: list[np.ndarray]) -> list[np.ndarray]:
        """Ioffe & Szegedy 2015, algorithms 1 and 2."""
        for i, (x, (scale, offset)) in enumerate(zip(xs, of_each_critic(2))):
            mean, variance = (x.mean(axis=0), x.var(axis=0)) if running is None else running[len(used)]
            r, d = (1, 0) if correct is None else correct(len(used), mean, variance)
            used.append((mean, variance))
            xs = [*xs[:i], scale * ((x - mean) / np.sqrt(variance + 1e-3) * r + d) + offset, *xs[i + 1 :]]
        return xs

    def layernorm(xs: list[np.ndarray]) -> list[np.ndarray]:
        """Ba et al. 2016, equation 4."""
        deviations = [np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) for x in xs]
        scales, offsets = of_each_critic(1), of_each_critic(1)
        each = zip(xs, deviations, scales, offsets)
        return [(x - x.mean(axis=1, keepdims=True)) / deviation * scale + o for x, deviation, [scale], [o] in each]

    xs = [np.concatenate([states, actions], axis=1)] * head.num_critics
    xs = dense_layer(batchnorm(xs) if head.batchnorm else xs)
    xs = [np.tanh(x) for x in (layernorm(xs) if head.layernorm else xs)]
    return np.stack(dense_layer(batchnorm(xs) if head.batchnorm else xs), axis=1), used


def corrections_to(running: Moments) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """r and d of Ioffe 2017, algorithm 1, for each layer; those of the first pass hold for the ones that follow, since
    they are constants of the gradient."""
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def correct(number: int, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if number not in found:
            deviation = np.sqrt(running[number][1] + 1e-3)
            r = np.clip(np.sqrt(variance + 1e-3) / deviation, 1 / 3, 3)
            found[number] = r, np.clip((mean - running[number][0]) / deviation, -5, 5)
        return found[number]

    return correct


def quantile_huber(quantiles: np.ndarray, atoms: np.ndarray) -> float:
    """Dabney et al. 2018, equation 10, for each critic alone and added up, one pair after the other."""
    total, (rows, critics, each) = 0.0, quantiles.shape
    for b in range(rows):
        for n in range(critics):
            pairs = [(quantiles[b, n, m], (2 * m + 1) / (2 * each), y) for m in range(each) for y in atoms[b]]
            losses = []
            for z, tau, y in pairs:
                u = y - z
                huber = 0.5 * u * u if abs(u) <= 1 else abs(u) - 0.5
                losses.append(abs(tau - (u < 0)) * huber)
            total += sum(losses) / len(losses)
    return total / rows


def reference(agent: Any, columns: dict[str, np.ndarray]) -> dict[str, Any]:
    """Haarnoja et al. 2018b, algorithm 1, whose policy learns from critics that have just learned; Chen et al. 2021;
    Kuznetsov et al. 2020; Hiraoka et al. 2022 without dropout; Bhatt et al. 2024."""
    algorithm, parameters = agent.ap.algorithm, agent.ap.network_wrappers
    head = parameters["q"].heads_parameters[0]
    count, each, delay = head.num_critics, head.num_quantiles, algorithm.update_policy_every_x_training_steps
    names = ("policy", "q", "temperature")
    weights = {name: float64(agent.networks[name].state.arrays("weights")) for name in names}
    has_target = agent.networks["q"].has_target
    target = float64(agent.networks["q"].state.arrays("target_weights")) if has_target else None
    buffers = float64(agent.networks["q"].state.arrays("buffers"))
    stride, warm_up = (2, UPDATES) if head.batch_renorm_warm_up is None else (3, head.batch_renorm_warm_up)
    running = list(zip(buffers[::stride], buffers[1::stride])) if head.batchnorm else None
    optimizers = {name: adam_of(parameters[name], weights[name]) for name in names}
    for number in range(UPDATES):
        batch = one_update(columns, number, SIZE)
        s, s_t = batch["states/observation"], batch["next_states/observation"]
        alpha = np.exp(weights["temperature"][0]) if algorithm.temperature is None else algorithm.temperature
        a_t, log_density_t = sampled(weights["policy"], s_t, batch["extra/next_noise"])
        both = np.concatenate([s, s_t]), np.concatenate([batch["actions"], a_t])
        correct = corrections_to(running) if running is not None and number >= warm_up else None
        if target is None:
            z, of_both = critics_of(weights["q"], *both, head, correct=correct)
            z_t = z[SIZE:]
            if running is not None:
                running = [tuple(0.99 * r + 0.01 * n for r, n in zip(*pair)) for pair in zip(running, of_both)]
        else:
            z_t, _ = critics_of(target, s_t, a_t, head)
        if each > 1:
            pooled = np.sort(z_t.reshape(SIZE, -1), axis=1)[:, : count * (each - algorithm.top_quantiles_to_drop)]
        else:
            chosen = batch.get("extra/critics", np.ones((SIZE, count)))
            pooled = np.array([[min(q for q, is_in in zip(row[:, 0], ins) if is_in)] for row, ins in zip(z_t, chosen)])
        y = batch["rewards"][:, None] + batch["discounts"][:, None] * (pooled - alpha * log_density_t[:, None])

        seen = both if target is None else (s, batch["actions"])

        def q_loss(q: list, y: Any = y, seen: Any = seen, correct: Any = correct) -> float:
            z = critics_of(q, *seen, head, correct=correct)[0][:SIZE]
            if each > 1:
                return quantile_huber(z, y)
            return 0.5 * float(np.mean(((z[:, :, 0] - y) ** 2).sum(axis=1)))

        weights["q"] = optimizers["q"](weights["q"], gradient(q_loss, weights["q"]))

        def policy_loss(
            policy: list, batch: Any = batch, q: Any = weights["q"], alpha: Any = alpha, running: Any = running
        ) -> float:
            a, log_density = sampled(policy, batch["states/observation"], batch["extra/noise"])
            values = critics_of(q, batch["states/observation"], a, head, running)[0].mean(axis=2)
            is_mean = algorithm.policy_uses_mean_of_critics or each > 1
            return float(np.mean(alpha * log_density - (values.mean(axis=1) if is_mean else values.min(axis=1))))

        _, log_density = sampled(weights["policy"], s, batch["extra/noise"])
        if (number + 1) % delay == 0:
            weights["policy"] = optimizers["policy"](weights["policy"], gradient(policy_loss, weights["policy"]))
            if algorithm.temperature is None:
                slope = [np.array(-(np.mean(log_density) - 1.0))]  # the target entropy is -1 for one element
                weights["temperature"] = optimizers["temperature"](weights["temperature"], slope)
        if target is not None:
            target = moved(target, weights["q"], algorithm.rate_for_copying_weights_to_target)
    return {**weights, "target": target, "running": running}


@pytest.mark.parametrize(
    "make",
    [
        maximum_entropy, redq, droq_without_dropout, tqc, crossq, renormalized_crossq,
        *(pytest.param(make, marks=pytest.mark.slow) for make in (without_target, with_a_fixed_temperature)),
    ],
)  # fmt: skip
def test_several_updates_are_those_of_the_paper(make, tmp_path):
    agents = []
    for _ in range(2):  # one learns, the reference begins where the other one is
        manager = graph(tiny(make()), Target, tmp_path)
        manager.heatup(EnvironmentSteps(40))
        agents.append(manager.get_agent())
    agent, fresh = agents
    batches = recorded_columns(agent)
    agent.phase = RunPhase.TRAIN
    float(agent.update_loop.learn(UPDATES))
    columns = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    if make is redq:
        drawn = columns["extra/critics"].reshape(UPDATES, SIZE, 4)
        assert (drawn == drawn[:, :1]).all() and (drawn.sum(axis=2) == 2).all()
    expected = reference(fresh, columns)
    for name in ("policy", "q", "temperature"):
        assert_equal(agent.networks[name].state.arrays("weights"), expected[name])
    if make in (crossq, renormalized_crossq):
        passes = [] if make is crossq else [np.array([float(UPDATES)])]
        moments = [array for pair in expected["running"] for array in (*pair, *passes)]
        assert_equal(agent.networks["q"].state.arrays("buffers"), moments)
    if expected["target"] is not None:
        assert_equal(agent.networks["q"].state.arrays("target_weights"), expected["target"])


def test_quantile_losses_of_one_row_worked_out_by_hand():
    # quantiles at 1/4 and 3/4 of values 0 and 2, one target 1.5: |0.25| * (1.5 - 0.5), |0.75 - 1| * 0.125
    losses = critic_losses(ops, np.array([[[0.0, 2.0]]], np.float32), np.array([[1.5]], np.float32))
    assert float(losses[0]) == pytest.approx((0.25 * 1.0 + 0.25 * 0.125) / 2)


def test_batches_are_normalized_together_where_there_is_no_target(tmp_path):
    manager = graph(crossq(), Target, tmp_path)
    manager.heatup(EnvironmentSteps(40))
    agent = manager.get_agent()
    before = [array.copy() for array in agent.networks["q"].state.arrays("buffers")]
    batches = recorded_columns(agent)
    agent.phase = RunPhase.TRAIN
    float(agent.update_loop.learn(1))
    columns = batches[0]
    states = np.concatenate([columns["states/observation"], columns["next_states/observation"]])
    after = agent.networks["q"].state.arrays("buffers")
    # the first statistics are those of the input: its mean moved by a hundredth towards that of both batches
    means = [np.asarray(new) for new, old in zip(after, before) if new.shape == (2,) and np.allclose(old, 0)]
    assert any(mean[0] == pytest.approx(0.01 * states.mean(), abs=1e-4) for mean in means)


@pytest.mark.parametrize(
    ("parameters", "name", "value", "message"),
    [
        (maximum_entropy, "num_critics_in_target", 3, "num_critics_in_target is 3, and the head has num_critics 2"),
        (tqc, "top_quantiles_to_drop", 5, "top_quantiles_to_drop is 5, and the head has num_quantiles 5: drop fewer"),
        (soft_actor_critic, "target_entropy", -3.0, r"target_entropy needs .*\(use_value_network=False\)"),
        (maximum_entropy, "temperature", -1, r"algorithm\.temperature is -1; it must be None or a number from 0"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(parameters, name, value, message, tmp_path):
    agent = parameters()
    setattr(agent.algorithm, name, value)
    with pytest.raises(CoachError, match=message) as caught:
        graph(agent, Target, tmp_path)
    assert "\n" not in str(caught.value)


def test_renormalization_is_one_of_batch_normalisation(tmp_path):
    agent = maximum_entropy()
    agent.network_wrappers["q"].heads_parameters[0].batch_renorm_warm_up = 10
    with pytest.raises(CoachError, match="batch_renorm_warm_up needs batchnorm=True in the head's parameters"):
        graph(agent, Target, tmp_path)


def test_a_checkpoint_without_renormalization_is_refused_in_a_line(tmp_path):
    manager = graph(crossq(), Target, tmp_path / "plain", schedule(4, heatup=20))
    manager.improve()
    manager.save_checkpoint()
    other = graph(renormalized_crossq(), Target, tmp_path / "other", schedule(4, heatup=20))
    path = next((tmp_path / "plain").rglob("*.ckpt"))
    with pytest.raises(
        CoachError, match=r"does not fit this graph: 'buffers' must have \d+ arrays, but \d+ were given$"
    ) as caught:
        other.restore_checkpoint(str(path.parent))
    assert "\n" not in str(caught.value)


def test_more_critics_need_the_update_without_a_value_network(tmp_path):
    agent = soft_actor_critic()
    agent.network_wrappers["q"].heads_parameters[0].num_critics = 5
    with pytest.raises(CoachError, match="num_critics other than 2, or num_quantiles other than 1, needs"):
        graph(agent, Target, tmp_path)


def test_the_default_is_coachs():
    assert list(SoftActorCriticAgentParameters().network_wrappers) == ["policy", "q", "v"]
    assert not SoftActorCriticAgentParameters().network_wrappers["q"].create_target_network
