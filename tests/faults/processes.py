"""Runs in processes of their own, in a process group of their own, to be stopped and hurt."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]
TOO_LONG = 900  # seconds, for anything that a test waits for: only a run that hangs needs so many

SHORT = (
    "agent_params.network_wrappers['main'].batch_size=8; heatup_steps=EnvironmentSteps(0); "
    "evaluation_steps=EnvironmentEpisodes(0); improve_steps=EnvironmentSteps({steps})"
)


class Run:
    """``coach`` with some arguments.

    :param directory: where it runs, and writes without an ``-ep`` of its own
    :param arguments: of the command line
    """

    def __init__(self, directory: pathlib.Path, *arguments: str, **environment: str):
        self.directory = directory
        settings = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "TF_CPP_MIN_LOG_LEVEL": "3", **environment}
        place = [] if "-ep" in arguments else ["-ep", str(directory)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rl_coach.coach", *place, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=directory, text=True, start_new_session=True,
            env={**os.environ, **settings},
        )  # fmt: skip

    def wait_for(self, *beginnings: str) -> list[str]:
        """Read lines until one begins in one of these ways. :return: all lines up to it"""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip())
            if line.startswith(beginnings):
                return lines
        raise AssertionError(f"no line begins with {' or '.join(map(repr, beginnings))}:\n" + "\n".join(lines))

    def signal_group(self, number: int = signal.SIGTERM) -> None:
        """Send a signal to the process and all its children."""
        os.killpg(self.process.pid, number)

    def end(self) -> tuple[int, str]:
        """Wait for the end. :return: exit code, and what it had still to say"""
        try:
            text = self.process.communicate(timeout=TOO_LONG)[0]
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.returncode, text

    def group_is_gone(self) -> bool:
        """Whether no process of the group is left soon: multiprocessing's own helper notices the end a moment later."""
        deadline = time.monotonic() + TOO_LONG
        while time.monotonic() < deadline:
            if not any(group == self.process.pid for group in _groups_alive()):
                return True
            time.sleep(0.05)
        return False


def _groups_alive() -> list[int]:
    """The process group of each process that runs; one that has ended and waits for its parent does not."""
    groups = []
    for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = file.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # it has just ended
        if state != "Z":
            groups.append(int(group))
    return groups
