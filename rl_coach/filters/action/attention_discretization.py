"""A filter that turns a box of an image into a grid of smaller boxes."""

from __future__ import annotations

import itertools

import numpy as np

from rl_coach.filters.action.box_discretization import GridFilter
from rl_coach.spaces import ActionSpace, AttentionActionSpace, DiscreteActionSpace


class AttentionDiscretization(GridFilter):
    """Divides the space into a grid of cells. The agent chooses the number of a cell, and the environment gets the
    lowest and the highest corner of this cell. Numbers increase along the last dimension first.

    :param num_bins_per_dimension: number of cells along each dimension; a single number applies to all dimensions
    :param force_int_bins: True to cut off the fractions of the corners' coordinates
    """

    def validate_output_action_space(self, output_action_space: ActionSpace) -> None:
        self._require(output_action_space, AttentionActionSpace)
        self._require_bounded(output_action_space)
        self._bins_of(output_action_space)

    def get_unfiltered_action_space(self, output_action_space: ActionSpace) -> DiscreteActionSpace:
        bins = self._bins_of(output_action_space)
        edges = self._axes_of(output_action_space, [count + 1 for count in bins])
        cells = itertools.product(*(itertools.pairwise(axis) for axis in edges))
        self.target_actions = [np.array(cell).T for cell in cells]
        return super().get_unfiltered_action_space(output_action_space)
