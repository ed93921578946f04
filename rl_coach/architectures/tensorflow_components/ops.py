"""``keras.ops`` on TensorFlow, with a ``scan`` that XLA can differentiate."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf
from keras.ops import *  # noqa: F403


def scan(step: Callable[[Any, Any], tuple[Any, Any]], start: Any, given: Any, reverse: bool = False) -> tuple[Any, Any]:
    """``keras.ops.scan``, which does not give TensorFlow the number of steps. XLA needs this number to store the values
    for the gradient.
    """
    # tf.scan carries all that a step returns, so the outputs need values before the first step
    first = tf.nest.map_structure(lambda column: column[0], given)
    nothing = tf.nest.map_structure(tf.zeros_like, step(start, first)[1])
    carried, outputs = tf.scan(lambda before, row: step(before[0], row), given, (start, nothing), reverse=reverse)
    return tf.nest.map_structure(lambda one: one[0 if reverse else -1], carried), outputs
