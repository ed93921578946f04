"""Every operation means what ``keras.ops`` means by its name; random numbers are a function of their state."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from tests.architectures.operations import CASES, INDICES, X

if importlib.util.find_spec("torch") is None:
    pytest.skip("PyTorch is not installed", allow_module_level=True)

import torch

from rl_coach.architectures.torch_components import ops

MORE: dict[str, tuple[tuple, dict, Any]] = {
    "all": ((X > -2,), {"axis": 1}, np.ones(2, bool)),
    "arange": ((3,), {}, np.arange(3)),
    "argsort": ((X,), {"axis": -1}, X.argsort(-1)),
    "cumsum": ((X,), {"axis": 1}, X.cumsum(1)),
    "min": ((X,), {}, X.min()),
    "repeat": ((X, 2), {"axis": 0}, X.repeat(2, 0)),
    "shape": ((X,), {}, np.array([2, 3])),
    "sort": ((X,), {"axis": -1}, np.sort(X, -1)),
    "std": ((X,), {"axis": 0}, X.std(0)),
    "tile": ((X, (1, 2)), {}, np.tile(X, (1, 2))),
    "transpose": ((X,), {}, X.T),
    "var": ((X,), {}, X.var()),
}


def on_torch(value: Any) -> Any:
    if isinstance(value, list):
        return [on_torch(one) for one in value]
    return ops.convert_to_tensor(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_an_operation(name):
    arguments, settings, expected = (CASES | MORE)[name]
    result = ops.convert_to_numpy(getattr(ops, name)(*map(on_torch, arguments), **settings))
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_parts_of_an_array():
    parts = ops.split(on_torch(X), 3, axis=-1)
    np.testing.assert_array_equal(np.stack([part.numpy() for part in parts]), np.split(X, 3, -1))


def test_no_gradient_passes_a_stop():
    x = on_torch(X).requires_grad_(True)
    ops.sum(x * ops.stop_gradient(x)).backward()
    np.testing.assert_array_equal(x.grad.numpy(), X)


def test_conversions_copy_nothing_that_fits():
    x = on_torch(X)
    assert ops.convert_to_tensor(x) is x and ops.cast(x, "float32") is x
    assert ops.convert_to_tensor(np.ones(2)).dtype == torch.float32
    assert ops.convert_to_tensor(INDICES).dtype == ops.convert_to_tensor(2).dtype == torch.int32


def test_a_generator_gives_other_numbers_at_each_draw_and_the_same_for_one_state():
    state = ops.buffer(np.array([2**31 - 1, 0], np.uint32))
    first, after = ops.factorised_noise(state, 20_000)
    again, _ = ops.factorised_noise(state, 20_000)
    second, _ = ops.factorised_noise(after, 20_000)
    assert torch.equal(first, again) and after.tolist() == [2**31 - 1, 1]
    normal = [(torch.sign(noise) * noise**2).numpy() for noise in (first, second)]
    assert abs(np.corrcoef(*normal)[0, 1]) < 0.03
    for sample in normal:
        assert abs(sample.mean()) < 0.03 and abs(sample.std() - 1.0) < 0.03 and len(np.unique(sample)) > 19_000


def test_dropout_keeps_the_mean():
    mask, after = ops.dropout_mask(ops.buffer(np.array([7, 3], np.uint32)), (100, 200), 0.2)
    assert set(mask.unique().tolist()) == {0.0, 1.25} and abs(float(mask.mean()) - 1.0) < 0.01
    assert after.tolist() == [7, 4]
