"""TRPO: its step against a solution of F x = g in float64, with the Fisher matrix of its definition; and its limit."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from rl_coach.agents.trpo_agent import TRPOAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters, MiddlewareScheme
from rl_coach.utils import CoachError
from tests.agents.numpy_gradients import Weights, dense, float64, gradient
from tests.frameworks import FRAMEWORK, NOT_ON_MXNET, not_on_mxnet
from tests.zoo.environments import Bandit, Lottery, MaskedChain, SmallEnvironment, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import trpo

twice_differentiable = not_on_mxnet(NOT_ON_MXNET["trpo"])

DAMPING, LIMIT = 0.01, 0.02
Columns = dict[str, np.ndarray]


def tiny(limit: float = LIMIT, iterations: int = 60) -> AgentParameters:
    """An actor of three units. :param iterations: more than it has weights, so that F x = g is solved exactly"""
    agent = trpo()
    for network in agent.network_wrappers.values():
        network.input_embedders_parameters["observation"].scheme = [Dense(3)]
        network.middleware_parameters.scheme = MiddlewareScheme.Empty
    agent.algorithm.conjugate_gradient_iterations = iterations
    agent.algorithm.conjugate_gradient_damping, agent.algorithm.max_kl_divergence = DAMPING, limit
    return agent


class Steps:
    """The actor's steps of a run: weights before and after, the columns, and the signals.

    :param steps: of the environment
    """

    def __init__(self, parameters: AgentParameters, problem: type[SmallEnvironment], directory: Any, steps: int = 256):
        manager = graph(parameters, problem, directory, schedule(steps))
        self.agent: Any = manager.get_agent()
        self.seen: list[tuple[Weights, Weights, Columns, dict[str, float]]] = []
        self.update_alone = self.agent.update_loop.update_alone
        self.agent.update_loop.update_alone = self.note
        manager.improve()

    def weights(self, name: str) -> Weights:
        return float64(self.agent.networks[name].state.arrays("weights"))

    def note(self, name: str, columns: Columns, signal_names: Any, **how: Any) -> Any:
        before, others = self.weights(name), self.weights("critic" if name == "actor" else "actor")
        result = self.update_alone(name, columns, signal_names, **how)
        after = self.weights("critic" if name == "actor" else "actor")
        assert all(np.array_equal(one, other) for one, other in zip(others, after, strict=True))
        if name == "actor":
            signals = {signal: float(values[0]) for signal, values in result.signals.items()}
            rows = columns["weights"] > 0
            played = {key: np.asarray(column[rows], np.float64) for key, column in columns.items()}
            self.seen.append((before, self.weights(name), played, signals))
        return result


def log_policy(weights: Weights, columns: Columns) -> np.ndarray:
    """[B, A] of a discrete policy, of the actions that a mask allows, if there is any."""
    logits = dense(weights, 1, np.tanh(dense(weights, 0, columns["states/observation"])))
    logits = np.where(columns["states/mask"] > 0, logits, -1e9) if "states/mask" in columns else logits
    logits = logits - logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def gaussian(weights: Weights, columns: Columns) -> np.ndarray:
    """[B, 2]: mean and logarithm of the deviation of a policy over one number."""
    mean = dense(weights, 1, np.tanh(dense(weights, 0, columns["states/observation"])))[:, 0]
    return np.stack([mean, np.full_like(mean, weights[4][0])], axis=1)


def action_log_probs(outputs: np.ndarray, actions: np.ndarray) -> np.ndarray:
    if actions.ndim == 1:
        return outputs[np.arange(len(actions)), actions.astype(int)]
    mean, log_deviation = outputs.T
    return -0.5 * ((actions[:, 0] - mean) / np.exp(log_deviation)) ** 2 - log_deviation - 0.5 * np.log(2 * np.pi)


def divergence(old: np.ndarray, new: np.ndarray, is_discrete: bool) -> float:
    """The mean of KL(old || new), from the definitions."""
    if is_discrete:
        return float((np.exp(old) * (old - new)).sum(axis=1).mean())
    (m, s), (n, t) = old.T, new.T
    return float((t - s + (np.exp(2 * s) + (m - n) ** 2) / (2 * np.exp(2 * t)) - 0.5).mean())


def flat(weights: Weights) -> np.ndarray:
    return np.concatenate([array.ravel() for array in weights])


def jacobian(function: Callable[[Weights], np.ndarray], weights: Weights, width: float = 1e-6) -> np.ndarray:
    """[B, outputs, weights] by central differences."""
    columns = []
    for i, array in enumerate(weights):
        for index in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                moved = array.copy()
                moved[index] += sign * width
                ends.append(function([*weights[:i], moved, *weights[i + 1 :]]))
            columns.append((ends[0] - ends[1]) / (2 * width))
    return np.stack(columns, axis=-1)


def fisher(policy: Callable[[Weights, Columns], np.ndarray], weights: Weights, columns: Columns, is_discrete: bool):
    """E[grad log pi grad log pi^T] over states and the policy's own actions; of a Gaussian in closed form."""
    slopes = jacobian(lambda at: policy(at, columns), weights)
    outputs = policy(weights, columns)
    if is_discrete:
        importance = np.exp(outputs)
    else:  # the Fisher matrix of mean and log deviation is diag(1 / deviation^2, 2)
        importance = np.stack([np.exp(-2 * outputs[:, 1]), np.full(len(outputs), 2.0)], axis=1)
    return np.einsum("bk,bki,bkj->ij", importance, slopes, slopes) / len(outputs)


def surrogate(policy: Any, weights: Weights, columns: Columns, old: np.ndarray) -> float:
    """E[pi / mu A]."""
    actions = columns["actions"]
    ratio = np.exp(action_log_probs(policy(weights, columns), actions) - action_log_probs(old, actions))
    return float((ratio * columns["extra/advantages"]).mean())


@twice_differentiable
@pytest.mark.parametrize("problem, policy", [(Lottery, log_policy), (MaskedChain, log_policy), (Target, gaussian)])
def test_a_step_is_the_natural_gradient_within_the_limit(problem, policy, tmp_path):
    steps, is_discrete = Steps(tiny(), problem, tmp_path), policy is log_policy
    assert len(steps.seen) >= 3
    for before, after, columns, signals in steps.seen:
        old, new = policy(before, columns), policy(after, columns)
        g = flat(gradient(lambda at, c=columns, o=old: surrogate(policy, at, c, o), before))
        f = fisher(policy, before, columns, is_discrete) + DAMPING * np.eye(len(g))
        x = np.linalg.solve(f, g)
        share = signals["Trust Region Share"]
        expected = share * np.sqrt(2 * LIMIT / (x @ f @ x)) * x
        np.testing.assert_allclose(flat(after) - flat(before), expected, atol=2e-4, rtol=5e-3)
        assert 0 < divergence(old, new, is_discrete) <= LIMIT * 1.001
        assert signals["KL Divergence"] == pytest.approx(divergence(old, new, is_discrete), rel=1e-2, abs=1e-6)
        gained = surrogate(policy, after, columns, old) - surrogate(policy, before, columns, old)
        assert gained > 0 and signals["Surrogate Improvement"] == pytest.approx(gained, rel=1e-2, abs=1e-6)
        shares = 0.8 ** np.arange(10)
        assert np.isclose(shares, share, rtol=1e-5).any()
        for longer in shares[shares > share * 1.01]:  # was tried before, and not good
            tried, start = [], flat(before) + longer / share * expected
            for array in before:
                tried.append(start[: array.size].reshape(array.shape))
                start = start[array.size :]
            is_within = divergence(old, policy(tried, columns), is_discrete) <= LIMIT * 0.999
            assert not is_within or surrogate(policy, tried, columns, old) <= surrogate(policy, before, columns, old)


@twice_differentiable
def test_fewer_iterations_of_conjugate_gradients_go_another_way(tmp_path):
    """So the test above would notice a step along the gradient itself."""
    steps = Steps(tiny(iterations=1), Lottery, tmp_path, 100)
    before, after, columns, _ = steps.seen[0]
    old = log_policy(before, columns)
    g = flat(gradient(lambda at: surrogate(log_policy, at, columns, old), before))
    x = np.linalg.solve(fisher(log_policy, before, columns, True) + DAMPING * np.eye(len(g)), g)
    moved = flat(after) - flat(before)
    cosines = [moved @ v / np.linalg.norm(moved) / np.linalg.norm(v) for v in (g, x)]
    assert cosines[0] == pytest.approx(1, abs=1e-4) and cosines[1] < 0.99


@twice_differentiable
def test_a_step_that_is_too_long_is_not_made(tmp_path):
    parameters = tiny(limit=30.0)  # the quadratic divergence is far from the true one there
    parameters.algorithm.line_search_attempts, parameters.algorithm.conjugate_gradient_damping = 1, 1e-6
    steps = Steps(parameters, Lottery, tmp_path, 512)
    refused = [one for one in steps.seen if one[3]["Trust Region Share"] == 0]
    assert refused
    for before, after, _, signals in refused:
        assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
        assert signals["KL Divergence"] == signals["Surrogate Improvement"] == 0


@twice_differentiable
def test_the_critic_learns_returns_in_epochs_of_minibatches(tmp_path):
    parameters = trpo()
    parameters.algorithm.value_epochs, parameters.network_wrappers["critic"].batch_size = 3, 16
    manager = graph(parameters, Bandit, tmp_path, schedule(70))
    manager.improve()
    critic, actor = (manager.get_agent().networks[name].state for name in ("critic", "actor"))
    assert (critic.updates, actor.updates) == (3 * 5, 1)  # 70 steps of whole episodes are five minibatches


@twice_differentiable
@pytest.mark.slow
def test_a_recurrent_actor_steps_within_its_limit(tmp_path):
    from tests.zoo.parameters import recurrent_penalized_ppo

    parameters = trpo()
    recurrent = recurrent_penalized_ppo().network_wrappers["actor"].middleware_parameters
    parameters.network_wrappers["actor"].middleware_parameters = recurrent
    for *_, signals in Steps(parameters, Bandit, tmp_path).seen:
        assert 0 < signals["KL Divergence"] <= 0.1 and signals["Surrogate Improvement"] > 0


@pytest.mark.skipif(FRAMEWORK.name != "mxnet", reason="about MXNet")
def test_mxnet_is_refused(tmp_path):
    with pytest.raises(CoachError, match="learns only on JAX, TensorFlow, PyTorch"):
        graph(TRPOAgentParameters(), Bandit, tmp_path)
