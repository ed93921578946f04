"""A filter that converts observations to bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.filters.observation.observation_filter import VectorizedFilter, similar_space
from rl_coach.spaces import ObservationSpace
from rl_coach.utils import CoachError


class ObservationToUInt8Filter(VectorizedFilter):
    """Scales the range of the observation to the whole numbers from 0 to 255. Bytes need a quarter of the memory of
    floats.

    Fractions are cut off. Values outside the range are clipped. Bytes with the range 0 to 255 do not change.

    :param input_low: the value that becomes 0
    :param input_high: the value that becomes 255
    """

    def __init__(self, input_low: float, input_high: float):
        super().__init__()
        if input_high <= input_low:
            raise CoachError(f"ObservationToUInt8Filter: input_high {input_high} is not above input_low {input_low}")
        self.input_low = input_low
        self.input_high = input_high

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        low, high = input_observation_space.low, input_observation_space.high
        if np.all(low != self.input_low) or np.all(high != self.input_high):
            raise self._refuse(
                input_observation_space,
                f"its values range from {np.min(low)} to {np.max(high)}, not from {self.input_low} to "
                f"{self.input_high}; give the filter the range of the space",
            )

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        observation = np.asarray(observation)
        if observation.dtype == np.uint8 and self.input_low == 0 and self.input_high == 255:
            return observation
        # fractions are cut off: with another order or precision, a whole number could become slightly smaller and be
        # cut
        scaled = np.subtract(observation, self.input_low, dtype=np.result_type(observation, np.float32))
        scaled /= self.input_high - self.input_low
        scaled *= 255
        return np.minimum(np.maximum(scaled, 0), 255).astype(np.uint8)

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        zeros = np.zeros_like(input_observation_space.low, dtype=np.uint8)
        return similar_space(input_observation_space, zeros, zeros + np.uint8(255))
