"""Kubernetes manifests of a distributed run: the templates of ``kubernetes_manifests.yaml`` with the run's values.

The trainer's Job owns the other objects: if the Job is deleted, these objects are deleted too. Exception: a Job cannot
own the PersistentVolume of an NFS server. The cluster deletes the Job ``keep_seconds`` after its end, even if the
machine that started the run no longer exists. All pods satisfy the restricted pod security standard. Containers get
secrets as files.
"""

from __future__ import annotations

import base64
import functools
import pathlib
import re
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from rl_coach.data_stores import nfs_volume
from rl_coach.data_stores.nfs_volume import Manifest
from rl_coach.orchestrators.distributed_settings import DistributedSettings, PodSettings

ORDER_DIRECTORY = "/etc/coach/order"
REDIS_DIRECTORY = "/etc/coach/redis"
S3_DIRECTORY = "/etc/coach/s3"
ORDER_FILE = f"{ORDER_DIRECTORY}/order.json"
PASSWORD_FILE = f"{REDIS_DIRECTORY}/password"
S3_CREDENTIALS_FILE = f"{S3_DIRECTORY}/credentials"
DATA_DIRECTORY = "/coach"
"""The directory of experiments in trainer and workers. With ``nfs`` it is on the shared volume, otherwise on the pod's
disk."""

REDIS_PORT = 6379
RUN_ANNOTATION = "coach-rl/run"
INSTANCE_LABEL = "app.kubernetes.io/instance"
COMPONENT_LABEL = "app.kubernetes.io/component"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
TRAINER, WORKER, REDIS = "trainer", "worker", "redis"
BAD_INPUT, TRAINING_FAILED = 2, 1
"""Exit codes that another attempt would not change."""

MAX_NAME = 40
"""The largest length of a run's name. Labels have at most 63 letters, and Kubernetes appends to the names of pods."""


@dataclass(frozen=True)
class Container:
    """A container of a run.

    :param image: the image
    :param command: the program and its arguments; empty uses the command of the image
    :param requests: reserved resources by name
    :param limits: limits of resources by name, including GPUs
    :param pod: nodes, labels and variables of the pod, in addition to the labels and variables that Coach sets
    """

    image: str
    command: tuple[str, ...] = ()
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    pod: PodSettings = field(default_factory=PodSettings)


@dataclass(frozen=True)
class Volume:
    """The volume that trainer and workers share.

    :param claim: an existing claim; empty creates a claim for the run
    :param server: host of an NFS export with ``path``; a volume is created for this export
    :param path: the exported path
    :param storage_class: the storage class of the claim; empty binds it to the volume of ``server``
    :param size: the size of the volume
    """

    claim: str = ""
    server: str = ""
    path: str = ""
    storage_class: str = ""
    size: str = "10Gi"


@dataclass(frozen=True)
class KubernetesRun:
    """Description of a run on Kubernetes.

    :param name: the run's name; the names of all its objects begin with it
    :param namespace: the namespace; if empty, it is selected when the objects are created
    :param run: the run's id
    :param trainer: the trainer's container
    :param worker: the container of each worker
    :param num_workers: number of workers
    :param redis: the container of Redis; None for an existing Redis
    :param redis_password: the password of Redis; None without a password
    :param order: the run order as JSON; empty for containers that read no run order
    :param s3_credentials: the content of an AWS credentials file; None uses other credentials of the pods
    :param volume: the shared volume; None without a volume
    :param settings: the times, the number of restarts, the service account and the image pull secret
    """

    name: str
    namespace: str
    run: str
    trainer: Container
    worker: Container
    num_workers: int
    redis: Container | None
    redis_password: str | None = field(default=None, repr=False)
    order: str = ""
    s3_credentials: bytes | None = field(default=None, repr=False)
    volume: Volume | None = None
    settings: DistributedSettings = field(default_factory=DistributedSettings)


def manifests(run: KubernetesRun) -> list[Manifest]:
    """The manifests of all objects of a run: the trainer's Job first, the workers' Job last."""
    templates, settings = _templates(), run.settings
    values = {
        **vars(settings),
        **vars(run),
        "data_directory": DATA_DIRECTORY,
        "order_directory": ORDER_DIRECTORY,
        "redis_directory": REDIS_DIRECTORY,
        "s3_directory": S3_DIRECTORY,
        "redis_port": REDIS_PORT,
        "namespace": run.namespace or None,
        "order": run.order or None,
        # this limit of a Job counts the failures of all its pods
        "worker_restarts": settings.restarts * run.num_workers,
        "image_pull_secrets": [{"name": settings.image_pull_secret}] if settings.image_pull_secret else None,
        "encoded_password": _encoded(run.redis_password),
        "encoded_credentials": _encoded(run.s3_credentials),
        **_volume_values(run, run.volume),
    }
    has_own_redis = run.redis is not None and run.redis_password is not None
    configuration = _filled(templates[".redis_configuration"], values) if has_own_redis else None
    values["encoded_configuration"] = _encoded(configuration)
    containers = {TRAINER: run.trainer, WORKER: run.worker, REDIS: run.redis}
    objects = []
    for name, template in templates.items():
        if not name.startswith("."):
            values["component"] = component = template["$component"]
            labels = _filled(templates[".metadata"]["labels"], values)
            own = _container_values(run, component, containers.get(component), templates[".environment"], labels)
            objects.append(_filled(template, {**values, **own}))
    return [one for one in objects if one is not None]


def trainer_job(run: KubernetesRun) -> Manifest:
    """The Job of the trainer. The trainer is restarted after failures that another attempt may solve."""
    return manifests(run)[0]


def worker_job(run: KubernetesRun) -> Manifest:
    """The Job of the rollout workers. Each worker has an index. A failed worker is replaced."""
    return manifests(run)[-1]


def dependents(run: KubernetesRun) -> list[Manifest]:
    """The objects that trainer and workers need before they start."""
    return manifests(run)[1:-1]


def as_yaml(objects: Sequence[Manifest]) -> str:
    """Manifests as a YAML file with several documents. A text with several lines is also written with several lines."""
    import yaml  # installed with the Kubernetes client

    class Dumper(yaml.SafeDumper):
        """A separate dumper class, so that the representation of texts does not affect other code."""

    def represent_text(dumper: Any, text: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, represent_text)
    return yaml.dump_all(objects, Dumper=Dumper, sort_keys=False, width=120, explicit_start=True)


def owned(manifest: Manifest, owner: Manifest) -> Manifest:
    """Add an owner to a manifest, so that the object is removed with its owner. A PersistentVolume is returned without
    an owner, because it belongs to no namespace.

    :param manifest: the manifest
    :param owner: the owner as stored in the cluster, with its uid
    """
    if manifest["kind"] == "PersistentVolume":
        return manifest
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [reference]}}


def suspended(job: Manifest) -> Manifest:
    """Change a Job's manifest so that the Job does not start pods yet."""
    return {**job, "spec": {**job["spec"], "suspend": True}}


def owner_name(name: str) -> str:
    """The name of the trainer's Job, which owns a run."""
    return f"{name}-trainer"


def selector(name: str) -> str:
    """The label selector of all objects of a run."""
    return f"{MANAGED_LABEL}=coach,{INSTANCE_LABEL}={name}"


def volume_name(namespace: str, name: str) -> str:
    """The name of a run's volume, which belongs to no namespace."""
    # Runs of two namespaces may have the same name, but a volume's name is unique in the cluster.
    return f"{namespace or 'default'}-{name}-data"


# Values of the templates


@functools.cache
def _templates() -> Manifest:
    import yaml  # installed with the Kubernetes client

    return yaml.safe_load(pathlib.Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Replace each ``$name`` in the texts of a template by its value. None for a part that is left out."""
    if isinstance(template, str):
        if re.fullmatch(r"\$\w+", template):
            return values[template[1:]]
        return re.sub(r"\$(\w+)", lambda match: str(values[match[1]]), template)
    if isinstance(template, list):
        return [filled for one in template if (filled := _filled(one, values)) is not None]
    if not isinstance(template, dict):
        return template
    if "$if" in template and values[template["$if"]] is None:
        return None
    filled = {key: _filled(one, values) for key, one in template.items() if not key.startswith("$")}
    return {key: one for key, one in filled.items() if one is not None}


def _volume_values(run: KubernetesRun, volume: Volume | None) -> Manifest:
    claim = (volume.claim or f"{run.name}-data") if volume is not None else None
    own_disk = True if volume is None else None
    values: Manifest = {"own_disk": own_disk, "claim": claim, "volume_name": None, "claim_spec": None}
    if volume is None or claim is None or volume.claim:
        return values
    name = volume_name(run.namespace, run.name) if volume.server else ""
    if name:
        namespace = run.namespace or "default"
        bare = nfs_volume.volume(name, volume.server, volume.path, volume.size, claim, namespace)
        values |= {"volume_name": name, "volume_spec": bare["spec"]}
    return values | {"claim_spec": nfs_volume.claim(claim, volume.size, volume.storage_class, name)["spec"]}


def _container_values(
    run: KubernetesRun,
    component: str,
    container: Container | None,
    environment: Mapping[str, str],
    labels: Mapping[str, str],
) -> Manifest:
    """The values of a pod with one container; empty without a container."""
    if container is None:
        return {}
    pod = container.pod
    variables: list[Manifest] = [{"name": name, "value": value} for name, value in {**environment, **pod.env}.items()]
    variables += [
        {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for variable, secret, key in pod.secrets
        if variable
    ]
    whole = [{"secretRef": {"name": secret}} for variable, secret, _ in pod.secrets if not variable]
    return {
        "image": container.image,
        "command": list(container.command) or None,
        "requests": dict(container.requests) or None,
        "limits": dict(container.limits) or None,
        "env": variables,
        "env_from": whole or None,
        # The account gives access to S3, which Redis does not need.
        "service_account": (run.settings.service_account or None) if component != REDIS else None,
        "node_selector": dict(pod.node_selector) or None,
        "tolerations": [dict(one) for one in pod.tolerations] or None,
        # Coach's labels replace equal labels of the user: policies, Services and the search for pods need them.
        "pod_labels": {**pod.labels, **labels},
    }


def _encoded(content: str | bytes | None) -> str | None:
    if content is None:
        return None
    return base64.b64encode(content.encode() if isinstance(content, str) else content).decode()
