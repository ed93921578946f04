"""Compares the speed of this checkout with the speed of another, for example of the commit before a change.

Use ``git worktree add ../before COMMIT``, then ``python -m benchmarks.versus ../before W2 W4``. Each checkout runs in a
process. The processes take turns of half a second, so other work of the machine slows both equally. The table shows the
median and the quartiles of the ratios: if the quartiles are far apart, the median is not reliable.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.__main__ import FILE_WIDTH
from benchmarks.works import WORKS

SECONDS_A_TURN = 0.5
WARM_UP_TURNS = 3
# a text, because the other checkout may not have this module
SIDE = """
import json, sys, time
from benchmarks.coach_side import runner
from benchmarks.works import WORKS
work = WORKS[sys.argv[1]]
run = runner(work, sys.argv[2])
run(work.warm_up)
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    processor, wall = time.process_time(), time.perf_counter()
    run(int(line))
    print(json.dumps([time.process_time() - processor, time.perf_counter() - wall]), flush=True)
"""


@dataclass
class Turn:
    """The processor time (the sum over all cores) and the wall time of a turn, in seconds."""

    processor: float
    wall: float


class Side:
    """A process of one checkout. Each call of ``turn`` makes some steps of a work.

    :raises SystemExit: if the process has ended before it was ready
    """

    def __init__(self, checkout: pathlib.Path, work: str, framework: str):
        environment = {**os.environ, "PYTHONPATH": str(checkout), "TF_CPP_MIN_LOG_LEVEL": "3"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", SIDE, work, framework], cwd=checkout, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._answer()

    def turn(self, steps: int) -> Turn:
        """Make ``steps`` environment steps. :return: the times of this turn"""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return Turn(*self._answer())

    def _answer(self) -> list[float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        while line and line[0] not in '["':  # ignore the lines that the run prints
            line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self._process.args}: ended with {self._process.wait()}")
        return json.loads(line)

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def compare(work: str, other: pathlib.Path, framework: str, rounds: int) -> tuple[list[Turn], list[Turn], int]:
    """The turns of the other checkout, the turns of this checkout, and the number of steps in a turn."""
    here = pathlib.Path(__file__).parents[1]
    sides = [Side(checkout, work, framework) for checkout in (other, here)]
    try:
        steps = _steps_a_turn(work, sides)
        turns: tuple[list[Turn], list[Turn]] = ([], [])
        for number in range(WARM_UP_TURNS + rounds):
            for index in (0, 1) if number % 2 else (1, 0):
                turns[index].append(sides[index].turn(steps))
        return turns[0][WARM_UP_TURNS:], turns[1][WARM_UP_TURNS:], steps
    finally:
        for side in sides:
            side.end()


def _steps_a_turn(work: str, sides: list[Side]) -> int:
    """The number of steps that take about ``SECONDS_A_TURN``; for PPO and A2C a multiple of the rollout."""
    unit = WORKS[work].rollout if WORKS[work].algorithm in ("ppo", "a2c") else 20
    slowest = max(side.turn(unit).wall for side in sides)
    return unit * max(1, round(SECONDS_A_TURN / slowest))


def main() -> None:
    """Compare the checkouts on each work, and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.versus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=pathlib.Path, help="the other checkout's directory")
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"of {', '.join(WORKS)}")
    parser.add_argument("--rounds", type=int, default=40, help="turns of each side (default %(default)s)")
    parser.add_argument("--framework", default="tensorflow")
    options = parser.parse_args()
    unknown = set(options.works) - set(WORKS)
    if unknown:
        parser.error(f"no work {', '.join(sorted(unknown))}: there are {', '.join(WORKS)}")
    if not (options.other / "benchmarks" / "coach_side.py").exists():
        parser.error(f"'{options.other}' is no checkout of Coach")
    table = Table("work", "other, ms a step", "this one", "processor: ratio", "quartiles", "wall: ratio", "quartiles")
    for work in options.works or WORKS:
        turns = compare(work, options.other.resolve(), options.framework, options.rounds)
        table.add_row(work, *_columns(*turns))
        print(f"{work} compared", file=sys.stderr)
    Console(width=None if sys.stdout.isatty() else FILE_WIDTH).print(table)
    print("ratio: the other's time over this one's in the same round, the median; above 1, this checkout is faster")


def _columns(other: list[Turn], this: list[Turn], steps: int) -> list[str]:
    cells = [f"{1000 * statistics.median(turn.wall for turn in side) / steps:.3f}" for side in (other, this)]
    for kind in ("processor", "wall"):
        ratios = [getattr(a, kind) / getattr(b, kind) for a, b in zip(other, this)]
        lower, median, upper = statistics.quantiles(ratios)
        cells += [f"{median:.3f}", f"{lower:.3f} to {upper:.3f}"]
    return cells


if __name__ == "__main__":
    main()
