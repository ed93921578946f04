"""Checks that values from other processes can be used in computations."""

from __future__ import annotations

from typing import Any

import numpy as np

LARGEST = 2.0**32
"""The fourth power of a larger number overflows float32. This power occurs, because optimizers square the gradients of
squared errors."""
MOST = 2**53 - 1
"""The largest count. Floats can represent all counts up to this number exactly."""
NUMBERS = "biuf"
"""Kinds of dtype that are numbers."""
_MOST_TEXT = 200
_SMALL_INTEGER = 4  # bytes


def is_count(value: Any) -> bool:
    """True for a whole number from 0 to ``MOST``; False and True do not count."""
    return type(value) is int and 0 <= value <= MOST


def is_text(value: Any) -> bool:
    """True for a text that is neither empty nor long."""
    return isinstance(value, str) and 0 < len(value) <= _MOST_TEXT


def is_finite(values: Any) -> bool:
    """True for a number, or an array of numbers, without NaN and without values beyond ``LARGEST``."""
    array = np.asarray(values)
    kind = array.dtype.kind
    if kind not in NUMBERS or kind == "b" or not array.size or (kind != "f" and array.itemsize <= _SMALL_INTEGER):
        return kind in NUMBERS
    # Two passes without a copy: messages of frames are large. The minimum of numbers with a NaN is NaN, which is not
    # within any bounds.
    return bool(float(array.min()) >= -LARGEST and float(array.max()) <= LARGEST)
