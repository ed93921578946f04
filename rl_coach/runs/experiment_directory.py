"""The directory that a run writes to."""

from __future__ import annotations

import os
import pathlib
import shutil

from rl_coach import logger
from rl_coach.runs.lock import lock, unlock
from rl_coach.runs.record import RECORD_FILE
from rl_coach.utils import CoachError


class ExperimentDirectory:
    """The directory of one run. Only this process writes there until ``release``. If the run does not start, the
    directory is removed.

    :param may_exist: True: the directory may already exist, with a run that continues. False: if another run uses the
        directory, ``-1``, ``-2``, … is appended to the name
    :raises CoachError: if the directory cannot be written, or another process writes there
    """

    def __init__(self, path: str, may_exist: bool):
        self.path = pathlib.Path(path).absolute()
        self._is_new = not (may_exist and os.path.isdir(self.path))
        self._absent = [directory for directory in self.path.parents if not os.path.exists(directory)]
        if self._is_new:
            self._make()
        try:
            lock(self.path)
        except CoachError:
            self.remove()
            raise

    def _make(self) -> None:
        try:
            self.path = pathlib.Path(logger.make_free_directory(str(self.path)))
        except BaseException:
            self._remove_above()
            raise

    def has_signals(self) -> bool:
        """True if a run has written signals."""
        return any(self.path.rglob("*.csv"))

    def has_begun(self) -> bool:
        """True if a run has written its ``experiment.json``."""
        return (self.path / RECORD_FILE).exists()

    def release(self) -> None:
        """Unlock the directory for other processes."""
        unlock(self.path)

    def remove(self) -> None:
        """Remove the directory with its contents, and parent directories that were created for it."""
        self.release()
        if self._is_new:
            shutil.rmtree(self.path, ignore_errors=True)
            self._remove_above()

    def _remove_above(self) -> None:
        for directory in self._absent:
            if os.path.isdir(directory) and not any(directory.iterdir()):
                directory.rmdir()
