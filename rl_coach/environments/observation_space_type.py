"""Kinds of observations that a simulator's space can mean."""

from enum import IntEnum


class ObservationSpaceType(IntEnum):
    """Kind of observations, for spaces from which it cannot be derived."""

    Tensor = 0
    Image = 1
    Vector = 2
