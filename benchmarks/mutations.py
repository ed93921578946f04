"""Mutation testing: ``python -m benchmarks.mutations [--only clock.py] [--folder rl_coach/agents/core]``.

Each mutation is a small mistake in a copy of the repository. The tests named beside it must fail there. A mutation that
they do not catch shows a test that is missing.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]
CORE = "rl_coach/agents/core"
LEAST_CAUGHT = 0.9


@dataclass(frozen=True)
class Mutation:
    """A mistake.

    :param file: in ``folder``
    :param old: a text that the file has once
    :param new: what stands there instead
    :param tests: what pytest is to run: files and ``-k`` with a name
    :param folder: below the repository
    """

    file: str
    old: str
    new: str
    tests: str
    folder: str = CORE

    @property
    def path(self) -> pathlib.Path:
        """The file, below the repository."""
        return pathlib.Path(self.folder) / self.file

    def apply(self, directory: pathlib.Path) -> str:
        """Make the mistake in a copy of the repository. :return: the file's text before"""
        path = directory / self.path
        before = path.read_text("utf-8")
        if before.count(self.old) != 1:
            raise SystemExit(f"{self.path} has {before.count(self.old)} times, not once: {self.old}")
        path.write_text(before.replace(self.old, self.new), "utf-8")
        return before


CLOCK, EPISODES, SIGNALS, UPDATES = (
    f"tests/agents/core/test_{name}.py" for name in ("clock", "parallel_episodes", "signals", "update_loop")
)
SEQUENCES = "tests/agents/test_recurrent_sequences.py -k cut_into_sequences"

MUTATIONS = (
    Mutation("clock.py", "phases, rest = 1, 0", "phases, rest = 1, rest", CLOCK),
    Mutation("clock.py", "self.last_phase >= period.num_steps and", "self.last_phase > period.num_steps and", CLOCK),
    Mutation("clock.py", "return -(-self.steps_at_once // max(1, period.num_steps))",
             "return self.steps_at_once // max(1, period.num_steps)", CLOCK),
    Mutation("clock.py", "self.last_target_update + 1", "self.last_target_update", CLOCK),
    Mutation("clock.py", "due_in = math.ceil(period.num_steps) - (self.updates - self.last_target_update)",
             "due_in = math.ceil(period.num_steps)", CLOCK),
    Mutation("clock.py", "self.last_target_update = now - passed", "self.last_target_update = now", CLOCK),
    Mutation("parallel_episodes.py", "present = {self.index: self._player.episode}", "present = {}", EPISODES),
    Mutation("parallel_episodes.py", "in reversed(list(enumerate(episodes)))",
             "in list(enumerate(episodes))", EPISODES),
    Mutation("parallel_episodes.py", "self._episodes[self.index] = self._player.put_episode_aside()",
             "self._player.put_episode_aside()", EPISODES),
    Mutation("signals.py", "reward >= success_threshold", "reward > success_threshold", SIGNALS),
    Mutation("signals.py", "done, self.evaluation = self.evaluation, Evaluation()", "done = self.evaluation", SIGNALS),
    Mutation("signals.py", "        if self._are_targets_updated:",
             "        if not self._are_targets_updated:", SIGNALS),
    Mutation("update_loop.py", "count = min(left, most)",
             "count = left", UPDATES),
    Mutation("update_loop.py", "np.abs(result.errors)", "result.errors", UPDATES),
    Mutation("update_loop.py", "if not are_updated:", "if are_updated:", UPDATES),
    Mutation("update_loop.py", "[number % period == 0 for number in numbers]",
             "[number % period == 1 for number in numbers]", UPDATES),
    Mutation("overrides.py", 'replaced_beside={"make_update_rule"}', "replaced_beside=()",
             "tests/agents/core/test_overrides.py"),
    Mutation("sequences.py", 'flat["weights"] * self._is_present.ravel()', 'flat["weights"]', SEQUENCES),
    Mutation("sequences.py", "before + 1", "before", SEQUENCES),
    Mutation("experience.py", "- episode.num_stored < algorithm.n_step", "- episode.num_stored <= algorithm.n_step",
             "tests/agents/test_n_step.py -k what_is_stored"),
)  # fmt: skip


def copy_of_the_repository(directory: pathlib.Path) -> None:
    """Copy what the tests need."""
    for name in ("rl_coach", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", directory)
    (directory / "presets").symlink_to(directory / "rl_coach" / "presets")


def pass_tests(directory: pathlib.Path, tests: str) -> bool:
    """Run tests in a copy of the repository. :raises SystemExit: they cannot be run"""
    environment = {
        **os.environ,
        "PYTHONPATH": str(directory),
        "COACH_TEST_FRAMEWORK": "jax",
        "KERAS_BACKEND": "jax",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split()]
    result = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    if result.returncode not in (0, 1):
        raise SystemExit(f"{tests} cannot be run: {result.stdout[-2000:]}{result.stderr[-2000:]}")
    return result.returncode == 0


def main() -> int:
    """Make each mistake and run its tests.

    :return: the exit code, 1 if too many are not caught
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__)
    parser.add_argument("--only", default="", metavar="FILE", help="the mutations of one file")
    parser.add_argument(
        "--folder", choices=sorted({mutation.folder for mutation in MUTATIONS}), help="the mutations of one folder"
    )
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if options.only in m.file and options.folder in (None, m.folder)]
    caught = 0
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place)
        copy_of_the_repository(directory)
        for tests in dict.fromkeys(mutation.tests for mutation in chosen):
            if not pass_tests(directory, tests):
                raise SystemExit(f"{tests} fails without any mutation")
        for mutation in chosen:
            before = mutation.apply(directory)
            is_caught = not pass_tests(directory, mutation.tests)
            (directory / mutation.path).write_text(before, "utf-8")
            caught += is_caught
            print(f"{'caught  ' if is_caught else 'SURVIVED'} {mutation.path}: {mutation.old.strip()}", flush=True)
    print(f"{caught} of {len(chosen)} mutations are caught")
    return 0 if caught >= LEAST_CAUGHT * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
