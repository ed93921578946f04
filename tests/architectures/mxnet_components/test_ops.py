"""Every operation means what ``keras.ops`` means by its name, and gradients pass through it."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("mxnet") is None:
    pytest.skip("MXNet is not installed", allow_module_level=True)

from rl_coach.architectures.mxnet_components import ops
from rl_coach.architectures.mxnet_components.compatible_mxnet import mxnet, numpy_semantics
from tests.architectures.operations import CASES, INDICES, X


def on_mxnet(value: Any) -> Any:
    if isinstance(value, list):
        return [on_mxnet(one) for one in value]
    return ops.convert_to_tensor(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", CASES)
@numpy_semantics
def test_an_operation(name):
    arguments, settings, expected = CASES[name]
    result = getattr(ops, name)(*map(on_mxnet, arguments), **settings)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-5, atol=1e-6)


@numpy_semantics
def test_no_gradient_passes_a_stop():
    x = ops.convert_to_tensor(X)
    x.attach_grad()
    with mxnet.autograd.record():
        loss = ops.sum(x * ops.stop_gradient(x))
    loss.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), X)


@numpy_semantics
def test_conversions_copy_nothing_that_fits():
    x = ops.convert_to_tensor(X)
    assert ops.convert_to_tensor(x) is x and ops.cast(x, "float32") is x
    assert ops.convert_to_tensor(INDICES).dtype == np.int32
    assert ops.convert_to_tensor(2.0, "float32").shape == ()
