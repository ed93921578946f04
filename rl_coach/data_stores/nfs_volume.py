"""Manifests of volumes that the pods of a run share."""

from __future__ import annotations

from typing import Any, Mapping

Manifest = dict[str, Any]


def volume(name: str, server: str, path: str, size: str, claim: str, namespace: str) -> Manifest:
    """The volume of an NFS export, kept for one claim; its data outlives it.

    :param server: host of the export
    :param path: the exported path
    :param size: such as ``10Gi``
    :param claim: name of the claim in ``namespace``
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
    """A claim that many pods write to.

    :param storage_class: the class that makes the volume; empty binds ``volume_name``
    """
    spec: Manifest = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": storage_class,
    }
    if volume_name:
        spec["volumeName"] = volume_name
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def with_metadata(manifest: Manifest, more: Mapping[str, Any]) -> Manifest:
    """A manifest with more in its metadata."""
    return {**manifest, "metadata": {**manifest["metadata"], **more}}
