"""Kinds of observations that a simulator's space can mean."""

from enum import IntEnum


class ObservationSpaceType(IntEnum):
    """Kind of observations, for spaces that do not show it."""

    Tensor = 0
    Image = 1
    Vector = 2
