"""Functions that networks written for Coach 1's TensorFlow components import."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rl_coach.architectures.layers import ACTIVATIONS
from rl_coach.utils import CoachError, choose_from


def get_activation_function(activation_function_string: str) -> Any:
    """The TensorFlow activation function with the given name; None for ``'none'``.

    :raises CoachError: if the function is unknown
    """
    if activation_function_string == "none":
        return None
    if activation_function_string not in ACTIVATIONS:
        suggestion = choose_from(activation_function_string, [*ACTIVATIONS, "none"])
        raise CoachError(f"no activation function '{activation_function_string}'{suggestion}")
    return getattr(tf.nn, activation_function_string)
