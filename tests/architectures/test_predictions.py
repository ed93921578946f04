"""Every part of a network predicts through ONNX Runtime what the framework computes, before training and after it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import (
    DDPGActorHeadParameters,
    DuelingQHeadParameters,
    PolicyHeadParameters,
    PPOHeadParameters,
    PPOVHeadParameters,
    QHeadParameters,
    SACPolicyHeadParameters,
    SACQHeadParameters,
    VHeadParameters,
)
from rl_coach.architectures.layers import BatchnormActivationDropout, Conv2d, Dense, Flatten, NoisyNetDense
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters, LSTMMiddlewareParameters
from rl_coach.base_parameters import EmbedderScheme, EmbeddingMergerType, MiddlewareScheme
from rl_coach.spaces import ImageObservationSpace, TensorObservationSpace, VectorObservationSpace
from rl_coach.utils import CoachError
from tests.architectures.networks import (
    BOX,
    DISCRETE,
    TWO_VECTORS,
    UNBOUNDED_BOX,
    VECTOR,
    framework_outputs,
    network_parameters,
    random_inputs,
    spaces,
    teach,
    wrap,
)

TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}
IMAGE = ImageObservationSpace(np.array([100, 100, 1]), high=255)  # the deep scheme needs that much


def assert_same_predictions(wrapper: Any, rng: np.random.Generator) -> None:
    for rows in (1, 3, 1):
        inputs = random_inputs(wrapper, rows, rng)
        for architecture, group in ((wrapper.online_network, "weights"), (wrapper.target_network, "target_weights")):
            predicted = architecture.predict(inputs, squeeze_output=False)
            expected = framework_outputs(wrapper, inputs, group)
            assert [p.shape for p in predicted] == [e.shape for e in expected]
            for one, other in zip(predicted, expected):
                np.testing.assert_allclose(one, other, **TOLERANCE)


def change_weights(wrapper: Any, rng: np.random.Generator) -> None:
    """New values for weights and buffers, other ones for the target's, where training would take long to compile."""
    for group in ("weights", "buffers", "target_weights", "target_buffers"):
        arrays = wrapper.state.arrays(group)
        changed = [(a + 0.1 * rng.random(a.shape)).astype(a.dtype) for a in arrays]
        wrapper.state.set_arrays(group, changed)


def built(network: Any, definition: Any) -> Any:
    network.create_target_network = True
    wrapper = wrap(network, definition)
    for architecture in (wrapper.online_network, wrapper.target_network):
        architecture._noise = []  # acting draws new noise each time, which no two computations have in common
    return wrapper


def check(network: Any, definition: Any, change: Any = change_weights) -> None:
    rng = np.random.default_rng(1)
    wrapper = built(network, definition)
    assert_same_predictions(wrapper, rng)
    before = wrapper.online_network.get_weights()
    change(wrapper, rng)
    assert all(not np.array_equal(old, new) for old, new in zip(before, wrapper.online_network.get_weights()))
    assert_same_predictions(wrapper, rng)


def train(wrapper: Any, rng: np.random.Generator) -> None:
    teach(wrapper, updates=2, rng=rng, rate=0.5)


def test_heads_of_discrete_actions():
    heads = [
        QHeadParameters(output_bias_initializer=0.5),
        DuelingQHeadParameters(),
        VHeadParameters(),
        VHeadParameters(initializer="xavier", output_bias_initializer=-1.0),
        PPOVHeadParameters(),
        PolicyHeadParameters(),
        PPOHeadParameters(),
        QHeadParameters(rescale_gradient_from_head_by_factor=0.5),
        QHeadParameters(num_output_head_copies=2),
        QHeadParameters(dense_layer=NoisyNetDense),
    ]
    network = network_parameters(heads, TWO_VECTORS, embedding_merger_type=EmbeddingMergerType.Sum)
    check(network, spaces(TWO_VECTORS, DISCRETE), train)


def test_heads_of_continuous_actions():
    heads = [
        PolicyHeadParameters(),
        PPOHeadParameters(),
        SACPolicyHeadParameters(),
        SACQHeadParameters(layers_sizes=(5, 3), output_bias_initializer=0.1),
    ]
    check(network_parameters(heads), spaces(VECTOR, BOX), train)


def test_heads_with_state_dependent_noise():
    for head in (DDPGActorHeadParameters(), SACPolicyHeadParameters()):
        head.state_dependent_noise = True
        check(network_parameters([head]), spaces(VECTOR, BOX))


def test_a_policy_over_unbounded_actions():
    check(network_parameters([PolicyHeadParameters()]), spaces(VECTOR, UNBOUNDED_BOX))


def test_a_bounded_policy_has_its_mean_within_the_bounds():
    wrapper = wrap(network_parameters([PolicyHeadParameters()]), spaces(VECTOR, BOX))
    wrapper.online_network.set_weights([100.0 * np.ones_like(w) for w in wrapper.online_network.get_weights()])
    mean, _ = wrapper.online_network.predict({"observation": np.array([[1.0, 1.0, 1.0], [-9.0, 1.0, 1.0]])})
    np.testing.assert_allclose(mean[0], BOX.high, rtol=1e-6)


def test_the_mean_before_squashing_has_a_limit_where_the_parameters_name_one():
    head = SACPolicyHeadParameters()
    states = {"observation": np.array([[9.0, 9.0, 9.0], [-9.0, -9.0, 0.0], [0.1, 0.0, 0.0]])}
    means = []
    for limit in (None, 2.0):
        head.mean_limit = limit
        wrapper = wrap(network_parameters([head]), spaces(VECTOR, BOX))
        wrapper.online_network.set_weights([0.2 * np.ones_like(w) for w in wrapper.online_network.get_weights()])
        means.append(wrapper.online_network.predict(states)[0])
    assert means[0].max() > 2 > means[0].min()
    np.testing.assert_array_equal(means[1], np.clip(means[0], -2, 2))
    check(network_parameters([head]), spaces(VECTOR, BOX))


def test_embedders_and_middlewares_of_all_schemes():
    observations: dict[str, Any] = {"tensor": TensorObservationSpace(np.array([2, 3, 2]))}
    embedders = {"tensor": InputEmbedderParameters(scheme=EmbedderScheme.Empty)}
    for scheme in EmbedderScheme:
        observations |= {f"vector_{scheme.name}": VectorObservationSpace(3), f"image_{scheme.name}": IMAGE}
        embedders |= {name: InputEmbedderParameters(scheme=scheme) for name in list(observations)[-2:]}
    network = network_parameters([VHeadParameters()], input_embedders_parameters=embedders)
    network.middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Deep)
    check(network, spaces(observations, DISCRETE))


def test_convolutions_are_given_their_weights_in_the_order_that_the_graph_reads_them():
    image = {"image": ImageObservationSpace(np.array([9, 9, 3]), high=255)}
    embedders = {"image": InputEmbedderParameters(scheme=[Conv2d(3, 4, 2), Conv2d(5, 2, 1)])}
    network = network_parameters([VHeadParameters()], image, input_embedders_parameters=embedders)
    wrapper = wrap(network, spaces(image, DISCRETE))
    exported = wrapper.exported()
    graph = onnx.load_from_string(exported.model).graph
    transposed = {name for node in graph.node if node.op_type == "Transpose" for name in node.input}
    assert not transposed & set(exported.weight_names)
    weights = wrapper.online_network.get_weights()
    given = dict(zip(exported.weight_names, exported.arranged(weights)))
    shapes = {one.name: tuple(n.dim_value for n in one.type.tensor_type.shape.dim) for one in graph.input}
    assert [given[name].shape for name in exported.weight_axes] == [(3, 3, 4, 4), (5, 3, 2, 2)]
    assert all(given[name].shape == shapes[name] for name in given)


def test_layers_of_all_kinds_and_a_network_for_each_head():
    observations = {"image": ImageObservationSpace(np.array([9, 9, 3]), high=255), **VECTOR}
    layers = [Conv2d(2, 3, 4), BatchnormActivationDropout(True, "tanh", 0.3), Flatten(), Dense(6), NoisyNetDense(5)]
    embedders = {
        "image": InputEmbedderParameters(scheme=layers),
        "observation": InputEmbedderParameters(
            scheme=[Dense(4)], batchnorm=True, dropout_rate=0.2, activation_function="leaky_relu",
            input_rescaling={"vector": 2.0}, input_offset={"vector": 0.25}, input_clipping=(-0.5, 0.5),
        ),
    }  # fmt: skip
    network = network_parameters(
        [VHeadParameters(), QHeadParameters()],
        input_embedders_parameters=embedders,
        use_separate_networks_per_head=True,
    )
    check(network, spaces(observations, DISCRETE), train)


@pytest.mark.parametrize(
    ("scheme", "units"),
    [
        (MiddlewareScheme.Empty, []),
        (MiddlewareScheme.Shallow, [64]),
        (MiddlewareScheme.Medium, [512]),
        (MiddlewareScheme.Deep, [128, 128, 128]),
    ],
)
def test_sizes_of_middlewares(scheme, units):
    network = network_parameters([VHeadParameters()], middleware_parameters=FCMiddlewareParameters(scheme=scheme))
    kernels = [w.shape for w in wrap(network, spaces(VECTOR, DISCRETE)).online_network.get_weights() if w.ndim > 1]
    assert [shape[1] for shape in kernels] == [8, *units, 1]


def test_inputs_are_rescaled_then_shifted_then_clipped():
    network = network_parameters([VHeadParameters()])
    network.input_embedders_parameters["observation"] = InputEmbedderParameters(
        scheme=EmbedderScheme.Empty, activation_function="none", input_rescaling={"vector": 2.0},
        input_offset={"vector": 1.0}, input_clipping=(-0.5, 0.5),
    )  # fmt: skip
    network.middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Empty)
    architecture = wrap(network, spaces({"observation": VectorObservationSpace(3)}, DISCRETE)).online_network
    architecture.set_weights([np.array([[1.0], [10.0], [100.0]]), np.zeros(1)])
    # 2 / 2 - 1 = 0, 2.5 / 2 - 1 = 0.25, and 9 / 2 - 1 is clipped to 0.5
    np.testing.assert_allclose(architecture.predict({"observation": np.array([[2.0, 2.5, 9.0]])}), [52.5])


def test_the_dueling_head_subtracts_the_mean_advantage():
    network = network_parameters([DuelingQHeadParameters()])
    wrapper = wrap(network, spaces(VECTOR, DISCRETE))
    weights = [np.zeros_like(w) for w in wrapper.online_network.get_weights()]
    bias_of_value = next(i for i, w in enumerate(weights) if w.shape == (1,))
    bias_of_advantage = next(i for i, w in enumerate(weights) if w.shape == (4,))
    weights[bias_of_value][:] = 10.0
    weights[bias_of_advantage][:] = [1.0, 2.0, 3.0, 6.0]
    wrapper.online_network.set_weights(weights)
    np.testing.assert_allclose(wrapper.online_network.predict({"observation": np.zeros((1, 3))}), [[8, 9, 10, 13]])


def test_temperature_flattens_a_policy():
    def probabilities(temperature: float) -> np.ndarray:
        network = network_parameters([PolicyHeadParameters()], softmax_temperature=temperature)
        wrapper = wrap(network, spaces(VECTOR, DISCRETE))
        weights = [np.zeros_like(w) for w in wrapper.online_network.get_weights()]
        weights[-1][:] = np.log([1.0, 4.0, 4.0, 16.0])
        wrapper.online_network.set_weights(weights)
        return wrapper.online_network.predict({"observation": np.zeros((1, 3))})[0]

    np.testing.assert_allclose(probabilities(1.0), np.array([1, 4, 4, 16]) / 25, rtol=1e-5)
    np.testing.assert_allclose(probabilities(2.0), np.array([1, 2, 2, 4]) / 9, rtol=1e-5)


def lstm_network() -> Any:
    network = network_parameters([VHeadParameters(), PolicyHeadParameters()])
    network.middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=6, scheme=[Dense(5)])
    return network


def test_acting_step_by_step_with_an_lstm_equals_the_call_on_the_sequence():
    wrapper, rng = built(lstm_network(), spaces(VECTOR, DISCRETE)), np.random.default_rng(3)
    for _ in range(2):
        rows = {"observation": rng.normal(size=(7, 3)).astype(np.float32)}
        values, probabilities = framework_outputs(wrapper, rows)
        wrapper.online_network.reset_internal_memory()
        for t in range(7):
            value, probability = wrapper.online_network.predict({"observation": rows["observation"][t : t + 1]})
            np.testing.assert_allclose(value[0], values[t], **TOLERANCE)
            np.testing.assert_allclose(probability[0], probabilities[t], **TOLERANCE)
        acting_state = wrapper.online_network.recurrent_state
        np.testing.assert_allclose(wrapper.online_network.predict_sequence(rows, "output_0_v"), values, **TOLERANCE)
        assert wrapper.online_network.recurrent_state is acting_state
        train(wrapper, rng)


def test_a_recurrent_network_refuses_several_rows_at_once():
    architecture = wrap(lstm_network(), spaces(VECTOR, DISCRETE)).online_network
    with pytest.raises(CoachError, match="one row at a time"):
        architecture.predict({"observation": np.zeros((2, 3))})


def test_noise_is_new_for_each_prediction_and_comes_from_the_seed():
    def predictions(seed: int) -> list[np.ndarray]:
        network = network_parameters([QHeadParameters(dense_layer=NoisyNetDense)])
        architecture = wrap(network, spaces(VECTOR, DISCRETE), seed).online_network
        return [architecture.predict({"observation": np.ones((1, 3))}) for _ in range(2)]

    first, second = predictions(5), predictions(5)
    assert not np.array_equal(first[0], first[1])
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads_parameters": []}, "has no heads"),
        ({"input_embedders_parameters": {}}, "has no inputs"),
        (
            {"input_embedders_parameters": {"observatoin": InputEmbedderParameters()}},
            "did you mean 'observation'",
        ),
        (
            {"input_embedders_parameters": {"observation": InputEmbedderParameters(activation_function="rely")}},
            "did you mean 'relu'",
        ),
        ({"input_embedders_parameters": {"observation": InputEmbedderParameters(scheme=[7])}}, "cannot have a layer 7"),
        ({"heads_parameters": [SACPolicyHeadParameters()]}, "SACPolicyHead needs a BoxActionSpace"),
    ],
)
def test_mistakes_in_network_parameters_are_named(change, message):
    network = network_parameters([QHeadParameters()], **change)
    with pytest.raises(CoachError, match=message):
        wrap(network, spaces(VECTOR, DISCRETE))


def test_an_image_too_small_for_its_convolutions_is_named():
    observations = {"observation": ImageObservationSpace(np.array([20, 20, 1]), high=255)}
    network = network_parameters([VHeadParameters()])
    network.input_embedders_parameters["observation"] = InputEmbedderParameters()
    with pytest.raises(CoachError, match="too small"):
        wrap(network, spaces(observations, DISCRETE))


def test_a_network_without_target_says_so():
    wrapper = wrap(network_parameters([QHeadParameters()]), spaces(VECTOR, DISCRETE))
    with pytest.raises(CoachError, match="set create_target_network"):
        _ = wrapper.target_network
