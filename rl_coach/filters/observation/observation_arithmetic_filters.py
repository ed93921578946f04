"""Filters that multiply, reshape or standardize observations, each observation separately."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.filters.observation.observation_filter import ObservationFilter, VectorizedFilter, similar_space
from rl_coach.filters.pure import PureFilter, stateless
from rl_coach.spaces import ObservationSpace, PlanarMapsObservationSpace
from rl_coach.utils import CoachError

_EPSILON = 1e-6
_KINDS = ("center", "standardize", "normalize")


class ScalingFilter(VectorizedFilter):
    """Multiplies each element with a number. The result is float32.

    :param factor: the number
    """

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        return np.asarray(observation, np.float32) * np.float32(self.factor)

    def pure(self, ops: Any) -> PureFilter:
        return stateless(lambda batch: ops.cast(batch, "float32") * self.factor)

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        ends = [self.filter(end) for end in (input_observation_space.low, input_observation_space.high)]
        return similar_space(input_observation_space, np.minimum(*ends), np.maximum(*ends))


class ReshapingFilter(ObservationFilter):
    """Reshapes observations. :param shape: the new shape, without the batch"""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.shape = shape

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        try:
            self.filter(input_observation_space.low)
        except ValueError:
            reason = f"the new shape {tuple(self.shape)} has another number of elements; choose another shape"
            raise self._refuse(input_observation_space, reason) from None

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        return np.reshape(observation, self.shape)

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> np.ndarray:
        return np.reshape(observations, (-1, *self.shape))

    def pure(self, ops: Any) -> PureFilter:
        return stateless(lambda batch: ops.reshape(batch, (-1, *self.shape)))

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        low, high = (self.filter(end) for end in (input_observation_space.low, input_observation_space.high))
        if len(self.shape) == 3:
            return PlanarMapsObservationSpace(np.array(self.shape), low, high)
        return similar_space(input_observation_space, low, high)


class StandardizingFilter(ObservationFilter):
    """Shifts and scales the elements of each observation, with numbers computed from this observation only.

    :param kind: ``center``: to the mean 0. ``standardize``: to the mean 0 and the standard deviation 1. ``normalize``:
        to the range from 0 to 1
    """

    def __init__(self, kind: str):
        super().__init__()
        if kind not in _KINDS:
            raise CoachError(f"StandardizingFilter: no kind {kind!r}; use {', '.join(map(repr, _KINDS))}")
        self.kind = kind

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        values = np.asarray(observation, np.float32)
        if self.kind == "normalize":
            return (values - values.min()) / (values.max() - values.min() + _EPSILON)
        centered = values - values.mean()
        return centered if self.kind == "center" else centered / (values.std() + _EPSILON)

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        shape = tuple(input_observation_space.shape)
        low, high = (0.0, 1.0) if self.kind == "normalize" else (-np.inf, np.inf)
        return similar_space(input_observation_space, np.full(shape, low), np.full(shape, high))
