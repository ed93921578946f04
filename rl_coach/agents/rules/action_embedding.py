"""Discrete actions as points, and the search for the actions nearest to a point."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.architectures.policies import allows
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utils import CoachError


class ActionEmbedding:
    """Represents each discrete action as a point with coordinates between -1 and 1.

    :param points: [actions, width]
    :ivar points: [actions, width] float32
    """

    def __init__(self, points: np.ndarray):
        self.points = np.asarray(points, np.float32)
        self._order = np.argsort(self.points[:, 0], kind="stable")
        self._sorted = self.points[self._order, 0]

    def nearest(self, point: np.ndarray, k: int, mask: np.ndarray | None = None) -> np.ndarray:
        """The numbers [k] of the actions nearest to ``point`` [width], nearest first. The search is exact. If a mask
        allows fewer than k actions, the result has fewer numbers.

        :param mask: [actions] of 0 and 1: the allowed actions; None allows all
        """
        if mask is not None:
            numbers = np.flatnonzero(allows(np, mask))
        elif self.points.shape[1] == 1:
            place = int(np.searchsorted(self._sorted, float(point[0])))
            numbers = self._order[max(0, place - k) : place + k]
        else:
            numbers = np.arange(len(self.points))
        distances = np.square(self.points[numbers] - point).sum(axis=1)
        few = np.argpartition(distances, k - 1)[:k] if k < len(distances) else np.arange(len(distances))
        return numbers[few[np.argsort(distances[few], kind="stable")]]

    def nearest_to_each(self, points: np.ndarray, k: int, masks: np.ndarray | None = None) -> np.ndarray:
        """The points [B, k, width] of the actions nearest to each of ``points`` [B, width], nearest first. If a mask
        allows fewer than k actions, the allowed actions repeat.

        :param masks: [B, actions], as in ``nearest``; None allows all
        """
        each: Any = [None] * len(points) if masks is None else masks
        return np.stack([self.points[np.resize(self.nearest(one, k, mask), k)] for one, mask in zip(points, each)])


def embedding_of(space: DiscreteActionSpace, targets: np.ndarray | None, width: int) -> ActionEmbedding:
    """The embedding of discrete actions. If the actions stand for points of the environment's box, the embedding uses
    these points; otherwise it uses the numbers of the actions.

    :param targets: [actions, dimensions], the points that the actions stand for; None if they stand for no points
    :param width: number of coordinates wanted
    :raises CoachError: if the points have a different number of coordinates
    """
    coordinates = np.arange(space.num_actions)[:, None] if targets is None else np.asarray(targets, np.float64)
    coordinates = coordinates.reshape(space.num_actions, -1)
    if coordinates.shape[1] != width:
        raise CoachError(
            f"action_embedding_width is {width}, and the actions have {coordinates.shape[1]} coordinates: "
            f"set it to {coordinates.shape[1]}"
        )
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    return ActionEmbedding(2 * (coordinates - low) / np.maximum(high - low, 1e-12) - 1)
