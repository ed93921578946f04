"""Runs the works with several seeds as whole commands: ``coach --seeds 8``, or eight successive commands."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
from typing import Callable

from benchmarks.works import Work

ONE_BY_ONE = "one_by_one"
SIDES = ("jax", ONE_BY_ONE)


def runner(work: Work, side: str) -> Callable[[int], None]:
    """A function that makes environment steps of a work, start and compilation included. The seeds share the steps.

    :param side: ``jax``: one command trains all seeds in one program; ``one_by_one``: one command for each seed
    """
    commands = [[f"--seed={seed}"] for seed in range(work.seeds)] if side == ONE_BY_ONE else [[f"--seeds={work.seeds}"]]

    def run(steps: int) -> None:
        if not steps:
            return
        own = max(1, steps // work.seeds)
        with tempfile.TemporaryDirectory() as directory:
            for flags in commands:
                _train(work, directory, [*flags, f"-cp=improve_steps = EnvironmentSteps({own})"])

    return run


def _train(work: Work, directory: str, flags: list[str]) -> None:
    preset = f"{pathlib.Path(__file__).with_name('seeds_preset.py')}:{work.name}"
    command = [sys.executable, "-m", "rl_coach", "-p", preset, "-lvl", str(work.level), "-f", "jax"]
    subprocess.run([*command, "-ep", directory, *flags], check=True, capture_output=True)
