"""``status.json``: the state of a run. The run writes it; the dashboard and other readers show it.

    {"state": "running", "pid": 4711, "host": "name", "updated": 1789000000.0}

``updated`` is in seconds since the epoch. A failed run adds ``error``, the reason in one line. A run that only
evaluates has ``evaluation``: the statistics of its episodes, after its end. ``progress`` has the form of
``Progress.report``.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import time
from typing import Any, Callable, Mapping

from rl_coach.logger import screen
from rl_coach.runs.system_metrics import SystemMetrics
from rl_coach.utilities import files
from rl_coach.utilities.safe_reading import read_json_if_whole
from rl_coach.utils import CoachError, TrainingError

RUNNING, FINISHED, FAILED, STOPPED, STALLED = "running", "finished", "failed", "stopped", "stalled"
STATES = (RUNNING, FINISHED, FAILED, STOPPED, STALLED)

STATUS_FILE = "status.json"
STATUS_COPY = "COACH_STATUS_COPY"
"""An environment variable that names a file for a copy of the status, such as a container's termination message."""
SECONDS_BETWEEN_UPDATES = 2.0
STALLED_AFTER_SECONDS = 300.0
"""A run in progress is stalled if it has written nothing for this many seconds."""
FOREIGN_RUN_ENDS_AFTER_SECONDS = 120.0
"""A run without a status file counts as running until its CSV has not grown for this many seconds."""


class RunStatus:
    """Writes the status of a run to its directory. A file that cannot be written does not end the run.

    :param directory: the directory of the run's CSVs; None writes no status
    :param progress: returns the run's progress; None if it is unknown
    :ivar evaluation: results of a run that only evaluates, empty before its end; None for a run that trains
    """

    def __init__(self, directory: str | os.PathLike[str] | None, progress: Callable[[], dict[str, Any]] | None = None):
        self.evaluation: dict[str, Any] | None = None
        self._progress = progress
        self._path = None if directory is None else pathlib.Path(directory) / STATUS_FILE
        self._metrics = None if directory is None else SystemMetrics(directory)
        self._has_warned = False
        self._due_at = 0.0

    def set(self, state: str, error: str = "") -> None:
        """Write the run's state."""
        if self._path is None:
            return
        self._due_at = time.monotonic() + SECONDS_BETWEEN_UPDATES
        status: dict[str, Any] = {
            "state": state,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "updated": time.time(),
        }
        if self.evaluation is not None:
            status["evaluation"] = self.evaluation
        if self._progress is not None:
            status["progress"] = self._progress()
        text = json.dumps({**status, "error": error} if error else status)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Not synced: if a power failure leaves an old status, readers see that its process does not exist any more.
            files.write_text(self._path, text + "\n", synced=False)
            if copy := os.environ.get(STATUS_COPY):
                pathlib.Path(copy).write_text(text, encoding="utf-8")  # the file system may not allow a rename
            if self._metrics is not None and "seconds" in status.get("progress", ()):
                self._metrics.write(status["progress"]["seconds"])
        except OSError as trouble:
            self._overwrite(text)
            if not self._has_warned:
                screen.warning(f"'{self._path}' cannot be written: {trouble.strerror}")
            self._has_warned = True

    def _overwrite(self, text: str) -> None:
        """Overwrite the file in place: a full disk takes no new file, but readers must see the end of the run."""
        assert self._path is not None
        with contextlib.suppress(OSError), open(self._path, "r+", encoding="utf-8") as file:
            file.write(text.ljust(os.fstat(file.fileno()).st_size - 1) + "\n")
            file.truncate()

    def set_by(self, error: BaseException) -> None:
        """Write that the run was stopped, or that it has failed. :param error: the error that ended the run"""
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            self.set(STOPPED)
        else:
            kind = "" if isinstance(error, (CoachError, TrainingError)) else f"{type(error).__name__}: "
            self.set(FAILED, " ".join(f"{kind}{error}".split()))

    def keep_alive(self) -> None:
        """Write that the run is running, if the last write is ``SECONDS_BETWEEN_UPDATES`` ago."""
        if time.monotonic() >= self._due_at:
            self.set(RUNNING)


def read_status(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the status of the run in this directory; empty if it is missing or incomplete."""
    return read_json_if_whole(pathlib.Path(directory) / STATUS_FILE)


def part_of(status: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A part of a status, such as ``progress`` or ``evaluation``; empty if it is missing."""
    part = status.get(name)
    return part if isinstance(part, dict) else {}


def is_evaluation(status: Mapping[str, Any]) -> bool:
    """True if the run only evaluates the agent of another run. :param status: the result of ``read_status``"""
    return isinstance(status.get("evaluation"), dict)


def state_of(status: Mapping[str, Any], modified: float, now: float) -> str:
    """State of a run: running, finished, failed, stopped or stalled.

    A run in state ``running`` has failed if its process on this machine does not exist any more. It is stalled if it
    has written nothing for ``STALLED_AFTER_SECONDS``. A run without a status has finished if its CSV has not grown for
    ``FOREIGN_RUN_ENDS_AFTER_SECONDS``.

    :param modified: time of the CSV's last change, seconds since the epoch
    """
    state = status.get("state")
    if state not in STATES:
        return RUNNING if now - modified < FOREIGN_RUN_ENDS_AFTER_SECONDS else FINISHED
    if state != RUNNING:
        return str(state)
    if _has_lost_its_process(status):
        return FAILED
    updated = status.get("updated")
    newest = max(modified, float(updated)) if isinstance(updated, (int, float)) else modified
    return STALLED if now - newest > STALLED_AFTER_SECONDS else RUNNING


def _has_lost_its_process(status: Mapping[str, Any]) -> bool:
    pid = status.get("pid")
    here = status.get("host", socket.gethostname()) == socket.gethostname()
    return here and isinstance(pid, int) and pid > 0 and process_is_gone(pid)


def process_is_gone(pid: int) -> bool:
    """True if this machine has no process with this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
