"""Base class of the data stores that store policies as checkpoints in a directory."""

from __future__ import annotations

import os
import pathlib
import time
from typing import Any

from rl_coach.checkpoint import CheckpointStateReader, SingleCheckpoint
from rl_coach.data_stores.data_store import DataStore, SyncFiles
from rl_coach.utils import CoachError

_PAUSE = 0.2  # seconds between two checks for a checkpoint


class CheckpointDataStore(DataStore):
    """A data store for the trainer's checkpoints in the local directory ``params.checkpoint_dir``."""

    params: Any  # parameters of any class with a checkpoint_dir

    def __init__(self, params: Any):
        super().__init__(params)
        self._loaded: SingleCheckpoint | None = None

    def end_of_policies(self) -> bool:
        """True if the trainer has stored its last policy."""
        self.load_from_store()
        return self._has_finished

    def save_policy(self, graph_manager: Any) -> None:
        """Save a checkpoint of a graph, and copy the checkpoint to the store."""
        graph_manager.save_checkpoint()
        self.save_to_store()

    def load_policy(  # type: ignore[override]  # the order of Coach 1.0.1
        self, graph_manager: Any, require_new_policy: bool = True, timeout: float | None = None
    ) -> None:
        """Restore the newest checkpoint of the store into a graph.

        :param require_new_policy: True to wait for a checkpoint that this object has not loaded before
        :param timeout: seconds to wait; None for no limit
        :raises CoachError: if no checkpoint was stored within this time, or if the trainer has finished
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self.load_from_store()
            newest = self._newest()
            if newest is not None and (newest != self._loaded or not require_new_policy):
                graph_manager.restore_checkpoint(os.path.join(self.params.checkpoint_dir, newest.name))
                self._loaded = newest
                return
            self._check_wait(deadline)
            time.sleep(_PAUSE)

    def mark(self, file: SyncFiles) -> None:
        """Write one of the files that synchronize trainer and workers."""
        pathlib.Path(self.params.checkpoint_dir, file.value).touch()
        self.save_to_store()

    @property
    def _has_finished(self) -> bool:
        return os.path.exists(os.path.join(self.params.checkpoint_dir, SyncFiles.FINISHED.value))

    def _newest(self) -> SingleCheckpoint | None:
        if not os.path.isdir(self.params.checkpoint_dir):
            return None
        # Without a state file, a checkpoint in the directory may still be incomplete.
        return CheckpointStateReader(self.params.checkpoint_dir, checkpoint_state_optional=False).get_latest()

    def _check_wait(self, deadline: float | None) -> None:
        where = f"'{self.params.checkpoint_dir}'"
        if self._has_finished:
            raise CoachError(f"there is no new policy in {where}, because the trainer has finished: start a new run")
        if deadline is not None and time.monotonic() > deadline:
            raise CoachError(f"no new policy was stored in {where} within the timeout: check that the trainer runs")
