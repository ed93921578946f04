"""``keras.ops`` on TensorFlow, with a ``scan`` that XLA can differentiate."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf
from keras.ops import *  # noqa: F403


def scan(step: Callable[[Any, Any], tuple[Any, Any]], start: Any, given: Any, reverse: bool = False) -> tuple[Any, Any]:
    """``keras.ops.scan`` for a step whose output is what it carries: its last output, and all of them.

    Keras leaves out the number of steps, and XLA needs it to store what the gradient reads.
    """
    outputs = tf.scan(lambda carried, row: step(carried, row)[1], given, start, reverse=reverse)
    return tf.nest.map_structure(lambda one: one[0 if reverse else -1], outputs), outputs
