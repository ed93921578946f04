"""Kinds of observations."""

from enum import IntEnum


class ObservationSpaceType(IntEnum):
    """Kind of observations, if shape and dtype of their space do not show it."""

    Tensor = 0
    Image = 1
    Vector = 2
