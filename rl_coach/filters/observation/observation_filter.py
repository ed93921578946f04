"""The base of all filters of observations."""

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
    """Changes one observation of the state.

    :ivar supports_batching: ``filter`` accepts a list of observations and returns a list, as some filters written for
        Coach 1.0.1 do
    """

    supports_batching = False

    def filter(self, observation: Any, update_internal_state: bool = True) -> Any:
        """Changed copy of a single observation; the given observation is not changed."""
        raise NotImplementedError(f"{type(self).__name__} does not filter")

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> Any:
        """[B, ...] filtered observations: the results of ``filter`` for each of them."""
        if self.supports_batching:
            return self.filter(list(observations), update_internal_state)
        return np.asarray([self.filter(observation, update_internal_state) for observation in observations])

    def pure(self, ops: Any) -> PureFilter | None:
        """The filter as pure functions, for a loop that is compiled as a whole; None if the filter has no pure form.

        :param ops: array operations with the names of ``keras.ops``
        """
        return None

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        """Check that the filter supports the observations of a space.

        :raises CoachError: if the filter does not support them
        """

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        """The space of the changed observations. A filter that has to know its input learns it here."""
        return input_observation_space

    def _refuse(self, space: Any, reason: str) -> CoachError:
        """The error that says why a space cannot be handled; ``reason`` ends with what to do."""
        return CoachError(f"{type(self).__name__} cannot handle {space}: {reason}")


def similar_space(
    space: ObservationSpace,
    low: np.ndarray,
    high: np.ndarray,
    channels_axis: int | None = None,
    measurements_names: Sequence[str] | None = None,
) -> ObservationSpace:
    """A space with new bounds and possibly another shape, of the same kind as ``space`` if its rank allows it.

    :param low: an array of the new shape
    :param high: an array of the new shape
    :param channels_axis: the new axis of the channels, for planar maps; None keeps their axis
    :param measurements_names: the elements' names; None keeps the names of ``space`` if the number of elements is the
        same
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
        maps.raw_channels_first = space.raw_channels_first  # for filters that would move the channels once more
        return maps
    return TensorObservationSpace(shape, low, high)
