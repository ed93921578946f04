"""Networks that several workers share: gradients, updates one after the other or together, and who is waited for."""

from __future__ import annotations

import pathlib
import threading
from typing import Any

import numpy as np
import pytest

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.hypersphere import SphereEmbedding
from rl_coach.architectures.shared_networks import GROUPS, SharedBlock, SharedFile, SharedLearner, SharedNetworks
from rl_coach.architectures.update import Update, weighted_mean
from rl_coach.base_parameters import GradientClippingMethod
from tests.architectures.test_learner import columns, two_stages, wrapper_and_learner

B = 4


def regression(ops: Any, networks: dict, batch: Any) -> Update:
    errors = networks["main"].online(batch.states)[0]["v"] - batch.rewards
    loss = weighted_mean(ops, errors * errors, batch.weights)
    return Update({"main": loss}, errors=errors, signals={"Largest": ops.max(ops.abs(errors))}, values={"e": errors})


def sharing(path: pathlib.Path, count: int, **settings: Any) -> list[tuple[Any, Any, SharedNetworks]]:
    """Workers with networks of equal weights: the wrapper, the learner and the shared networks of each."""
    pairs = [wrapper_and_learner(regression, **settings) for _ in range(count)]
    start = pairs[0][0].get_state()
    block = SharedBlock(pairs[0][1].networks, count)
    path.write_bytes(bytes(block.num_bytes))
    found = []
    for index, (wrapper, learner) in enumerate(pairs):
        wrapper.set_state(start)
        file = SharedFile(str(path), count)
        file.join(index)
        found.append((wrapper, learner, SharedNetworks(block, file, learner.step, index)))
    found[0][2].publish(found[0][1].networks)
    return found


def weights_of(wrapper: Any) -> np.ndarray:
    return np.concatenate([array.ravel() for array in wrapper.state.arrays("weights")])


def test_gradients_are_what_a_step_of_gradient_descent_subtracts():
    wrapper, learner = wrapper_and_learner(regression, optimizer_type="SGD", learning_rate=0.5)
    data, before = columns(B), weights_of(wrapper)
    gradients, told = learner.gradients(data)
    np.testing.assert_array_equal(weights_of(wrapper), before)
    made = learner.train(data)
    np.testing.assert_allclose(before - 0.5 * gradients["main"], weights_of(wrapper), atol=1e-6)
    for read in (lambda r: r.losses["main"], lambda r: r.gradient_norms["main"], lambda r: r.errors):
        np.testing.assert_allclose(read(told), read(made), rtol=1e-5)
    np.testing.assert_allclose(told.values["e"], told.errors)


@pytest.mark.parametrize(
    "settings",
    [
        {"clip_gradients": 0.5},
        {"clip_gradients": 0.5, "gradients_clipping_method": GradientClippingMethod.ClipByNorm},
        {"optimizer_type": "RMSProp"},
        {"async_training": True},
        {"input_embedders_parameters": {"observation": InputEmbedderParameters("none", [SphereEmbedding(4)])}},
    ],
)
def test_one_worker_learns_as_a_process_alone(settings, tmp_path):
    """Five updates of a call, with every optimizer, target and schedule."""
    alone, learner = wrapper_and_learner(regression, **settings)
    ((wrapper, own, shared),) = sharing(tmp_path / "block", 1, **settings)
    alone.set_state(wrapper.get_state())
    one = learner.train(columns(5 * B), num_updates=5, target_rates={"main": 0.3})
    other = SharedLearner(own, shared).train(columns(5 * B), num_updates=5, target_rates={"main": 0.3})
    shared.take(own.networks, GROUPS)
    for group in alone.state.groups():
        for a, b in zip(alone.state.arrays(group), wrapper.state.arrays(group)):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(one.losses["main"], other.losses["main"], rtol=1e-4)
    assert wrapper.state.updates == 5 and other.errors.shape == (5, B)


@pytest.mark.parametrize("is_asynchronous", [True, False])
def test_workers_apply_each_stage_before_the_next(tmp_path, is_asynchronous):
    """As a process alone: 2, then 2 - 1/4, then that less 1/8."""
    states, learner = two_stages(async_training=is_asynchronous)
    block = SharedBlock(states, 1)
    (tmp_path / "block").write_bytes(bytes(block.num_bytes))
    file = SharedFile(str(tmp_path / "block"), 1)
    file.join(0)
    shared = SharedNetworks(block, file, learner.step, 0)
    shared.publish(states)
    result = SharedLearner(learner, shared).train(columns(2 * B), num_updates=2)
    np.testing.assert_allclose(result.losses["a"], [0.5, 0.125])
    np.testing.assert_allclose(result.losses["b"], [1.0, 0.4375])
    np.testing.assert_allclose(result.signals["a after"], [0.5, 0.25])
    assert result.errors.shape == result.values["sum"].shape == (2, B)
    assert [float(states[name].arrays("weights")[0]) for name in "ab"] == [0.25, 1.625]


def test_asynchronous_workers_take_each_others_updates(tmp_path):
    workers = sharing(tmp_path / "block", 2, async_training=True, learning_rate=0.05)
    alone, learner = wrapper_and_learner(regression, async_training=True, learning_rate=0.05)
    alone.set_state(workers[0][0].get_state())
    for k, index in enumerate([0, 1, 1, 0]):
        data = columns(B, seed=k)
        _, own, shared = workers[index]
        shared.take(own.networks)
        SharedLearner(own, shared).train(data)
        learner.train(data)
    shared.take(own.networks)
    np.testing.assert_allclose(weights_of(workers[0][0]), weights_of(alone), atol=1e-6)
    assert workers[0][0].state.updates == 4


def test_an_optimizer_of_ones_own_goes_by_ones_own_gradients(tmp_path):
    """Adam's first step is as long whatever came before; with a shared optimizer the second worker's is its second."""
    settings = {"async_training": True, "learning_rate": 0.1, "optimizer_epsilon": 1e-12}
    steps = {}
    for shared_optimizer in (False, True):
        path = tmp_path / f"block {shared_optimizer}"
        workers = sharing(path, 2, shared_optimizer=shared_optimizer, **settings)
        networks = workers[0][1].networks
        size = weights_of(workers[0][0]).size
        workers[0][2].apply({"main": np.full(size, 10.0, np.float32)}, networks)
        workers[1][2].take(workers[1][1].networks)
        before = weights_of(workers[1][0])
        workers[1][2].apply({"main": np.full(size, -1.0, np.float32)}, workers[1][1].networks)
        workers[1][2].take(workers[1][1].networks)
        steps[shared_optimizer] = weights_of(workers[1][0]) - before
    np.testing.assert_allclose(steps[False], 0.1, rtol=1e-4)
    assert (steps[True] < 0).all()


@pytest.mark.parametrize("is_averaged", [True, False])
def test_synchronous_workers_make_one_update_of_all_gradients(is_averaged, tmp_path):
    name = "scale_down_gradients_by_number_of_workers_for_sync_training"
    settings = {"async_training": False, "optimizer_type": "SGD", "learning_rate": 1.0, name: is_averaged}
    workers = sharing(tmp_path / "block", 2, **settings)
    before = weights_of(workers[0][0])
    gradients = [np.random.default_rng(k).normal(size=before.size).astype(np.float32) for k in range(2)]

    def contribute(index: int) -> None:
        _, own, shared = workers[index]
        shared.apply({"main": gradients[index]}, own.networks)
        shared.take(own.networks)

    threads = [threading.Thread(target=contribute, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    expected = before - sum(gradients) / (2 if is_averaged else 1)
    for wrapper, _, _ in workers:
        np.testing.assert_allclose(weights_of(wrapper), expected, atol=1e-5)
        assert wrapper.state.updates == 1


@pytest.mark.parametrize("last", ["a", "b"])
def test_a_joint_update_has_the_gradients_of_networks_that_only_some_workers_teach(last, tmp_path):
    """Both teach 'a', one 'b' too, whoever comes last. The mean is that of those who teach a network."""
    states, learner = two_stages(async_training=False, learning_rate=1.0)
    block = SharedBlock(states, 2)
    (tmp_path / "block").write_bytes(bytes(block.num_bytes))
    workers = []
    for index in range(2):
        file = SharedFile(str(tmp_path / "block"), 2)
        file.join(index)
        workers.append(SharedNetworks(block, file, learner.step, index))
    workers[0].publish(states)
    before = {name: float(states[name].arrays("weights")[0]) for name in "ab"}
    of_a, of_both = {"a": np.float32([0.5])}, {"a": np.float32([0.25]), "b": np.float32([0.125])}
    first, second = (of_a, of_both) if last == "b" else (of_both, of_a)
    waiting = threading.Thread(target=workers[0].apply, args=(first, states))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive(), "the other worker's gradients are not there"
    workers[1].apply(second, states)
    waiting.join(30)
    workers[0].take(states)
    after = {name: float(states[name].arrays("weights")[0]) for name in "ab"}
    assert after == {"a": before["a"] - 0.375, "b": before["b"] - 0.125}
    assert [states[name].updates for name in "ab"] == [1, 1]


def test_nobody_waits_for_a_worker_that_has_left(tmp_path):
    workers = sharing(tmp_path / "block", 2, async_training=False)
    _, own, shared = workers[0]
    size = weights_of(workers[0][0]).size
    waiting = threading.Thread(target=shared.apply, args=({"main": np.ones(size, np.float32)}, own.networks))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive(), "the other worker's gradients are not there"
    SharedFile(str(tmp_path / "block"), 2).leave(1)
    waiting.join(30)
    assert not waiting.is_alive()
