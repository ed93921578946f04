"""One measurement in this process: ``python -m benchmarks.one LIBRARY WORK``."""

from __future__ import annotations

import time

STARTED = time.time()

import argparse  # noqa: E402
import cProfile  # noqa: E402
import pstats  # noqa: E402
import sys  # noqa: E402
from typing import Callable  # noqa: E402

from benchmarks.measured import NOT_AVAILABLE, report, timed  # noqa: E402
from benchmarks.parts import PARTS, by_part  # noqa: E402
from benchmarks.seeds_side import SIDES, runner  # noqa: E402
from benchmarks.works import WORKS, Work  # noqa: E402

FRAMEWORKS = ("tensorflow", "jax", "mxnet")


def main() -> None:
    """Measure, and print the result as JSON; exit with 3 where the library is not installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--scale", type=float, default=1.0, help="time that many times the work's steps")
    parser.add_argument("--profile", action="store_true", help="also print where the time goes")
    options = parser.parse_args()
    work = WORKS[options.work]
    run = _runner(options.library, work)
    report_after = timed(run, work.warm_up, max(1, int(work.steps * options.scale)), STARTED)
    if options.profile:
        _profile(run, work.steps // 4)
    report(report_after)


def _runner(library: str, work: Work) -> Callable[[int], None]:
    if work.seeds > 1:
        if library not in SIDES:
            sys.exit(NOT_AVAILABLE)
        return runner(work, library)
    if library in FRAMEWORKS:
        if library != "jax" and work.level is not None and work.level.startswith("gymnax:"):
            sys.exit(NOT_AVAILABLE)
        from benchmarks import coach_side

        return coach_side.runner(work, library)
    if work.level is None:
        sys.exit(NOT_AVAILABLE)
    from benchmarks.peers import PEERS

    try:
        return PEERS[library](work)
    except ImportError:
        sys.exit(NOT_AVAILABLE)


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
