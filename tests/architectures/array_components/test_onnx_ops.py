"""What networks compute on ONNX Runtime, one operation at a time; no framework is needed for it."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import onnxruntime
import pytest

from rl_coach.architectures.array_components.onnx_ops import BATCH, OnnxOps

X = np.array([[-1.5, 0.25, 2.0, -0.5], [0.5, -0.75, 1.0, 3.0]], np.float32)
W = np.arange(8, dtype=np.float32).reshape(4, 2) / 4 - 1
IMAGES = np.arange(2 * 5 * 4 * 2, dtype=np.float32).reshape(2, 5, 4, 2) / 10


def run(build: Callable, rows: np.ndarray) -> np.ndarray:
    ops = OnnxOps()
    result = build(ops, ops.input("x", (BATCH, *rows.shape[1:])), ops.input("w", W.shape))
    session = onnxruntime.InferenceSession(ops.model({"y": result}).SerializeToString())
    (value,) = session.run(["y"], {"x": rows, "w": W})
    assert value.shape == tuple(len(rows) if size == BATCH else size for size in result.shape)
    return value


CASES: dict[str, tuple[Callable, Callable]] = {
    "arithmetic": (lambda ops, x, w: (2.0 * x + 1.0 - x / 4.0) * x, lambda x: (2 * x + 1 - x / 4) * x),
    "a constant on the left": (lambda ops, x, w: 1.0 + x, lambda x: 1 + x),
    "a row that is broadcast": (lambda ops, x, w: x + np.arange(4.0), lambda x: x + np.arange(4)),
    "matmul": (lambda ops, x, w: ops.matmul(x, w), lambda x: x @ W),
    "clip": (lambda ops, x, w: ops.clip(x, -0.5, 1.0), lambda x: np.clip(x, -0.5, 1)),
    "concatenate": (lambda ops, x, w: ops.concatenate([x, x * x], axis=-1), lambda x: np.concatenate([x, x * x], -1)),
    "split": (lambda ops, x, w: ops.split(x, 2, axis=-1)[1], lambda x: x[:, 2:]),
    "reshape": (lambda ops, x, w: ops.reshape(x, (-1, 2, 2)), lambda x: x.reshape(-1, 2, 2)),
    "mean": (lambda ops, x, w: ops.mean(x, axis=1, keepdims=True), lambda x: x.mean(1, keepdims=True)),
    "squeezed mean": (lambda ops, x, w: ops.mean(x, axis=-1, keepdims=False), lambda x: x.mean(1)),
    "zeros_like": (lambda ops, x, w: ops.zeros_like(x) + 3.0, lambda x: np.full_like(x, 3)),
    "ones_like": (lambda ops, x, w: ops.ones_like(x[:, :1]), lambda x: np.ones((len(x), 1))),
    "maximum": (lambda ops, x, w: ops.maximum(x, 0.5), lambda x: np.maximum(x, 0.5)),
    "minimum": (lambda ops, x, w: ops.minimum(x, x * x), lambda x: np.minimum(x, x * x)),
    "waves": (lambda ops, x, w: ops.sin(x) * ops.cos(ops.abs(x)), lambda x: np.sin(x) * np.cos(x)),
    "leaky_relu": (lambda ops, x, w: ops.leaky_relu(x), lambda x: np.where(x > 0, x, 0.2 * x)),
    "elu": (lambda ops, x, w: ops.elu(x), lambda x: np.where(x > 0, x, np.expm1(x))),
    "softplus": (lambda ops, x, w: ops.softplus(x), lambda x: np.log1p(np.exp(x))),
    "log_softmax": (lambda ops, x, w: ops.log_softmax(x), lambda x: x - np.log(np.exp(x).sum(1, keepdims=True))),
    "stop_gradient": (lambda ops, x, w: ops.stop_gradient(x), lambda x: x),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rows", [1, 2])
def test_an_operation(name, rows):
    build, expected = CASES[name]
    np.testing.assert_allclose(run(build, X[:rows]), expected(X[:rows]), rtol=1e-5, atol=1e-6)


def test_a_convolution_sees_each_window():
    def build(ops: OnnxOps, x: Any, w: Any) -> Any:
        return ops.conv(x, ops.convert_to_tensor(np.ones((2, 2, 2, 1))), 2)

    value = run(build, IMAGES)
    assert value.shape == (2, 2, 2, 1)
    assert value[1, 1, 0, 0] == pytest.approx(IMAGES[1, 2:4, 0:2].sum(), rel=1e-5)
