"""Heads that learn from targets alone: what they predict, their losses and the update, from their weights in NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import (
    ClassificationHeadParameters,
    MeasurementsPredictionHeadParameters,
    PolicyHeadParameters,
    RegressionHeadParameters,
)
from rl_coach.architectures.layers import BatchnormActivationDropout, Dense
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import EmbedderScheme, MiddlewareScheme
from rl_coach.spaces import MultiDiscreteActionSpace
from rl_coach.utils import CoachError
from tests.architectures.networks import (
    BOX,
    DISCRETE,
    TWO_VECTORS,
    VECTOR,
    framework_outputs,
    network_parameters,
    spaces,
    wrap,
)

A, M, OFFSETS, RATE = 4, 2, 3, 0.1
RNG = np.random.default_rng(4)
STATES = RNG.normal(size=(6, 3)).astype(np.float32)
ROWS = {"observation": STATES}


def network(head: Any, action: Any = DISCRETE, observations: Any = VECTOR) -> Any:
    """The head alone, upon the observation."""
    parameters = network_parameters(
        [head],
        input_embedders_parameters={"observation": InputEmbedderParameters(scheme=EmbedderScheme.Empty)},
        middleware_parameters=FCMiddlewareParameters(scheme=MiddlewareScheme.Empty),
        optimizer_type="SGD",
        learning_rate=RATE,
    )
    return wrap(parameters, spaces(observations, action))


def measurements_head() -> MeasurementsPredictionHeadParameters:
    head = MeasurementsPredictionHeadParameters()
    head.num_predicted_steps_ahead = OFFSETS
    return head


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def probabilities_of(weights: list[np.ndarray]) -> np.ndarray:
    kernel, bias = weights
    exponentials = np.exp(STATES @ kernel + bias)
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def check_update(wrapper: Any, targets: np.ndarray, slope: np.ndarray, loss: float, features: Any = None) -> None:
    """An update moves the output layer, the last of the weights, by the gradient of the loss; and so acting.

    :param slope: [B, outputs], the gradient of the loss by the output layer's outputs
    :param features: [B, F], what the output layer gets
    """
    before = wrapper.online_network.get_weights()
    features = STATES if features is None else features
    found, *_ = wrapper.train_and_sync_networks(ROWS, targets)
    assert found == pytest.approx(loss, rel=1e-4)
    kernel, bias = wrapper.online_network.get_weights()[-2:]
    np.testing.assert_allclose(before[-2] - kernel, RATE * features.T @ slope, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(before[-1] - bias, RATE * slope.sum(axis=0), rtol=1e-3, atol=1e-5)
    assert_acts_as_the_framework_computes(wrapper)


def assert_acts_as_the_framework_computes(wrapper: Any) -> None:
    (computed,) = framework_outputs(wrapper, ROWS)
    np.testing.assert_allclose(wrapper.online_network.predict(ROWS), computed, rtol=1e-5, atol=1e-5)


def test_a_head_of_classes_learns_labels_and_probabilities():
    labels = np.array([0, 3, 1, 1, 2, 0])
    soft = RNG.dirichlet(np.ones(A), 6)
    for targets, truth in ((labels, np.eye(A)[labels]), (soft, soft)):
        wrapper = network(ClassificationHeadParameters())
        predicted = probabilities_of(wrapper.online_network.get_weights())
        np.testing.assert_allclose(wrapper.online_network.predict(ROWS), predicted, rtol=1e-4, atol=1e-5)
        loss = -np.mean(np.sum(truth * np.log(predicted), axis=1))
        check_update(wrapper, targets, (predicted - truth) / 6, loss)


def test_a_head_of_numbers_learns_the_squares_of_its_errors():
    wrapper = network(RegressionHeadParameters(output_bias_initializer=0.5), BOX)
    hidden, bias, kernel, last = wrapper.online_network.get_weights()
    assert hidden.shape == (3, 256) and kernel.shape == (256, 2) and np.all(last == 0.5)
    features = relu(STATES @ hidden + bias)
    predicted, targets = features @ kernel + last, RNG.normal(size=(6, 2))
    np.testing.assert_allclose(wrapper.online_network.predict(ROWS), predicted, rtol=1e-4, atol=1e-5)
    errors = predicted - targets
    check_update(wrapper, targets, 2 * errors / 6, np.mean(np.sum(errors**2, axis=1)), features)


def test_the_layers_of_a_head_of_numbers_have_their_activations():
    scheme = [Dense(5), Dense(4), BatchnormActivationDropout(activation_function="tanh")]
    wrapper = network(RegressionHeadParameters(scheme=scheme))
    w1, b1, w2, b2, w3, b3 = wrapper.online_network.get_weights()
    expected = np.tanh(relu(STATES @ w1 + b1) @ w2 + b2) @ w3 + b3
    np.testing.assert_allclose(wrapper.online_network.predict(ROWS), expected, rtol=1e-4, atol=1e-5)


def test_a_policy_of_several_parts_learns_from_advantages():
    wrapper = network(PolicyHeadParameters(), MultiDiscreteActionSpace([2, 2]))
    logits = STATES @ wrapper.online_network.get_weights()[0]
    log_probabilities = logits.reshape(6, 2, 2) - np.logaddexp.reduce(logits.reshape(6, 2, 2), axis=-1, keepdims=True)
    actions, advantages = RNG.integers(2, size=(6, 2)), RNG.normal(size=6)
    chosen = np.take_along_axis(log_probabilities, actions[..., None], axis=-1)
    loss, *_ = wrapper.train_and_sync_networks({**ROWS, "output_0_0": actions}, [advantages])
    assert loss == pytest.approx(-np.mean(advantages * chosen.sum(axis=(1, 2))), rel=1e-4)


def measurements_by_hand(weights: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The prediction and the action stream's hidden units; the order of the two streams is the framework's."""
    size = M * OFFSETS
    hidden = [relu(STATES @ w + b) for w, b in itertools.pairwise(weights) if w.shape == (3, 256)]
    outputs = {w.shape[1]: (w, b) for w, b in itertools.pairwise(weights) if w.ndim == 2 and w.shape[0] == 256}
    candidates = []
    for of_expectation, of_action in (hidden, hidden[::-1]):
        expectation = of_expectation @ outputs[size][0] + outputs[size][1]
        action = (of_action @ outputs[A * size][0] + outputs[A * size][1]).reshape(6, A, size)
        candidates.append((expectation[:, None] + action - action.mean(axis=1, keepdims=True), of_action))
    return candidates


def test_a_head_of_measurements_learns_those_that_are_known():
    wrapper = network(measurements_head(), observations=TWO_VECTORS)
    found = wrapper.online_network.predict(ROWS)
    assert found.shape == (6, A, M * OFFSETS)
    candidates = measurements_by_hand(wrapper.online_network.get_weights())
    ((predicted, features),) = [one for one in candidates if np.allclose(one[0], found, rtol=1e-4, atol=1e-5)]
    targets = RNG.normal(size=predicted.shape)
    actions = np.array([1, 0, 3, 2, 2, 1])
    targets[np.arange(A) != actions[:, None]] = np.nan  # of the other actions nothing is known
    targets[0, :, M:] = np.nan  # after the episode's end neither
    errors = np.where(np.isnan(targets), 0, predicted - targets)
    slope = 2 * errors / 6
    before = wrapper.online_network.get_weights()
    loss, *_ = wrapper.train_and_sync_networks(ROWS, targets)
    assert loss == pytest.approx(np.sum(errors**2) / 6, rel=1e-4)
    place = next(i for i, w in enumerate(before) if w.shape == (256, A * M * OFFSETS))
    of_action = (slope - slope.mean(axis=1, keepdims=True)).reshape(6, -1)
    moved = before[place] - wrapper.online_network.get_weights()[place]
    np.testing.assert_allclose(moved, RATE * features.T @ of_action, rtol=1e-3, atol=1e-5)
    assert_acts_as_the_framework_computes(wrapper)


def test_heads_of_measurements_and_classes_say_what_they_need():
    with pytest.raises(CoachError, match="predicts the observation 'measurements', which the environment does not"):
        network(MeasurementsPredictionHeadParameters())
    with pytest.raises(CoachError, match="a ClassificationHead needs a DiscreteActionSpace, not a BoxActionSpace"):
        network(ClassificationHeadParameters(), BOX)
