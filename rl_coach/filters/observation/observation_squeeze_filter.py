"""A filter that removes axes of length one."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.filters.observation.observation_filter import ObservationFilter, similar_space
from rl_coach.spaces import ObservationSpace


class ObservationSqueezeFilter(ObservationFilter):
    """Removes an axis of length one.

    :param axis: the axis; None removes all axes of length one
    """

    episode_attributes = ()

    def __init__(self, axis: int | None = None):
        super().__init__()
        self.axis = axis

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        if self.axis is None:
            return
        shape = input_observation_space.shape
        if not -len(shape) <= self.axis < len(shape):
            raise self._refuse(input_observation_space, f"there is no axis {self.axis}; choose another one")
        if shape[self.axis] != 1:
            raise self._refuse(
                input_observation_space,
                f"axis {self.axis} has {shape[self.axis]} elements; only an axis of one can be squeezed",
            )

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        return np.squeeze(np.asarray(observation), self.axis)

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> np.ndarray:
        observations = np.asarray(observations)
        if self.axis is None:
            axes = tuple(axis for axis in range(1, observations.ndim) if observations.shape[axis] == 1)
        else:
            axes = (self.axis + 1 if self.axis >= 0 else self.axis,)
        return np.squeeze(observations, axes)

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        low, high = self.filter(input_observation_space.low), self.filter(input_observation_space.high)
        return similar_space(input_observation_space, low, high)
