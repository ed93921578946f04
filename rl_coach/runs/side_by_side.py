"""Several runs as processes at the same time, on one display with a line for each run."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Callable, Sequence

from rl_coach.logger import screen
from rl_coach.runs.progress import display_on, duration, last_and_best
from rl_coach.runs.status import FAILED, RUNNING, part_of, read_status
from rl_coach.utilities.stop_signals import SIGNALS, held_back, leave_lost_terminal, stop_signals
from rl_coach.utilities.system import handling

_SECONDS_BETWEEN_LOOKS = 0.1
_SIGNALS_THAT_ASK = 2
"""The first signal lets a run save a checkpoint, the second ends it at once, the third kills it."""
_STOPPED = (*(128 + one for one in SIGNALS), *(-one for one in SIGNALS))
_FAILED, _BAD_INPUT = 1, 2
_CODES_OF_ERRORS = (_FAILED, _BAD_INPUT)
"""A run that ends with one of these exit codes has printed the reason."""
_BYTES_OF_LAST_LINES = 8192
_SECONDS_TO_SAVE = 60.0


@dataclass(frozen=True)
class Job:
    """A run to start. :param program: the module that Python runs"""

    name: str
    flags: Sequence[str]
    directory: pathlib.Path
    program: str = "rl_coach"

    @property
    def log(self) -> pathlib.Path:
        """The file with the run's output, next to the run's directory."""
        return self.directory.with_name(f"{self.directory.name}.log")


@dataclass(frozen=True)
class Outcome:
    """The end of a run.

    :param job: the run
    :param code: exit code, negative for a signal; None if the run never began
    :param status: the run's last status; empty if it wrote none
    :param last_line: the last line that it printed
    """

    job: Job
    code: int | None
    status: dict[str, Any] = field(default_factory=dict)
    last_line: str = ""

    @property
    def has_finished(self) -> bool:
        """True if the run ended normally."""
        return self.code == 0

    @property
    def progress(self) -> dict[str, Any]:
        """The run's progress in the form of ``Progress.report``; empty if it is unknown."""
        return part_of(self.status, "progress")

    @property
    def score(self) -> float | None:
        """Mean reward of the last evaluation or, without an evaluation, of the last 100 training episodes."""
        evaluation = self.status.get("evaluation")
        if isinstance(evaluation, dict):
            return evaluation.get("mean")
        last = self.progress.get("last_evaluation")
        return self.progress.get("mean_reward") if last is None else last

    @property
    def was_stopped(self) -> bool:
        """True if the user or the system stopped the run."""
        return self.code in _STOPPED

    @property
    def state(self) -> str | None:
        """The run's state, as in ``status.json``; None if it never began."""
        if self.code is not None and not self.has_finished and not self.was_stopped:
            return FAILED
        return self.status.get("state")

    @property
    def error(self) -> str:
        """The reason of the failure, in one line."""
        if self.code is not None and self.code < 0:
            return f"was killed by signal {-self.code}"
        if self.status.get("error"):
            return str(self.status["error"])
        said = self.last_line.removeprefix("!!!! ").removeprefix("coach: ")
        is_reason = said != self.last_line or self.status.get("state") != RUNNING
        if said and is_reason and self.code in _CODES_OF_ERRORS:
            return said
        return f"ended with exit code {self.code}"


@dataclass
class _Running:
    """A run in progress: its status before it began, and the number of signals that were sent to it."""

    job: Job
    process: subprocess.Popen[bytes]
    place: int
    before: dict[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    heard: int = 0

    def read_status(self) -> dict[str, Any]:
        """The status that this run, or a process that it has started, wrote; not the status of an earlier run."""
        status = read_status(self.job.directory)
        is_of_this_run = status.get("pid") == self.process.pid or _writer(status) != _writer(self.before)
        return status if is_of_this_run else {}

    def outcome(self) -> Outcome:
        return Outcome(self.job, self.process.returncode, self.read_status(), _last_line(self.job.log))

    def send(self, number: int) -> None:
        """Send a signal to the run. The third signal is always SIGKILL."""
        self.heard += 1
        self.process.send_signal(number if self.heard <= _SIGNALS_THAT_ASK else signal.SIGKILL)


def _writer(status: dict[str, Any]) -> tuple[Any, Any]:
    """The process that wrote a status."""
    return status.get("host"), status.get("pid")


def num_cores() -> int:
    """The number of cores that this process may compute on."""
    return len(_cores()) or os.cpu_count() or 1


def _cores() -> list[int]:
    """The cores of this process; empty if the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


class SideBySide:
    """Runs processes of ``coach`` at the same time, each on its share of the cores, so that their threads do not
    compete.

    Ctrl-C, SIGTERM and SIGHUP are passed on to each run. The run ends, and saves a checkpoint if it trains. Runs that
    have not begun are not started.

    :param jobs: the runs, in the order of their start
    :param at_once: number of runs at the same time
    :param ends_all: returns True if the outcome of one run shows that the others are useless. All other runs are then
        ended
    :param say: called with the outcome of each run at its end
    :param more: called when another run can start. It returns this run, or None if there is no other run at this time
    :ivar stopped_by: the number of the first signal; None if there was no signal
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        at_once: int,
        say: Callable[[Outcome], None],
        ends_all: Callable[[Outcome], bool] = lambda outcome: False,
        more: Callable[[], Job | None] = lambda: None,
    ):
        self.stopped_by: int | None = None
        self._jobs = list(jobs)
        self._waiting = deque(jobs)
        self._running: list[_Running] = []
        self._outcomes: dict[pathlib.Path, Outcome] = {}
        self._at_once = at_once
        self._say, self._ends_all, self._more = say, ends_all, more
        self._signals: deque[int] = deque()
        self._display = display_on(screen)
        self._shows_waiting = screen.is_live

    def run(self) -> list[Outcome]:
        """Run all jobs to their ends.

        :return: an outcome for each job, in their order; jobs of ``more`` come last
        """
        stop_signals.stop_if_asked()
        with handling(SIGNALS, self._hear), contextlib.closing(self._display):
            try:
                while True:
                    self._pass_signals_on()
                    self._begin()
                    if not self._running:
                        break
                    self._collect()
                    states = [(one.job, one.read_status(), one.began) for one in self._running]
                    self._display.show_table(_columns(states, len(self._waiting) if self._shows_waiting else 0))
                    time.sleep(_SECONDS_BETWEEN_LOOKS)
            finally:
                self._end_all()
        return [self._outcomes.get(job.directory) or Outcome(job, None) for job in self._jobs]

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._signals.append(number)

    def _pass_signals_on(self) -> None:
        while self._signals:
            number = self._signals.popleft()
            if self.stopped_by is None:
                self.stopped_by = number
                if number == signal.SIGHUP:
                    leave_lost_terminal()
                self._take_no_more()
                screen.warning(
                    "stopping: each run that trains saves a checkpoint; a second Ctrl-C ends the runs without one"
                )
            for one in self._running:
                one.send(number)

    def _begin(self) -> None:
        while len(self._running) < self._at_once and (job := self._next()) is not None:
            taken = {one.place for one in self._running}
            place = next(place for place in range(self._at_once) if place not in taken)
            try:
                self._running.append(self._start(job, place))
            except OSError as error:  # for example a log that cannot be written; it does not end the other runs
                why = f"coach: the run cannot start: {error}"
                outcome = self._outcomes[job.directory] = Outcome(job, _FAILED, {}, why)
                self._say(outcome)

    def _next(self) -> Job | None:
        if self._waiting:
            return self._waiting.popleft()
        job = self._more()
        if job is not None:
            self._jobs.append(job)
        return job

    def _take_no_more(self) -> None:
        self._waiting.clear()
        self._more = lambda: None

    def _start(self, job: Job, place: int) -> _Running:
        job.directory.parent.mkdir(parents=True, exist_ok=True)
        before = read_status(job.directory)
        with open(job.log, "ab") as log, held_back():
            # in its own session the run receives Ctrl-C only once, from this process
            process = subprocess.Popen(
                [sys.executable, "-m", job.program, *job.flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        share = _cores()[place :: self._at_once]
        if share:
            # the process may have ended already
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(process.pid, share)
        return _Running(job, process, place, before)

    def _collect(self) -> None:
        for one in [one for one in self._running if one.process.poll() is not None]:
            self._running.remove(one)
            outcome = self._outcomes[one.job.directory] = one.outcome()
            self._say(outcome)
            if self._ends_all(outcome):
                self._take_no_more()
                self._end_all()
                return

    def _end_all(self) -> None:
        for one in self._running:
            one.process.terminate()
        for one in self._running:
            try:
                one.process.wait(_SECONDS_TO_SAVE)
            except subprocess.TimeoutExpired:
                one.process.kill()
                one.process.wait()
            self._outcomes[one.job.directory] = one.outcome()
        self._running.clear()


_State = tuple[Job, dict[str, Any], float]


def _columns(running: Sequence[_State], num_waiting: int) -> list[tuple[str, list[str]]]:
    """The columns of the display, with one cell for each run, and a last cell for the runs that wait."""
    if not running:
        return []
    lines = [(job.name, *_cells(part_of(status, "progress")), duration(time.monotonic() - began))
             for job, status, began in running]  # fmt: skip
    names = ("", " ", "done", "steps", "steps/s", "reward", "evaluation", "time")
    if num_waiting:
        lines.append((f"{num_waiting} more", *[""] * (len(names) - 1)))
    return [(name, list(cells)) for name, cells in zip(names, zip(*lines))]


def _cells(progress: dict[str, Any]) -> tuple[str, ...]:
    if not progress:
        return ("starting", "-", "-", "-", "-", "-")
    total, done = progress.get("total"), progress.get("done")
    share = f"{min(1.0, done / max(1, total)):.0%}" if total is not None and done is not None else "-"
    return (
        str(progress.get("phase") or "-"),
        share,
        _number(progress.get("steps"), ",.0f"),
        _number(progress.get("steps_per_second"), ",.0f"),
        _number(progress.get("mean_reward"), ".5g"),
        evaluation_of(progress) or "-",
    )


def _number(value: Any, form: str) -> str:
    return "-" if value is None else format(value, form)


def evaluation_of(progress: dict[str, Any]) -> str:
    """The text of ``last_and_best`` for a ``Progress.report``."""
    return last_and_best(progress.get("last_evaluation"), progress.get("best_evaluation"))


def _last_line(log: pathlib.Path) -> str:
    """The last non-empty line of a file; an empty text if there is none."""
    with open(log, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _BYTES_OF_LAST_LINES))
        lines = file.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
