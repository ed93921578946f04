"""Heads of the value family: what they predict, from their weights in NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import (
    CategoricalQHeadParameters,
    DNDQHeadParameters,
    NAFHeadParameters,
    QuantileRegressionQHeadParameters,
    RainbowQHeadParameters,
)
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import EmbedderScheme, MiddlewareScheme
from rl_coach.spaces import BoxActionSpace
from rl_coach.utils import CoachError
from tests.architectures.networks import BOX, DISCRETE, VECTOR, network_parameters, spaces, wrap

A, N = 4, 5
SUPPORT = np.linspace(-1.0, 3.0, N)
STATES = np.random.default_rng(2).normal(size=(6, 3)).astype(np.float32)


def network(head: Any, action: Any = DISCRETE) -> Any:
    """The head alone, upon the observation."""
    embedder = {"observation": InputEmbedderParameters(scheme=EmbedderScheme.Empty)}
    middleware = FCMiddlewareParameters(scheme=MiddlewareScheme.Empty)
    parameters = network_parameters([head], input_embedders_parameters=embedder, middleware_parameters=middleware)
    return wrap(parameters, spaces(VECTOR, action)).online_network


def with_support(head: Any) -> Any:
    head.atoms, head.v_min, head.v_max = N, -1.0, 3.0
    return head


def softmax(logits: np.ndarray) -> np.ndarray:
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def test_a_categorical_head():
    head = network(with_support(CategoricalQHeadParameters(output_bias_initializer=0.5)))
    kernel, bias = head.get_weights()
    np.testing.assert_array_equal(bias, np.full(A * N, 0.5))
    expected = softmax((STATES @ kernel + bias).reshape(-1, A, N))
    distribution, q = head.predict({"observation": STATES})
    np.testing.assert_allclose(distribution, expected, rtol=1e-4)
    np.testing.assert_allclose(q, expected @ SUPPORT, rtol=1e-4, atol=1e-5)


def test_a_rainbow_head():
    head = network(with_support(RainbowQHeadParameters()))
    weights = head.get_weights()
    hidden = [np.maximum(STATES @ w + b, 0) for w, b in itertools.pairwise(weights) if w.shape == (3, 512)]
    outputs = {w.shape[1]: (w, b) for w, b in itertools.pairwise(weights) if w.ndim == 2 and w.shape[0] == 512}
    candidates = []  # the order of the two streams is the framework's
    for of_value, of_advantage in (hidden, hidden[::-1]):
        value = (of_value @ outputs[N][0] + outputs[N][1])[:, None, :]
        advantage = (of_advantage @ outputs[A * N][0] + outputs[A * N][1]).reshape(-1, A, N)
        candidates.append(softmax(value + advantage - advantage.mean(axis=1, keepdims=True)))
    distribution, q = head.predict({"observation": STATES})
    assert sum(np.allclose(distribution, candidate, rtol=1e-4, atol=1e-6) for candidate in candidates) == 1
    np.testing.assert_allclose(q, distribution @ SUPPORT, rtol=1e-4, atol=1e-5)


def test_a_head_of_quantiles():
    parameters = QuantileRegressionQHeadParameters()
    parameters.atoms = N
    head = network(parameters)
    kernel, bias = head.get_weights()
    expected = (STATES @ kernel + bias).reshape(-1, A, N)
    quantiles, q = head.predict({"observation": STATES})
    np.testing.assert_allclose(quantiles, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(q, expected.mean(axis=2), rtol=1e-4, atol=1e-5)


def test_a_head_of_embeddings_gives_the_features():
    parameters = network_parameters([DNDQHeadParameters()])
    found = wrap(parameters, spaces(VECTOR, DISCRETE)).online_network.predict({"observation": STATES})
    assert found.shape == (6, 8) and found.min() >= 0


def test_the_best_action_of_normalized_advantages_is_within_bounds():
    head = network(NAFHeadParameters(), BOX)
    mean, value = head.predict({"observation": 100 * STATES})
    assert value.shape == (6,) and mean.shape == (6, 2)
    assert np.all(mean >= BOX.low - 1e-5) and np.all(mean <= BOX.high + 1e-5)
    assert np.ptp(mean, axis=0).max() > 1.5


@pytest.mark.parametrize(
    ("head", "action"),
    [
        (with_support(CategoricalQHeadParameters()), BOX),
        (with_support(RainbowQHeadParameters()), BOX),
        (QuantileRegressionQHeadParameters(), BOX),
        (DNDQHeadParameters(), BoxActionSpace(1)),
        (NAFHeadParameters(), DISCRETE),
    ],
)
def test_other_actions_are_refused(head, action):
    with pytest.raises(CoachError, match=r"needs a (Discrete|Box)ActionSpace, not a"):
        network(head, action)
