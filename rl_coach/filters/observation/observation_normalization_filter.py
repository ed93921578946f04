"""A filter that normalises observations with the running statistics of all observations so far."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.filters.observation.observation_filter import ObservationFilter, similar_space
from rl_coach.filters.pure import PureFilter
from rl_coach.spaces import ObservationSpace
from rl_coach.utilities.plain_data import State
from rl_coach.utilities.shared_running_stats import NumpySharedRunningStats

_DIGIT = 1 << 30
MARGIN = 1e-3


class ObservationNormalizationFilter(ObservationFilter):
    """Subtracts the running mean of each element and divides by its running standard deviation.

    The statistics are updated with an observation before it is normalised. The result is float32.

    :param clip_min: the lowest normalised value, in standard deviations
    :param clip_max: the highest normalised value
    :param name: the name of the statistics
    """

    episode_attributes = ()

    def __init__(self, clip_min: float = -5.0, clip_max: float = 5.0, name: str = "observation_stats"):
        super().__init__(name)
        self.clip_min = clip_min
        self.clip_max = clip_max
        self.running_observation_stats = NumpySharedRunningStats(name)
        self._shape_is_known = False

    def set_device(self, device: Any, memory_backend_params: Any = None, mode: str = "numpy") -> None:
        self.running_observation_stats.pubsub_params = memory_backend_params

    def filter(self, observations: Any, update_internal_state: bool = True) -> np.ndarray:
        """Normalise one observation, or a batch of observations with one more dimension at the front."""
        observations = np.asarray(observations)
        if not self._shape_is_known:
            self._set_shape(observations.shape)
        if update_internal_state:
            self.running_observation_stats.push(observations)
        return self.running_observation_stats.normalize(observations)

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> np.ndarray:
        """Normalise a batch of observations. All of them are added to the statistics before the first is normalised."""
        observations = np.asarray(observations)
        if not self._shape_is_known:
            self._set_shape(observations.shape[1:])
        return self.filter(observations, update_internal_state)

    def normalize_as_data_set(self) -> None:
        """From now on, divide by the standard deviation plus 0.001, also if the standard deviation is very small. Use
        this method if the statistics come from a whole data set and are therefore exact from the first observation on.
        """
        self.running_observation_stats.margin = MARGIN

    def pure(self, ops: Any) -> PureFilter:
        """The filter as pure functions. The statistics have 32 bits, because compiled loops compute in 32 bits.

        The count is stored as two digits of 30 bits, because a single number of 32 bits would overflow after 2^31 rows.
        The variance is stored instead of the sum of squared deviations: a change that is too small for 32 bits then
        leaves the variance unchanged.
        """
        statistics = self.running_observation_stats

        def state() -> dict[str, Any]:
            known = statistics.get_state()
            high, low = divmod(int(known["count"]), _DIGIT)
            return {
                "count": np.array([low, high], np.int32),
                "mean": known["mean"].astype(np.float32),
                "variance": (known["squared_deviations"] / max(int(known["count"]), 1)).astype(np.float32),
            }

        def number(count: Any) -> Any:
            digits = ops.cast(count, "float32")
            return digits[1] * float(_DIGIT) + digits[0]

        def update(state: dict[str, Any], batch: Any) -> dict[str, Any]:
            """Add a batch to the statistics; see ``SharedRunningStats.push``."""
            mean, size = ops.mean(batch, axis=0), batch.shape[0]
            share = size / (number(state["count"]) + size)
            difference = mean - state["mean"]
            gained = ops.mean(ops.square(batch - mean), axis=0) - state["variance"]
            variance = state["variance"] + share * (gained + (1 - share) * ops.square(difference))
            low = state["count"][0] + size
            carried = low // _DIGIT
            count = ops.stack([low - carried * _DIGIT, state["count"][1] + carried])
            return {"count": count, "mean": state["mean"] + difference * share, "variance": variance}

        def apply(state: dict[str, Any], batch: Any) -> Any:
            """Normalise a batch; see ``SharedRunningStats.normalize``."""
            variance = ops.maximum(state["variance"], statistics.epsilon)
            variance = ops.where(number(state["count"]) > 0, variance, 1.0)
            deviation = ops.sqrt(variance)
            if statistics.margin:
                deviation = ops.sqrt(state["variance"]) + statistics.margin
            return ops.clip((batch - state["mean"]) / deviation, self.clip_min, self.clip_max)

        def take(state: dict[str, Any]) -> None:
            low, high = np.asarray(state["count"]).tolist()
            count = high * _DIGIT + low
            mean, variance = (np.asarray(state[name], np.float64) for name in ("mean", "variance"))
            moments = {"count": count, "mean": mean, "squared_deviations": variance * count}
            self.set_state({**moments, "margin": statistics.margin})

        return PureFilter(state, update, apply, take)

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
