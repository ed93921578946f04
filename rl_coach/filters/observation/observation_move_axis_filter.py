"""A filter that moves an axis of the observations."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.filters.observation.observation_filter import ObservationFilter, similar_space
from rl_coach.spaces import ObservationSpace, PlanarMapsObservationSpace
from rl_coach.utils import CoachError


class ObservationMoveAxisFilter(ObservationFilter):
    """Moves one axis to another position (``numpy.moveaxis``). The other axes keep their order.

    If the filter would move the channels of images to the last axis, and they are already there, it has no effect. This
    is the usual case, because Coach's environments have the channels last.

    :param axis_origin: the axis to move; negative numbers count from the last axis
    :param axis_target: the new position of this axis
    """

    episode_attributes = ()

    def __init__(self, axis_origin: int | None = None, axis_target: int | None = None):
        super().__init__()
        if axis_origin is None or axis_target is None:
            raise CoachError("ObservationMoveAxisFilter needs axis_origin and axis_target")
        self.axis_origin = axis_origin
        self.axis_target = axis_target
        self._is_done = False

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        rank = input_observation_space.num_dimensions
        for axis in (self.axis_origin, self.axis_target):
            if not -rank <= axis < rank:
                raise self._refuse(input_observation_space, f"there is no axis {axis}; choose one from 0 to {rank - 1}")

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        return np.asarray(observation) if self._is_done else self._moved(np.asarray(observation))

    def _moved(self, array: np.ndarray) -> np.ndarray:
        return np.moveaxis(array, self.axis_origin, self.axis_target)

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> np.ndarray:
        if self._is_done:
            return np.asarray(observations)
        origin, target = (axis + 1 if axis >= 0 else axis for axis in (self.axis_origin, self.axis_target))
        return np.moveaxis(np.asarray(observations), origin, target)

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        space = input_observation_space
        channels_axis = None
        if isinstance(space, PlanarMapsObservationSpace):
            moves_to_last = (self.axis_origin % 3, self.axis_target % 3) == (0, 2)
            self._is_done = space.raw_channels_first and moves_to_last
            if self._is_done:
                return space
            order = [0, 1, 2]
            order.insert(self.axis_target % 3, order.pop(self.axis_origin % 3))
            channels_axis = order.index(space.channels_axis % 3)
        moved: Any = similar_space(space, self._moved(space.low), self._moved(space.high), channels_axis)
        moved.raw_channels_first = False  # the channels have moved
        return moved
