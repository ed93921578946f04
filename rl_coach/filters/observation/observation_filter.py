"""The base class of all filters of observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from rl_coach.filters.base_filter import Filter
from rl_coach.spaces import (
    ImageObservationSpace,
    ObservationSpace,
    PlanarMapsObservationSpace,
    TensorObservationSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.filters.pure import PureFilter


class ObservationFilter(Filter):
    """Base class of filters of observations. A filter changes one observation of the state.

    :ivar supports_batching: True if ``filter`` expects a list of observations and returns a list. Some filters written
        for Coach 1.0.1 do this
    """

    supports_batching = False

    def filter(self, observation: Any, update_internal_state: bool = True) -> Any:
        """Return a filtered copy of one observation. The given observation does not change."""
        raise NotImplementedError(f"{type(self).__name__} does not define filter")

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> Any:
        """Filter each observation of a batch [B, ...]."""
        if self.supports_batching:
            return self.filter(list(observations), update_internal_state)
        return np.asarray([self.filter(observation, update_internal_state) for observation in observations])

    def pure(self, ops: Any) -> PureFilter | None:
        """Return the filter as pure functions for a compiled loop; None if the filter has no pure form.

        :param ops: array operations with the names of ``keras.ops``
        """
        return None

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        """Check that the filter supports the observations of a space.

        :raises CoachError: if the filter does not support these observations
        """

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        """Compute the space of the filtered observations. A filter can also store properties of the input space
        here.
        """
        return input_observation_space

    def _refuse(self, space: Any, reason: str) -> CoachError:
        """Make the error for a space that the filter does not support. :param reason: the reason, and what to do"""
        return CoachError(f"{type(self).__name__} does not support {space}: {reason}")


class VectorizedFilter(ObservationFilter):
    """Base class of filters without a state. Their ``filter`` also filters a batch [B, ...]."""

    episode_attributes = ()

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> np.ndarray:
        return self.filter(observations)


def similar_space(
    space: ObservationSpace,
    low: np.ndarray,
    high: np.ndarray,
    channels_axis: int | None = None,
    measurements_names: Sequence[str] | None = None,
) -> ObservationSpace:
    """Make a space with new bounds, and possibly another shape. If the number of dimensions allows, it has the class of
    ``space``.

    :param low: an array of the new shape
    :param high: an array of the new shape
    :param channels_axis: the new axis of the channels, for planar maps; None for the old axis
    :param measurements_names: the names of the elements; None keeps the names of ``space`` if the number of elements is
        the same
    """
    shape = np.shape(low)
    if len(shape) == 1:
        if measurements_names is None and tuple(space.shape) == shape:
            measurements_names = getattr(space, "measurements_names", None)
        names = None if measurements_names is None else list(measurements_names)
        return VectorObservationSpace(shape[0], low, high, names)
    if len(shape) in (2, 3) and isinstance(space, PlanarMapsObservationSpace):
        axis = space.channels_axis if channels_axis is None else channels_axis
        maps = PlanarMapsObservationSpace(shape, low, high, axis)
        if (
            isinstance(space, ImageObservationSpace)
            and maps.channels in ImageObservationSpace.CHANNELS
            and not np.any(low)
        ):
            maps = ImageObservationSpace(shape, high, axis)
        # stored for later filters, which must not move the channels again
        maps.raw_channels_first = space.raw_channels_first
        return maps
    return TensorObservationSpace(shape, low, high)
