"""Base of data stores, and files in a shared directory that synchronize trainer and workers."""

from __future__ import annotations

import math
import time
from enum import Enum
from typing import Any, NoReturn

from rl_coach.utils import CoachError

_PAUSE = 0.02  # seconds between two checks for a policy


class SyncFiles(Enum):
    """Files next to the checkpoints: no more checkpoints follow, one is being written, the first is complete."""

    FINISHED = ".finished"
    LOCKFILE = ".lock"
    TRAINER_READY = ".ready"


class DataStoreParameters:
    """Settings of a data store.

    :param store_type: the kind of store, such as ``'s3'``
    :param orchestrator_type: the orchestrator that starts trainer and workers, such as ``'kubernetes'``
    :param orchestrator_params: its settings by name
    """

    def __init__(self, store_type: str, orchestrator_type: str, orchestrator_params: Any):
        self.store_type = store_type
        self.orchestrator_type = orchestrator_type
        self.orchestrator_params = orchestrator_params


class DataStore:
    """Base of all data stores, which pass the trainer's newest policy to the workers. A subclass implements one kind
    of store.

    :param params: location of the store and access to it
    :ivar documents: names of the documents that trainer and workers exchange
    """

    documents: tuple[str, ...] = ("policy", "blueprint", "end")

    def __init__(self, params: DataStoreParameters):
        self.params = params

    def deploy(self) -> bool:
        """Set the store up.

        :return: True on success
        """
        self._is_undefined("deploy")

    def get_info(self) -> Any:
        """A description that lets other processes find the store."""
        self._is_undefined("get_info")

    def undeploy(self) -> bool:
        """Take the store down.

        :return: True on success
        """
        self._is_undefined("undeploy")

    def put(self, name: str, content: bytes) -> None:
        """Store a document for all processes of the run. Readers see the old document or the whole new one, never a
        part.

        :param name: one of ``documents``
        :raises OSError: if the store cannot be reached; a later call may succeed
        """
        self._is_undefined("put")

    def get(self, name: str) -> bytes | None:
        """The newest document of a name; None if it does not exist.

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
        """Store the policy of a graph, from its ``policy_document``."""
        self.put("policy", graph_manager.policy_document())

    def load_policy(self, graph_manager: Any, timeout: float = -1) -> None:
        """Give a graph the newest policy.

        :param timeout: seconds to wait for a policy; below 0 waits without end
        :raises CoachError: if no policy was stored within the time
        """
        deadline = time.monotonic() + timeout if timeout >= 0 else math.inf
        document = self.get("policy")
        while document is None:
            if time.monotonic() >= deadline:
                raise CoachError(f"there was no policy within {timeout:g} s")
            time.sleep(_PAUSE)
            document = self.get("policy")
        graph_manager.take_policy_document(document)

    def end_of_policies(self) -> bool:
        """True if no more policies follow."""
        self._is_undefined("end_of_policies")

    def setup_checkpoint_dir(self, crd: str | None = None) -> None:
        """Prepare the store's directory, if there is anything to prepare.

        :param crd: the checkpoint that training starts from
        """

    def _is_undefined(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not define {method}")
