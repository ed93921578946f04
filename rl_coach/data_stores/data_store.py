"""Base of data stores, and the files by which trainer and workers that share a directory wait for each other."""

from __future__ import annotations

import math
import time
from enum import Enum
from typing import Any, NoReturn

from rl_coach.utils import CoachError

_PAUSE = 0.02  # seconds between two looks for a policy


class SyncFiles(Enum):
    """Files next to the checkpoints: no more checkpoints will come, one is being written, the first one is complete."""

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
    """Base of all data stores, where a trainer puts its newest policy for the workers. A subclass implements one kind
    of store.

    :param params: location of the store and access to it
    :ivar documents: names of the documents that the parts of a run leave for each other
    """

    documents: tuple[str, ...] = ("policy", "blueprint", "end")

    def __init__(self, params: DataStoreParameters):
        self.params = params

    def deploy(self) -> bool:
        """Set the store up.

        :return: True if that worked
        """
        self._is_undefined("deploy")

    def get_info(self) -> Any:
        """Description by which others find the store."""
        self._is_undefined("get_info")

    def undeploy(self) -> bool:
        """Take the store down.

        :return: True if that worked
        """
        self._is_undefined("undeploy")

    def put(self, name: str, content: bytes) -> None:
        """Leave a document for all processes of the run. Readers see the one before or all of this one.

        :param name: one of ``documents``
        :raises OSError: the store cannot be reached now
        """
        self._is_undefined("put")

    def get(self, name: str) -> bytes | None:
        """The newest document of that name; None if there is none.

        :raises OSError: the store cannot be reached now
        """
        self._is_undefined("get")

    def save_to_store(self) -> None:
        """Copy the local directory into the store."""
        self._is_undefined("save_to_store")

    def load_from_store(self) -> None:
        """Copy the store into the local directory."""
        self._is_undefined("load_from_store")

    def save_policy(self, graph_manager: Any) -> None:
        """Leave the policy of a graph, which its ``policy_document`` gives."""
        self.put("policy", graph_manager.policy_document())

    def load_policy(self, graph_manager: Any, timeout: float = -1) -> None:
        """Give a graph the newest policy.

        :param timeout: seconds to wait for one; below 0 without end
        :raises CoachError: there is none in that time
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
        """True if no more policies will come."""
        self._is_undefined("end_of_policies")

    def setup_checkpoint_dir(self, crd: str | None = None) -> None:
        """Prepare the store's directory, if there is anything to prepare.

        :param crd: the checkpoint that training starts from
        """

    def _is_undefined(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not define {method}")
