"""The result of a measurement, and functions that measure in this process or in a separate one."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import time
from dataclasses import asdict, dataclass
from typing import Callable, Protocol, runtime_checkable

from benchmarks.peers import interpreter_of, is_for
from benchmarks.works import WORKS


class BenchmarkError(Exception):
    """A measurement failed. The message ends with the error output of its process."""


@dataclass
class Measured:
    """The result of a measurement.

    :param steps_per_second: environment steps, learning included
    :param processor_milliseconds: processor time of a step, the sum over all cores; it hardly depends on other programs
    :param first_step_seconds: from the start of the process to its first environment step
    :param peak_megabytes: the largest resident set of the process
    :param mean_return: mean return of CartPole's episodes after the timed steps; None for other environments
    """

    steps_per_second: float
    processor_milliseconds: float
    first_step_seconds: float
    peak_megabytes: float
    mean_return: float | None = None


@runtime_checkable
class Training(Protocol):
    """A training that makes ``steps`` more environment steps at each call. ``mean_return`` evaluates its policy."""

    def __call__(self, steps: int) -> None: ...

    def mean_return(self) -> float: ...


class Clock:
    """Times the training loop of a library that trains in one call, and cannot be called for some steps only.

    :param warm_up: environment steps that are not timed
    :param steps: environment steps to time
    :param started: ``time.time()`` when the process began
    """

    def __init__(self, warm_up: int, steps: int, started: float):
        self._warm_up, self._steps, self._started = warm_up, steps, started
        self._first_step: float | None = None
        self._begin: tuple[int, float, float] | None = None
        self._end: tuple[int, float, float] | None = None

    def tick(self, steps: int) -> bool:
        """The training loop calls this repeatedly. :param steps: all steps so far :return: True if the loop must end"""
        now = (steps, time.perf_counter())
        if self._first_step is None and steps:
            self._first_step = time.time() - self._started
        if self._begin is None:
            if steps > self._warm_up:
                self._begin = (*now, _processor_seconds_of_all())
        elif self._end is None and steps - self._begin[0] >= self._steps:
            self._end = (*now, _processor_seconds_of_all())
        return self._end is not None

    def measured(self, mean_return: float | None) -> Measured:
        """The result. :raises BenchmarkError: if the loop ended before all steps were made"""
        if self._begin is None or self._end is None or self._first_step is None:
            raise BenchmarkError("the training ended before all steps were made")
        steps, seconds, processor = (end - begin for begin, end in zip(self._begin, self._end))
        return Measured(steps / seconds, 1000 * processor / steps, self._first_step, _peak_megabytes(), mean_return)


def timed(run: Callable[[int], None], warm_up: int, steps: int, started: float) -> Measured:
    """Make one step, warm up, then time ``steps`` environment steps.

    :param run: a function that makes the given number of environment steps and the training that is due
    :param started: ``time.time()`` when the process began
    """
    run(1)
    first_step = time.time() - started
    run(warm_up)
    begin, processor_begin = time.perf_counter(), _processor_seconds()
    run(steps)
    seconds, processor_seconds = time.perf_counter() - begin, _processor_seconds() - processor_begin
    return Measured(steps / seconds, 1000 * processor_seconds / steps, first_step, _peak_megabytes())


def _peak_megabytes() -> float:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in who) / 1024


def _processor_seconds() -> float:
    """Processor time of this process and of its child processes that have ended."""
    return sum(os.times()[:4])


def _processor_seconds_of_all() -> float:
    """Processor time of this process and of all its child processes, also of those that still run."""
    import psutil  # only the other libraries need psutil, and `make peers` installs it

    total = _processor_seconds()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # the process has ended in the meantime
            total += sum(child.cpu_times()[:4])
    return total


def in_own_process(library: str, work: str, scale: float, profile: bool = False) -> Measured | None:
    """Measure in a new process.

    :return: the result; None if the library cannot do the work
    :raises MissingEnvironment: if the library's Python environment does not exist
    :raises BenchmarkError: if the process failed
    """
    if not is_for(library, WORKS[work]):
        return None
    command = [interpreter_of(library), "-m", "benchmarks.one", library, work, "--scale", str(scale)]
    if profile:
        command.append("--profile")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"{library} failed on {work}:\n{done.stderr[-2000:].strip()}")
    *printed, last = done.stdout.strip().splitlines()
    if profile:
        print("\n".join(printed))
    return Measured(**json.loads(last))


def report(measured: Measured) -> None:
    """Print the result as JSON. ``in_own_process`` reads it."""
    print(json.dumps(asdict(measured)))
