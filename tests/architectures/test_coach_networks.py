"""Methods of networks that agents written for Coach call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.architecture import Architecture
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import QHeadParameters, VHeadParameters
from rl_coach.architectures.hypersphere import SphereEmbedding
from rl_coach.utils import CoachError
from tests.architectures.networks import DISCRETE, VECTOR, network_parameters, spaces, wrap

ROWS = {"observation": np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)}
TARGETS = np.random.default_rng(1).normal(size=4).astype(np.float32)


def values(optimizer: str = "SGD", **changes: Any) -> Any:
    """A network that predicts V, with a target."""
    changes = {"optimizer_type": optimizer, "learning_rate": 0.1, "create_target_network": True, **changes}
    return wrap(network_parameters([VHeadParameters()], **changes), spaces(VECTOR, DISCRETE))


def by_hand(weights: list[np.ndarray], inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The embedding and the value, layer by layer."""
    x = inputs
    for kernel, bias in zip(weights[:-2:2], weights[1:-2:2]):
        x = np.maximum(x @ kernel + bias, 0)
    return x, (x @ weights[-2] + weights[-1])[:, 0]


def test_the_embedding_is_what_the_heads_get():
    wrapper = values()
    for _ in range(2):
        embedding, value = by_hand(wrapper.online_network.get_weights(), ROWS["observation"])
        np.testing.assert_allclose(wrapper.embedding(ROWS), embedding, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(wrapper.online_network.predict(ROWS), value, rtol=1e-5, atol=1e-6)
        wrapper.train_and_sync_networks(ROWS, TARGETS)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "RMSProp"])
def test_gradients_of_the_agents_own_go_through_the_optimizer(optimizer):
    """An update with the gradients of a squared error, found by hand, is that of ``train_on_batch``."""
    taught, given = values(optimizer), values(optimizer)
    for _ in range(3):
        embedding, value = by_hand(given.online_network.get_weights(), ROWS["observation"])
        slope = 2 * (value - TARGETS) / 4
        gradients = [np.zeros_like(weight) for weight in given.online_network.get_weights()]
        gradients[-2], gradients[-1] = (embedding.T @ slope)[:, None], slope.sum(keepdims=True)
        before = taught.online_network.get_weights()
        taught.online_network.train_on_batch(ROWS, TARGETS)
        given.apply_gradients_to_online_network(gradients)
        assert taught.state.updates == given.state.updates
        for own, other in zip(taught.online_network.get_weights()[-2:], given.online_network.get_weights()[-2:]):
            np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)
        # the layers below, whose gradients were not given
        for weights in (taught, given):
            weights.online_network.set_weights([*before[:-2], *given.online_network.get_weights()[-2:]])


def test_a_scaler_divides_the_gradients():
    plain, scaled, given = values(), values(), values()
    before = plain.online_network.get_weights()
    plain.online_network.train_on_batch(ROWS, TARGETS)
    loss, *_ = scaled.online_network.train_on_batch(ROWS, TARGETS, 4.0)
    assert loss == pytest.approx(np.mean((by_hand(before, ROWS["observation"])[1] - TARGETS) ** 2), rel=1e-4)
    moves = [new - old for new, old in zip(plain.online_network.get_weights(), before)]
    given.online_network.apply_and_reset_gradients([-move / 0.1 for move in moves], scaler=4.0)
    for wrapper in (scaled, given):
        for old, new, move in zip(before, wrapper.online_network.get_weights(), moves):
            np.testing.assert_allclose(new, old + move / 4, rtol=1e-4, atol=1e-6)


def test_gradients_of_the_agents_own_keep_columns_of_norm_1():
    wrapper = values(input_embedders_parameters={"observation": InputEmbedderParameters("none", [SphereEmbedding(4)])})
    wrapper.apply_gradients_to_online_network([np.ones_like(one) for one in wrapper.online_network.get_weights()])
    kernels = [wrapper.online_network.get_weights()[place] for place in wrapper.state.function.unit_columns]
    assert [kernel.shape for kernel in kernels] == [(4, 4)]
    np.testing.assert_allclose(np.linalg.norm(kernels[0], axis=0), 1, rtol=1e-5)


def test_running_statistics_move_once_for_each_update():
    embedder = InputEmbedderParameters(batchnorm=True)
    plain, scaled, accumulated = (values(input_embedders_parameters={"observation": embedder}) for _ in range(3))
    plain.train_and_sync_networks(ROWS, TARGETS)
    scaled.online_network.train_on_batch(ROWS, TARGETS, 4.0)
    accumulated.accumulate_gradients(ROWS, TARGETS)
    accumulated.apply_gradients_and_sync_networks()
    for wrapper in (scaled, accumulated):
        for own, expected in zip(wrapper.state.arrays("buffers"), plain.state.arrays("buffers"), strict=True):
            np.testing.assert_allclose(own, expected, rtol=1e-5)


def test_gradients_that_wait_can_be_forgotten():
    wrapper = values()
    wrapper.accumulate_gradients(ROWS, TARGETS)
    wrapper.online_network.reset_accumulated_gradients()
    with pytest.raises(CoachError, match="has no gradients to apply"):
        wrapper.apply_gradients_to_global_network()
    other = values()
    other.accumulate_gradients(ROWS, -TARGETS)
    other.online_network.accumulate_gradients(ROWS, TARGETS, no_accumulation=True)
    other.apply_gradients_and_sync_networks()
    wrapper.train_and_sync_networks(ROWS, TARGETS)
    for own, expected in zip(other.online_network.get_weights(), wrapper.online_network.get_weights()):
        np.testing.assert_array_equal(own, expected)
    with pytest.raises(CoachError, match="6 weight arrays, but 1 gradients"):
        wrapper.online_network.apply_gradients([TARGETS])


def test_one_weight_is_read_and_replaced():
    network = values().online_network
    weights = network.get_weights()
    network.set_variable_value(1, weights[1] + 2, None)
    np.testing.assert_array_equal(network.get_variable_value(1), weights[1] + 2)
    np.testing.assert_array_equal(network.get_variable_value(0), weights[0])
    with pytest.raises(CoachError, match=r"no variable 'bias': give the position of a weight .* 0 to 5"):
        network.get_variable_value("bias")


def test_networks_are_asked_in_one_call():
    first = values()
    second = wrap(network_parameters([QHeadParameters(), VHeadParameters()]), spaces(VECTOR, DISCRETE))
    asked = [(first.online_network, ROWS), (second.online_network, ROWS)]
    expected = [first.online_network.predict(ROWS), *second.online_network.predict(ROWS)]
    for found in (Architecture.parallel_predict(None, asked), first.parallel_prediction(asked)):
        assert len(found) == 3
        for own, other in zip(found, expected):
            np.testing.assert_array_equal(own, other)


def test_the_target_says_who_learns():
    target = values().target_network
    for call in (target.train_on_batch, target.accumulate_gradients):
        with pytest.raises(CoachError, match="'main/target' does not learn: train the online network"):
            call(ROWS, TARGETS)
    with pytest.raises(CoachError, match="does not learn"):
        target.apply_and_reset_gradients([])


def test_weights_are_saved_by_themselves(tmp_path):
    saved, restored = values(), values()
    saved.online_network.set_weights([weight + 1 for weight in saved.online_network.get_weights()])
    written = saved.collect_savers("level/agent").save(None, str(tmp_path / "weights"))
    assert sorted(written) == [str(tmp_path / f"weights.level.agent.main.{one}") for one in ("online", "target")]
    restored.collect_savers("level/agent").restore(None, str(tmp_path / "weights"))
    for name in ("online_network", "target_network"):
        for own, other in zip(getattr(restored, name).get_weights(), getattr(saved, name).get_weights()):
            np.testing.assert_array_equal(own, other)
    (tmp_path / "weights.level.agent.main.online").write_bytes(b"damaged")
    with pytest.raises(CoachError, match="does not contain the weights of this network"):
        restored.collect_savers("level/agent").restore(None, str(tmp_path / "weights"))
