"""A filter that crops observations."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from rl_coach.filters.observation.observation_filter import ObservationFilter, similar_space
from rl_coach.spaces import ObservationSpace
from rl_coach.utils import CoachError


class ObservationCropFilter(ObservationFilter):
    """Crops observations: in each dimension, keeps the indices from ``crop_low`` up to, not including, ``crop_high``.

    :param crop_low: an int for each dimension; None for 0 in all dimensions
    :param crop_high: an int for each dimension; -1 for the end of the dimension, None for the end of all dimensions
    """

    episode_attributes = ()

    def __init__(self, crop_low: np.ndarray | None = None, crop_high: np.ndarray | None = None):
        super().__init__()
        if crop_low is None and crop_high is None:
            raise CoachError("ObservationCropFilter needs crop_low, crop_high or both")
        self.crop_low = np.zeros_like(crop_high) if crop_low is None else np.asarray(crop_low)
        self.crop_high = np.full_like(self.crop_low, -1) if crop_high is None else np.asarray(crop_high)
        self._check_limits()
        self._box = tuple(
            slice(int(low), None if high == -1 else int(high)) for low, high in zip(self.crop_low, self.crop_high)
        )

    def _check_limits(self) -> None:
        low, high = self.crop_low, self.crop_high
        if low.shape != high.shape or low.ndim != 1:
            raise CoachError(
                f"ObservationCropFilter: crop_low {low} and crop_high {high} must be lists of equal length"
            )
        if not (np.issubdtype(low.dtype, np.integer) and np.issubdtype(high.dtype, np.integer)):
            raise CoachError(f"ObservationCropFilter: the limits must be ints, not {low.dtype} and {high.dtype}")
        if np.any(low < 0) or np.any(high < -1) or np.any((high <= low) & (high != -1)):
            raise CoachError(
                f"ObservationCropFilter: crop_low is {low.tolist()} and crop_high is {high.tolist()}; "
                "low must be at least 0, and high above low, or -1 for the end"
            )

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        shape = input_observation_space.shape
        if len(shape) != len(self._box):
            raise self._refuse(
                input_observation_space, f"the filter crops {len(self._box)} dimensions; give a limit for each"
            )
        if np.any(self.crop_low >= shape) or np.any(self.crop_high > shape):
            limits = f"{self.crop_low.tolist()} to {self.crop_high.tolist()}"
            raise self._refuse(
                input_observation_space,
                f"{limits} is outside of the observation; choose smaller limits",
            )

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        return np.asarray(observation)[self._box]

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> np.ndarray:
        rows_and_box = (slice(None), *self._box)
        return np.asarray(observations)[rows_and_box]

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        space = input_observation_space
        names: Sequence[str] | None = getattr(space, "measurements_names", None)
        kept = None if names is None else names[self._box[0]]
        return similar_space(space, space.low[self._box], space.high[self._box], measurements_names=kept)
