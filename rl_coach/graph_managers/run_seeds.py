"""The seeds of a run's components. All seeds are computed from the seed of the run."""

from __future__ import annotations

import contextlib
import random
from typing import Any, Iterator

import numpy as np

_EVALUATION = 0x6576616C  # a large key, because components get the keys 0, 1, 2 and so on


def evaluation_seed(seed: int, training_steps: int, before: int = 0) -> np.random.SeedSequence:
    """The seed of an evaluation. The seed depends only on the arguments, so an additional evaluation does not change
    the other evaluations.

    :param seed: the run's seed
    :param training_steps: environment steps of training so far
    :param before: number of earlier evaluations at the same ``training_steps``
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
    code. The seeds depend on the run's seed and on the order of the calls.

    :param seed: the run's seed; None draws a seed
    """

    def __init__(self, seed: int | None = None):
        self.seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        self._sequence = np.random.SeedSequence(self.seed)
        self._global_seeds = self._sequence.spawn(2)

    def spawn(self) -> np.random.SeedSequence:
        """A new seed, for the next component."""
        return self._sequence.spawn(1)[0]

    def seed_global_generators(self, number: int) -> None:
        """Seed the global generators. The graph calls this before the levels are built and again afterwards, because
        libraries draw random numbers while they load.

        :param number: 0 before the levels are built, 1 afterwards
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
