"""Calls of compiled functions without the Python that TensorFlow wraps around each of them.

A call of a compiled update of a 64 x 64 Q-network takes some 90 us of a processor, of which XLA computes 40. Through
``ConcreteFunction.__call__`` it takes 260 more, and a new tensor for the batch at each call another 80.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from rl_coach.architectures.compilation_cache import forget_compiled_steps
from rl_coach.base_parameters import Frameworks
from rl_coach.utils import CoachError

ALIGNMENT = 64  # bytes; TensorFlow copies memory that starts elsewhere


class DirectCall:
    """A traced function of tensors, handed to the runtime at once; nothing records gradients of it.

    :param function: stays alive as long as this object
    """

    def __init__(self, function: Any):
        self._function = function
        self._name = function.inference_fn.name
        self._captured = list(function.captured_inputs)
        self._num_outputs = len(function.outputs)
        self._context = context.context()

    def __call__(self, arguments: list[tf.Tensor]) -> list[tf.Tensor]:
        """The outputs, flat.

        :param arguments: eager tensors that fit the function's signature
        :raises CoachError: what an earlier run compiled was damaged since, for example by a full disk
        """
        try:
            return self._context.call_function(self._name, arguments + self._captured, self._num_outputs)
        except (tf.errors.OutOfRangeError, tf.errors.DataLossError) as error:
            if not forget_compiled_steps(Frameworks.tensorflow):
                raise
            # TensorFlow does not compile this function in this process again
            raise CoachError(
                "a compiled step that an earlier run kept was damaged; all that were kept are deleted now: start again"
            ) from error


class HeldTensor:
    """A tensor that reads the memory of ``array``; write there between calls.

    :param size: of the float32 vector
    """

    def __init__(self, size: int):
        room = np.empty(size * 4 + ALIGNMENT, np.uint8)
        start = -room.ctypes.data % ALIGNMENT
        self.array = room[start : start + size * 4].view(np.float32)
        self.tensor = tf.experimental.dlpack.from_dlpack(self.array.__dlpack__())
