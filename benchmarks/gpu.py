"""Measures the speed on a GPU: ``python -m benchmarks.gpu``. It needs no network and ends within eight minutes.

Each measurement is a separate process. When the time is over, the remaining measurements are left out, and the script
lists them. Without a GPU, the script measures the speed of the processor. To test the script, use ``--quick``: it
measures small sizes for a fraction of a second.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from typing import Any, Iterator

from rich.console import Console
from rich.table import Column, Table

from benchmarks.works import WORKS, Work

COPIES, QUICK_COPIES = (8, 256, 2_048, 16_384), (8, 64)
SEEDS, QUICK_SEEDS = (8, 64), (2,)
SHORTEST_CASE = 15.0
"""Seconds that a measurement needs at least: with less time left, it does not begin."""
_STEPS_OF_SEED, _QUICK_STEPS_OF_SEED = 204_800, 4_096
_ROWS_OF_LARGEST_BATCH = 8_192
PLAYGROUND = Work(
    "playground", "PPO, CartpoleBalance of MuJoCo Playground in a compiled loop", "ppo", "playground:CartpoleBalance",
    (64, 64), 2_048, 0, 0, environments=2_048, rollout=2_048 * 32, epochs=4,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A measurement.

    :param name: the row in the table
    :param side: the column in the table: ``Coach``, ``straight loop`` or ``Coach, processor``
    :param work: the work to measure
    :param package: a package that must be installed, in addition to JAX; None for no package
    """

    name: str
    side: str
    work: Work
    package: str | None = None


@dataclass(frozen=True)
class Speed:
    """The result of a measurement.

    :param steps_per_second: environment steps, learning included
    :param first_step_seconds: from the start to the end of the first step, compilation included; None for whole
        commands, which include their start
    """

    steps_per_second: float
    first_step_seconds: float | None


def cases(quick: bool, has_gpu: bool) -> Iterator[Case]:
    """All measurements, the most important first."""
    for copies in QUICK_COPIES if quick else COPIES:
        for name in ("W11", "W12"):
            row, work = f"{name}, {copies:,} copies", _with_copies(WORKS[name], copies)
            yield Case(row, "Coach", work, "gymnax")
            yield Case(row, "straight loop", work, "gymnax")
    acting_on_processor = [(name, WORKS[name], None if name == "W4" else "ale_py") for name in ("W4", "W5", "W9")]
    for name, work, package in acting_on_processor:
        yield Case(name, "Coach", work, package)
    yield Case("playground", "Coach", _with_copies(PLAYGROUND, 8) if quick else PLAYGROUND, "mujoco_playground")
    for seeds in QUICK_SEEDS if quick else SEEDS:
        yield Case(f"W13, {seeds} seeds", "Coach", replace(WORKS["W13"], seeds=seeds), "gymnax")
    if has_gpu:
        for name, work, package in acting_on_processor:
            yield Case(name, "Coach, processor", work, package)


def _with_copies(work: Work, copies: int) -> Work:
    """The work with another number of copies. After each step of all copies, the number of updates stays the same, and
    their batches grow with the number of copies.
    """
    if copies == work.environments:
        return work
    if work.algorithm == "ppo":
        return replace(work, environments=copies, rollout=32 * copies, batch_size=copies)
    batch = min(work.batch_size // work.environments * copies, _ROWS_OF_LARGEST_BATCH)
    return replace(
        work, environments=copies, steps_per_update=copies, batch_size=batch, memory=max(work.memory, 64 * copies)
    )


def main() -> None:
    """Measure, write a JSON file after each measurement, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="W4, W5, W9, W11, W12, W13, playground (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to test the script")
    parser.add_argument("--seconds", type=float, default=480.0, help="the script ends then (default: %(default).0f)")
    parser.add_argument("--output", default="gpu.json", metavar="FILE", help="the JSON file (default: %(default)s)")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)  # this process makes one measurement
    parser.add_argument("--has_gpu", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        _measure(list(cases(options.quick, options.has_gpu))[options.one], options.quick)
        return
    known = {"W4", "W5", "W9", "W11", "W12", "W13", "playground"}
    if unknown := set(options.names) - known:
        parser.error(f"no measurement {', '.join(sorted(unknown))}: there are {', '.join(sorted(known))}")
    ends = time.monotonic() + options.seconds
    found: dict[str, Any] = {"machine": _machine(), "quick": options.quick, "results": [], "left_out": []}
    print(_headline(found["machine"]), flush=True)
    for number, case in enumerate(cases(options.quick, found["machine"]["has_gpu"])):
        if options.names and case.work.name not in options.names:
            continue
        outcome = _outcome(number, case, options.quick, found["machine"]["has_gpu"], ends - time.monotonic())
        entry = {"name": case.name, "side": case.side, "title": case.work.title}
        if isinstance(outcome, Speed):
            found["results"].append({**entry, **vars(outcome)})
            print(f"{case.name}, {case.side}: {outcome.steps_per_second:,.0f} steps/s", flush=True)
        else:
            found["left_out"].append({**entry, "reason": outcome})
            print(f"{case.name}, {case.side}: left out: {outcome}", flush=True)
        pathlib.Path(options.output).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    _show(found)
    print(f"written: {options.output}")


def _machine() -> dict[str, Any]:
    """The GPU, the processor and the versions, for the JSON file."""
    script = (
        "import jax, json; found = jax.devices(); print(json.dumps({'platform': found[0].platform, "
        "'kind': found[0].device_kind, 'devices': len(found), 'jax': jax.__version__}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"JAX does not start here: {done.stderr.strip().splitlines()[-1]}")
    facts = json.loads(done.stdout.strip().splitlines()[-1])
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    with contextlib.suppress(FileNotFoundError):
        said = subprocess.run(query, capture_output=True, text=True, check=False)
        facts["nvidia_smi"] = said.stdout.strip()
    return {
        **facts, "has_gpu": facts["platform"] != "cpu", "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(), "python": platform.python_version(), "date": time.strftime("%Y-%m-%d"),
    }  # fmt: skip


def _headline(machine: dict[str, Any]) -> str:
    if machine["has_gpu"]:
        return f"{machine['devices']} x {machine['kind']}, JAX {machine['jax']}, {machine['cores']} cores"
    return f"JAX {machine['jax']} finds no GPU: these are figures of the processor, {machine['cores']} cores"


def _outcome(number: int, case: Case, quick: bool, has_gpu: bool, left: float) -> Speed | str:
    """Measure in a separate process. :return: the speed, or the reason why there is none"""
    if left < SHORTEST_CASE:
        return "the time is spent"
    for package in filter(None, ("jax", case.package, "optax" if case.side == "straight loop" else None)):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed"
    command = [sys.executable, "-m", "benchmarks.gpu", "--one", str(number)]
    command += ["--quick"] * quick + ["--has_gpu"] * has_gpu
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"} if case.side == "Coach, processor" else None
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        printed, errors = process.communicate(timeout=left)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)  # also the processes that the measurement has started, one for each seed
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            return f"the time is spent; it had {left:.0f} s"
        raise
    if process.returncode:
        return f"failed: {(errors.strip().splitlines() or ['no message'])[-1]}"
    return Speed(**json.loads(printed.strip().splitlines()[-1]))


def _measure(case: Case, quick: bool) -> None:
    """Measure the case, and print the speed as JSON in the last line."""
    started, work = time.perf_counter(), case.work
    if work.seeds > 1:
        from benchmarks.seeds_side import runner

        steps = work.seeds * (_QUICK_STEPS_OF_SEED if quick else _STEPS_OF_SEED)
        runner(work, "jax")(steps)
        print(json.dumps(vars(Speed(steps / (time.perf_counter() - started), None))))
        return
    if case.side == "straight loop":
        from benchmarks.straight_side import StraightLoop

        run: Any = StraightLoop(work)
    else:
        from benchmarks.coach_side import Training

        run = Training(work, "jax")
    run(1)
    first_step = time.perf_counter() - started
    print(json.dumps(vars(Speed(_steps_per_second(run, work, 0.5 if quick else 2.0), first_step))))


def _steps_per_second(run: Any, work: Work, seconds: float) -> float:
    """Warm up, then increase the steps of a call until it takes at least ``seconds``. :return: its steps per second"""
    steps = work.rollout if work.algorithm == "ppo" else max(256, 8 * work.environments)
    run(2 * steps)
    while True:
        begin = time.perf_counter()
        run(steps)
        taken = time.perf_counter() - begin
        if taken >= seconds:
            return steps / taken
        # near the limit, double the steps only, so that the last call takes at most twice the necessary time
        steps *= 2 if taken > seconds / 8 else 4


def _show(found: dict[str, Any]) -> None:
    table = Table(Column("measurement", no_wrap=True), "Coach", "straight", "ratio", "processor", "first step")
    for name in dict.fromkeys(one["name"] for one in found["results"]):
        by_side = {one["side"]: one for one in found["results"] if one["name"] == name}
        speeds = {side: one["steps_per_second"] for side, one in by_side.items()}
        ours, straight = speeds.get("Coach"), speeds.get("straight loop")
        first = by_side.get("Coach", {}).get("first_step_seconds")
        table.add_row(
            name,
            *(f"{speed:,.0f}" if speed else "" for speed in (ours, straight)),
            f"{ours / straight:.2f}" if ours and straight else "",
            f"{speeds['Coach, processor']:,.0f}" if "Coach, processor" in speeds else "",
            f"{first:.1f} s" if first else "",
        )
    Console(width=80, highlight=False).print(table)
    print("steps per second, learning included; ratio: Coach compared with the straight loop")
    print("processor: the same work without the GPU; first step: from the start, with compilation")
    for one in found["left_out"]:
        print(f"left out: {one['name']}, {one['side']}: {one['reason']}")


if __name__ == "__main__":
    main()
