"""Measures the speed of distributed runs.

    python -m benchmarks.distributed [PART ...] [--ray PYTHON]

vectors   transitions per second from a worker to the replay memory, with observations of CartPole's size. The
          comparison is the method of Coach 1.0.1: it pickles and publishes each transition separately
frames    the same for stacks of four frames of 84x84. The comparison only sends the bytes of the same chunks
acting    steps per second of several workers and a trainer that learns. A step of the environment takes 10 ms. With
          --ray PYTHON, an interpreter with RLlib (pip install "ray[rllib]" torch), the same for RLlib
worker    memory of a worker, and the time until the trainer has stored its first steps

Progress is printed on the standard error, and the table on the standard output.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from typing import Callable, Iterator

from rich.console import Console
from rich.table import Table

from benchmarks import slow_runs, transport
from benchmarks.measured import BenchmarkError

FILE_WIDTH = 140  # width of the table in characters if it is not printed on a terminal
VECTOR_ROWS, FRAME_ROWS = (32, 256, 1024), (64, 256, 512)
LATE_WORKERS = 3
SECONDS_OF_PLAY = 10.0  # before the memory of the workers is measured
ROOT = pathlib.Path(__file__).parents[1]


@dataclass(frozen=True)
class Figure:
    """A line of the table.

    :param what: name of the measurement
    :param value: the median
    :param unit: the unit of the value
    :param compared: a comparison with another line, as text
    """

    what: str
    value: float
    unit: str
    compared: str = ""


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _medians(measures: dict[str, Callable[[], float]], rounds: int, unit: str) -> dict[str, float]:
    """The median of each measurement over all rounds. A round makes all measurements, so other work of the machine
    slows all of them equally.
    """
    found: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(1, rounds + 1):
        for name, measure in measures.items():
            found[name].append(measure())
            _say(f"round {number} of {rounds}: {name}: {found[name][-1]:,.1f} {unit}")
    return {name: statistics.median(values) for name, values in found.items()}


def vectors(options: argparse.Namespace) -> Iterator[Figure]:
    """Compare chunks with transitions that are pickled and published one by one."""
    seconds, unit = min(options.seconds, 3.0), "transitions/s"
    coach = "Coach 1.0.1's way: pickled, published, one by one"
    measures = {coach: partial(transport.rate, transport.PICKLES, "vectors", 1, seconds)}
    for rows in VECTOR_ROWS:
        measures[f"chunks of {rows}"] = partial(transport.rate, transport.CHUNKS, "vectors", rows, seconds)
        gathering = f"one by one into chunks of {rows}, not sent"
        measures[gathering] = partial(transport.gathering_rate, "vectors", rows, seconds)
    found = _medians(measures, options.rounds, unit)
    for name, value in found.items():
        yield Figure(f"vectors of 4: {name}", value, unit, f"{value / found[coach]:.0f} x Coach's")


def frames(options: argparse.Namespace) -> Iterator[Figure]:
    """Compare chunks with streams of the same bytes, which are not decoded."""
    seconds, unit = min(options.seconds, 3.0), "transitions/s"
    for rows in FRAME_ROWS:
        bare, chunks = f"bare streams, {rows} at once", f"chunks of {rows}"
        measures = {
            bare: partial(transport.rate, transport.BARE, "frames", rows, seconds),
            chunks: partial(transport.rate, transport.CHUNKS, "frames", rows, seconds),
        }
        found = _medians(measures, options.rounds, unit)
        yield Figure(f"84x84x4: {bare}", found[bare], unit)
        yield Figure(f"84x84x4: {chunks}", found[chunks], unit, f"{found[chunks] / found[bare]:.0%} of bare streams")


def acting(options: argparse.Namespace) -> Iterator[Figure]:
    """Steps per second of Coach with each number of workers, and of RLlib with each number of environment runners."""
    if options.ray is None:
        _say("RLlib is left out: --ray names no interpreter that has it")
    for algorithm in options.algorithms.split(","):
        ours = {count: _coach_steps(algorithm, count, options.seconds) for count in _numbers(options.workers)}
        for count, value in ours.items():
            base, least = next(iter(ours.values())), next(iter(ours))
            compared = f"{value / count / (base / least):.2f} linear"
            yield Figure(f"10 ms a step: Coach, {algorithm}, {count} workers", value, "steps/s", compared)
        for count in _numbers(options.runners) if options.ray else []:
            theirs = _rllib_steps(options.ray, algorithm, count, options.seconds)
            compared = f"Coach has {ours[count] / theirs:.2f} x" if count in ours else ""
            yield Figure(f"10 ms a step: RLlib, {algorithm}, {count} env runners", theirs, "steps/s", compared)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _coach_steps(algorithm: str, workers: int, seconds: float) -> float:
    with tempfile.TemporaryDirectory() as directory:
        value = slow_runs.steps_per_second(pathlib.Path(directory), algorithm, workers, seconds)
    _say(f"Coach, {algorithm}, {workers} workers: {value:.1f} steps/s")
    return value


def _rllib_steps(python: str, algorithm: str, runners: int, seconds: float) -> float:
    command = [python, "-m", "benchmarks.rllib_side", algorithm, str(runners), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise BenchmarkError(f"RLlib failed on {algorithm}:\n{done.stderr[-2000:].strip()}")
    value = float(json.loads(done.stdout.strip().splitlines()[-1])["steps_per_second"])
    _say(f"RLlib, {algorithm}, {runners} env runners: {value:.1f} steps/s")
    return value


def worker(options: argparse.Namespace) -> Iterator[Figure]:
    """Measure the start and the memory of workers that are added to a run in progress."""
    with tempfile.TemporaryDirectory() as directory, slow_runs.SlowRun(pathlib.Path(directory), "dqn", 1) as run:
        run.wait_for_learning()
        first = [slow_runs.seconds_to_first_step(run, f"late-{index}") for index in range(LATE_WORKERS)]
        _say("until first steps are stored: " + ", ".join(f"{one:.2f} s" for one in first))
        time.sleep(min(options.seconds, SECONDS_OF_PLAY))
        sizes = [slow_runs.megabytes(process) for process in run.workers.values()]
    yield Figure("a worker: from its start until its first steps are stored", statistics.median(first), "s")
    resident, proportional = (max(column) for column in zip(*sizes))
    yield Figure("a worker: resident set (RSS)", resident, "MB")
    yield Figure(f"a worker: proportional set (PSS), {len(sizes)} of them beside a trainer", proportional, "MB")


PARTS = {"vectors": vectors, "frames": frames, "acting": acting, "worker": worker}


def _show(figures: list[Figure]) -> None:
    table = Table("measured", "median", "unit", "compared")
    for figure in figures:
        digits = 0 if figure.value >= 1000 else 2
        table.add_row(figure.what, f"{figure.value:,.{digits}f}", figure.unit, figure.compared)
    Console(width=None if sys.stdout.isatty() else FILE_WIDTH).print(table)


def main() -> None:
    """Measure one part after the other and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.distributed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all if none is named")
    parser.add_argument("--rounds", type=int, default=3, help="of vectors and frames (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of acting, others less (default: %(default)s)")
    parser.add_argument("--workers", default="1,2,4", help="of acting (default: %(default)s)")
    parser.add_argument("--algorithms", default="dqn,ppo", help="of acting (default: %(default)s)")
    parser.add_argument("--runners", default="2,4", help="env runners of RLlib in acting (default: %(default)s)")
    parser.add_argument("--ray", metavar="PYTHON", help="an interpreter that has ray[rllib] and torch")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    try:
        _show([figure for part in options.parts or PARTS for figure in PARTS[part](options)])
    except BenchmarkError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
