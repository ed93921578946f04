"""What one run in one process gives, and the process that gives it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Callable


class BenchmarkError(Exception):
    """A measurement failed; the message ends in what its process said."""


@dataclass
class Measured:
    """:param steps_per_second: environment steps, learning included
    :param processor_milliseconds: what a step takes of all processors; other programs on the machine change it little
    :param first_step_seconds: from the start of the process to its first environment step
    :param peak_megabytes: the process's largest resident set
    """

    steps_per_second: float
    processor_milliseconds: float
    first_step_seconds: float
    peak_megabytes: float


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
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(one).ru_maxrss for one in who) / 1024
    return Measured(steps / seconds, 1000 * processor_seconds / steps, first_step, peak)


def _processor_seconds() -> float:
    """Of this process, and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def in_own_process(library: str, work: str, scale: float, profile: bool = False) -> Measured | None:
    """Measure in a fresh process; None if the library is not installed there or the work is not for it.

    :raises BenchmarkError: the process failed
    """
    command = [sys.executable, "-m", "benchmarks.one", library, work, "--scale", str(scale)]
    if profile:
        command.append("--profile")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == NOT_AVAILABLE:
        return None
    if done.returncode:
        raise BenchmarkError(f"{library} failed on {work}:\n{done.stderr[-2000:].strip()}")
    *printed, last = done.stdout.strip().splitlines()
    if profile:
        print("\n".join(printed))
    return Measured(**json.loads(last))


def report(measured: Measured) -> None:
    """Print the result for ``in_own_process`` to read."""
    print(json.dumps(asdict(measured)))


NOT_AVAILABLE = 3
