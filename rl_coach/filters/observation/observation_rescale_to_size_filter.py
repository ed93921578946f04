"""A filter that resizes images to a given size."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.filters.observation.observation_filter import ObservationFilter, similar_space
from rl_coach.filters.observation.resizing import Resizer
from rl_coach.spaces import ObservationSpace, PlanarMapsObservationSpace, check_size


class RescalingFilter(ObservationFilter):
    """Base class of filters that resize images [H, W] or [H, W, C] of any size. The channels may also be on another
    axis.
    """

    episode_attributes = ()

    def __init__(self) -> None:
        super().__init__()
        self._channels_axis = -1
        self._resizer: Resizer | None = None

    def _size_out(self, size_in: tuple[int, int]) -> tuple[int, int]:
        """The new (height, width) of an image with the size ``size_in``."""
        raise NotImplementedError

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        observation = np.asarray(observation)
        return self._resize(observation, has_channels=observation.ndim == 3)

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> np.ndarray:
        observations = np.asarray(observations)
        return self._resize(observations, has_channels=observations.ndim == 4)

    def _resize(self, images: np.ndarray, has_channels: bool) -> np.ndarray:
        if not has_channels:
            return self._resizer_for(images.shape[-2:]).resize(images)
        if self._channels_axis == -1:
            return self._resizer_for(images.shape[-3:-1]).resize_channels_last(images)
        planes = np.moveaxis(images, self._channels_axis, -3)
        return np.moveaxis(self._resizer_for(planes.shape[-2:]).resize(planes), -3, self._channels_axis)

    def _resizer_for(self, size_in: tuple[int, ...]) -> Resizer:
        if self._resizer is None or self._resizer.size_in != size_in:
            height, width = size_in
            self._resizer = Resizer((height, width), self._size_out((height, width)))
        return self._resizer

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        """Compute the space of resized images. All pixels have the same bounds: the lowest and the highest bound of the
        input space.
        """
        space = input_observation_space
        shape = [int(length) for length in space.shape]
        if isinstance(space, PlanarMapsObservationSpace):
            self._channels_axis = space.channels_axis % 3 - 3
        planar = [axis for axis in range(len(shape)) if len(shape) == 2 or axis != self._channels_axis % 3]
        height, width = self._size_out((shape[planar[0]], shape[planar[1]]))
        shape[planar[0]], shape[planar[1]] = height, width
        check_size(shape)
        return similar_space(space, np.full(shape, np.min(space.low)), np.full(shape, np.max(space.high)))


class ObservationRescaleToSizeFilter(RescalingFilter):
    """Resizes images to a given size. To shrink, it averages over areas. To enlarge, it interpolates linearly.

    :param output_observation_space: the space with the new size and the same number of channels as the images
    """

    def __init__(self, output_observation_space: PlanarMapsObservationSpace):
        super().__init__()
        self.output_observation_space = output_observation_space
        if not isinstance(output_observation_space, PlanarMapsObservationSpace):
            raise self._refuse(output_observation_space, "output_observation_space must be the space of an image")
        size = output_observation_space.shape
        if output_observation_space.num_dimensions == 3:
            size = np.delete(size, output_observation_space.channels_axis)
        self._output_size = (int(size[0]), int(size[1]))

    def _size_out(self, size_in: tuple[int, int]) -> tuple[int, int]:
        return self._output_size

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        space, channels = input_observation_space, self.output_observation_space.channels
        if not isinstance(space, PlanarMapsObservationSpace):
            raise self._refuse(space, "it is not an image; use the filter on images or other planar maps only")
        if space.channels != channels:
            raise self._refuse(
                space,
                f"it has {space.channels} channels, but output_observation_space has {channels}; use equal numbers",
            )
