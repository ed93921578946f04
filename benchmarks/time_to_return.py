"""Measures the wall time until a preset reaches a mean return, with rollout workers. The time begins with the command.

``python -m benchmarks.time_to_return --workers 4 --reward 475``

An evaluation of 10 episodes follows after every 2,000 steps. The time ends when an evaluation has the mean return. If
no evaluation reaches this return within ``--minutes``, the table shows "not reached". Measure on a machine without
other work.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.train_to_reward import first_worker

PRESETS = ("CartPole_APPO", "CartPole_IMPALA", "CartPole_ClippedPPO")
SETTINGS = (
    "improve_steps=EnvironmentSteps(10000000); steps_between_evaluation_periods=EnvironmentSteps(2000); "
    "evaluation_steps=EnvironmentEpisodes(10)"
)


def seconds_to_return(preset: str, seed: int, args: argparse.Namespace) -> float | None:
    """Seconds until the first evaluation with the mean return; None if the run takes longer than ``args.minutes``.

    :param args: the arguments of the command line
    :raises SystemExit: if the run ended before the time limit, because of an error
    """
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "rl_coach.coach", "-p", preset, "-f", args.framework, "-ep", directory, "-ns"]
        command += ["-lvl", args.level, "--seed", str(seed), "-dc", "-n", str(args.workers), "-cp", SETTINGS]
        began = time.monotonic()
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            while (passed := time.monotonic() - began) < 60 * args.minutes:
                if run.poll() is not None:
                    raise SystemExit(f"{preset} ended with {run.returncode}")
                curve, _ = first_worker(pathlib.Path(directory))
                if any(found >= args.reward for _, found in curve):
                    return passed
                time.sleep(0.2)
            return None
        finally:
            run.terminate()
            run.wait()


def main() -> None:
    """Measure each preset with each seed, one after the other, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.time_to_return", description=__doc__)
    parser.add_argument("presets", nargs="*", default=PRESETS)
    parser.add_argument("--level", default="CartPole-v1", help="the level of all presets (%(default)s)")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--reward", type=float, default=475.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("-f", "--framework", default="jax")
    args = parser.parse_args()
    print(f"| preset, {args.workers} workers | seconds to {args.reward:g}, by seed | median |\n|---|---|---|")
    for preset in args.presets:
        found = [seconds_to_return(preset, seed, args) for seed in range(args.seeds)]
        shown = ", ".join("not reached" if one is None else f"{one:.0f}" for one in found)
        median = statistics.median(float("inf") if one is None else one for one in found)
        print(f"| `{preset}` | {shown} | {median:.0f} |", flush=True)


if __name__ == "__main__":
    main()
