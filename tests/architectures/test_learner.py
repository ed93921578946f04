"""Compiled steps: a loop of updates equals single ones, columns arrive as they were sent, failures are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import QHeadParameters, SACPolicyHeadParameters, VHeadParameters
from rl_coach.architectures.layers import Conv2d, Dense, Layer, NoisyNetDense
from rl_coach.architectures.learner import Packing
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters, LSTMMiddlewareParameters
from rl_coach.architectures.padding import pad, padded
from rl_coach.architectures.update import Stage, TrainingStep, Update, weighted_mean
from rl_coach.architectures.values import ValuesParameters
from rl_coach.schedules import LinearSchedule
from rl_coach.spaces import PlanarMapsObservationSpace
from rl_coach.utils import CoachError, TrainingError
from tests.agents.numpy_gradients import gradient
from tests.architectures.networks import BOX, DISCRETE, VECTOR, network_parameters, spaces, wrap

B = 4


def regression(ops: Any, networks: dict, batch: Any) -> Update:
    """V(s) towards the reward; the target network is only looked at."""
    errors = networks["main"].online(batch.states)[0]["v"] - batch.rewards
    lag = networks["main"].target(batch.states)[0]["v"] - batch.rewards
    loss = weighted_mean(ops, errors * errors, batch.weights)
    return Update({"main": loss}, errors=lag, signals={"Largest": ops.max(ops.abs(errors))})


def wrapper_and_learner(
    rule: Any = regression, heads: Any = None, observations: Any = VECTOR, **changes: Any
) -> tuple[Any, Any]:
    network = network_parameters(heads or [VHeadParameters()], observations, create_target_network=True, **changes)
    wrapper = wrap(network, spaces(observations, DISCRETE))
    step = TrainingStep({"main": wrapper.state.function}, {"main": network}, rule)
    return wrapper, wrapper.framework.make_learner(step, {"main": wrapper.state}, ("main",))


def columns(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "states/observation": rng.normal(size=(rows, 3)).astype(np.float32),
        "rewards": rng.normal(size=rows).astype(np.float32),
        "weights": np.ones(rows, np.float32),
    }


def part(all_columns: dict[str, np.ndarray], rows: Any) -> dict[str, np.ndarray]:
    return {name: column[rows] for name, column in all_columns.items()}


def state_of(wrapper: Any) -> list[np.ndarray]:
    return [np.array(array) for group in wrapper.state.groups() for array in wrapper.state.arrays(group)]


def assert_same_states(one: Any, other: Any, atol: float = 1e-6) -> None:
    for a, b in zip(state_of(one), state_of(other)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=atol)


SETTINGS = {"learning_rate": LinearSchedule(0.1, 0.01, 5), "l2_regularization": 0.01, "clip_gradients": 0.5}


@pytest.fixture(scope="module")
def compiled() -> dict[str, tuple[Any, Any, dict]]:
    """Two equal networks with their learners, which compile their steps once for all tests, and their first state."""
    pairs = {name: wrapper_and_learner(**SETTINGS) for name in ("looped", "single")}
    return {name: (wrapper, learner, wrapper.get_state()) for name, (wrapper, learner) in pairs.items()}


@pytest.fixture
def looped(compiled) -> tuple[Any, Any]:
    """A learner that is told to make five updates in one call, its target moving after each of them."""
    wrapper, learner, start = compiled["looped"]
    wrapper.set_state(start)
    return wrapper, learner


@pytest.fixture
def single(compiled) -> tuple[Any, Any]:
    wrapper, learner, start = compiled["single"]
    wrapper.set_state(start)
    return wrapper, learner


def test_five_updates_in_a_loop_equal_five_single_calls(looped, single):
    data = columns(5 * B)
    together = looped[1].train(data, num_updates=5, target_rates={"main": 0.3})
    alone = [single[1].train(part(data, np.s_[k * B : (k + 1) * B]), target_rates={"main": 0.3}) for k in range(5)]
    assert_same_states(looped[0], single[0])
    for read in (
        lambda r: r.losses["main"],
        lambda r: r.gradient_norms["main"],
        lambda r: r.signals["Largest"],
        lambda r: r.errors,
    ):
        np.testing.assert_allclose(read(together), np.concatenate([read(r) for r in alone]), rtol=1e-4, atol=1e-6)
    assert together.errors.shape == (5, B)
    assert looped[0].state.updates == single[0].state.updates == 5


def test_updates_on_images_in_a_loop_equal_single_calls():
    # a framework may compile networks with convolutions in another way
    image = {"image": PlanarMapsObservationSpace(np.array([48, 48, 2]), 0, 255)}
    embedders = {"image": InputEmbedderParameters(scheme=[Conv2d(3, 4, 2), Conv2d(4, 3, 1)])}
    looped, single = (
        wrapper_and_learner(observations=image, input_embedders_parameters=embedders, **SETTINGS) for _ in range(2)
    )
    start = looped[0].get_state()
    single[0].set_state(start)
    data = columns(3 * B)
    del data["states/observation"]
    data["states/image"] = np.random.default_rng(0).integers(0, 256, (3 * B, 48, 48, 2), dtype=np.uint8)
    together = looped[1].train(data, num_updates=3, target_rates={"main": 0.3})
    alone = [single[1].train(part(data, np.s_[k * B : (k + 1) * B]), target_rates={"main": 0.3}) for k in range(3)]
    # in loops JAX adds up the pixels in another order
    assert_same_states(looped[0], single[0], atol=1e-5)
    learned = looped[0].get_state()["weights"]
    assert all(not np.array_equal(old, learned[name]) for name, old in start["weights"].items())
    np.testing.assert_allclose(
        together.losses["main"], np.concatenate([one.losses["main"] for one in alone]), rtol=1e-4, atol=1e-6
    )


def test_fewer_updates_than_compiled_for(looped, single):
    data = columns(5 * B, seed=1)
    compilations = looped[1].num_compilations
    result = looped[1].train(pad(part(data, np.s_[: 3 * B]), 5 * B), num_updates=5, count=3, target_rates={"main": 0.3})
    for k in range(3):
        single[1].train(part(data, np.s_[k * B : (k + 1) * B]), target_rates={"main": 0.3})
    assert_same_states(looped[0], single[0])
    assert result.losses["main"].shape == (3,) and result.errors.shape == (3, B)
    assert looped[0].state.updates == 3
    assert looped[1].num_compilations - compilations <= (compilations == 0)


def test_batches_by_index_with_rows_that_fill_up(looped, single):
    data = columns(6, seed=2)
    indices = np.array([[5, 0, 3, -1], [2, 2, 1, 4]], np.int32)
    looped[1].train(data, indices=indices, num_updates=2, target_rates={"main": 1.0})
    short = part(data, np.array([5, 0, 3, 0]))
    short["weights"][3] = 0.0
    single[1].train(short, target_rates={"main": 1.0})
    single[1].train(part(data, indices[1]), target_rates={"main": 1.0})
    assert_same_states(looped[0], single[0])
    weights, targets = (looped[0].state.arrays(group) for group in ("weights", "target_weights"))
    for weight, target in zip(weights, targets):
        np.testing.assert_array_equal(weight, target)


def test_warm_learners_compile_nothing_more(looped):
    def train() -> None:
        for count in (1, 2, 5):
            looped[1].train(columns(5 * B, seed=count), num_updates=5, count=count, target_rates={"main": 0.3})

    train()
    compilations = looped[1].num_compilations
    train()
    assert looped[1].num_compilations == compilations


def test_predictions_follow_each_update(looped):
    wrapper, learner = looped
    inputs = {"observation": np.ones((1, 3), np.float32)}
    before = wrapper.online_network.predict(inputs), wrapper.target_network.predict(inputs)
    learner.train(columns(5 * B), num_updates=5, target_rates={"main": 0.3})
    after = wrapper.online_network.predict(inputs), wrapper.target_network.predict(inputs)
    assert before[0] != after[0] and before[1] != after[1]
    wrapper.update_target_network()
    np.testing.assert_array_equal(wrapper.online_network.predict(inputs), wrapper.target_network.predict(inputs))


def test_the_gradient_step_is_the_one_worked_out_by_hand():
    # v = w s + b, l2 on w alone; one row s = 2, r = 1, of weight 3; another fills up
    wrapper, learner = wrapper_and_learner(
        optimizer_type="SGD", learning_rate=0.1, l2_regularization=0.5, clip_gradients=None
    )
    weights = [np.zeros_like(w) for w in wrapper.online_network.get_weights()]
    *_, kernel, bias = weights
    kernel[0], bias[0] = 1.0, 0.25
    weights[1][0] = weights[3][0] = 1.0  # both layers below give 1 in their first unit, whatever comes in
    wrapper.online_network.set_weights(weights)
    data = {"states/observation": np.zeros((2, 3)), "rewards": np.array([1.0, 9.0]), "weights": np.array([3.0, 0.0])}
    result = learner.train(data)
    # prediction 1.25, error 0.25, loss 3 * 0.0625 + 0.25 * 1^2; d loss / d bias = 3 * 2 * 0.25
    assert result.losses["main"][0] == pytest.approx(3 * 0.0625 + 0.5 * 0.5)
    new = wrapper.online_network.get_weights()
    assert new[-1][0] == pytest.approx(0.25 - 0.1 * 1.5)
    assert new[-2][0, 0] == pytest.approx(1.0 - 0.1 * (1.5 + 0.5 * 1.0))


def test_columns_arrive_as_they_were_sent():
    seen: dict[str, Any] = {}

    def rule(ops: Any, networks: dict, batch: Any) -> Update:
        seen["dtype"], seen["image"] = str(batch.actions.dtype), str(batch.states["image"].dtype)
        loss = ops.sum(networks["main"].online(batch.states)[0]["q"]) * 0.0
        image_sum = ops.sum(ops.cast(batch.states["image"], "float32"), axis=(1, 2))
        signals = {
            "actions": ops.sum(ops.cast(batch.actions, "float32") * ops.convert_to_tensor([1.0, 100.0])),
            "small": ops.sum(batch.states["small"] * ops.convert_to_tensor([1.0, 300.0])),
            "extra": ops.sum(batch.extra["one"]) * batch.scalars["factor"],
        }
        return Update({"main": loss}, errors=image_sum, signals=signals)

    _, learner = wrapper_and_learner(rule, [QHeadParameters()])
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (6, 80, 80), dtype=np.uint8)
    data = {
        "states/observation": np.zeros((6, 3)),
        "states/image": images,
        "states/small": np.array([[1, 255]] * 6, np.uint8),
        "actions": np.array([3, 0, 1, 2, 3, 3]),
        "extra/one": np.arange(12.0).reshape(6, 2),
        "weights": np.ones(6),
    }
    result = learner.train(data | {"states/small": np.array([[1], [255], [3], [4], [5], [6]], np.uint8)[:, 0]},
                           {"factor": 0.5}, num_updates=3)  # fmt: skip
    assert "int32" in seen["dtype"] and "uint8" in seen["image"]
    np.testing.assert_allclose(result.errors.ravel(), images.sum(axis=(1, 2)))
    np.testing.assert_allclose(result.signals["actions"], [3, 1 + 200, 3 + 300])
    np.testing.assert_allclose(result.signals["small"], [1 + 300 * 255, 3 + 1200, 5 + 1800])
    np.testing.assert_allclose(result.signals["extra"], [0.5 * 6, 0.5 * 22, 0.5 * 38])
    indices = np.array([[5, -1], [1, 0], [2, 2]], np.int32)
    indexed = learner.train(data | {"states/small": np.zeros(6, np.uint8)}, {"factor": 1.0}, indices, num_updates=3)
    np.testing.assert_allclose(indexed.errors[1:].ravel(), images[[1, 0, 2, 2]].sum(axis=(1, 2)))
    assert indexed.errors[0, 0] == images[5].sum()


def test_packing_and_unpacking_are_inverse():
    ops = pytest.importorskip("keras", reason="a batch is unpacked by NumPy where there is no Keras").ops
    data = {"a": np.arange(6.0).reshape(3, 2), "actions": np.array([7, 8, 9]), "b": np.ones((3, 2, 2))}
    packing = Packing(data, num_scalars=2, num_updates=1)
    vector = packing.pack(data, np.array([[0.5, 0.25]]), count=1)
    assert vector.shape == (packing.size,) and vector.dtype == np.float32
    unpacked = packing.columns(ops, packing.unpack_rows(ops, vector))
    for name, column in data.items():
        np.testing.assert_array_equal(unpacked[name], column)
    np.testing.assert_array_equal(packing.unpack_scalars(ops, vector), [[0.5, 0.25]])


@pytest.mark.parametrize(("rows", "bucket"), [(1, 32), (32, 32), (33, 64), (64, 64), (100, 128)])
def test_padding_to_few_lengths(rows, bucket):
    result = padded(columns(rows))
    assert {len(column) for column in result.values()} == {bucket}
    assert result["weights"].sum() == rows


def test_a_loss_that_is_not_finite_names_network_and_update(looped):
    data = columns(5 * B)
    data["rewards"][3 * B] = np.nan
    looped[0].state.updates = 10
    with pytest.raises(TrainingError, match="network 'main' became nan at update 14"):
        looped[1].train(data, num_updates=5, target_rates={"main": 0.3}).wait()


def test_a_state_restored_goes_on_exactly(looped, single):
    looped[1].train(columns(5 * B), num_updates=5, target_rates={"main": 0.3})
    single[0].set_state(looped[0].get_state())
    for pair in (looped, single):
        pair[1].train(columns(B, seed=7), target_rates={"main": 0.3})
    for a, b in zip(state_of(looped[0]), state_of(single[0])):
        np.testing.assert_array_equal(a, b)


def test_the_target_moves_and_the_online_network_takes_nothing_from_it():
    """In Coach, ``update_online_network`` takes the shared network's weights, never the target's."""
    wrapper, _ = wrapper_and_learner()
    online = wrapper.online_network.get_weights()
    wrapper.target_network.set_weights([w + 1.0 for w in online])
    wrapper.update_online_network()
    for old, new in zip(online, wrapper.online_network.get_weights()):
        np.testing.assert_array_equal(new, old)
    wrapper.update_target_network(0.25)
    for old, new in zip(online, wrapper.target_network.get_weights()):
        np.testing.assert_allclose(new, old + 0.75, rtol=1e-6)
    wrapper.sync()
    for old, new in zip(online, wrapper.target_network.get_weights()):
        np.testing.assert_array_equal(new, old)


def test_targets_given_to_the_wrapper():
    """Coach's way: a network learns from targets that its caller computed."""
    network = network_parameters([QHeadParameters(loss_weight=2.0), VHeadParameters()], optimizer_type="SGD")
    wrapper = wrap(network, spaces(VECTOR, DISCRETE))
    inputs = {"observation": np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)}
    q, v = wrapper.online_network.predict(inputs)
    targets = q.copy()
    targets[[0, 1, 2], [1, 0, 3]] += [1.0, -2.0, 3.0]
    weights = np.array([1.0, 0.5, 2.0])
    total, losses, norm, fetched = wrapper.train_and_sync_networks(inputs, [targets, v + 1], importance_weights=weights)
    expected = [2 * (1 + 0.5 * 4 + 2 * 9) / 3, 3.5 / 3]
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert total == pytest.approx(sum(expected), rel=1e-4) and norm > 0 and fetched == []
    assert wrapper.state.updates == 1
    errors = [np.abs(a - b).max() for a, b in zip(wrapper.online_network.predict(inputs), (targets, v + 1))]
    assert errors[0] < 3.0 and errors[1] < 1.0


def test_accumulated_gradients_are_summed():
    def taught(accumulate: bool) -> Any:
        wrapper = wrap(
            network_parameters([VHeadParameters()], optimizer_type="SGD", learning_rate=0.1), spaces(VECTOR, DISCRETE)
        )
        rng = np.random.default_rng(0)
        inputs, targets = {"observation": rng.normal(size=(4, 3)).astype(np.float32)}, rng.normal(size=4)
        if accumulate:
            wrapper.accumulate_gradients({"observation": inputs["observation"][:1]}, targets[:1])
            wrapper.online_network.accumulate_gradients({"observation": inputs["observation"][1:]}, targets[1:])
            assert wrapper.state.updates == 0
            wrapper.apply_gradients_and_sync_networks()
        else:
            # the mean of one row and the mean of three, added up
            wrapper.train_and_sync_networks(inputs, targets, importance_weights=np.array([4.0, 4 / 3, 4 / 3, 4 / 3]))
        return wrapper

    assert_same_states(taught(accumulate=True), taught(accumulate=False))


def test_heads_that_do_not_learn_from_targets_say_so():
    wrapper = wrap(network_parameters([SACPolicyHeadParameters()]), spaces(VECTOR, BOX))
    with pytest.raises(CoachError, match="SACPolicyHead cannot learn from targets only"):
        wrapper.train_and_sync_networks({"observation": np.zeros((1, 3))}, np.zeros(1))


def test_online_and_target_network_draw_noise_of_their_own_at_each_update():
    def rule(ops: Any, networks: dict, batch: Any) -> Update:
        online = networks["main"].online(batch.states)[0]["q"]
        target = networks["main"].target(batch.states)[0]["q"]
        return Update({"main": 0.0 * ops.sum(online)}, signals={"online": ops.sum(online), "target": ops.sum(target)})

    _, learner = wrapper_and_learner(rule, [QHeadParameters(dense_layer=NoisyNetDense)], optimizer_type="SGD")
    row = {name: np.repeat(column, 3, axis=0) for name, column in columns(1).items()}
    first, second = (learner.train(row, num_updates=3, target_rates={"main": 1.0}) for _ in range(2))
    drawn = np.concatenate([result.signals[name] for result in (first, second) for name in ("online", "target")])
    assert len(np.unique(drawn)) == 12


def critic_and_actor(**masked: Any) -> tuple[dict[str, Any], Any, dict]:
    """Two networks and a value that learn together, and what an update of three, with these masks, gave."""

    def rule(ops: Any, networks: dict, batch: Any) -> Update:
        errors = {name: networks[name].online(batch.states)[0]["v"] - batch.rewards for name in ("critic", "actor")}
        kept = networks["values"].online({})[0]
        losses = {name: weighted_mean(ops, e * e, batch.weights) for name, e in errors.items()}
        losses["values"] = ops.square(kept["temperature"] - 3.0)
        networks["values"].keep(count=kept["count"] + 1.0)
        values = {"doubled": 2.0 * errors["critic"], "pairs": ops.reshape(batch.rewards, (-1, 2))}
        return Update(losses, errors=errors["critic"], values={**values, "reward": batch.rewards})

    parameters = {
        name: network_parameters([VHeadParameters()], create_target_network=True, learning_rate=0.1)
        for name in ("critic", "actor")
    }
    parameters["values"] = ValuesParameters(
        {"temperature": 1.0}, {"count": 0.0}, optimizer_type="SGD", learning_rate=0.25
    )
    wrappers = {name: wrap(one, spaces(VECTOR, DISCRETE)) for name, one in parameters.items()}
    states = {name: wrapper.state for name, wrapper in wrappers.items()}
    step = TrainingStep({name: state.function for name, state in states.items()}, parameters, rule)
    learner = next(iter(wrappers.values())).framework.make_learner(step, states, ("actor",))
    rates = {"critic": 0.5, "actor": 0.5}
    return wrappers, learner, {"num_updates": 3, "target_rates": rates, **masked}


def test_an_update_leaves_networks_out_bit_for_bit():
    masks = {"learning": {"actor": [False, True, False]}, "moving": {"actor": [False, True, False]}}
    delayed, learner, settings = critic_and_actor(**masks)
    result = learner.train(columns(3 * B), **settings)
    expected, other, plain = critic_and_actor()
    # the actor's only update is its first: it sees the second batch, and its own bias corrections
    second = {name: np.concatenate([column[B : 2 * B]] * 3) for name, column in columns(3 * B).items()}
    other.train(second, **plain, count=1)
    for group in ("weights", "slots", "target_weights"):
        for one, twin in zip(*(w["actor"].state.arrays(group) for w in (delayed, expected))):
            np.testing.assert_allclose(one, twin, rtol=1e-5, atol=1e-7)
    assert [delayed[name].state.updates for name in ("critic", "actor")] == [3, 1]
    assert learner.num_compilations == 1
    for numbers in (
        result.losses["actor"],
        result.gradient_norms["actor"],
    ):  # of what is not learned nothing is computed
        np.testing.assert_array_equal(numbers > 0, [False, True, False])
        np.testing.assert_array_equal(numbers[[0, 2]], [0.0, 0.0])
    assert (result.losses["critic"] > 0).all()
    before = {group: delayed["actor"].state.arrays(group) for group in delayed["actor"].state.groups()}
    never = {"actor": [False] * 3}
    learner.train(columns(3 * B, seed=4), **{**settings, "learning": never, "moving": never})
    assert learner.num_compilations == 1 and delayed["actor"].state.updates == 1
    for group, arrays in before.items():
        for one, twin in zip(arrays, delayed["actor"].state.arrays(group)):
            np.testing.assert_array_equal(one, twin)


def test_a_loss_that_is_not_finite_names_the_update_of_a_network_that_seldom_learns():
    networks, learner, settings = critic_and_actor(learning={"actor": [False, True, False]})
    actor = networks["actor"].state
    actor.set_arrays("weights", [np.full_like(array, np.nan) for array in actor.arrays("weights")])
    actor.updates = 10
    with pytest.raises(TrainingError, match="network 'actor' became nan at update 11"):
        learner.train(columns(3 * B), **settings).wait()


class Renormalized(Layer):
    def applied(self, layers: Any, x: Any) -> Any:
        return layers.batch_renorm(x, 2)


def test_batch_renormalization_after_its_warm_up():
    """Ioffe 2017, algorithm 1: two passes with the batch alone, then two with r and d, which have no gradient;
    predictions use the running statistics."""

    def rule(ops: Any, networks: dict, batch: Any) -> Update:
        v = networks["main"].online(batch.states)[0]["v"]
        return Update({"main": weighted_mean(ops, v * v, batch.weights)}, values={"v": v})

    wrapper, learner = wrapper_and_learner(
        rule,
        input_embedders_parameters={
            "observation": InputEmbedderParameters(scheme=[Dense(2), Renormalized()], activation_function="none")
        },
        middleware_parameters=FCMiddlewareParameters(scheme=[], activation_function="none"),
        optimizer_type="SGD",
        learning_rate=0.1,
    )
    data = columns(4 * B)
    # the first feature's batches are far from its running mean, 0, and the second's have a large deviation
    data["states/observation"] = 30 * data["states/observation"] + [40, 0, 0]
    weights = [np.asarray(w, np.float64) for w in wrapper.state.arrays("weights")]
    mean, variance, clipped = np.zeros(2), np.ones(2), 0
    result = learner.train(data, num_updates=4)
    for k in range(4):
        x = data["states/observation"][k * B : (k + 1) * B]
        hidden = x @ weights[0] + weights[1]
        r, d = np.ones(2), np.zeros(2)
        if k >= 2:
            ratio = np.sqrt(hidden.var(axis=0) + 1e-3) / np.sqrt(variance + 1e-3)
            shift = (hidden.mean(axis=0) - mean) / np.sqrt(variance + 1e-3)
            r, d = np.clip(ratio, 1 / 3, 3), np.clip(shift, -5, 5)
            clipped += int(np.sum(r != ratio) + np.sum(d != shift))

        def values(w: list, x: Any = x, r: Any = r, d: Any = d) -> np.ndarray:
            hidden = x @ w[0] + w[1]
            normalized = (hidden - hidden.mean(axis=0)) / np.sqrt(hidden.var(axis=0) + 1e-3) * r + d
            return ((normalized * w[2] + w[3]) @ w[4] + w[5])[:, 0]

        np.testing.assert_allclose(result.values["v"][k], values(weights), rtol=1e-3, atol=1e-4)
        slopes = gradient(lambda w, values=values: float(np.mean(values(w) ** 2)), weights)
        weights = [w - 0.1 * slope for w, slope in zip(weights, slopes)]
        mean, variance = 0.99 * mean + 0.01 * hidden.mean(axis=0), 0.99 * variance + 0.01 * hidden.var(axis=0)
    assert clipped
    for found, expected in zip(wrapper.state.arrays("weights"), weights):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    for found, expected in zip(wrapper.state.arrays("buffers"), [mean, variance, [4.0]]):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    x = columns(B, seed=1)["states/observation"]
    hidden = (x @ weights[0] + weights[1] - mean) / np.sqrt(variance + 1e-3)
    acted = ((hidden * weights[2] + weights[3]) @ weights[4] + weights[5])[:, 0]
    predicted = wrapper.online_network.predict({"observation": x})
    np.testing.assert_allclose(np.asarray(predicted).reshape(-1), acted, rtol=1e-3, atol=1e-4)


def two_stages(**settings: Any) -> tuple[dict[str, Any], Any]:
    """Values a = 1 and b = 2 with a step size of 1/2: a descends a^2 / 2, and then b descends a b."""

    def first(ops: Any, networks: dict, batch: Any) -> Update:
        a = networks["a"].online({})[0]["value"]
        return Update({"a": 0.5 * a * a}, errors=batch.rewards - a, signals={"a before": a})

    def second(ops: Any, networks: dict, batch: Any) -> Update:
        a, b = (networks[name].online({})[0]["value"] for name in "ab")
        return Update({"b": a * b}, signals={"a after": a}, values={"sum": batch.rewards + a})

    sgd: dict[str, Any] = {"optimizer_type": "SGD", "learning_rate": 0.5, **settings}
    parameters = {"a": ValuesParameters({"value": 1.0}, **sgd), "b": ValuesParameters({"value": 2.0}, **sgd)}
    wrappers = {name: wrap(one, spaces(VECTOR, DISCRETE)) for name, one in parameters.items()}
    states = {name: wrapper.state for name, wrapper in wrappers.items()}
    stages = Stage(("a",), first), Stage(("b",), second)
    step = TrainingStep({name: state.function for name, state in states.items()}, parameters, stages)
    return states, wrappers["a"].framework.make_learner(step, states, ())


def test_a_recurrent_target_starts_each_sequence_from_the_state_in_its_first_row():
    def rule(ops: Any, networks: dict, batch: Any) -> Update:
        online, target = networks["main"].online(batch.states)[0]["v"], networks["main"].target(batch.states)[0]["v"]
        return Update({"main": 0.0 * ops.sum(online)}, values={"online": online, "target": target})

    middleware = LSTMMiddlewareParameters(number_of_lstm_cells=4, scheme=[])
    _, learner = wrapper_and_learner(rule, middleware_parameters=middleware)
    states = {f"states/lstm_{part}": np.random.default_rng(3).normal(size=(6, 4)).astype(np.float32) for part in "hc"}
    found = learner.train(columns(6) | states, sequence_length=3).values
    np.testing.assert_allclose(found["target"], found["online"], rtol=1e-5)


def test_each_network_has_its_own_learning_rate_whatever_the_order_of_the_parameters():
    def rule(ops: Any, networks: dict, batch: Any) -> Update:
        return Update({name: networks[name].online({})[0]["value"] for name in ("slow", "fast")})

    rates = {"fast": 0.5, "unused": 3.0, "slow": 0.125}
    parameters = {
        name: ValuesParameters({"value": 1.0}, optimizer_type="SGD", learning_rate=rate) for name, rate in rates.items()
    }
    wrappers = {name: wrap(parameters[name], spaces(VECTOR, DISCRETE)) for name in ("slow", "fast")}
    states = {name: wrapper.state for name, wrapper in wrappers.items()}
    step = TrainingStep({name: state.function for name, state in states.items()}, parameters, rule)
    wrappers["slow"].framework.make_learner(step, states, ()).train(columns(B))
    assert {name: float(state.arrays("weights")[0]) for name, state in states.items()} == {"slow": 0.875, "fast": 0.5}


@pytest.mark.parametrize(
    ("learning", "b", "losses"),
    [({}, 1.5625, [1.0, 0.4375, 0.203125]), ({"b": [True, False, True]}, 1.6875, [1.0, 0.0, 0.21875])],
)
def test_a_stage_is_computed_from_what_the_stage_before_has_learned(learning, b, losses):
    """b goes from 2 by half of 1/2, 1/4 and 1/8: of what a has become, not of what it was."""
    states, learner = two_stages()
    data = columns(3 * B)
    result = learner.train(data, num_updates=3, learning=learning)
    np.testing.assert_allclose(result.losses["a"], [0.5, 0.125, 0.03125])
    np.testing.assert_allclose(result.losses["b"], losses)
    np.testing.assert_allclose(result.signals["a before"], [1, 0.5, 0.25])
    np.testing.assert_allclose(result.signals["a after"], [0.5, 0.25, 0.125])
    rewards, before, after = data["rewards"].reshape(3, B), [[1], [0.5], [0.25]], [[0.5], [0.25], [0.125]]
    np.testing.assert_allclose(result.errors, np.subtract(rewards, before), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(result.values["sum"], np.add(rewards, after), rtol=1e-5, atol=1e-6)
    assert [float(states[name].arrays("weights")[0]) for name in "ab"] == [0.125, b]
    assert [states[name].updates for name in "ab"] == [3, 2 if learning else 3]


def test_values_of_batches_of_several_sizes():
    _, learner, settings = critic_and_actor()
    for size in (B, 2 * B, B):  # the last call is compiled already
        data = columns(3 * size)
        result = learner.train(data, **settings)
        np.testing.assert_allclose(result.values["reward"], data["rewards"].reshape(3, size))
        np.testing.assert_allclose(result.values["pairs"], data["rewards"].reshape(3, -1, 2))


def test_values_with_the_same_number_of_rows_in_each_batch_are_refused():
    def rule(ops, networks, batch):
        a = networks["a"].online({})[0]["value"]
        return Update({"a": a * a}, errors=batch.rewards - a, values={"two": ops.stack([a, 2.0 * a])})

    parameters = {"a": ValuesParameters({"value": 1.0})}
    wrappers = {name: wrap(one, spaces(VECTOR, DISCRETE)) for name, one in parameters.items()}
    states = {name: wrapper.state for name, wrapper in wrappers.items()}
    step = TrainingStep({"a": states["a"].function}, parameters, (Stage(("a",), rule),))
    learner = wrappers["a"].framework.make_learner(step, states, ())
    for size in (B, 2 * B):
        assert learner.train(columns(size), num_updates=1).values["two"].shape == (1, 2)
    # the outputs of the smaller batch, whose compiled call was not traced last: loss, norm, B errors and 2 values
    earlier = np.zeros((1, 2 + B + 2), np.float32)
    with pytest.raises(
        CoachError, match="the update rule's two must have B rows, one for each row of the batch, or a fixed"
    ):
        learner.result_of(learner.step.stages, earlier, 1).wait()


def test_values_of_rows_and_values_outside_networks():
    wrappers, learner, settings = critic_and_actor()
    data = columns(3 * B)
    result = learner.train(data, **settings)
    np.testing.assert_allclose(result.values["reward"], data["rewards"].reshape(3, B))
    np.testing.assert_allclose(result.values["doubled"], 2 * result.errors, rtol=1e-6)
    np.testing.assert_allclose(result.values["pairs"], data["rewards"].reshape(3, -1, 2))
    values = wrappers["values"]
    # halfway to 3 with each step: 1, 2, 2.5, 2.75
    np.testing.assert_allclose(values.online_network.get_weights(), [2.75])
    np.testing.assert_array_equal(values.state.arrays("buffers"), [3.0])
    state = values.get_state()
    learner.train(data, **settings)
    values.set_state(state)
    np.testing.assert_allclose(values.online_network.get_weights(), [2.75])
    np.testing.assert_array_equal(values.state.arrays("buffers"), [3.0])
    with pytest.raises(CoachError, match="network 'main' has no inputs and cannot predict"):
        values.online_network.predict({})


def test_running_statistics_of_one_pass_are_constants_to_the_next():
    """The critic's first pass sees what the actor gives, its second one only the statistics that the first left."""

    def rule(ops: Any, networks: dict, batch: Any) -> Update:
        critic, actor = networks["critic"], networks["actor"]
        moved = 100.0 * actor.online(batch.states)[0]["v"][:, None] + batch.states["observation"]
        critic.online({"observation": moved})
        value = ops.mean(critic.online(batch.states, training=False)[0]["v"])
        networks["values"].keep(mean=value)
        return Update({"actor": value + networks["values"].online({})[0]["mean"], "critic": value})

    normalised = {"observation": InputEmbedderParameters(scheme=[Dense(8)], batchnorm=True)}
    sgd: dict[str, Any] = {"optimizer_type": "SGD", "learning_rate": 1.0}
    parameters: dict[str, Any] = {
        "actor": network_parameters([VHeadParameters()], **sgd),
        "critic": network_parameters([VHeadParameters()], input_embedders_parameters=normalised, **sgd),
        "values": ValuesParameters({}, {"mean": 0.0}),
    }
    wrappers = {name: wrap(one, spaces(VECTOR, DISCRETE)) for name, one in parameters.items()}
    states = {name: wrapper.state for name, wrapper in wrappers.items()}
    step = TrainingStep({name: state.function for name, state in states.items()}, parameters, rule)
    learner = wrappers["actor"].framework.make_learner(step, states, ())
    before = {name: state.arrays("weights") for name, state in states.items()}
    statistics = states["critic"].arrays("buffers")
    learner.train(columns(B)).wait()
    for one, other in zip(before["actor"], states["actor"].arrays("weights")):
        np.testing.assert_array_equal(one, other)
    assert any(not np.array_equal(a, b) for a, b in zip(before["critic"], states["critic"].arrays("weights")))
    assert not np.array_equal(statistics[0], states["critic"].arrays("buffers")[0])


def test_a_value_that_is_not_kept_is_named():
    def rule(ops: Any, networks: dict, batch: Any) -> Update:
        networks["main"].keep(men=1.0)
        return Update({})

    wrapper = wrap(ValuesParameters(kept={"mean": 0.0}), spaces(VECTOR, DISCRETE))
    step = TrainingStep({"main": wrapper.state.function}, {"main": wrapper.network_parameters}, rule)
    learner = wrapper.framework.make_learner(step, {"main": wrapper.state}, ())
    with pytest.raises(CoachError, match="there is no kept value 'men'"):
        learner.train({"weights": np.ones(B)})
