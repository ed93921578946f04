"""A filter that turns colour images into grey images."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.filters.observation.observation_filter import ObservationFilter, similar_space
from rl_coach.spaces import ObservationSpace, PlanarMapsObservationSpace

# Luma of red, green and blue as in ITU-R BT.601.
LUMA_WEIGHTS = np.array([0.299, 0.587, 0.114], dtype=np.float32)


class ObservationRGBToYFilter(ObservationFilter):
    """Computes the brightness of an RGB image: [H, W, 3] becomes [H, W].

    Bytes are rounded and stay bytes; other types become float32. An image [H, W] is already grey (for example from
    ALE's vector environment) and does not change.
    """

    episode_attributes = ()

    def __init__(self) -> None:
        super().__init__()
        self._channels_axis = -1

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        space = input_observation_space
        if space.num_dimensions != 3:
            raise self._refuse(space, "it is not an RGB image; use the filter on RGB images only")
        channels = int(space.shape[_channels_axis(space)])
        if channels != 3:
            raise self._refuse(space, f"it has {channels} channels, not 3; use the filter on RGB images only")

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        observation = np.asarray(observation)
        return observation if observation.ndim == 2 else self._brightness(observation)

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> np.ndarray:
        observations = np.asarray(observations)
        return observations if observations.ndim == 3 else self._brightness(observations)

    def _brightness(self, images: np.ndarray) -> np.ndarray:
        """The brightness [..., H, W] of RGB images. The position of the channels axis comes from the space."""
        if self._channels_axis != -1:
            images = np.moveaxis(images, self._channels_axis, -1)
        brightness = images.astype(np.float32) @ LUMA_WEIGHTS
        if images.dtype != np.uint8:
            return brightness
        brightness += 0.5
        return brightness.astype(np.uint8)

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        space, self._channels_axis = input_observation_space, _channels_axis(input_observation_space)
        return similar_space(
            space, space.low.min(axis=self._channels_axis), space.high.max(axis=self._channels_axis), channels_axis=-1
        )


def _channels_axis(space: ObservationSpace) -> int:
    """The axis of the channels, from -3 to -1; -1 if the space does not define it."""
    return space.channels_axis % 3 - 3 if isinstance(space, PlanarMapsObservationSpace) else -1
