"""A filter that clips observations."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.filters.observation.observation_filter import VectorizedFilter, similar_space
from rl_coach.filters.pure import PureFilter, stateless
from rl_coach.spaces import ObservationSpace
from rl_coach.utils import CoachError


class ObservationClippingFilter(VectorizedFilter):
    """Clips the elements of observations to bounds.

    :param clipping_low: the lowest value; minus infinity for no limit
    :param clipping_high: the highest value; infinity for no limit
    """

    def __init__(self, clipping_low: float = -np.inf, clipping_high: float = np.inf):
        super().__init__()
        if clipping_low > clipping_high:
            raise CoachError(
                f"ObservationClippingFilter: clipping_low {clipping_low} is above clipping_high {clipping_high}"
            )
        self.clipping_low = float(clipping_low)
        self.clipping_high = float(clipping_high)

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        observation = np.asarray(observation)
        clipped = np.minimum(np.maximum(observation, self.clipping_low), self.clipping_high)
        return clipped.astype(observation.dtype, copy=False)

    def pure(self, ops: Any) -> PureFilter:
        return stateless(lambda batch: ops.cast(ops.clip(batch, self.clipping_low, self.clipping_high), batch.dtype))

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        low, high = self.filter(input_observation_space.low), self.filter(input_observation_space.high)
        return similar_space(input_observation_space, low, high)
