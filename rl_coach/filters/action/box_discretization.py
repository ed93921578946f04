"""A filter that turns a box of continuous actions into a grid of discrete actions."""

from __future__ import annotations

import math
from typing import Any, Sequence, Union

import numpy as np

from rl_coach.filters.action.partial_discrete_action_space_map import PartialDiscreteActionSpaceMap
from rl_coach.spaces import ActionSpace, BoxActionSpace, DiscreteActionSpace
from rl_coach.utils import CoachError

MOST_ACTIONS = 10_000_000


class GridFilter(PartialDiscreteActionSpaceMap):
    """Base class of filters that divide a space of vectors by a grid.

    :param num_bins_per_dimension: number of bins in each dimension; a single number applies to all dimensions
    :param force_int_bins: True to cut off the fractions of the coordinates
    """

    def __init__(self, num_bins_per_dimension: Union[int, Sequence[int]], force_int_bins: bool = False):
        super().__init__()
        self.num_bins_per_dimension = num_bins_per_dimension
        self.force_int_bins = force_int_bins

    def _bins_of(self, space: ActionSpace) -> list[int]:
        """The number of bins in each dimension of a space."""
        if len(space.shape) != 1:
            raise CoachError(f"only spaces of vectors can be discretized, not {space}: use actions of the shape (D,)")
        size, given = int(space.shape[0]), self.num_bins_per_dimension
        bins = [int(count) for count in ([given] * size if isinstance(given, (int, np.integer)) else given)]
        if len(bins) != size:
            raise CoachError(f"num_bins_per_dimension {bins} does not fit the {size} dimensions of {space}")
        if min(bins) < 1:
            raise CoachError(f"num_bins_per_dimension {bins} has a number below 1; a dimension needs at least one bin")
        return bins

    def _axes_of(self, space: ActionSpace, bins: Sequence[int]) -> list[np.ndarray]:
        """The coordinates of the grid along each dimension. They include the bounds of the space."""
        axes = [np.linspace(low, high, count) for low, high, count in zip(space.low, space.high, bins)]
        return [axis.astype(int) for axis in axes] if self.force_int_bins else axes


class BoxDiscretization(GridFilter):
    """Lays a grid of points over the box, including its corners. The agent chooses the number of a point, and the
    environment gets the point. Numbers increase along the last dimension first.

    :param num_bins_per_dimension: number of grid points in each dimension; a single number applies to all dimensions
    :param force_int_bins: True to cut off the fractions of the points' coordinates (0, 2.5, 5 becomes 0, 2, 5)
    :ivar target_actions: the points, a list of lists of numbers
    """

    def validate_output_action_space(self, output_action_space: ActionSpace) -> None:
        self._require(output_action_space, BoxActionSpace)
        self._require_bounded(output_action_space)
        bins = self._bins_of(output_action_space)
        num_actions = math.prod(bins)
        if num_actions > MOST_ACTIONS:
            raise CoachError(
                f"BoxDiscretization would make {num_actions} actions of {output_action_space}, more than "
                f"{MOST_ACTIONS}; choose fewer bins"
            )

    def get_unfiltered_action_space(self, output_action_space: ActionSpace) -> DiscreteActionSpace:
        axes = self._axes_of(output_action_space, self._bins_of(output_action_space))
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        self.target_actions = points.tolist()
        return super().get_unfiltered_action_space(output_action_space)

    def filter(self, action: Any) -> list[float]:
        """Return the coordinates of a grid point, as a new list."""
        return list(super().filter(action))
