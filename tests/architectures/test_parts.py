"""Parts and layers of one's own, initial weights, and what a network gives besides its heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.components import component_class
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.embedders import InputEmbedder
from rl_coach.architectures.head_parameters import (
    HeadParameters,
    PolicyHeadParameters,
    QHeadParameters,
    TD3VHeadParameters,
    VHeadParameters,
)
from rl_coach.architectures.heads import Head
from rl_coach.architectures.initializers import KaimingUniform, Orthogonal
from rl_coach.architectures.layers import BatchnormActivationDropout, Conv2d, Dense, Layer, LayerNorm
from rl_coach.architectures.middleware_parameters import (
    FCMiddlewareParameters,
    LSTMMiddlewareParameters,
    MiddlewareParameters,
)
from rl_coach.architectures.middlewares import Middleware
from rl_coach.base_parameters import EmbeddingMergerType
from rl_coach.spaces import ImageObservationSpace
from rl_coach.utils import CoachError
from tests.architectures.networks import (
    BOX,
    DISCRETE,
    TWO_VECTORS,
    VECTOR,
    framework_outputs,
    network_parameters,
    random_inputs,
    spaces,
    teach,
    wrap,
)


class ScaledHead(Head):
    """``q`` [B, A], times a trained factor for each action."""

    public = ("q",)

    def __call__(self, layers: Any, features: Any, inputs: dict[str, Any]) -> dict[str, Any]:
        factors = layers.trained_row(features, self.num_actions, Orthogonal().bias(layers.rng, 1), layers.ops.exp)
        return {"q": layers.dense(features, self.num_actions) * factors}


class ScaledHeadParameters(HeadParameters):
    def __init__(self):
        super().__init__("ScaledHead")

    @property
    def path(self) -> str:
        return f"{__file__}:ScaledHead"


class Twice(InputEmbedder):
    """The features, and their squares."""

    def embed(self, layers: Any, x: Any) -> Any:
        features = super().embed(layers, x)
        return layers.ops.concatenate([features, features * features], axis=-1)


class TwiceParameters(InputEmbedderParameters):
    @property
    def path(self) -> Any:
        return Twice


class Accumulator(Middleware):
    """A state that adds up what comes in: a recurrent network that needs no LSTM. It learns row by row."""

    def __init__(self, parameters: Any):
        super().__init__(parameters)
        self.recurrent_sizes = {"sum": 4}

    def __call__(self, layers: Any, x: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        total = state["sum"] + layers.dense(x, 4)
        return layers.activate("tanh", total), {"sum": total}


class Doubled(Layer):
    """A layer of one's own."""

    def applied(self, layers: Any, x: Any) -> Any:
        return x + x


def assert_predicts_what_the_framework_computes(wrapper: Any) -> None:
    inputs = random_inputs(wrapper, 3, np.random.default_rng(1))
    for predicted, expected in zip(
        wrapper.online_network.predict(inputs, squeeze_output=False), framework_outputs(wrapper, inputs)
    ):
        np.testing.assert_allclose(predicted, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("head", [HeadParameters(ScaledHead), ScaledHeadParameters()], ids=["class", "path"])
def test_an_own_head_and_embedder_learn_and_act(head):
    embedders = {"observation": TwiceParameters(scheme=[Dense(5), Doubled()])}
    wrapper = wrap(network_parameters([head], input_embedders_parameters=embedders), spaces(VECTOR, DISCRETE))
    assert wrapper.online_network.get_weights()[2].shape == (10, 8)  # the middleware's first kernel
    before = wrapper.online_network.get_weights()
    teach(wrapper, 1, np.random.default_rng(0))
    assert all(not np.array_equal(old, new) for old, new in zip(before, wrapper.online_network.get_weights()))
    assert_predicts_what_the_framework_computes(wrapper)


def test_an_own_recurrent_middleware_remembers_until_it_is_reset():
    middleware = MiddlewareParameters(Accumulator)
    wrapper = wrap(network_parameters([QHeadParameters()], middleware_parameters=middleware), spaces(VECTOR, DISCRETE))
    row = {"observation": np.ones((1, 3), np.float32)}
    assert wrapper.is_recurrent
    first, second = (wrapper.online_network.predict(row) for _ in range(2))
    wrapper.online_network.reset_internal_memory()
    np.testing.assert_array_equal(wrapper.online_network.predict(row), first)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("QHaed", "no Head 'QHaed'; did you mean 'QHead'"),
        ("json:JSONDecoder", "is not a part of a network: use a subclass of rl_coach.architectures.heads.Head"),
        (InputEmbedderParameters.path, r"must be an object, not a class: add \(\)"),
    ],
)
def test_a_head_that_is_none_is_named(wanted, message):
    with pytest.raises(CoachError, match=message):
        wrap(network_parameters([HeadParameters(wanted)]), spaces(VECTOR, DISCRETE))


def kernels_and_biases(**changes: Any) -> tuple[np.ndarray, np.ndarray]:
    network = network_parameters([PolicyHeadParameters()], **changes)
    network.input_embedders_parameters = {"observation": InputEmbedderParameters(scheme=[Dense(64)])}
    *_, kernel, bias = wrap(network, spaces(VECTOR, DISCRETE)).online_network.get_weights()[:4]
    return kernel, bias


def test_initial_weights_of_pytorch_fill_the_range_of_the_inverse_root_of_fan_in():
    kernel, bias = kernels_and_biases(initial_weights="kaiming_uniform")
    assert kernel.shape == (64, 8)
    for values in (kernel, bias):
        assert np.abs(values).max() <= 1 / 8
    assert np.abs(kernel).max() > 0.12 and np.abs(bias).max() > 0.03
    assert np.std(kernel) == pytest.approx(1 / 8 / np.sqrt(3), rel=0.1)


def test_orthogonal_initial_weights_have_their_gain():
    kernel, bias = kernels_and_biases(initial_weights=Orthogonal(gain=0.5))
    np.testing.assert_allclose(kernel.T @ kernel, 0.25 * np.eye(8), atol=1e-6)
    assert not bias.any()


def test_a_part_overrides_the_networks_initial_weights():
    head = PolicyHeadParameters()
    head.initial_weights = Orthogonal(gain=0.01)
    network = network_parameters([head], initial_weights=KaimingUniform())
    weights = wrap(network, spaces(VECTOR, DISCRETE)).online_network.get_weights()
    np.testing.assert_allclose(weights[-2].T @ weights[-2], 1e-4 * np.eye(4), atol=1e-8)
    assert weights[1].any() and not weights[-1].any()


def test_initial_weights_that_are_none_are_named():
    with pytest.raises(CoachError, match=r"initial_weights: there is no scheme 'orthogonl'; did you mean 'orthogonal'"):
        kernels_and_biases(initial_weights="orthogonl")
    with pytest.raises(CoachError, match=r"initial_weights: there is no scheme '\[1\]'; choose from 'xavier', "):
        kernels_and_biases(initial_weights=[1])


@pytest.mark.parametrize(
    ("merger", "observations", "merged"),
    [
        (EmbeddingMergerType.Concat, TWO_VECTORS, lambda embeddings: np.concatenate(embeddings, axis=1)),
        (EmbeddingMergerType.Sum, TWO_VECTORS, lambda embeddings: embeddings[0] + embeddings[1]),
        (EmbeddingMergerType.Concat, VECTOR, lambda embeddings: embeddings[0]),
        (EmbeddingMergerType.Sum, VECTOR, lambda embeddings: embeddings[0]),
    ],
)
def test_several_embeddings_are_merged_and_one_is_left_alone(merger, observations, merged):
    network = network_parameters([VHeadParameters()], observations, embedding_merger_type=merger, output_embedding=True)
    network.middleware_parameters = FCMiddlewareParameters(scheme=[])
    wrapper = wrap(network, spaces(observations, DISCRETE))
    inputs = random_inputs(wrapper, 3, np.random.default_rng(0))
    weights, names = wrapper.online_network.get_weights(), sorted(observations)
    kernels = {w.shape[0]: (w, b) for w, b in zip(weights[:-2:2], weights[1:-2:2])}  # the two inputs differ in width
    layers = [kernels[inputs[name].shape[1]] for name in names]
    expected = merged([np.maximum(inputs[name] @ w + b, 0) for name, (w, b) in zip(names, layers)])
    embedding = wrapper.online_network.predict(inputs, outputs=["output_0_embedding"])
    np.testing.assert_allclose(embedding, expected, rtol=1e-5, atol=1e-5)


def test_the_body_gives_its_output_as_an_embedding():
    network = network_parameters([QHeadParameters(), QHeadParameters()], TWO_VECTORS, output_embedding=True)
    network.middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=6, scheme=[])
    wrapper = wrap(network, spaces(TWO_VECTORS, DISCRETE))
    assert wrapper.online_network.output_names == ["output_0_q", "output_0_embedding", "output_1_q"]
    row = random_inputs(wrapper, 1, np.random.default_rng(0))
    q, embedding, _ = wrapper.online_network.predict(row)
    kernel, bias = wrapper.online_network.get_weights()[-4:-2]
    assert embedding.shape == (1, 6)
    np.testing.assert_allclose(embedding @ kernel + bias, q, rtol=1e-4, atol=1e-5)


def test_the_embedding_of_a_body_with_streams_has_one_of_each():
    network = network_parameters([TD3VHeadParameters()], ("observation", "action"), output_embedding=True)
    network.middleware_parameters = FCMiddlewareParameters(scheme=[Dense(6)], num_streams=3)
    online = (wrapper := wrap(network, spaces(VECTOR, BOX))).online_network
    outputs = dict(zip(online.output_names, online.predict(random_inputs(wrapper, 2, np.random.default_rng(0)))))
    embedding = outputs["output_0_embedding"]
    assert embedding.shape == (2, 3, 6)
    for stream, (kernel, bias) in enumerate(zip(*[iter(online.get_weights()[-6:])] * 2)):
        q = embedding[:, stream] @ kernel + bias
        np.testing.assert_allclose(q[:, 0], outputs["output_0_critics"][:, stream], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("room", "base", "successor"),
    [
        ("heads.head", "Head", "heads.Head"),
        ("embedders.embedder", "InputEmbedder", "embedders.InputEmbedder"),
        ("middlewares", "Middleware", "middlewares.Middleware"),
    ],
)
def test_a_part_that_builds_a_tensorflow_1_graph_is_told_what_to_write(room, base, successor, tmp_path):
    import importlib

    retired = getattr(importlib.import_module(f"rl_coach.architectures.tensorflow_components.{room}"), base)
    mine = type("Mine", (retired,), {"__init__": lambda self: None})
    mixed = type("Mine", (type("Mixin", (), {}), retired), {})
    grandchild = type("Mine", (mine,), {})
    for cls in (mine, mixed, grandchild):
        for use in (cls, lambda cls=cls: component_class(cls, {}, object)):
            with pytest.raises(CoachError, match=rf"Mine needs TensorFlow 1.*rl_coach\.architectures\.{successor}"):
                use()


@pytest.mark.parametrize(
    ("statement", "name", "successor"),
    [
        ("from {0}.heads.q_head import QHead", "heads.q_head", "heads.Head"),
        ("from {0}.heads import QHead", "heads.QHead", "heads.Head"),
        ("from {0}.heads import q_head", "heads.q_head", "heads.Head"),
        ("from {0}.heads.head import Head, normalized_columns_initializer", "normalized_columns_init", "heads.Head"),
        ("from {0}.embedders.vector_embedder import VectorEmbedder", "vector_embedder", "embedders.InputEmbedder"),
        ("from {0}.middlewares.fc_middleware import FCMiddleware", "fc_middleware", "middlewares.Middleware"),
    ],
)
def test_other_parts_of_tensorflow_1_are_answered_too(statement, name, successor):
    with pytest.raises(
        CoachError, match=rf"{name}.* needs TensorFlow 1, .* derive from rl_coach\.architectures\.{successor}"
    ):
        exec(statement.format("rl_coach.architectures.tensorflow_components"))


def test_what_there_is_of_them_is_imported_as_ever():
    from rl_coach.architectures.tensorflow_components import heads
    from rl_coach.architectures.tensorflow_components.heads import head

    assert head.Head is heads.Head and not hasattr(heads, "__wrapped__")


def test_layers_have_coachs_names_for_each_framework():
    from rl_coach.architectures.mxnet_components import layers as of_mxnet
    from rl_coach.architectures.tensorflow_components import layers as of_tensorflow

    assert of_mxnet.Dense is of_tensorflow.Dense is Dense
    assert {"Conv2d", "BatchnormActivationDropout", "NoisyNetDense"} <= set(of_tensorflow.__all__)


LAYERNORM = [Dense(6), LayerNorm(), Dense(5), LayerNorm(), BatchnormActivationDropout(activation_function="tanh")]


def layernorm_by_hand(weights: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """V(s) through a middleware of ``LAYERNORM``, after an embedder of one layer."""
    x, weights = x.astype(weights[0].dtype), list(weights)
    embedding, bias, *middle, kernel, last = weights
    x = np.maximum(x @ embedding + bias, 0)
    for activation in (lambda y: np.maximum(y, 0), np.tanh):
        kernel_1, bias_1, scale, offset, *middle = middle
        x = x @ kernel_1 + bias_1
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        x = activation(x * scale + offset)
    return (x @ kernel + last)[:, 0]


def test_layer_normalisation_stands_before_the_activation_and_acts_as_computed_by_hand():
    network = network_parameters([VHeadParameters()], middleware_parameters=FCMiddlewareParameters(scheme=LAYERNORM))
    wrapper, rng = wrap(network, spaces(VECTOR, DISCRETE)), np.random.default_rng(0)
    weights = [rng.normal(size=w.shape) for w in wrapper.online_network.get_weights()]
    wrapper.online_network.set_weights(weights)
    x = rng.normal(size=(4, 3))
    found = wrapper.online_network.predict({"observation": x})
    np.testing.assert_allclose(found, layernorm_by_hand(weights, x), rtol=1e-5, atol=1e-5)
    assert_predicts_what_the_framework_computes(wrapper)


def test_gradients_of_layer_normalisation_are_those_of_finite_differences():
    network = network_parameters(
        [VHeadParameters()], middleware_parameters=FCMiddlewareParameters(scheme=LAYERNORM),
        optimizer_type="SGD", learning_rate=1.0,
    )  # fmt: skip
    wrapper, rng = wrap(network, spaces(VECTOR, DISCRETE)), np.random.default_rng(1)
    before = [rng.normal(size=w.shape) for w in wrapper.online_network.get_weights()]
    wrapper.online_network.set_weights(before)
    x, targets = rng.normal(size=(5, 3)), rng.normal(size=5)
    wrapper.train_and_sync_networks({"observation": x}, targets)

    def loss(weights: list[np.ndarray]) -> float:
        return np.mean((layernorm_by_hand(weights, x.astype(np.float32).astype(float)) - targets) ** 2)

    for index, (old, new) in enumerate(zip(before, wrapper.online_network.get_weights())):
        slope = np.zeros_like(old)
        for place in np.ndindex(old.shape):
            values = []
            for move in (1e-6, -1e-6):
                moved = [weight.copy() for weight in before]
                moved[index][place] += move
                values.append(loss(moved))
            slope[place] = (values[0] - values[1]) / 2e-6
        np.testing.assert_allclose(old - new, slope, rtol=2e-4, atol=2e-5)


def test_layer_normalisation_of_an_image_is_over_the_channels_of_each_pixel():
    image = {"observation": ImageObservationSpace(np.array([9, 9, 3]), high=255)}
    embedders = {"observation": InputEmbedderParameters(scheme=[Conv2d(4, 3, 2), LayerNorm()])}
    wrapper = wrap(
        network_parameters([VHeadParameters()], input_embedders_parameters=embedders), spaces(image, DISCRETE)
    )
    assert [w.shape for w in wrapper.online_network.get_weights()[2:4]] == [(4,), (4,)]
    teach(wrapper, 1, np.random.default_rng(0))
    assert_predicts_what_the_framework_computes(wrapper)


def test_layer_normalisation_is_set_on_the_command_line():
    from rl_coach.command_line.custom_parameters import parse

    assert parse("middleware_parameters.scheme=[Dense(6), LayerNorm()]")[0].value == [Dense(6), LayerNorm()]
