"""Compares the speed of Coach and other libraries on the same works: ``python -m benchmarks [W1 ...]``."""

from __future__ import annotations

import argparse
import json
import statistics
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.measured import BenchmarkError, Measured, in_own_process
from benchmarks.peers import FRAMEWORKS, LIBRARIES, PEERS, MissingEnvironment
from benchmarks.works import WORKS

FILE_WIDTH = 160  # width of the table in characters if it is not printed on a terminal


def main() -> None:
    """Measure all libraries in each round, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "works", nargs="*", metavar="WORK", help="; ".join(f"{w.name}: {w.title}" for w in WORKS.values())
    )
    parser.add_argument("--rounds", type=int, default=3, help="processes of each library, in turn (default 3)")
    parser.add_argument(
        "--libraries",
        default=",".join(library for library in LIBRARIES if library != "mxnet"),
        help="what to run: %(default)s",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="time that many times the steps")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--profile", action="store_true", help="print where Coach's time goes, instead of comparing")
    options = parser.parse_args()
    unknown = set(options.works) - set(WORKS)
    if unknown:
        parser.error(f"no work {', '.join(sorted(unknown))}: there are {', '.join(WORKS)}")
    libraries = options.libraries.split(",")
    unknown = set(libraries) - set(LIBRARIES)
    if unknown:
        parser.error(f"no library {', '.join(sorted(unknown))}: there are {', '.join(LIBRARIES)}")
    if options.profile:
        for name in options.works or WORKS:
            in_own_process(libraries[0], name, options.scale, profile=True)
        return
    failures: list[str] = []
    results = {n: _rounds(n, libraries, options.rounds, options.scale, failures) for n in options.works or WORKS}
    print(_as_json(results)) if options.json else _show(results)
    if failures:
        sys.exit("\n\n".join(failures))


def _rounds(
    work: str, libraries: list[str], rounds: int, scale: float, failures: list[str]
) -> dict[str, list[Measured]]:
    """Measure a work with each library, in each round. Other work of the machine then slows all libraries equally.

    A library that fails or is not installed is left out. The reason is added to ``failures``, and the other libraries
    continue.
    """
    found: dict[str, list[Measured]] = {library: [] for library in libraries}
    for number in range(1, rounds + 1):
        for library in list(found):
            try:
                measured = in_own_process(library, work, scale)
            except (BenchmarkError, MissingEnvironment) as error:
                if str(error) not in failures:
                    failures.append(str(error))
                del found[library]
                outcome = (
                    "not installed, see the end" if isinstance(error, MissingEnvironment) else "failed, see the end"
                )
            else:
                outcome = f"{_speed(measured.steps_per_second)} steps/s" if measured else "not for this work"
                if measured:
                    found[library].append(measured)
                else:
                    del found[library]
            print(f"{work}, round {number} of {rounds}: {library}: {outcome}", file=sys.stderr)
    return {library: runs for library, runs in found.items() if runs}


def _show(results: dict[str, dict[str, list[Measured]]]) -> None:
    table = Table(
        "work", "library", "steps/s", "min to max", "ratio", "processor ms", "first step", "peak memory", "return"
    )
    for work, found in results.items():
        if not found:
            continue
        base = statistics.median(run.steps_per_second for run in next(iter(found.values())))
        for library, runs in found.items():
            speeds = [run.steps_per_second for run in runs]
            median = statistics.median(speeds)
            table.add_row(
                WORKS[work].title if library == next(iter(found)) else "",
                library,
                _speed(median),
                f"{_speed(min(speeds))} to {_speed(max(speeds))}",
                f"{base / median:.2f}",
                f"{statistics.median(run.processor_milliseconds for run in runs):.3f}",
                f"{statistics.median(run.first_step_seconds for run in runs):.1f} s",
                f"{statistics.median(run.peak_megabytes for run in runs):,.0f} MB",
                "" if runs[0].mean_return is None else f"{statistics.median(_returns(runs)):.0f}",
            )
        table.add_section()
    Console(width=None if sys.stdout.isatty() else FILE_WIDTH).print(table)
    print("ratio: the first library's speed over this one's; processor ms: of all cores, a step")
    print("return: the mean return after the timed steps (CartPole; at most 500)")
    for work, found in results.items():
        comparison = _with_the_fastest_peer(found)
        if comparison:
            print(f"{work}: {comparison}")


def _speed(steps_per_second: float) -> str:
    return f"{steps_per_second:,.0f}" if steps_per_second >= 100 else f"{steps_per_second:.3g}"


def _returns(runs: list[Measured]) -> list[float]:
    return [run.mean_return for run in runs if run.mean_return is not None]


def _with_the_fastest_peer(found: dict[str, list[Measured]]) -> str | None:
    """Compare Coach, on its fastest framework, with the fastest other library.

    :return: a line of text; None if Coach or all other libraries were not measured
    """
    medians = {name: statistics.median(run.steps_per_second for run in runs) for name, runs in found.items()}
    ours = {name: speed for name, speed in medians.items() if name in FRAMEWORKS}
    theirs = {name: speed for name, speed in medians.items() if name in PEERS}
    if not ours or not theirs:
        return None
    our_best, their_best = max(ours, key=ours.__getitem__), max(theirs, key=theirs.__getitem__)
    return (
        f"Coach ({our_best}) {_speed(ours[our_best])} steps/s, {their_best} {_speed(theirs[their_best])}: "
        f"ratio {ours[our_best] / theirs[their_best]:.2f}"
    )


def _as_json(results: dict[str, dict[str, list[Measured]]]) -> str:
    return json.dumps({w: {n: [vars(r) for r in runs] for n, runs in f.items()} for w, f in results.items()}, indent=2)


if __name__ == "__main__":
    main()
