"""A lock on the directory of an experiment: one process at a time writes there.

The lock is the operating system's (``flock``), so it ends with the process, also after a crash.
"""

from __future__ import annotations

import os
import pathlib
from typing import IO

from rl_coach.utils import CoachError

try:
    import fcntl
except ImportError:  # Windows has no flock: directories are not locked there
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = ".lock"

_held: dict[pathlib.Path, IO[str]] = {}


def lock(directory: str | os.PathLike[str]) -> None:
    """Lock a directory until ``unlock`` or the end of this process. On a file system without locks, nothing is locked.

    :raises CoachError: if another process holds the lock, or the lock file cannot be written
    """
    path = pathlib.Path(directory).resolve()
    if fcntl is None or path in _held:
        return
    try:
        file = open(path / LOCK_FILE, "a+", encoding="utf-8")  # noqa: SIM115 - open as long as it is held
    except OSError as error:
        raise CoachError(f"'{path}' cannot be written: {error.strerror}") from None
    try:
        # The system drops a flock when its process dies, by kill -9 too, so no lock can be left behind.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        pid = holder(path)
        who = "" if pid is None else f" (process {pid})"
        raise CoachError(f"another run{who} writes to '{directory}': stop that run first") from None
    except OSError:
        file.close()
        return
    _held[path] = file
    try:
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), str(os.getpid()).encode())
    except OSError:
        # on a full disk the lock is still valid; only the message of a second run lacks the process number
        return


def unlock(directory: str | os.PathLike[str]) -> None:
    """Unlock a directory if this process has locked it."""
    file = _held.pop(pathlib.Path(directory).resolve(), None)
    if file is not None:
        file.close()


def holds(directory: str | os.PathLike[str]) -> bool:
    """True if this process has locked a directory."""
    return pathlib.Path(directory).resolve() in _held


def holder(directory: str | os.PathLike[str]) -> int | None:
    """The number of the process that was the last to lock a directory; None if it is unknown."""
    try:
        number = (pathlib.Path(directory) / LOCK_FILE).read_text(encoding="utf-8")[:20].strip()
    except (OSError, ValueError):
        return None
    return int(number) if number.isdigit() else None


def _forget() -> None:
    """Close the lock files in a forked child process, which would keep the run's lock if it outlives the run."""
    while _held:
        _held.popitem()[1].close()


if fcntl is not None:
    os.register_at_fork(after_in_child=_forget)
