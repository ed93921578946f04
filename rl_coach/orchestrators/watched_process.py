"""Processes of a distributed run that are restarted if they die."""

from __future__ import annotations

import abc
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Callable, Mapping

from rl_coach.logger import screen
from rl_coach.utilities.stop_signals import held_back

DONE, FAILED, BAD_INPUT = 0, 1, 2
"""Exit codes of the trainer and of the workers."""
MOST_RESTARTS = 5
"""The limit of restarts of a process. The count begins again when the trainer has stored a step of the process."""


def find_death_signal(number: int = signal.SIGTERM) -> Callable[[], None] | None:
    """A function that a new process must call to get a signal when its parent dies. The system sends the signal once
    for each thread of the parent.

    :param number: the signal
    :return: the function; None if the system does not support such signals
    """
    if not sys.platform.startswith("linux"):
        return None
    # Find ``prctl`` before the fork: between fork and exec, only calls that need no locks are safe.
    set_option, parent_death_signal = ctypes.CDLL(None, use_errno=True).prctl, 1

    def end_with_parent() -> None:
        set_option(parent_death_signal, number)

    return end_with_parent


class WatchedProcess(abc.ABC):
    """A process of the run that can be restarted.

    :param name: the name of the process in messages
    """

    def __init__(self, name: str):
        self.name = name
        self._failures = 0  # number of failures since the last stored step
        self._stored: Mapping[str, int] = {}
        self._gone_at: float | None = None

    def start(self) -> None:
        """Start or restart the process."""
        self._gone_at = None
        self._start()

    @abc.abstractmethod
    def _start(self) -> None: ...

    @property
    @abc.abstractmethod
    def code(self) -> int | None:
        """The exit code; None while the process runs."""

    @abc.abstractmethod
    def signal(self, number: int) -> None:
        """Send a signal if the process runs."""

    @abc.abstractmethod
    def wait(self, seconds: float) -> None:
        """Wait for the end of the process. If it has not ended after the given seconds, kill the process."""

    @abc.abstractmethod
    def log(self) -> str:
        """The output of the process so far; empty if the output goes to the screen."""

    def last_words(self) -> str:
        """The last line of the output."""
        lines = reversed(self.log().split("\n"))
        return next((line.strip() for line in lines if line.strip()), "").removeprefix("coach: ")

    def is_gone_for(self, seconds: float) -> bool:
        """True if ``seconds`` have passed since the first call of this method. Call the method only after the end of
        the process."""
        now = time.monotonic()
        if self._gone_at is None:
            self._gone_at = now
        return now - self._gone_at >= seconds

    def note_stored(self, stored: Mapping[str, int]) -> None:
        """Reset the count of failures if the trainer has stored new steps of the process. The count does not depend on
        time, because a simulator may run for long before it fails.

        :param stored: number of steps that the trainer has stored, by sender; for a worker, only its own steps
        """
        if stored != self._stored:
            self._stored, self._failures = dict(stored), 0

    def starts_again(self) -> bool:
        """Restart the process, and print a warning. :return: False if the process has failed too often"""
        how = _way_of_ending(self.code or 0)
        if self.code == FAILED:
            how += f" ({self.last_words()})"
        self._failures += 1
        if self._failures > MOST_RESTARTS:
            screen.warning(
                f"{self.name} {how} {self._failures} times, and no new steps were stored in between: {self.name} is "
                "not restarted"
            )
            return False
        screen.warning(f"{self.name} {how}: it is restarted")
        self.start()
        return True


class LocalProcess(WatchedProcess):
    """A process on this machine.

    :param name: the name of the process in messages
    :param command: the command line
    :param log: the file for the output; None sends the output to the screen
    :param environment: additional environment variables
    :param death_signal: the signal that the process gets when its parent dies
    :param holds_back: True if the process handles signals with ``stop_signals``; signals are blocked until it does
    """

    def __init__(
        self,
        name: str,
        command: list[str],
        log: pathlib.Path | None,
        environment: dict[str, str],
        death_signal: int = signal.SIGTERM,
        holds_back: bool = False,
    ):
        super().__init__(name)
        self._command, self._log = command, log
        self._holding = held_back if holds_back else contextlib.nullcontext
        self._environment = {**os.environ, **environment}
        self._before_start = find_death_signal(death_signal)
        self.process: subprocess.Popen | None = None

    def _start(self) -> None:
        # Append to the log, so that the log keeps the output from before a restart.
        with self._holding(), contextlib.nullcontext() if self._log is None else open(self._log, "ab") as output:
            # In a separate session the process gets no Ctrl-C: the orchestrator gets the signal and ends all processes
            # in order.
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self._environment,
                start_new_session=True, preexec_fn=self._before_start,
            )  # fmt: skip

    @property
    def code(self) -> int | None:
        return None if self.process is None else self.process.poll()

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def wait(self, seconds: float) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log is not None and self._log.exists() else ""


def _way_of_ending(code: int) -> str:
    if code == DONE:
        return "ended, although its trainer continues"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    names = {128 + one: one.name for one in signal.Signals}  # exit codes of processes that handle a signal
    return f"was ended by {names[code]}" if code in names else f"ended with exit code {code}"
