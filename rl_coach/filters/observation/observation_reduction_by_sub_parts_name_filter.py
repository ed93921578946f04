"""A filter that keeps or removes measurements by name."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from rl_coach.filters.observation.observation_filter import VectorizedFilter
from rl_coach.spaces import ObservationSpace, VectorObservationSpace
from rl_coach.utils import CoachError, choose_from


class ObservationReductionBySubPartsNameFilter(VectorizedFilter):
    """Removes elements of a vector, by their names in the space's ``measurements_names``. The remaining elements keep
    their order.

    :param part_names: the names of elements
    :param reduction_method: ``Keep`` to keep only these elements, ``Discard`` to remove them
    """

    class ReductionMethod(Enum):
        """The treatment of the named elements: ``Keep`` or ``Discard``."""

        Keep = 0
        Discard = 1

    def __init__(self, part_names: list[str], reduction_method: ReductionMethod):
        super().__init__()
        if not isinstance(reduction_method, self.ReductionMethod):
            raise CoachError(
                f"ObservationReductionBySubPartsNameFilter: '{reduction_method}' is not a ReductionMethod "
                "(ReductionMethod.Keep or ReductionMethod.Discard)"
            )
        self.part_names = list(part_names)
        self.reduction_method = reduction_method
        self.indices_to_keep: np.ndarray | None = None

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        space = input_observation_space
        if not isinstance(space, VectorObservationSpace):
            raise self._refuse(space, "it is not a vector; use the filter on a VectorObservationSpace")
        for name in self.part_names:
            if name not in space.measurements_names:
                suggestion = choose_from(name, space.measurements_names)
                raise self._refuse(space, f"it has no measurement '{name}'{suggestion}")

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        if self.indices_to_keep is None:
            raise CoachError(
                "ObservationReductionBySubPartsNameFilter does not know the names of the elements yet; call "
                "get_filtered_observation_space before filtering"
            )
        return np.asarray(observation)[..., self.indices_to_keep]

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        space = input_observation_space
        self.validate_input_observation_space(space)
        names: list[str] = space.measurements_names  # type: ignore[attr-defined]
        named = [index for index, name in enumerate(names) if name in self.part_names]
        if self.reduction_method == self.ReductionMethod.Keep:
            self.indices_to_keep = np.asarray(named, dtype=int)
        else:
            self.indices_to_keep = np.setdiff1d(np.arange(space.num_elements), named)
        kept_names = [names[index] for index in self.indices_to_keep if index < len(names)]
        low, high = space.low[self.indices_to_keep], space.high[self.indices_to_keep]
        return VectorObservationSpace(len(self.indices_to_keep), low, high, kept_names)
