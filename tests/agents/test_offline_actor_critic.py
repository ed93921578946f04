"""Updates of conservative soft actor-critic and of advantage weighted actor-critic against the papers in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.awac_agent import AWACAgentParameters
from rl_coach.agents.cql_agent import CQLAgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgent
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters, MiddlewareScheme, TaskParameters, VisualizationParameters
from rl_coach.core_types import RunPhase, TrainingSteps
from rl_coach.graph_managers.batch_rl_graph_manager import BatchRLGraphManager
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
from tests.frameworks import FRAMEWORK, in_layers_of_keras
from tests.zoo.environments import SmallEnvironmentParameters, Target
from tests.zoo.graphs import graph, schedule

SIZE, UPDATES = 6, 3


def tiny(agent: AgentParameters) -> AgentParameters:
    """A policy of 4 units and critics of 3, with smooth activations."""
    for network in agent.network_wrappers.values():
        network.batch_size, network.learning_rate, network.optimizer_epsilon = SIZE, 0.01, 1e-4
    embedder = agent.network_wrappers["policy"].input_embedders_parameters["observation"]
    embedder.scheme, embedder.activation_function = [Dense(4)], "tanh"
    agent.network_wrappers["policy"].middleware_parameters.scheme = MiddlewareScheme.Empty
    head = agent.network_wrappers["q"].heads_parameters[0]
    head.network_layers_sizes, head.activation_function = (3,), "tanh"
    agent.algorithm.discount, agent.algorithm.rate_for_copying_weights_to_target = 0.9, 0.3
    return agent


def built(parameters: AgentParameters, directory: Any) -> Any:
    manager = BatchRLGraphManager(
        parameters, SmallEnvironmentParameters(Target), schedule(TrainingSteps(1), heatup=40),
        VisualizationParameters(dump_csv=False), train_to_eval_ratio=1,
    )  # fmt: skip
    manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(directory), seed=1))
    manager._heat_up()
    agent = manager.get_agent()
    agent.phase = RunPhase.TRAIN
    return agent


def learned(make: Any, directory: Any) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """An agent that has learned, one that has not, and the columns that the first one learned from."""
    agent, fresh = (built(make(), directory / str(number)) for number in range(2))
    batches = recorded_columns(agent)
    float(agent.update_loop.learn(UPDATES))
    return agent, fresh, {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def critics(weights: list[np.ndarray], states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """[B, 2]: the weights of a layer come for both critics before those of the next layer."""
    joined = np.concatenate([states, actions], axis=1)
    return np.concatenate([dense(weights, 2 + i, np.tanh(dense(weights, i, joined))) for i in range(2)], axis=1)


def policy_of(weights: list[np.ndarray], states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation before squashing."""
    hidden = np.tanh(dense(weights, 0, states))
    return dense(weights, 2, hidden), np.exp(np.clip(dense(weights, 1, hidden), -20, 2))


def squashed(weights: list[np.ndarray], states: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """tanh(u) and its log density, by the change of variables as it stands in the paper."""
    mean, deviation = policy_of(weights, states)
    u = mean + deviation * noise
    normal = -0.5 * noise**2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)
    return np.tanh(u), (normal - np.log(1 - np.tanh(u) ** 2)).sum(axis=1)


def conservative(alpha: float = 2.0, count: int = 3) -> AgentParameters:
    agent = tiny(CQLAgentParameters())
    agent.algorithm.conservative_weight, agent.algorithm.num_sampled_actions = alpha, count
    return agent


@in_layers_of_keras
def test_conservative_updates_are_those_of_the_paper(tmp_path):
    """Kumar et al. 2020, equation 4 and appendix F, with the policy and the temperature of Haarnoja et al. 2018b."""
    agent, fresh, columns = learned(conservative, tmp_path)
    parameters, names = agent.ap.network_wrappers, ("policy", "q", "temperature")
    weights = {name: float64(fresh.networks[name].state.arrays("weights")) for name in names}
    target = float64(fresh.networks["q"].state.arrays("target_weights"))
    optimizers = {name: adam_of(parameters[name], weights[name]) for name in names}
    for number in range(UPDATES):
        batch = one_update(columns, number, SIZE)
        s, s_t, a = batch["states/observation"], batch["next_states/observation"], batch["actions"]
        alpha = np.exp(weights["temperature"][0])
        a_t, log_density_t = squashed(weights["policy"], s_t, batch["extra/next_noise"])
        y = batch["rewards"] + batch["discounts"] * (critics(target, s_t, a_t).min(axis=1) - alpha * log_density_t)
        uniform, noise = batch["extra/uniform_actions"], batch["extra/sampling_noise"]
        assert np.abs(uniform).max() <= 1 and uniform.shape == (SIZE, 3, 1)
        drawn = [squashed(weights["policy"], s, noise[:, i]) for i in range(3)]

        def q_loss(q: list, s: Any = s, a: Any = a, y: Any = y, uniform: Any = uniform, drawn: Any = drawn) -> float:
            bellman = 0.5 * ((critics(q, s, a) - y[:, None]) ** 2).sum(axis=1)
            terms = [np.exp(critics(q, s, uniform[:, i])) / 0.5 for i in range(3)]
            terms += [np.exp(critics(q, s, action)) / np.exp(density)[:, None] for action, density in drawn]
            gaps = (np.log(np.mean(terms, axis=0)) - critics(q, s, a)).sum(axis=1)
            return float(np.mean(bellman + 2.0 * gaps))

        weights["q"] = optimizers["q"](weights["q"], gradient(q_loss, weights["q"]))

        def policy_loss(
            policy: list, s: Any = s, batch: Any = batch, q: Any = weights["q"], alpha: Any = alpha
        ) -> float:
            action, log_density = squashed(policy, s, batch["extra/noise"])
            return float(np.mean(alpha * log_density - critics(q, s, action).min(axis=1)))

        _, log_density = squashed(weights["policy"], s, batch["extra/noise"])
        weights["policy"] = optimizers["policy"](weights["policy"], gradient(policy_loss, weights["policy"]))
        slope = [np.array(-(np.mean(log_density) - 1.0))]  # the target entropy is -1 for one element
        weights["temperature"] = optimizers["temperature"](weights["temperature"], slope)
        target = moved(target, weights["q"], 0.3)
    for name in names:
        assert_equal(agent.networks[name].state.arrays("weights"), weights[name])
    assert_equal(agent.networks["q"].state.arrays("target_weights"), target)


def test_without_its_weight_it_is_soft_actor_critic(tmp_path):
    """The same data, noise and weights: a gap of weight 0 changes nothing."""
    agent, fresh, columns = learned(lambda: conservative(alpha=0.0), tmp_path)
    fresh.ap.algorithm.conservative_weight = 0.0
    stages = SoftActorCriticAgent.make_update_rule(fresh)
    fresh.make_update_rule = lambda: stages
    for number in range(UPDATES):
        batch = one_update(columns, number, SIZE)
        fresh.update_loop.update({name: column.astype(np.float32) for name, column in batch.items()}, is_counted=True)
        fresh.update_loop.update_targets()
    for one, other in zip(
        agent.networks["q"].state.arrays("weights"), fresh.networks["q"].state.arrays("weights"), strict=True
    ):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), atol=1e-5)


def weighted(temperature: float = 0.05) -> AgentParameters:
    agent = tiny(AWACAgentParameters())
    agent.algorithm.advantage_temperature = temperature
    return agent


@in_layers_of_keras
def test_advantage_weighted_updates_are_those_of_the_paper(tmp_path):
    """Nair et al. 2020, equations 9 and 13, with the counts of a batch divided by their mean."""
    agent, fresh, columns = learned(weighted, tmp_path)
    parameters = agent.ap.network_wrappers
    weights = {name: float64(fresh.networks[name].state.arrays("weights")) for name in ("policy", "q")}
    target = float64(fresh.networks["q"].state.arrays("target_weights"))
    optimizers = {name: adam_of(parameters[name], weights[name]) for name in weights}

    def drawn(policy: list, states: np.ndarray, noise: np.ndarray) -> np.ndarray:
        mean, deviation = policy_of(policy, states)
        return np.clip(np.tanh(mean) + deviation * noise, -1, 1)

    for number in range(UPDATES):
        batch = one_update(columns, number, SIZE)
        s, s_t, a = batch["states/observation"], batch["next_states/observation"], batch["actions"]
        a_t = drawn(weights["policy"], s_t, batch["extra/next_noise"])
        y = batch["rewards"] + batch["discounts"] * critics(target, s_t, a_t).min(axis=1)

        def q_loss(q: list, s: Any = s, a: Any = a, y: Any = y) -> float:
            return 0.5 * float(np.mean(((critics(q, s, a) - y[:, None]) ** 2).sum(axis=1)))

        weights["q"] = optimizers["q"](weights["q"], gradient(q_loss, weights["q"]))
        own = drawn(weights["policy"], s, batch["extra/noise"])
        advantages = critics(weights["q"], s, a).min(axis=1) - critics(weights["q"], s, own).min(axis=1)
        counts = np.exp(advantages / 0.05)
        counts /= counts.mean()
        assert counts.max() > 1.1

        def policy_loss(policy: list, s: Any = s, a: Any = a, counts: Any = counts) -> float:
            mean, deviation = policy_of(policy, s)
            normal = -0.5 * ((a - np.tanh(mean)) / deviation) ** 2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)
            return -float(np.mean(counts * normal.sum(axis=1)))

        weights["policy"] = optimizers["policy"](weights["policy"], gradient(policy_loss, weights["policy"]))
        target = moved(target, weights["q"], 0.3)
    for name in ("policy", "q"):
        assert_equal(agent.networks[name].state.arrays("weights"), weights[name])
    assert_equal(agent.networks["q"].state.arrays("target_weights"), target)


def test_advantage_weighted_actor_critic_needs_data(tmp_path):
    with pytest.raises(CoachError, match="use it in a BatchRLGraphManager"):
        graph(AWACAgentParameters(), Target, tmp_path)
