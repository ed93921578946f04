"""Filter that normalises observations with the running statistics of all observations so far."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.filters.observation.observation_filter import ObservationFilter, similar_space
from rl_coach.spaces import ObservationSpace
from rl_coach.utilities.plain_data import State
from rl_coach.utilities.shared_running_stats import NumpySharedRunningStats


class ObservationNormalizationFilter(ObservationFilter):
    """Subtracts the running mean of each element and divides by its running standard deviation.

    An observation counts before it is normalised itself. The result is float32.

    :param clip_min: the lowest value that comes out, in standard deviations
    :param clip_max: the highest value that comes out
    :param name: the name of the statistics
    """

    def __init__(self, clip_min: float = -5.0, clip_max: float = 5.0, name: str = "observation_stats"):
        super().__init__(name)
        self.clip_min = clip_min
        self.clip_max = clip_max
        self.running_observation_stats = NumpySharedRunningStats(name)
        self._shape_is_known = False

    def set_device(self, device: Any, memory_backend_params: Any = None, mode: str = "numpy") -> None:
        self.running_observation_stats.pubsub_params = memory_backend_params

    def filter(self, observations: Any, update_internal_state: bool = True) -> np.ndarray:
        """Normalise one observation, or a batch of them if there is a leading dimension more."""
        observations = np.asarray(observations)
        if not self._shape_is_known:
            self._set_shape(observations.shape)
        if update_internal_state:
            self.running_observation_stats.push(observations)
        return self.running_observation_stats.normalize(observations)

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> np.ndarray:
        """All observations count before the first of them is normalised."""
        observations = np.asarray(observations)
        if not self._shape_is_known:
            self._set_shape(observations.shape[1:])
        return self.filter(observations, update_internal_state)

    def _set_shape(self, shape: tuple[int, ...]) -> None:
        self.running_observation_stats.set_params(shape, (self.clip_min, self.clip_max))
        self._shape_is_known = True

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        shape = tuple(int(length) for length in input_observation_space.shape)
        if not self._shape_is_known or self.running_observation_stats.shape != shape:
            self._set_shape(shape)
        return similar_space(input_observation_space, np.full(shape, self.clip_min), np.full(shape, self.clip_max))

    def take_gathered(self) -> State:
        return self.running_observation_stats.take_gathered()

    def merge_gathered(self, gathered: State) -> None:
        self.running_observation_stats.merge(gathered)

    def get_state(self) -> State:
        return self.running_observation_stats.get_state()

    def set_state(self, state: State) -> None:
        if not self._shape_is_known and "mean" in state:
            self._set_shape(np.shape(state["mean"]))
        self.running_observation_stats.set_state(state)
