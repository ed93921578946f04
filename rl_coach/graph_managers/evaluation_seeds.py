"""Random streams of evaluations."""

from __future__ import annotations

import numpy as np

_EVALUATION = 0x6576616C  # apart from the numbers that a seed's own children get


def evaluation_seed(seed: int, training_steps: int, before: int = 0) -> np.random.SeedSequence:
    """The seed of the evaluation that is held after some steps of training. It depends on nothing else, so that holding
    one evaluation more or fewer changes no other.

    :param seed: the run's
    :param training_steps: environment steps of training so far
    :param before: evaluations that a run which does nothing else has held already
    """
    key = (_EVALUATION, training_steps, before) if before else (_EVALUATION, training_steps)
    return np.random.SeedSequence(seed, spawn_key=key)
