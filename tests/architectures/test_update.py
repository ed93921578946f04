"""The parts of a training step that every algorithm shares, against numbers computed without them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rl_coach.architectures.update import (
    Optimizer,
    TrainingStep,
    assert_rank,
    clip,
    global_norm,
    huber,
    select,
    weighted_mean,
)
from rl_coach.base_parameters import NetworkParameters
from rl_coach.core_types import GradientClippingMethod
from rl_coach.schedules import LinearSchedule
from rl_coach.utils import CoachError

ops = pytest.importorskip("keras", reason="the operations of Keras 3 compute the numbers").ops
GRADIENTS = [np.array([3.0, -4.0]), np.array([[12.0]])]  # norms 5 and 12, together 13
WEIGHTS = [np.array([3.0, 4.0]), np.array([[60.0]])]


def parameters(**changes) -> NetworkParameters:
    network = NetworkParameters()
    for name, value in changes.items():
        setattr(network, name, value)
    return network


def descend(network: NetworkParameters, gradients: list[float], start: float = 1.0) -> list[float]:
    """The weight after each of several updates with given gradients."""
    optimizer = Optimizer(network)
    weights, slots, trace = [np.array([start])], [[np.zeros(1)] for _ in range(optimizer.num_slots)], []
    for update, gradient in enumerate(gradients, start=1):
        weights, slots = optimizer(np, weights, [np.array([gradient])], slots, optimizer.scalars(update))
        trace.append(float(weights[0][0]))
    return trace


def test_adam_is_algorithm_1_of_its_paper():
    network = parameters(
        learning_rate=0.1, optimizer_epsilon=1e-8, adam_optimizer_beta1=0.9, adam_optimizer_beta2=0.999
    )
    gradients = [0.5, -1.0, 2.0, 0.25]
    m = v = 0.0
    weight, expected = 1.0, []
    for t, g in enumerate(gradients, start=1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        weight -= 0.1 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
        expected.append(weight)
    assert expected[0] == pytest.approx(0.9, abs=1e-6)  # the first step is the learning rate, whatever the gradient
    np.testing.assert_allclose(descend(network, gradients), expected, rtol=1e-12)


def test_bias_corrections_are_exact_in_32_bits():
    optimizer = Optimizer(parameters(adam_optimizer_beta1=0.0, adam_optimizer_beta2=0.999))
    numbers = np.array([1, 2, 1000])
    exact = [[1.0, 1 / (1 - 0.999**n)] for n in numbers.tolist()]
    np.testing.assert_allclose(optimizer.bias_corrections(np, numbers), exact, rtol=1e-12)
    found = optimizer.bias_corrections(ops, ops.convert_to_tensor(numbers.astype(np.float32)))
    np.testing.assert_allclose(np.asarray(found), exact, rtol=1e-6)


def test_rmsprop_divides_by_the_root_of_the_mean_square():
    network = parameters(
        optimizer_type="RMSProp", learning_rate=0.1, rms_prop_optimizer_decay=0.75, optimizer_epsilon=0
    )
    # mean squares: 0.25 * 4 = 1, then 0.75 * 1 + 0.25 * 1 = 1
    np.testing.assert_allclose(descend(network, [2.0, -1.0]), [1 - 0.1 * 2, 1 - 0.2 + 0.1], rtol=1e-12)


def test_rmsprop_has_epsilon_inside_the_root():
    network = parameters(
        optimizer_type="rmsprop", learning_rate=1.0, rms_prop_optimizer_decay=0.0, optimizer_epsilon=3.0
    )
    np.testing.assert_allclose(descend(network, [1.0]), [1 - 1 / 2])


def test_sgd_follows_the_gradient():
    np.testing.assert_allclose(descend(parameters(optimizer_type="SGD", learning_rate=0.5), [1.0, -2.0]), [0.5, 1.5])


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(CoachError, match="no optimizer 'LBFGS'"):
        Optimizer(parameters(optimizer_type="LBFGS"))


def test_the_learning_rate_decays_after_each_whole_period():
    optimizer = Optimizer(parameters(learning_rate=0.8, learning_rate_decay_rate=0.5, learning_rate_decay_steps=2))
    np.testing.assert_allclose([optimizer.learning_rate(n) for n in range(5)], [0.8, 0.8, 0.4, 0.4, 0.2])


def test_a_schedule_gives_the_learning_rate_of_each_update():
    network = parameters(learning_rate=LinearSchedule(1.0, 0.0, 4), optimizer_type="SGD")
    np.testing.assert_allclose(descend(network, [1.0] * 5, start=0.0), np.cumsum([-1, -0.75, -0.5, -0.25, 0]))


def test_clipping_by_the_global_norm_keeps_the_direction():
    clipped = clip(np, GRADIENTS, WEIGHTS, parameters(clip_gradients=6.5))
    np.testing.assert_allclose(clipped[0], [1.5, -2.0])
    np.testing.assert_allclose(clipped[1], [[6.0]])
    assert global_norm(np, clipped) == pytest.approx(6.5)


def test_clipping_by_norm_treats_each_variable_alone():
    method = GradientClippingMethod.ClipByNorm
    clipped = clip(np, GRADIENTS, WEIGHTS, parameters(clip_gradients=6.0, gradients_clipping_method=method))
    np.testing.assert_allclose(clipped[0], GRADIENTS[0])
    np.testing.assert_allclose(clipped[1], [[6.0]])


def test_clipping_by_value_treats_each_element_alone():
    method = GradientClippingMethod.ClipByValue
    clipped = clip(np, GRADIENTS, WEIGHTS, parameters(clip_gradients=3.5, gradients_clipping_method=method))
    np.testing.assert_allclose(clipped[0], [3.0, -3.5])
    np.testing.assert_allclose(clipped[1], [[3.5]])


def test_clipping_by_the_norm_of_the_weights_treats_each_variable_alone():
    method = GradientClippingMethod.ClipByWeightNorm
    network = parameters(clip_gradients=0.5, gradients_clipping_method=method)
    clipped = clip(np, GRADIENTS, WEIGHTS, network)
    for gradient, weight, found in zip(GRADIENTS, WEIGHTS, clipped):
        limit = 0.5 * np.linalg.norm(weight)
        np.testing.assert_allclose(found, gradient * min(1.0, limit / np.linalg.norm(gradient)))
    nothing = [np.zeros_like(weight) for weight in WEIGHTS]
    np.testing.assert_allclose(np.linalg.norm(clip(np, GRADIENTS, nothing, network)[0]), 0.5e-3)


def test_laprop_divides_before_the_mean():
    network = parameters(
        optimizer_type="LaProp", learning_rate=0.1, adam_optimizer_beta1=0.5, adam_optimizer_beta2=0.75,
        optimizer_epsilon=1e-20,
    )  # fmt: skip
    weight, mean, square, expected = 1.0, 0.0, 0.0, []
    for step, gradient in enumerate([2.0, -1.0, 0.5], start=1):
        square = 0.75 * square + 0.25 * gradient**2
        mean = 0.5 * mean + 0.5 * gradient / np.sqrt(square / (1 - 0.75**step))
        weight -= 0.1 * mean / (1 - 0.5**step)
        expected.append(weight)
    np.testing.assert_allclose(descend(network, [2.0, -1.0, 0.5]), expected, rtol=1e-12)


@pytest.mark.parametrize("limit", [None, 0, 13.5])
def test_gradients_within_the_limit_stay_as_they_are(limit):
    for before, after in zip(GRADIENTS, clip(np, GRADIENTS, WEIGHTS, parameters(clip_gradients=limit))):
        np.testing.assert_array_equal(after, before)


def test_huber_is_quadratic_within_one_and_linear_beyond():
    errors = np.array([0.0, 0.5, -1.0, 3.0, -3.0], np.float32)
    np.testing.assert_allclose(huber(ops, errors), [0, 0.125, 0.5, 2.5, 2.5])


def test_the_weighted_mean_counts_rows_and_not_weights():
    values, weights = np.array([2.0, 4.0, 1e6], np.float32), np.array([0.5, 1.0, 0.0], np.float32)
    assert float(weighted_mean(ops, values, weights)) == pytest.approx((0.5 * 2 + 4) / 2)
    assert float(weighted_mean(ops, values, np.zeros(3, np.float32))) == 0.0


def test_select_takes_one_value_of_each_row():
    values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
    np.testing.assert_array_equal(select(ops, values, np.array([2, 0])), [3.0, 4.0])


def following(weights: list, targets: list, rate: float) -> list:
    state = {"main": {"weights": weights, "buffers": [], "target_weights": targets, "target_buffers": []}}
    return TrainingStep.update_targets(state, {"main": rate})["main"]["target_weights"]


def test_a_target_that_follows_at_rate_one_is_an_exact_copy():
    # 1e-8 + (1 - 1e-8) is not 1 in single precision
    weights, targets = [np.array([1 / 3, 0.1], np.float32)], [np.array([1e8, -7.7], np.float32)]
    np.testing.assert_array_equal(following(weights, targets, 1.0)[0], weights[0])


def test_a_soft_target_moves_by_its_share():
    np.testing.assert_allclose(following([np.array([2.0])], [np.array([1.0])], 0.25)[0], [1.25])


def test_a_column_of_another_rank_is_named_instead_of_broadcast():
    columns = {"rewards": np.zeros(4), "discounts": np.zeros((4, 1))}
    with pytest.raises(CoachError, match=r"'discounts' has shape \(4, 1\), and the update rule takes 1 dimensions"):
        assert_rank(1, **columns)
    with pytest.raises(CoachError, match="needs 'returns', but the batch does not have it"):
        assert_rank(1, returns=None)
    assert_rank(1, rewards=columns["rewards"])
