"""``status.json``: whether a run is running, finished, failed or stopped; written by the run, read by who looks at it.

    {"state": "running", "pid": 4711, "host": "name", "updated": 1789000000.0}

``updated`` is in seconds since the epoch. A run that has failed adds ``error``, what was wrong in one line. A run that
only evaluates has ``evaluation``, which holds the statistics of its episodes once it has finished; ``progress`` is how
far it is, as ``Progress.report`` says it.
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
"""A run that says it is running but has written nothing for so long is stalled."""
FOREIGN_RUN_ENDS_AFTER_SECONDS = 120.0
"""A CSV without a status beside it counts as running until it has not grown for so long."""


class RunStatus:
    """Status that a run writes to its directory. A file that cannot be written does not end the run.

    :param directory: where the run's CSVs are; None for a run that writes none: then nothing is said
    :param progress: tells how far the run is; None if nobody knows
    :ivar evaluation: what came of a run that only evaluates, empty so far; None for one that trains
    """

    def __init__(self, directory: str | os.PathLike[str] | None, progress: Callable[[], dict[str, Any]] | None = None):
        self.evaluation: dict[str, Any] | None = None
        self._progress = progress
        self._path = None if directory is None else pathlib.Path(directory) / STATUS_FILE
        self._has_warned = False
        self._due_at = 0.0

    def set(self, state: str, error: str = "") -> None:
        """Say what the run does from now on."""
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
            # Lost with the machine's power, it says that a process runs which has gone: that is as good.
            files.write_text(self._path, text + "\n", synced=False)
            if copy := os.environ.get(STATUS_COPY):
                pathlib.Path(copy).write_text(text, encoding="utf-8")  # where no file can be renamed to it
        except OSError as trouble:
            self._overwrite(text)
            if not self._has_warned:
                screen.warning(f"'{self._path}' cannot be written: {trouble.strerror}")
            self._has_warned = True

    def _overwrite(self, text: str) -> None:
        """Write into the room that the file has: a full disk is no reason to say that a run goes on which has ended."""
        assert self._path is not None
        with contextlib.suppress(OSError), open(self._path, "r+", encoding="utf-8") as file:
            file.write(text.ljust(os.fstat(file.fileno()).st_size - 1) + "\n")
            file.truncate()

    def set_by(self, error: BaseException) -> None:
        """Say why the run has ended: stopped by its user or the system, or failed."""
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            self.set(STOPPED)
        else:
            kind = "" if isinstance(error, (CoachError, TrainingError)) else f"{type(error).__name__}: "
            self.set(FAILED, " ".join(f"{kind}{error}".split()))

    def keep_alive(self) -> None:
        """Say that the run goes on, if it has not been said for ``SECONDS_BETWEEN_UPDATES``."""
        if time.monotonic() >= self._due_at:
            self.set(RUNNING)


def read_status(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the status of the run in this directory; empty if there is none or only a part of one."""
    return read_json_if_whole(pathlib.Path(directory) / STATUS_FILE)


def is_evaluation(status: Mapping[str, Any]) -> bool:
    """True if the run only evaluates what another one has trained.

    :param status: as ``read_status`` gives it
    """
    return isinstance(status.get("evaluation"), dict)


def state_of(status: Mapping[str, Any], modified: float, now: float) -> str:
    """State of a run: running, finished, failed, stopped or stalled.

    A run that says ``running`` but whose process on this machine has gone has failed; one that is silent for
    ``STALLED_AFTER_SECONDS`` is stalled. Without a status, a run whose CSV has not grown for
    ``FOREIGN_RUN_ENDS_AFTER_SECONDS`` is taken for finished.

    :param status: as ``read_status`` gives it
    :param modified: when the CSV last changed, seconds since the epoch
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
    """True if there is no process of that number on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
