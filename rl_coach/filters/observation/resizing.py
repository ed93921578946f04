"""Resizing images with NumPy: two matrix products with weights that are computed once."""

from __future__ import annotations

import math

import numpy as np


def axis_weights(length_in: int, length_out: int) -> np.ndarray:
    """The weight of each input element in each output element along one axis. Each row sums to 1.

    Shrinking averages over the area that an output element covers. Enlarging interpolates linearly between the centres
    of input elements. Beyond the first and the last centre, the first and the last element are repeated.

    :return: [length_out, length_in] float32
    """
    if length_out > length_in:
        centres = (np.arange(length_out) + 0.5) * (length_in / length_out) - 0.5
        centres = np.clip(centres, 0, length_in - 1)
        distance = np.abs(centres[:, None] - np.arange(length_in))
        return np.maximum(1 - distance, 0).astype(np.float32)
    edges = np.arange(length_out + 1) * (length_in / length_out)
    starts = np.arange(length_in)
    overlap = np.minimum(edges[1:, None], starts + 1) - np.maximum(edges[:-1, None], starts)
    weights = np.maximum(overlap, 0)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


_MOST_PRODUCTS = 2**18
"""OpenBLAS uses all cores for larger matrix products, and its threads wait for each other. If frameworks or other
programs use the cores too, resizing an Atari image then takes two to sixty times as long."""


class Resizer:
    """Resizes images from one size to another size.

    With a ratio such as 210 : 84 = 5 : 2, the weights repeat along the diagonal of the matrix of weights. Therefore one
    small matrix is applied to each piece of the axis. This is much faster than one large matrix.

    :param size_in: (height, width)
    :param size_out: (height, width)
    """

    def __init__(self, size_in: tuple[int, int], size_out: tuple[int, int]):
        self.size_in = size_in
        self.size_out = size_out
        self._height_pieces, self._height_weights = _repeated_weights(size_in[0], size_out[0])
        self._width_pieces, width_weights = _repeated_weights(size_in[1], size_out[1])
        self._width_weights = np.ascontiguousarray(width_weights.T)

    def resize(self, images: np.ndarray) -> np.ndarray:
        """Resize images [..., height, width]. Bytes are rounded and stay bytes; other types become float32."""
        leading = images.shape[:-2]
        rows = self._resize_height(images, images.shape[-1])
        return self._finish(self._resize_width(rows).reshape(*leading, *self.size_out), images, (-2, -1))

    def resize_channels_last(self, images: np.ndarray) -> np.ndarray:
        """Resize images [..., height, width, channels]; see ``resize``."""
        leading, channels = images.shape[:-3], images.shape[-1]
        rows = self._resize_height(images, images.shape[-2] * channels)
        planes = np.swapaxes(rows.reshape(-1, self.size_in[1], channels), -1, -2)
        resized = self._resize_width(np.ascontiguousarray(planes))
        resized = np.swapaxes(resized.reshape(*leading, self.size_out[0], channels, self.size_out[1]), -1, -2)
        return self._finish(resized, images, (-3, -2))

    def _resize_height(self, images: np.ndarray, row_length: int) -> np.ndarray:
        rows = images.astype(np.float32).reshape(-1, self.size_in[0] // self._height_pieces, row_length)
        return np.matmul(self._height_weights, rows)

    def _resize_width(self, rows: np.ndarray) -> np.ndarray:
        rows = rows.reshape(-1, self.size_in[1] // self._width_pieces)
        resized = np.empty((len(rows), self._width_weights.shape[1]), np.float32)
        at_once = max(1, _MOST_PRODUCTS // self._width_weights.size)
        for start in range(0, len(rows), at_once):
            np.matmul(rows[start : start + at_once], self._width_weights, out=resized[start : start + at_once])
        return resized

    @staticmethod
    def _finish(resized: np.ndarray, images: np.ndarray, plane: tuple[int, int]) -> np.ndarray:
        """Convert resized images to the final type. :param plane: the axes of height and width"""
        if images.dtype != np.uint8:
            # clipped to the range of the image, because weights may not sum to exactly 1
            bounds = (bound(images, axis=plane, keepdims=True) for bound in (np.min, np.max))
            return np.ascontiguousarray(np.clip(resized, *(bound.astype(np.float32) for bound in bounds)))
        return (resized + np.float32(0.5)).astype(np.uint8, order="C")


def _repeated_weights(length_in: int, length_out: int) -> tuple[int, np.ndarray]:
    """The number of pieces into which the axis is divided, and the weights of one piece."""
    if length_out > length_in:
        return 1, axis_weights(length_in, length_out)
    pieces = math.gcd(length_in, length_out)
    return pieces, axis_weights(length_in // pieces, length_out // pieces)
