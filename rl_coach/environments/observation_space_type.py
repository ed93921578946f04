"""The kinds of observations that a simulator's space may stand for."""

from enum import IntEnum


class ObservationSpaceType(IntEnum):
    """What to take observations for, where the simulator's space does not tell."""

    Tensor = 0
    Image = 1
    Vector = 2
