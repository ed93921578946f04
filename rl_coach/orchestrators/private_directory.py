"""Temporary directories of distributed runs, which hold passwords: only their user can read them, and none stays."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import tempfile
from typing import Iterator

from rl_coach.runs.lock import LOCK_FILE, holds, lock, unlock
from rl_coach.utils import CoachError

_PREFIX = "coach-distributed-"


@contextlib.contextmanager
def private_directory() -> Iterator[pathlib.Path]:
    """A directory that is removed after the ``with`` block. A process that is killed leaves its own to the next one
    that needs a directory."""
    _remove_those_of_the_dead()
    directory = pathlib.Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock(directory)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        unlock(directory)


def write_secret(path: pathlib.Path, text: str) -> None:
    """Write a file that nobody else can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _remove_those_of_the_dead() -> None:
    for directory in pathlib.Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Several directories of one process: ``lock`` lets a process have twice what it holds already.
        if holds(directory) or not _is_ours(directory):
            continue
        with contextlib.suppress(CoachError):  # its process lives
            lock(directory)
        if holds(directory):
            shutil.rmtree(directory, ignore_errors=True)
            unlock(directory)


def _is_ours(directory: pathlib.Path) -> bool:
    """True for a directory that a process of this user has held. One that was just made is not held yet."""
    try:
        is_held = (directory / LOCK_FILE).stat().st_size > 0
        return is_held and not directory.is_symlink() and directory.stat().st_uid == os.getuid()
    except OSError:
        return False
