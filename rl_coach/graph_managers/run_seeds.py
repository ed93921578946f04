"""The random streams of a run. All of them follow from one seed."""

from __future__ import annotations

import contextlib
import random
from typing import Any, Iterator

import numpy as np

_EVALUATION = 0x6576616C  # a key that the seed's own children, counted from 0, never get


def evaluation_seed(seed: int, training_steps: int, before: int = 0) -> np.random.SeedSequence:
    """The seed of an evaluation. It depends only on the arguments, so an additional evaluation does not change the
    other evaluations.

    :param seed: the run's seed
    :param training_steps: environment steps of training so far
    :param before: number of evaluations before at the same ``training_steps``
    """
    key = (_EVALUATION, training_steps, before) if before else (_EVALUATION, training_steps)
    return np.random.SeedSequence(seed, spawn_key=key)


@contextlib.contextmanager
def kept_global_generators() -> Iterator[None]:
    """Restore Python's and NumPy's global generators at the end, for programs that draw from them."""
    for_python, for_numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(for_python)
        np.random.set_state(for_numpy)


class RunSeeds:
    """Gives each component of a run its own seed, and seeds Python's and NumPy's global generators for the user's
    code. The same run asks in the same order, so it gets the same seeds.

    :param seed: the run's seed; None draws one
    """

    def __init__(self, seed: int | None = None):
        self.seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        self._sequence = np.random.SeedSequence(self.seed)
        self._global_seeds = self._sequence.spawn(2)

    def spawn(self) -> np.random.SeedSequence:
        """The seed of one more component."""
        return self._sequence.spawn(1)[0]

    def seed_global_generators(self, number: int) -> None:
        """Seed the global generators. Called before the levels are built and again afterwards, because libraries draw
        random numbers while they load.

        :param number: 0 before, 1 after
        """
        for_python, for_numpy = (int(seed.generate_state(2)[number]) for seed in self._global_seeds)
        random.seed(for_python)
        np.random.seed(for_numpy)

    def get_state(self) -> dict[str, Any]:
        """The seed, and the states of the global generators."""
        version, internal, gauss_next = random.getstate()
        return {
            "seed": self.seed,
            "python_random": [version, list(internal), gauss_next],
            "numpy_random": np.random.get_state(legacy=False),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned."""
        self.seed = state["seed"]
        version, internal, gauss_next = state["python_random"]
        random.setstate((version, tuple(internal), gauss_next))
        np.random.set_state(state["numpy_random"])
