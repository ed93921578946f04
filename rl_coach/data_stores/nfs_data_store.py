"""A data store in a directory that trainer and workers share, for example on NFS."""

from __future__ import annotations

import os
import pathlib
import shutil
import uuid
from typing import TYPE_CHECKING

from rl_coach.data_stores import nfs_volume
from rl_coach.data_stores.checkpoint_data_store import CheckpointDataStore
from rl_coach.data_stores.data_store import MARKERS, DataStoreParameters
from rl_coach.utilities import files
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.utilities.kubernetes_cluster import Cluster

_SIZE = "10Gi"


class NFSDataStoreParameters(DataStoreParameters):
    """Location of a shared directory.

    :param ds_params: kind of store and orchestrator. Its ``orchestrator_params`` contain the ``namespace``
    :param deployed: True if the Kubernetes volume already exists
    :param server: host of the NFS export
    :param path: the exported path
    :param checkpoint_dir: the path of the directory in this process
    """

    def __init__(
        self,
        ds_params: DataStoreParameters,
        deployed: bool = False,
        server: str | None = None,
        path: str | None = None,
        checkpoint_dir: str = "",
    ):
        super().__init__(ds_params.store_type, ds_params.orchestrator_type, ds_params.orchestrator_params)
        self.namespace = (ds_params.orchestrator_params or {}).get("namespace", "default")
        self.checkpoint_dir = checkpoint_dir
        self.name: str | None = None
        self.pvc_name: str | None = None
        self.pv_name: str | None = None
        self.svc_name: str | None = None
        self.server = server
        self.path = path
        self.deployed = deployed or server is not None


class NFSDataStore(CheckpointDataStore):
    """A data store in a shared directory. All processes see the same files, so nothing is copied.

    :param params: location of the directory
    """

    params: NFSDataStoreParameters

    def deploy(self) -> bool:
        """Create the directory. On Kubernetes with a ``server``, create the volume instead.

        :raises CoachError: if the directory cannot be created, or Kubernetes refuses the request
        """
        if self.params.orchestrator_type == "kubernetes" and self.params.server is not None:
            return self.create_k8s_nfs_resources()
        self._make_directory()
        return True

    def get_info(self) -> str:
        """The directory; on Kubernetes, the name of the volume claim that pods mount."""
        return self.params.pvc_name or self.params.checkpoint_dir

    def undeploy(self) -> bool:
        """Delete the documents, and the volume that ``deploy()`` has created. Checkpoints stay."""
        if self.params.checkpoint_dir:
            for name in self.documents:
                self._path(name).unlink(missing_ok=True)
        return self.delete_k8s_nfs_resources() if self.params.pvc_name else True

    def put(self, name: str, content: bytes) -> None:
        os.makedirs(self._directory, exist_ok=True)
        # Not synced to disk: if a power cut loses a policy, the trainer publishes it again.
        with files.replaced(self._path(name), synced=False) as file:
            file.write(content)

    def get(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def save_to_store(self) -> None:
        """Do nothing: all processes see the directory."""

    def load_from_store(self) -> None:
        """Do nothing: all processes see the directory."""

    def setup_checkpoint_dir(self, crd: str | None = None) -> None:
        """Copy the checkpoints of ``crd`` into the directory. Training starts from them."""
        self._make_directory()
        if crd is not None:
            skipped = shutil.ignore_patterns(*MARKERS)
            shutil.copytree(crd, self.params.checkpoint_dir, dirs_exist_ok=True, ignore=skipped)

    # Kubernetes

    def deploy_k8s_nfs(self) -> bool:
        """Refuse to start an NFS server.

        :raises CoachError: always, because the pod of an NFS server needs privileges that Coach does not give to pods
        """
        raise CoachError(
            "Coach does not start an NFS server: set nfs_server to an existing server, or nfs_claim to a volume claim"
        )

    def undeploy_k8s_nfs(self) -> bool:
        """Do nothing, because no NFS server is started."""
        return True

    def create_k8s_nfs_resources(self) -> bool:
        """Create a Kubernetes volume for the NFS export, and a volume claim for the pods.

        :raises CoachError: if Kubernetes refuses the request
        """
        params = self.params
        params.name = f"coach-nfs-{uuid.uuid4().hex[:8]}"
        params.pv_name = params.pvc_name = params.name
        cluster = self._cluster()
        name, server, path = params.name, params.server or "", params.path or "/"
        cluster.create(nfs_volume.volume(name, server, path, _SIZE, name, params.namespace))
        cluster.create(nfs_volume.claim(name, _SIZE, volume_name=name))
        return True

    def delete_k8s_nfs_resources(self) -> bool:
        """Delete the volume claim and the volume. The files of the NFS export stay.

        :raises CoachError: if Kubernetes refuses the request
        """
        cluster = self._cluster()
        if self.params.pvc_name and self.params.pv_name:
            cluster.delete("PersistentVolumeClaim", self.params.pvc_name)
            cluster.delete("PersistentVolume", self.params.pv_name)
            self.params.pvc_name = self.params.pv_name = None
        return True

    def _cluster(self) -> Cluster:
        from rl_coach.utilities.kubernetes_cluster import Cluster

        return Cluster(self.params.namespace, (self.params.orchestrator_params or {}).get("kubeconfig") or "")

    # The directory

    @property
    def _directory(self) -> pathlib.Path:
        if not self.params.checkpoint_dir:
            raise CoachError("data store nfs has no directory: set checkpoint_dir")
        return pathlib.Path(self.params.checkpoint_dir)

    def _path(self, name: str) -> pathlib.Path:
        return self._directory / f"{name}.document"

    def _make_directory(self) -> None:
        try:
            os.makedirs(self._directory, exist_ok=True)
        except OSError as error:
            raise CoachError(f"the shared directory '{self._directory}' cannot be created: {error.strerror}") from error
