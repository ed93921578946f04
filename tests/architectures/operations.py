"""Operations with the names of ``keras.ops``: arguments, settings and what NumPy makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

X = np.array([[-1.5, 0.25, 2.0], [0.5, -0.75, 1.0]], np.float32)
Y = np.array([[0.5, 0.5, -1.0], [2.0, -0.75, 30.0]], np.float32)
INDICES = np.array([2, 0], np.int32)
IMAGE = np.arange(2 * 5 * 4 * 2, dtype=np.float32).reshape(2, 5, 4, 2) / 10
KERNEL = np.arange(2 * 2 * 2 * 3, dtype=np.float32).reshape(2, 2, 2, 3) / 10 - 1


def convolution(images: np.ndarray, kernel: np.ndarray, stride: int) -> np.ndarray:
    size = kernel.shape[0]
    rows, columns = ((n - size) // stride + 1 for n in images.shape[1:3])
    out = np.zeros((len(images), rows, columns, kernel.shape[3]), np.float32)
    for i in range(rows):
        for j in range(columns):
            window = images[:, i * stride : i * stride + size, j * stride : j * stride + size]
            out[:, i, j] = np.tensordot(window, kernel, 3)
    return out


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


CASES: dict[str, tuple[tuple, dict, Any]] = {
    "abs": ((X,), {}, np.abs(X)),
    "argmax": ((X,), {"axis": -1}, X.argmax(-1)),
    "cast": ((X > 0, "float32"), {}, (X > 0).astype(np.float32)),
    "clip": ((X, -1.0, 1.0), {}, np.clip(X, -1, 1)),
    "concatenate": (([X, Y],), {"axis": -1}, np.concatenate([X, Y], -1)),
    "conv": ((IMAGE, KERNEL, 2), {}, convolution(IMAGE, KERNEL, 2)),
    "elu": ((X,), {}, np.where(X > 0, X, np.exp(X) - 1)),
    "expand_dims": ((X, 1), {}, X[:, None]),
    "leaky_relu": ((X,), {}, np.where(X > 0, X, 0.2 * X)),
    "log_sigmoid": ((X,), {}, -np.log1p(np.exp(-X))),
    "log_softmax": ((X,), {}, np.log(softmax(X))),
    "logaddexp": ((X, Y), {}, np.logaddexp(X, Y)),
    "logical_and": ((X > 0, Y > 0), {}, (X > 0) & (Y > 0)),
    "logical_or": ((X > 0, Y > 0), {}, (X > 0) | (Y > 0)),
    "logsumexp": ((X,), {"axis": 1}, np.log(np.exp(X).sum(1))),
    "matmul": ((X, Y.T.copy()), {}, X @ Y.T),
    "max": ((X,), {"axis": 0}, X.max(0)),
    "maximum": ((X, 0.5), {}, np.maximum(X, 0.5)),
    "mean": ((X,), {"axis": 1, "keepdims": True}, X.mean(1, keepdims=True)),
    "minimum": ((X, Y), {}, np.minimum(X, Y)),
    "one_hot": ((INDICES, 3), {}, np.eye(3)[INDICES]),
    "relu": ((X,), {}, np.maximum(X, 0)),
    "reshape": ((X, (3, -1)), {}, X.reshape(3, 2)),
    "selu": ((X,), {}, 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * (np.exp(X) - 1))),
    "sigmoid": ((X,), {}, 1 / (1 + np.exp(-X))),
    "softmax": ((X,), {}, softmax(X)),
    "softplus": ((X,), {}, np.log1p(np.exp(X))),
    "square": ((X,), {}, X * X),
    "squeeze": ((X[:, :1], -1), {}, X[:, 0]),
    "stack": (([X, Y],), {"axis": 1}, np.stack([X, Y], 1)),
    "sum": ((X,), {"axis": -1}, X.sum(-1)),
    "take": ((X, INDICES), {"axis": 1}, X[:, INDICES]),
    "take_along_axis": ((X, INDICES[:, None]), {}, np.take_along_axis(X, INDICES[:, None], -1)),
    "triu": ((X, 1), {}, np.triu(X, 1)),
    "where": ((X > 0, Y, -1e9), {}, np.where(X > 0, Y, -1e9)),
}
