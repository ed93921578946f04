"""Temporary directories for the passwords of distributed runs. Only the user who runs Coach can read the
directories."""

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
    """A context with a temporary directory, which is removed at its end. If a process was killed, its directory remains
    until a later process calls this function."""
    _remove_those_of_the_dead()
    directory = pathlib.Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock(directory)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        unlock(directory)


def write_secret(path: pathlib.Path, text: str) -> None:
    """Write a file that only its owner can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _remove_those_of_the_dead() -> None:
    for directory in pathlib.Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Skip directories of this process: ``lock`` would succeed for a directory that the same process has locked.
        if holds(directory) or not _is_ours(directory):
            continue
        with contextlib.suppress(CoachError):  # raised if the directory's process is running
            lock(directory)
        if holds(directory):
            shutil.rmtree(directory, ignore_errors=True)
            unlock(directory)


def _is_ours(directory: pathlib.Path) -> bool:
    """True for a directory that a process of this user has locked. A new directory is not locked yet."""
    try:
        is_held = (directory / LOCK_FILE).stat().st_size > 0
        return is_held and not directory.is_symlink() and directory.stat().st_uid == os.getuid()
    except OSError:
        return False
