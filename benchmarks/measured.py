"""What one run in one process gives, and the process that gives it."""

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
    """A measurement failed; the message ends in what its process said."""


@dataclass
class Measured:
    """:param steps_per_second: environment steps, learning included
    :param processor_milliseconds: what a step takes of all processors; other programs on the machine change it little
    :param first_step_seconds: from the start of the process to its first environment step
    :param peak_megabytes: the process's largest resident set
    :param mean_return: of episodes of CartPole after the timed steps; None for other environments
    """

    steps_per_second: float
    processor_milliseconds: float
    first_step_seconds: float
    peak_megabytes: float
    mean_return: float | None = None


@runtime_checkable
class Training(Protocol):
    """Makes some more environment steps at each call, and can say how well its policy plays."""

    def __call__(self, steps: int) -> None: ...

    def mean_return(self) -> float: ...


class Clock:
    """Times the training loop of a library that cannot be told to make some steps.

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
        """Tell that the training has made ``steps`` in all. :return: True if the loop must end"""
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
        """:raises BenchmarkError: the loop ended before all steps were made"""
        if self._begin is None or self._end is None or self._first_step is None:
            raise BenchmarkError("the training ended before all steps were made")
        steps, seconds, processor = (end - begin for begin, end in zip(self._begin, self._end))
        return Measured(steps / seconds, 1000 * processor / steps, self._first_step, _peak_megabytes(), mean_return)


def timed(run: Callable[[int], None], warm_up: int, steps: int, started: float) -> Measured:
    """Take one step, warm up, then time ``steps``.

    :param run: makes that many environment steps, with all learning that they bring
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
    """Of this process, and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def _processor_seconds_of_all() -> float:
    """``_processor_seconds``, and that of the processes that are still alive."""
    import psutil  # where this is called, `make peers` has installed it

    total = _processor_seconds()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended since it was listed
            total += sum(child.cpu_times()[:4])
    return total


def in_own_process(library: str, work: str, scale: float, profile: bool = False) -> Measured | None:
    """Measure in a fresh process; None if the library cannot do the work.

    :raises MissingEnvironment: the library's Python environment does not exist
    :raises BenchmarkError: the process failed
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
    """Print the result for ``in_own_process`` to read."""
    print(json.dumps(asdict(measured)))
