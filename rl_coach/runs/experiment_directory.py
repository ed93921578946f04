"""The directory that a run writes to, from before its start to its end."""

from __future__ import annotations

import os
import pathlib
import shutil

from rl_coach import logger
from rl_coach.runs.lock import lock, unlock
from rl_coach.runs.record import RECORD_FILE
from rl_coach.utils import CoachError


class ExperimentDirectory:
    """The directory of one run, which is taken away again if it was made for a run that never starts. Until it is
    released, this process alone writes there.

    :param may_exist: the directory was chosen and may be there already, with another run in it that goes on;
        otherwise one that another run has taken meanwhile is avoided: ``-1``, ``-2``, … is appended
    :raises CoachError: if it cannot be written, or another process writes there
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
        """True once a run has got so far that it wrote signals."""
        return any(self.path.rglob("*.csv"))

    def has_begun(self) -> bool:
        """True once a run has written down how it was started."""
        return (self.path / RECORD_FILE).exists()

    def release(self) -> None:
        """Let another process write there."""
        unlock(self.path)

    def remove(self) -> None:
        """Take away the directory with all that was written into it, and those above that were made for it."""
        self.release()
        if self._is_new:
            shutil.rmtree(self.path, ignore_errors=True)
            self._remove_above()

    def _remove_above(self) -> None:
        for directory in self._absent:
            if os.path.isdir(directory) and not any(directory.iterdir()):
                directory.rmdir()
