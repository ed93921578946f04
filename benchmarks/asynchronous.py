"""Measures the steps per second of A3C with one worker and with several. A step of the environment takes 10 ms.

``python -m benchmarks.asynchronous --workers 2 --steps 5000``
"""

from __future__ import annotations

import argparse
import csv
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import gymnasium

SECONDS_A_STEP = 0.01
WARM_UP = 500  # steps of each worker that are not measured: its updates are compiled in them
PRESET = pathlib.Path(__file__).with_name("slow_cart_pole.py")


class SlowCartPole(gymnasium.Wrapper):
    """CartPole with steps of 10 ms, as a slow simulator has."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))

    def step(self, action: Any) -> Any:
        time.sleep(SECONDS_A_STEP)
        return self.env.step(action)


def steps_per_second(workers: int, steps: int) -> float:
    """The sum of the steps per second of all workers. For each worker, the time begins at the end of the first episode
    after the warm-up, and ends at the end of the last episode.

    :param steps: environment steps of each worker
    """
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "rl_coach.coach", "-p", str(PRESET), "-ep", directory, "--seed", "1", "-ns"]
        command += ["-n", str(workers), "-cp", f"improve_steps=EnvironmentSteps({steps})"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = [_speed(path) for path in pathlib.Path(directory).rglob("worker_*.csv")]
    assert len(found) == workers
    return sum(found)


def _speed(path: pathlib.Path) -> float:
    with open(path, newline="") as file:
        rows = [row for row in csv.DictReader(file) if float(row["Total steps"]) >= WARM_UP]
    first, last = ((float(row["Total steps"]), 60 * float(row["Wall-Clock Time"])) for row in (rows[0], rows[-1]))
    return (last[0] - first[0]) / (last[1] - first[1])


def main() -> None:
    """Measure one worker and then several, in each round. Print the ratio of the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.asynchronous", description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5000, help="of each worker (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    speeds: dict[int, list[float]] = {1: [], options.workers: []}
    for _ in range(options.rounds):
        for workers, found in speeds.items():
            found.append(steps_per_second(workers, options.steps))
            print(f"{workers} workers: {found[-1]:.1f} steps/s", flush=True)
    one, several = (statistics.median(found) for found in speeds.values())
    print(f"{options.workers} workers make {several / one:.2f} times the steps of one")


if __name__ == "__main__":
    main()
