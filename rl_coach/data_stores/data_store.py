"""Base class of data stores, and the files in a shared directory that synchronize trainer and workers."""

from __future__ import annotations

import math
import time
from enum import Enum
from typing import Any, NoReturn

from rl_coach.utils import CoachError

_PAUSE = 0.02  # seconds between two checks for a policy


class SyncFiles(Enum):
    """Marker files next to the checkpoints, as in Coach 1.0.1. ``FINISHED``: no more checkpoints follow.
    ``TRAINER_READY``: the first checkpoint is complete. ``LOCKFILE`` is not written any more.
    """

    FINISHED = ".finished"
    LOCKFILE = ".lock"
    TRAINER_READY = ".ready"


MARKERS = frozenset(file.value for file in SyncFiles)
"""The names of these files. They belong to one run: a run that starts from its checkpoints must not see them."""


class DataStoreParameters:
    """Settings of a data store.

    :param store_type: the kind of store, such as ``'s3'``
    :param orchestrator_type: the orchestrator that starts trainer and workers, such as ``'kubernetes'``
    :param orchestrator_params: settings of the orchestrator, by name
    """

    def __init__(self, store_type: str, orchestrator_type: str, orchestrator_params: Any):
        self.store_type = store_type
        self.orchestrator_type = orchestrator_type
        self.orchestrator_params = orchestrator_params


class DataStore:
    """Base class of all data stores. A data store passes the trainer's newest policy to the workers.

    :param params: location of the store and access to it
    :ivar documents: names of the documents (byte strings) that trainer and workers exchange
    """

    documents: tuple[str, ...] = ("policy", "blueprint", "end")

    def __init__(self, params: DataStoreParameters):
        self.params = params

    def deploy(self) -> bool:
        """Prepare the store for a run. :return: True on success"""
        self._is_undefined("deploy")

    def get_info(self) -> Any:
        """A description that lets other processes find the store."""
        self._is_undefined("get_info")

    def undeploy(self) -> bool:
        """Remove what ``deploy`` has made, at the end of a run. :return: True on success"""
        self._is_undefined("undeploy")

    def put(self, name: str, content: bytes) -> None:
        """Store a document for all processes of the run. Readers get the old document or the complete new document.

        :param name: a name in ``documents``
        :raises OSError: if the store cannot be reached; a later call may succeed
        """
        self._is_undefined("put")

    def get(self, name: str) -> bytes | None:
        """The newest document with this name; None if there is none.

        :raises OSError: if the store cannot be reached; a later call may succeed
        """
        self._is_undefined("get")

    def save_to_store(self) -> None:
        """Copy the local directory into the store."""
        self._is_undefined("save_to_store")

    def load_from_store(self) -> None:
        """Copy the store into the local directory."""
        self._is_undefined("load_from_store")

    def save_policy(self, graph_manager: Any) -> None:
        """Store the policy of a graph, the result of its method ``policy_document``."""
        self.put("policy", graph_manager.policy_document())

    def load_policy(self, graph_manager: Any, timeout: float = -1) -> None:
        """Load the newest policy into a graph.

        :param timeout: seconds to wait for a policy; a negative number for no limit
        :raises CoachError: if no policy was stored within this time
        """
        deadline = time.monotonic() + timeout if timeout >= 0 else math.inf
        document = self.get("policy")
        while document is None:
            if time.monotonic() >= deadline:
                raise CoachError(f"no policy was stored within {timeout:g} s: check that the trainer runs")
            time.sleep(_PAUSE)
            document = self.get("policy")
        graph_manager.take_policy_document(document)

    def end_of_policies(self) -> bool:
        """True if no more policies follow."""
        self._is_undefined("end_of_policies")

    def setup_checkpoint_dir(self, crd: str | None = None) -> None:
        """Prepare the directory of the store, if the store needs this.

        :param crd: the directory of the checkpoints that training starts from; None for no checkpoints
        """

    def _is_undefined(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not define {method}")
