"""Base of the data stores whose policies are checkpoints in a directory."""

from __future__ import annotations

import os
import pathlib
import time
from typing import Any

from rl_coach.checkpoint import CheckpointStateReader, SingleCheckpoint
from rl_coach.data_stores.data_store import DataStore, SyncFiles
from rl_coach.utils import CoachError

_PAUSE = 0.2  # seconds, between two looks for a checkpoint


class CheckpointDataStore(DataStore):
    """A data store in whose local directory, ``params.checkpoint_dir``, a trainer keeps its checkpoints."""

    params: Any  # of any class that has a checkpoint_dir

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._loaded: SingleCheckpoint | None = None

    def end_of_policies(self) -> bool:
        """True once the trainer has left its last policy."""
        self.load_from_store()
        return os.path.exists(os.path.join(self.params.checkpoint_dir, SyncFiles.FINISHED.value))

    def save_policy(self, graph_manager: Any) -> None:
        """Save a checkpoint of a graph, and bring it into the store."""
        graph_manager.save_checkpoint()
        self.save_to_store()

    def load_policy(  # type: ignore[override]  # the order of Coach 1.0.1
        self, graph_manager: Any, require_new_policy: bool = True, timeout: float | None = None
    ) -> None:
        """Give a graph the newest checkpoint in the store.

        :param require_new_policy: wait for one that this store has not given yet
        :param timeout: seconds to wait; None without end
        :raises CoachError: none came in that time, or none will come
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
        """Leave one of the files by which trainer and workers wait for each other."""
        pathlib.Path(self.params.checkpoint_dir, file.value).touch()
        self.save_to_store()

    def _newest(self) -> SingleCheckpoint | None:
        if not os.path.isdir(self.params.checkpoint_dir):
            return None
        return CheckpointStateReader(self.params.checkpoint_dir, checkpoint_state_optional=False).get_latest()

    def _check_wait(self, deadline: float | None) -> None:
        where = f"'{self.params.checkpoint_dir}'"
        if os.path.exists(os.path.join(self.params.checkpoint_dir, SyncFiles.FINISHED.value)):
            raise CoachError(f"there will be no new policy in {where}: its trainer has finished")
        if deadline is not None and time.monotonic() > deadline:
            raise CoachError(f"there was no new policy in {where} in time")
