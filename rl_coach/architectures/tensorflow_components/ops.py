"""``keras.ops`` on TensorFlow, with a ``scan`` that XLA can differentiate."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf
from keras.ops import *  # noqa: F403


def scan(step: Callable[[Any, Any], tuple[Any, Any]], start: Any, given: Any, reverse: bool = False) -> tuple[Any, Any]:
    """``keras.ops.scan`` for steps in which carry and output are equal. It returns the last output and all outputs.

    ``keras.ops.scan`` does not give TensorFlow the number of steps. XLA needs this number to store the values for the
    gradient.
    """
    outputs = tf.scan(lambda carried, row: step(carried, row)[1], given, start, reverse=reverse)
    return tf.nest.map_structure(lambda one: one[0 if reverse else -1], outputs), outputs
