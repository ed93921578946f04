"""One measurement in this process: ``python -m benchmarks.one LIBRARY WORK``."""

from __future__ import annotations

import time

STARTED = time.time()

import argparse  # noqa: E402
import cProfile  # noqa: E402
import pstats  # noqa: E402
from dataclasses import replace  # noqa: E402
from typing import Callable  # noqa: E402

from benchmarks.measured import Clock, Training, report, timed  # noqa: E402
from benchmarks.parts import PARTS, by_part  # noqa: E402
from benchmarks.peers import FRAMEWORKS, OWN_LOOPS, PEERS, STRAIGHT  # noqa: E402
from benchmarks.seeds_side import runner  # noqa: E402
from benchmarks.works import WORKS, Work  # noqa: E402


def main() -> None:
    """Measure, and print the result as JSON. The library must be able to do the work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--scale", type=float, default=1.0, help="time that many times the work's steps")
    parser.add_argument("--profile", action="store_true", help="also print where the time goes")
    options = parser.parse_args()
    work = WORKS[options.work]
    steps = max(1, int(work.steps * options.scale))
    if options.library in OWN_LOOPS:
        clock = Clock(work.warm_up, steps, STARTED)
        mean_return = PEERS[options.library].begin(work, clock.tick)
        report(clock.measured(mean_return))
        return
    run = _runner(options.library, work)
    measured = timed(run, work.warm_up, steps, STARTED)
    if work.is_cart_pole and isinstance(run, Training):
        measured = replace(measured, mean_return=run.mean_return())
    if options.profile:
        _profile(run, work.steps // 4)
    report(measured)


def _runner(library: str, work: Work) -> Callable[[int], None]:
    if work.seeds > 1:
        return runner(work, library)
    if library in FRAMEWORKS:
        from benchmarks import coach_side

        return coach_side.Training(work, library)
    return (STRAIGHT if library == "straight" else PEERS[library]).begin(work)


def _profile(run: Callable[[int], None], steps: int) -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    run(steps)
    profiler.disable()
    seconds = by_part(profiler)
    total = sum(seconds.values())
    print(f"where the time of {steps} steps goes, slowed down by the profiler:")
    for part in PARTS:
        print(f"  {part:24s}{1e6 * seconds[part] / steps:10.1f} us a step{100 * seconds[part] / total:6.1f} %")
    print("the functions that take most of it:")
    pstats.Stats(profiler).sort_stats("tottime").print_stats(20)


if __name__ == "__main__":
    main()
