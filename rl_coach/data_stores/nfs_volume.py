"""Kubernetes manifests of volumes that the pods of a run share."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]


def volume(name: str, server: str, path: str, size: str, claim: str, namespace: str) -> Manifest:
    """The manifest of a volume for an NFS export, reserved for one claim. The files stay when the volume is deleted.

    :param server: host of the NFS export
    :param path: the exported path
    :param size: the size, such as ``10Gi``
    :param claim: the name of the claim in ``namespace``
    """
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "nfs": {"server": server, "path": path},
        "claimRef": {"namespace": namespace, "name": claim},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def claim(name: str, size: str, storage_class: str = "", volume_name: str = "") -> Manifest:
    """The manifest of a volume claim that many pods can mount to read and write.

    :param storage_class: the storage class that creates the volume; empty to use the volume ``volume_name``
    """
    spec: Manifest = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": storage_class,
    }
    if volume_name:
        spec["volumeName"] = volume_name
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
