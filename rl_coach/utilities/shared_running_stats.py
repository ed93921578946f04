"""Running mean and variance of all pushed samples, in one process or shared by several processes."""

from __future__ import annotations

import io
import math
import pathlib
import sys
import threading
import time
from typing import Any, NamedTuple, Sequence, Union

import numpy as np

from rl_coach.utilities.errors import CoachError, reason_of
from rl_coach.utilities.files import read_data, write_data
from rl_coach.utilities.plain_data import State
from rl_coach.utilities.sound_values import NUMBERS, is_finite

Shape = Union[int, Sequence[int]]


_SECONDS_TO_SUBSCRIBE = 8.0
_SECONDS_BETWEEN_LOOKS = 0.1  # the pause between two checks of a thread for its end
_MOST_GATHERED = 1_000_000_000  # samples


class _Moments(NamedTuple):
    """Count, mean and squared deviations of all samples. The object is replaced as a whole, so that a reader never sees
    a half update of another thread."""

    num_samples: int
    mean: np.ndarray
    squared_deviations: np.ndarray

    def merged(self, count: int, mean: np.ndarray, squared_deviations: np.ndarray | None) -> _Moments:
        """The moments with more samples added. The arguments describe the new samples.

        :param squared_deviations: the sums of squared deviations from ``mean``; None for one sample
        """
        total = self.num_samples + count
        difference = mean - self.mean
        squared = self.squared_deviations + np.square(difference) * (self.num_samples * count / total)
        if squared_deviations is not None:
            squared += squared_deviations
        return _Moments(total, self.mean + difference * (count / total), squared)

    def var(self, epsilon: float) -> np.ndarray:
        """The population variance, at least ``epsilon``; 1 without samples."""
        if self.num_samples == 0:
            return np.ones_like(self.mean)
        return np.maximum(self.squared_deviations / self.num_samples, epsilon)


_WRITING = threading.RLock()
"""A lock that is held while statistics change, in their owner's thread or in the thread of their subscription. All
statistics share this lock, because locks cannot be copied."""


class SharedRunningStats:
    """Running mean and variance of samples, which several workers may share. The results are the same for single
    samples and for batches (Chan, Golub & LeVeque 1983, "Algorithms for Computing the Sample Variance", equation 2.1).

    :param name: the name in messages and file names, unique in a run
    :param pubsub_params: parameters of the memory backend (Redis). Processes with the same ``channel`` and ``name``
        exchange their samples through it. None keeps the statistics in this process
    :param epsilon: the smallest variance, so that nearly constant elements are not amplified to noise
    :ivar margin: if it is not 0, ``normalize`` divides by the deviation plus this number, and ``epsilon`` has no effect
    :ivar subscription: receives the samples of all processes; None before the first sample
    """

    def __init__(self, name: str = "", pubsub_params: Any = None, epsilon: float = 1e-2):
        self.name = name
        self.pubsub_params = pubsub_params
        self.subscription: SharedRunningStatsSubscribe | None = None
        self.epsilon = epsilon
        self.margin = 0.0
        self.set_params()
        if pubsub_params is not None:
            SharedRunningStatsSubscribe(self).start()

    def __getstate__(self) -> dict[str, Any]:
        """The state without connections: a copy opens its own connections."""
        return {**self.__dict__, "subscription": None}

    @property
    def channel(self) -> str:
        """The channel of Redis for the samples."""
        return f"coach:{self.pubsub_params.channel}:statistics:{self.name}"

    def push(self, x: np.ndarray) -> None:
        """Add one sample of ``shape``, or a batch of them with a leading dimension.

        With ``pubsub_params``, all processes that share the statistics, including this process, receive the sample a
        moment later through ``SharedRunningStatsSubscribe``. The first sample starts the subscription.

        :raises CoachError: if Redis cannot be reached, or was lost since the last sample
        """
        if self.pubsub_params is None:
            self.push_val(x)
            return
        if self.subscription is None:
            SharedRunningStatsSubscribe(self).start()
        assert self.subscription is not None
        self.subscription.publish(np.asarray(x))

    def set_params(self, shape: Shape = (1,), clip_values: Sequence[float] | None = None) -> None:
        """Restart the statistics for samples of ``shape``; ``normalize`` clips to ``(low, high)`` if given."""
        with _WRITING:
            self._moments = _Moments(0, np.zeros(shape), np.zeros(shape))
            self.clip_values = None if clip_values is None else (float(clip_values[0]), float(clip_values[1]))
            self._inverse_std: tuple[_Moments, np.ndarray] | None = None
            self._gathered: SharedRunningStats | None = None

    def push_val(self, samples: Any) -> None:
        """Add samples to the statistics of this process. :param samples: one sample, or a batch of samples"""
        samples = np.asarray(samples, dtype=np.float64)
        with _WRITING:
            if self._gathered is not None:
                self._gathered.push_val(samples)
            moments = self._moments
            shape = moments.mean.shape
            if samples.shape == shape:
                self._moments = moments.merged(1, samples, None)
            elif samples.shape[1:] != shape:
                raise ValueError(f"the statistics '{self.name}' need samples of shape {shape}, not {samples.shape}")
            elif len(samples):
                mean = samples.mean(axis=0)
                self._moments = moments.merged(len(samples), mean, np.square(samples - mean).sum(axis=0))

    def take_gathered(self) -> State:
        """The statistics of the samples since the last call, in the form of ``get_state``. The first call only begins
        to gather."""
        with _WRITING:
            gathered, self._gathered = self._gathered, SharedRunningStats(self.name, epsilon=self.epsilon)
            self._gathered.set_params(self.shape)
        return SharedRunningStats(self.name).get_state() if gathered is None else gathered.get_state()

    def merge(self, gathered: State) -> None:
        """Add the result of ``take_gathered`` in another process. The result is as exact as pushing the samples here.

        :raises CoachError: if the data has another form
        """
        count, mean, deviations = gathered["count"], gathered["mean"], gathered["squared_deviations"]
        if type(count) is not int or not 0 <= count <= _MOST_GATHERED:
            raise CoachError(f"the statistics '{self.name}' have a wrong number of samples: {str(count)[:40]!r}")
        if not count:
            return
        for array in (mean, deviations):
            if not isinstance(array, np.ndarray) or array.shape != self.shape or not np.all(np.isfinite(array)):
                raise CoachError(f"the statistics '{self.name}' need finite numbers of shape {self.shape}")
        if np.any(deviations < 0) or not is_finite(mean):
            raise CoachError(f"the statistics '{self.name}' have numbers that are impossible for any samples")
        with _WRITING:
            self._moments = self._moments.merged(count, mean, deviations)

    @property
    def n(self) -> int:
        """The number of samples."""
        return self._moments.num_samples

    @property
    def mean(self) -> np.ndarray:
        """The mean of the samples, of ``shape``."""
        return self._moments.mean

    @property
    def var(self) -> np.ndarray:
        """The population variance, at least ``epsilon``; 1 without samples."""
        return self._moments.var(self.epsilon)

    @property
    def std(self) -> np.ndarray:
        """The square root of ``var``."""
        return np.sqrt(self.var)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self._moments.mean.shape

    def normalize(self, batch: Any) -> np.ndarray:
        """Samples as numbers of standard deviations from the mean, clipped; float32, of the shape of ``batch``."""
        moments, inverse = self._moments, self._inverse_std
        if inverse is None or inverse[0] is not moments:
            deviation = np.sqrt(moments.var(0.0)) + self.margin if self.margin else np.sqrt(moments.var(self.epsilon))
            inverse = self._inverse_std = (moments, 1.0 / deviation)
        normalized = (batch - moments.mean) * inverse[1]
        if self.clip_values is not None:
            normalized = np.minimum(np.maximum(normalized, self.clip_values[0]), self.clip_values[1])
        return normalized.astype(np.float32)

    def get_state(self) -> State:
        """The statistics as data."""
        count, mean, squared_deviations = self._moments
        return {
            "count": count,
            "mean": np.array(mean),  # a scalar's mean is not an array, and a checkpoint would store a float
            "squared_deviations": np.array(squared_deviations),
            **({"margin": self.margin} if self.margin else {}),
        }

    def set_state(self, state: State) -> None:
        """Restore the statistics that ``get_state`` returned."""
        try:
            count, mean, squared_deviations = state["count"], state["mean"], state["squared_deviations"]
        except KeyError as missing:
            raise CoachError(f"the saved statistics of '{self.name}' do not contain {missing}") from None
        self.margin = float(state.get("margin", 0.0))
        for array in (mean, squared_deviations):
            if np.shape(array) != self.shape:
                raise CoachError(
                    f"the saved statistics of '{self.name}' have shape {np.shape(array)}, not {self.shape}"
                )
        with _WRITING:
            self._moments = _Moments(
                count, np.array(mean, dtype=np.float64), np.array(squared_deviations, dtype=np.float64)
            )

    def save_state_to_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        """Write the statistics to ``<prefix>.srs.npz``."""
        write_data(self._file(checkpoint_dir, checkpoint_prefix), self.get_state())

    def restore_state_from_checkpoint(self, checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> None:
        """Read the file of ``save_state_to_checkpoint``.

        :raises CoachError: if the file is missing, damaged or of another shape
        """
        self.set_state(read_data(self._file(checkpoint_dir, checkpoint_prefix), "the statistics of a checkpoint"))

    @staticmethod
    def _file(checkpoint_dir: str, checkpoint_prefix: Union[int, str]) -> pathlib.Path:
        return pathlib.Path(checkpoint_dir) / f"{checkpoint_prefix}.srs.npz"


class SharedRunningStatsSubscribe(threading.Thread):
    """Subscription that receives published samples from its creation on, and adds them to the statistics of this
    process.

    The subscription ends with ``stop()``, or when the connection is lost. Later samples are then lost, so the
    statistics of this process differ from the statistics of other processes. If the connection is lost, Coach prints a
    line, and ``push`` raises an error.

    :param shared_running_stats: the statistics, with ``pubsub_params``
    :raises CoachError: if the statistics already have a subscription, or Redis cannot be reached

    :ivar failure: the error that ended the thread; None without an error
    :ivar num_refused: number of messages that were not samples; the first one is printed
    """

    def __init__(self, shared_running_stats: SharedRunningStats):
        super().__init__(name=f"statistics '{shared_running_stats.name}'", daemon=True)
        if shared_running_stats.subscription is not None:
            raise CoachError(f"the {self.name} already have a subscription")
        self.shared_running_stats = shared_running_stats
        self.failure: BaseException | None = None
        self.num_refused = 0
        self._is_to_end = threading.Event()
        self._publisher, self._listener = (shared_running_stats.pubsub_params.connect() for _ in range(2))
        self._messages = self._listener.client.pubsub()
        self._subscribe(shared_running_stats.channel)
        shared_running_stats.subscription = self

    def _subscribe(self, channel: str) -> None:
        try:
            self._messages.subscribe(channel)
            deadline = time.monotonic() + _SECONDS_TO_SUBSCRIBE
            while self._messages.get_message(timeout=_SECONDS_BETWEEN_LOOKS) is None:
                if time.monotonic() >= deadline:
                    raise CoachError(f"the {self.name}: Redis does not answer")
        except self._listener.errors as error:
            raise self._lost(error) from error

    def _lost(self, error: BaseException) -> CoachError:
        return CoachError(f"the {self.name}: the connection to Redis is lost: {reason_of(error)}")

    def publish(self, sample: np.ndarray) -> None:
        """Publish a sample, or a batch, to all subscribers.

        :raises CoachError: if Redis cannot be reached, or was lost since the last sample
        :raises ValueError: if the sample has another shape
        """
        if self.failure is not None:
            raise CoachError(f"the {self.name} are no longer shared: {reason_of(self.failure)}") from self.failure
        if problem := self._problem_of(sample):
            raise ValueError(f"a sample for the {self.name} is wrong: {problem}")
        try:
            self._publisher.client.publish(self.shared_running_stats.channel, _as_bytes(sample))
        except self._publisher.errors as error:
            raise self._lost(error) from error

    def run(self) -> None:
        """Receive samples until ``stop`` is called or the connection is lost."""
        try:
            while not self._is_to_end.is_set():
                message = self._messages.get_message(timeout=_SECONDS_BETWEEN_LOOKS)
                if message is not None and message["type"] == "message":
                    self._take(message["data"])
        except self._listener.errors as error:
            self.failure = error
            _say(str(self._lost(error)))
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._listener.close()

    def _take(self, data: bytes) -> None:
        try:
            sample = _from_bytes(data)
            problem = self._problem_of(sample)
        except ValueError as error:
            problem = str(error)
        if problem:
            self.num_refused += 1
            if self.num_refused == 1:
                _say(f"the {self.name}: a message on {self.shared_running_stats.channel} is not a sample: {problem}")
            return
        self.shared_running_stats.push_val(sample)

    def _problem_of(self, sample: np.ndarray) -> str:
        shape = self.shared_running_stats.shape
        if sample.dtype.kind in NUMBERS and shape in (sample.shape, sample.shape[1:]):
            return ""
        return f"it is {sample.dtype}{list(sample.shape)}, but samples have the shape {list(shape)}"

    def stop(self) -> None:
        """End the thread, and close its connections. The next pushed sample starts a new subscription."""
        self._is_to_end.set()
        if self.is_alive():
            self.join()
        self._publisher.close()
        self.shared_running_stats.subscription = None


def _say(line: str) -> None:
    print(f"coach: {line}", file=sys.stderr)


def _as_bytes(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _from_bytes(data: bytes) -> np.ndarray:
    """The array that ``_as_bytes`` wrote.

    :raises ValueError: if the data is not an array, or its length is wrong
    """
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, is_fortran, dtype = readers[version](file)
    except Exception as error:  # the header is parsed as Python, which fails in many ways
        raise ValueError("it is not an array") from error
    if dtype.kind not in NUMBERS or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"it is not an array of numbers {dtype}{list(shape)}")
    array = np.frombuffer(data, dtype, offset=file.tell())
    return array.reshape(shape, order="F" if is_fortran else "C")


class NumpySharedRunningStats(SharedRunningStats):
    """``SharedRunningStats`` with the class name and the order of parameters of Coach 1."""

    def __init__(self, name: str, epsilon: float = 1e-2, pubsub_params: Any = None):
        super().__init__(name, pubsub_params, epsilon)


class RunningMeans:
    """The mean of all values seen at each time step, over sequences of any length."""

    def __init__(self) -> None:
        self.counts: np.ndarray = np.zeros(0)
        self.means: np.ndarray = np.zeros(0)

    def push(self, values: np.ndarray, first: int = 0) -> None:
        """Add the values [T] of one sequence, beginning at step ``first``."""
        end = first + len(values)
        longer = end - len(self.means)
        if longer > 0:
            self.counts = np.pad(self.counts, (0, longer))
            self.means = np.pad(self.means, (0, longer))
        self.counts[first:end] += 1
        self.means[first:end] += (values - self.means[first:end]) / self.counts[first:end]

    def get_state(self) -> dict[str, Any]:
        """Counts and means."""
        return {"counts": self.counts, "means": self.means}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned."""
        self.counts, self.means = state["counts"].copy(), state["means"].copy()
