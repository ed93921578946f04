"""A filter that turns a box of an image into a grid of smaller boxes."""

from __future__ import annotations

import itertools
from typing import Sequence, Union

import numpy as np

from rl_coach.filters.action.box_discretization import bins_of_each_dimension, grid_axes
from rl_coach.filters.action.partial_discrete_action_space_map import PartialDiscreteActionSpaceMap
from rl_coach.spaces import ActionSpace, AttentionActionSpace, DiscreteActionSpace


class AttentionDiscretization(PartialDiscreteActionSpaceMap):
    """Divides the space into a grid of cells. The agent chooses the number of a cell, and the environment gets the
    lowest and the highest corner of this cell. Numbers increase along the last dimension first.

    :param num_bins_per_dimension: number of cells along each dimension; a single number applies to all dimensions
    :param force_int_bins: True to cut off the fractions of the corners' coordinates
    """

    def __init__(self, num_bins_per_dimension: Union[int, Sequence[int]], force_int_bins: bool = False):
        super().__init__()
        self.num_bins_per_dimension = num_bins_per_dimension
        self.force_int_bins = force_int_bins

    def validate_output_action_space(self, output_action_space: ActionSpace) -> None:
        self._require(output_action_space, AttentionActionSpace)
        self._require_bounded(output_action_space)
        bins_of_each_dimension(self.num_bins_per_dimension, output_action_space)

    def get_unfiltered_action_space(self, output_action_space: ActionSpace) -> DiscreteActionSpace:
        bins = bins_of_each_dimension(self.num_bins_per_dimension, output_action_space)
        edges = grid_axes(output_action_space, [count + 1 for count in bins], self.force_int_bins)
        cells = itertools.product(*(itertools.pairwise(axis) for axis in edges))
        self.target_actions = [np.array(cell).T for cell in cells]
        return super().get_unfiltered_action_space(output_action_space)
