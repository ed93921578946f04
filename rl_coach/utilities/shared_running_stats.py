"""Running mean and variance of everything that was pushed."""

from __future__ import annotations

import pathlib
from abc import ABC, abstractmethod
from typing import Any, Sequence, Union

import numpy as np

from rl_coach.utilities.errors import CoachError
from rl_coach.utilities.files import read_data, write_data
from rl_coach.utilities.plain_data import State

Shape = Union[int, Sequence[int]]


class SharedRunningStats(ABC):
    """Statistics under a name, which several workers may feed.

    :param name: tells the statistics of one run apart, in messages and file names
    :param pubsub_params: where workers exchange their samples; None keeps the statistics to this process
    """

    def __init__(self, name: str = "", pubsub_params: Any = None):
        self.name = name
        self.pubsub_params = pubsub_params

    @abstractmethod
    def set_params(self, shape: Shape = (1,), clip_values: Sequence[float] | None = None) -> None:
        """Start anew for samples of ``shape``; ``normalize`` clips to ``(low, high)`` if given."""

    def push(self, x: np.ndarray) -> None:
        """Add one sample of ``shape``, or a batch of them with a leading dimension."""
        self.push_val(x)

    @abstractmethod
    def push_val(self, x: np.ndarray) -> None:
        """Add to this process's statistics."""

    @property
    @abstractmethod
    def n(self) -> float:
        """The number of samples pushed."""

    @property
    @abstractmethod
    def mean(self) -> np.ndarray:
        """Their mean, of ``shape``."""

    @property
    @abstractmethod
    def var(self) -> np.ndarray:
        """Their population variance, of ``shape``."""

    @property
    @abstractmethod
    def std(self) -> np.ndarray:
        """The square root of ``var``."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""

    @abstractmethod
    def normalize(self, batch: np.ndarray) -> np.ndarray:
        """Samples as numbers of standard deviations from the mean, clipped."""

    @abstractmethod
    def get_state(self) -> State:
        """The statistics as data."""

    @abstractmethod
    def set_state(self, state: State) -> None:
        """Continue from statistics that ``get_state`` gave."""

    def save_state_to_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        """Write the statistics to ``<prefix>.srs.npz``."""
        write_data(self._file(checkpoint_dir, checkpoint_prefix), self.get_state())

    def restore_state_from_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        """Read what ``save_state_to_checkpoint`` wrote.

        :raises CoachError: the file is missing, damaged or of another shape
        """
        self.set_state(read_data(self._file(checkpoint_dir, checkpoint_prefix), "the statistics of a checkpoint"))

    @staticmethod
    def _file(checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> pathlib.Path:
        return pathlib.Path(checkpoint_dir) / f"{checkpoint_prefix}.srs.npz"


class NumpySharedRunningStats(SharedRunningStats):
    """Mean and variance in one pass, exact for single samples and batches alike (Chan, Golub & LeVeque 1983,
    "Algorithms for Computing the Sample Variance", equation 2.1).

    :param epsilon: the smallest variance: an element that hardly moves is not blown up to noise
    """

    def __init__(self, name: str, epsilon: float = 1e-2, pubsub_params: Any = None):
        super().__init__(name, pubsub_params)
        self.epsilon = epsilon
        self.set_params()

    def set_params(self, shape: Shape = (1,), clip_values: Sequence[float] | None = None) -> None:
        self._count = 0
        self._mean = np.zeros(shape)
        self._squared_deviations = np.zeros(shape)
        self.clip_values = None if clip_values is None else (float(clip_values[0]), float(clip_values[1]))
        self._inverse_std: np.ndarray | None = None

    def push_val(self, samples: Any) -> None:
        samples = np.asarray(samples, dtype=np.float64)
        if samples.shape == self._mean.shape:
            self._merge(1, samples, None)
        elif samples.shape[1:] == self._mean.shape:
            if len(samples):
                mean = samples.mean(axis=0)
                self._merge(len(samples), mean, np.square(samples - mean).sum(axis=0))
        else:
            raise ValueError(
                f"the statistics '{self.name}' are of samples of shape {self._mean.shape}, not {samples.shape}"
            )

    def _merge(self, count: int, mean: np.ndarray, squared_deviations: np.ndarray | None) -> None:
        total = self._count + count
        difference = mean - self._mean
        self._mean = self._mean + difference * (count / total)
        self._squared_deviations = self._squared_deviations + np.square(difference) * (self._count * count / total)
        if squared_deviations is not None:
            self._squared_deviations += squared_deviations
        self._count = total
        self._inverse_std = None

    @property
    def n(self) -> int:
        return self._count

    @property
    def mean(self) -> np.ndarray:
        return self._mean

    @property
    def var(self) -> np.ndarray:
        """The population variance, at least ``epsilon``; 1 as long as nothing was pushed."""
        if self._count == 0:
            return np.ones_like(self._mean)
        return np.maximum(self._squared_deviations / self._count, self.epsilon)

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(self.var)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._mean.shape

    def normalize(self, batch: Any) -> np.ndarray:
        """:return: float32, of the shape of ``batch``"""
        if self._inverse_std is None:
            self._inverse_std = 1.0 / self.std
        normalized = (batch - self._mean) * self._inverse_std
        if self.clip_values is not None:
            normalized = np.minimum(np.maximum(normalized, self.clip_values[0]), self.clip_values[1])
        return normalized.astype(np.float32)

    def get_state(self) -> State:
        return {
            "count": self._count,
            "mean": np.array(self._mean),  # of a scalar it is no array, and a checkpoint would make a float of it
            "squared_deviations": np.array(self._squared_deviations),
        }

    def set_state(self, state: State) -> None:
        try:
            count, mean, squared_deviations = state["count"], state["mean"], state["squared_deviations"]
        except KeyError as missing:
            raise CoachError(f"the saved statistics of '{self.name}' lack {missing}") from None
        if np.shape(mean) != self.shape:
            raise CoachError(f"the saved statistics of '{self.name}' have shape {np.shape(mean)}, not {self.shape}")
        self._count = count
        self._mean = np.array(mean, dtype=np.float64)
        self._squared_deviations = np.array(squared_deviations, dtype=np.float64)
        self._inverse_std = None
