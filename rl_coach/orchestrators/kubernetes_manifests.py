"""Kubernetes manifests of a distributed run: pure functions from its description to plain dicts.

The trainer's Job owns all other objects: its deletion removes them, and the cluster deletes the Job itself
``keep_seconds`` after it has ended, also if the machine that started the run no longer exists. All pods satisfy the
restricted pod security standard. Secrets reach containers as files.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from rl_coach.data_stores import nfs_volume
from rl_coach.runs.status import STATUS_COPY

Manifest = dict[str, Any]

ORDER_DIRECTORY = "/etc/coach/order"
REDIS_DIRECTORY = "/etc/coach/redis"
S3_DIRECTORY = "/etc/coach/s3"
ORDER_FILE = f"{ORDER_DIRECTORY}/order.json"
PASSWORD_FILE = f"{REDIS_DIRECTORY}/password"
S3_CREDENTIALS_FILE = f"{S3_DIRECTORY}/credentials"
DATA_DIRECTORY = "/coach"
"""The directory of experiments in trainer and workers: the shared volume with ``nfs``, otherwise the pod's own disk."""

TERMINATION_MESSAGE = "/dev/termination-log"
"""A file of the container; the cluster stores its content with the pod's status."""

REDIS_PORT = 6379
RUN_ANNOTATION = "coach-rl/run"
INSTANCE_LABEL = "app.kubernetes.io/instance"
COMPONENT_LABEL = "app.kubernetes.io/component"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
TRAINER, WORKER, REDIS = "trainer", "worker", "redis"
BAD_INPUT, TRAINING_FAILED = 2, 1
"""Exit codes that another attempt would not change."""

MAX_NAME = 40
"""The most letters of a run's name: StatefulSets and pods append to it, and labels have at most 63."""

_USER = 10001  # the user of the images; a Redis image works with any user
_REDIS_CONFIGURATION = "redis.conf"


@dataclass(frozen=True)
class Container:
    """A container of a run.

    :param image: the image
    :param command: the program and its arguments; empty uses the image's
    :param requests: reserved resources by name
    :param limits: limits of resources by name, including GPUs
    :param node_selector: labels that the pod's node must have
    :param tolerations: taints that the pod tolerates
    :param labels: labels of the pod, in addition to Coach's
    :param env: environment variables, in addition to Coach's
    :param secrets: (variable, Secret, key); with an empty variable and key, all keys of the Secret become variables
    """

    image: str
    command: tuple[str, ...] = ()
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, str], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Volume:
    """The volume that trainer and workers share.

    :param claim: an existing claim; empty creates a claim for the run
    :param server: host of an NFS export with ``path``; a volume is created for it
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

    :param name: the beginning of the names of all its objects
    :param namespace: the namespace; if empty, it is chosen when the objects are created
    :param run: the run's id
    :param trainer: the trainer's container
    :param worker: the container of each worker
    :param num_workers: number of workers
    :param redis: the container of Redis; None for an existing Redis
    :param redis_password: the password of Redis; None without a password
    :param order: the run order as JSON; empty for containers without an order
    :param s3_credentials: an AWS credentials file; None uses the pods' other credentials
    :param volume: the shared volume; None without a volume
    :param service_account: the account of trainer and workers; empty uses the namespace's default
    :param image_pull_secret: a Secret with the registry's credentials
    :param keep_seconds: time until the cluster removes a run that has ended
    :param stop_seconds: seconds for a pod to end
    :param restarts: number of restarts after a failure
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
    service_account: str = ""
    image_pull_secret: str = ""
    keep_seconds: int = 3600
    stop_seconds: int = 60
    restarts: int = 5


def manifests(run: KubernetesRun) -> list[Manifest]:
    """All objects of a run, the owner first."""
    return [trainer_job(run), *dependents(run), worker_job(run)]


def as_yaml(objects: Sequence[Manifest]) -> str:
    """Manifests as the documents of a YAML file; texts of several lines are written as such."""
    import yaml  # installed with the Kubernetes client

    class Dumper(yaml.SafeDumper):
        """A separate dumper class, so that the representation of texts does not affect other code."""

    def represent_text(dumper: Any, text: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, represent_text)
    return yaml.dump_all(objects, Dumper=Dumper, sort_keys=False, width=120, explicit_start=True)


def dependents(run: KubernetesRun) -> list[Manifest]:
    """The objects that trainer and workers need, before either starts."""
    objects = [order_config(run)] if run.order else []
    if run.redis_password is not None:
        objects.append(redis_secret(run, run.redis_password))
    if run.s3_credentials is not None:
        objects.append(s3_secret(run, run.s3_credentials))
    if run.volume is not None and not run.volume.claim:
        objects += [*persistent_volumes(run, run.volume), volume_claim(run, run.volume)]
    if run.redis is not None:
        objects += [redis_service(run), redis_policy(run), redis_set(run, run.redis)]
    return [*objects, closed_policy(run)]


def owned(manifest: Manifest, owner: Manifest) -> Manifest:
    """A manifest with an owner: the object is removed with the owner. An object in a namespace cannot own an object
    outside of namespaces.

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
    """A Job that starts no pods yet."""
    return {**job, "spec": {**job["spec"], "suspend": True}}


def owner_name(name: str) -> str:
    """The name of the trainer's Job, which owns a run."""
    return f"{name}-trainer"


def redis_host(run: KubernetesRun) -> str:
    """The host name of the run's Redis for pods of the namespace."""
    return f"{run.name}-redis"


def selector(name: str) -> str:
    """The label selector of all objects of a run."""
    return f"{MANAGED_LABEL}=coach,{INSTANCE_LABEL}={name}"


# Jobs


def trainer_job(run: KubernetesRun) -> Manifest:
    """The trainer; it is restarted after failures that another attempt may solve."""
    spec = {
        "backoffLimit": run.restarts,
        "ttlSecondsAfterFinished": run.keep_seconds,
        "podFailurePolicy": _failure_policy(TRAINER, (TRAINING_FAILED, BAD_INPUT)),
        "template": _pod_template(run, TRAINER, run.trainer),
    }
    return _manifest(run, "batch/v1", "Job", "trainer", TRAINER, spec=spec)


def worker_job(run: KubernetesRun) -> Manifest:
    """The rollout workers, each with its own index. A failed worker is replaced."""
    spec = {
        "completions": run.num_workers,
        "parallelism": run.num_workers,
        "completionMode": "Indexed",
        "backoffLimit": run.restarts * run.num_workers,
        "backoffLimitPerIndex": run.restarts,
        "ttlSecondsAfterFinished": run.keep_seconds,
        "podFailurePolicy": _failure_policy(WORKER, (BAD_INPUT,)),
        "template": _pod_template(run, WORKER, run.worker),
    }
    return _manifest(run, "batch/v1", "Job", "worker", WORKER, spec=spec)


def _failure_policy(container: str, hopeless: tuple[int, ...]) -> Manifest:
    """The policy of failures: evictions do not count, and exit codes that another attempt would not change end the
    Job."""
    return {
        "rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {
                "action": "FailJob",
                "onExitCodes": {"containerName": container, "operator": "In", "values": list(hopeless)},
            },
        ]
    }


def _pod_template(run: KubernetesRun, component: str, container: Container) -> Manifest:
    volumes = _volumes(run)
    # The root file system is read-only. HOME, TMPDIR and the cache of compiled steps are on the pod's own volume.
    environment = {
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "COACH_COMPILATION_CACHE": "/tmp/compiled",
        STATUS_COPY: TERMINATION_MESSAGE,
        **container.env,
    }
    body = {
        **_container(component, container),
        "workingDir": DATA_DIRECTORY,
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "volumeMounts": [mount for _, mount in volumes],
    }
    body["env"] += [
        {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for variable, secret, key in container.secrets
        if variable
    ]
    if whole := [secret for variable, secret, _ in container.secrets if not variable]:
        body["envFrom"] = [{"secretRef": {"name": secret}} for secret in whole]
    # A Job accepts a failure policy only for pods that are never restarted. It makes a new pod instead.
    return _pod(run, component, container, body, [volume for volume, _ in volumes], restart_policy="Never")


def _volumes(run: KubernetesRun) -> list[tuple[Manifest, Manifest]]:
    """(volume, mount) of trainer and workers."""
    pairs = [_writable("tmp", "/tmp"), _data_volume(run)]
    if run.order:
        source = {"name": "order", "configMap": {"name": f"{run.name}-order"}}
        pairs.append((source, {"name": "order", "mountPath": ORDER_DIRECTORY, "readOnly": True}))
    if run.redis_password is not None:
        pairs.append(_secret_volume(f"{run.name}-redis", "redis", REDIS_DIRECTORY, "password"))
    if run.s3_credentials is not None:
        pairs.append(_secret_volume(f"{run.name}-s3", "s3", S3_DIRECTORY, "credentials"))
    return pairs


def _data_volume(run: KubernetesRun) -> tuple[Manifest, Manifest]:
    if run.volume is None:
        return _writable("data", DATA_DIRECTORY)
    source = {"name": "data", "persistentVolumeClaim": {"claimName": claim_name(run, run.volume)}}
    return source, {"name": "data", "mountPath": DATA_DIRECTORY}


def _writable(name: str, path: str) -> tuple[Manifest, Manifest]:
    return {"name": name, "emptyDir": {}}, {"name": name, "mountPath": path}


def _secret_volume(secret: str, name: str, path: str, key: str) -> tuple[Manifest, Manifest]:
    """A key of a Secret as a file that only the pod's group can read."""
    source = {"secretName": secret, "defaultMode": 0o440, "items": [{"key": key, "path": key}]}
    return {"name": name, "secret": source}, {"name": name, "mountPath": path, "readOnly": True}


# Redis


def redis_set(run: KubernetesRun, redis: Container) -> Manifest:
    """Redis without persistence: trainer and workers send lost data again."""
    body = {
        **_container(REDIS, redis),
        "command": ["redis-server", f"{REDIS_DIRECTORY}/{_REDIS_CONFIGURATION}"],
        "ports": [{"name": REDIS, "containerPort": REDIS_PORT}],
        # A TCP probe needs no password. A command would show it in the pod's description.
        "readinessProbe": {"tcpSocket": {"port": REDIS}, "periodSeconds": 2},
        "livenessProbe": {"tcpSocket": {"port": REDIS}, "periodSeconds": 10, "failureThreshold": 6},
    }
    secret, mount = _secret_volume(f"{run.name}-redis", "configuration", REDIS_DIRECTORY, _REDIS_CONFIGURATION)
    data, data_mount = _writable("data", "/data")
    body["volumeMounts"] = [mount, data_mount]
    template = _pod(run, REDIS, redis, body, [secret, data])
    spec = {
        "serviceName": redis_host(run),
        "replicas": 1,
        "selector": {"matchLabels": _selecting(run, REDIS)},
        "template": template,
    }
    return _manifest(run, "apps/v1", "StatefulSet", "redis", REDIS, spec=spec)


def redis_service(run: KubernetesRun) -> Manifest:
    """The name of Redis in the namespace."""
    spec = {
        "selector": _selecting(run, REDIS),
        "ports": [{"name": REDIS, "port": REDIS_PORT, "targetPort": REDIS}],
        # the name must resolve while Redis restarts: workers judge Redis by its answers, not by its name
        "publishNotReadyAddresses": True,
    }
    return _manifest(run, "v1", "Service", "redis", REDIS, spec=spec)


def redis_secret(run: KubernetesRun, password: str) -> Manifest:
    """The password of Redis; for the run's own Redis also its configuration, which contains the password."""
    files = {"password": password.encode()}
    if run.redis is not None:
        # "-::*" adds IPv6 only if the pod has an IPv6 address. Without eviction, a full Redis refuses new chunks and
        # loses none that the trainer has not read.
        lines = [
            f"requirepass {password}", f"port {REDIS_PORT}", "bind * -::*", "dir /data", 'save ""', "appendonly no",
            "maxmemory-policy noeviction",
        ]  # fmt: skip
        files[_REDIS_CONFIGURATION] = ("\n".join(lines) + "\n").encode()
    return _secret(run, "redis", REDIS, files)


def redis_policy(run: KubernetesRun) -> Manifest:
    """A policy: only the run's trainer and workers can connect to its Redis, and Redis connects to nothing."""
    peers = [{"podSelector": {"matchLabels": _selecting(run, component)}} for component in (TRAINER, WORKER)]
    spec = {
        "podSelector": {"matchLabels": _selecting(run, REDIS)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": peers, "ports": [{"protocol": "TCP", "port": REDIS_PORT}]}],
        "egress": [],
    }
    return _manifest(run, "networking.k8s.io/v1", "NetworkPolicy", "redis", REDIS, spec=spec)


def closed_policy(run: KubernetesRun) -> Manifest:
    """A policy: nothing can connect to trainer and workers, because they open all connections themselves."""
    names = {"key": COMPONENT_LABEL, "operator": "In", "values": [TRAINER, WORKER]}
    chosen = {"matchLabels": {INSTANCE_LABEL: run.name}, "matchExpressions": [names]}
    spec = {"podSelector": chosen, "policyTypes": ["Ingress"], "ingress": []}
    return _manifest(run, "networking.k8s.io/v1", "NetworkPolicy", "closed", "network", spec=spec)


# Data


def order_config(run: KubernetesRun) -> Manifest:
    """The order of the run for trainer and workers. It contains no secrets."""
    return _manifest(run, "v1", "ConfigMap", "order", "order", data={"order.json": run.order})


def s3_secret(run: KubernetesRun, credentials: bytes) -> Manifest:
    """The credentials file of S3."""
    return _secret(run, "s3", "data-store", {"credentials": credentials})


def claim_name(run: KubernetesRun, volume: Volume) -> str:
    """The name of the claim that trainer and workers mount."""
    return volume.claim or f"{run.name}-data"


def persistent_volumes(run: KubernetesRun, volume: Volume) -> list[Manifest]:
    """The volume of an NFS export, which restricted pods may not mount themselves; its data remains after the run."""
    if not volume.server:
        return []
    name, claim = volume_name(run.namespace, run.name), claim_name(run, volume)
    bare = nfs_volume.volume(name, volume.server, volume.path, volume.size, claim, run.namespace or "default")
    about = {"labels": _labels(run, "data-store"), "annotations": {RUN_ANNOTATION: run.run}}
    return [nfs_volume.with_metadata(bare, about)]


def volume_name(namespace: str, name: str) -> str:
    """The name of a run's volume, which belongs to no namespace."""
    # Runs of two namespaces may have the same name, but a volume's name is unique in the cluster.
    return f"{namespace or 'default'}-{name}-data"


def volume_claim(run: KubernetesRun, volume: Volume) -> Manifest:
    """The claim on the volume that trainer and workers share."""
    bound = volume_name(run.namespace, run.name) if volume.server else ""
    bare = nfs_volume.claim(claim_name(run, volume), volume.size, volume.storage_class, bound)
    return nfs_volume.with_metadata(bare, _metadata(run, "data", "data-store"))


# Parts of manifests


def _labels(run: KubernetesRun, component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "coach",
        "app.kubernetes.io/part-of": "coach",
        MANAGED_LABEL: "coach",
        **_selecting(run, component),
    }


def _selecting(run: KubernetesRun, component: str) -> dict[str, str]:
    return {INSTANCE_LABEL: run.name, COMPONENT_LABEL: component}


def _manifest(run: KubernetesRun, version: str, kind: str, suffix: str, component: str, **parts: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": _metadata(run, suffix, component), **parts}


def _metadata(run: KubernetesRun, suffix: str, component: str) -> Manifest:
    metadata: Manifest = {"name": f"{run.name}-{suffix}"}
    if run.namespace:
        metadata["namespace"] = run.namespace
    return metadata | {"labels": _labels(run, component), "annotations": {RUN_ANNOTATION: run.run}}


def _secret(run: KubernetesRun, suffix: str, component: str, files: Mapping[str, bytes]) -> Manifest:
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    return _manifest(run, "v1", "Secret", suffix, component, type="Opaque", data=data)


def _container(name: str, container: Container) -> Manifest:
    body: Manifest = {"name": name, "image": container.image}
    if container.command:
        body["command"] = list(container.command)
    resources = {"requests": dict(container.requests), "limits": dict(container.limits)}
    body["resources"] = {kind: values for kind, values in resources.items() if values}
    body["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    return body


def _pod(
    run: KubernetesRun,
    component: str,
    container: Container,
    body: Manifest,
    volumes: list[Manifest],
    restart_policy: str = "Always",
) -> Manifest:
    """The template of a pod. :param body: the manifest of its container"""
    spec: Manifest = {
        # No process of a run calls the cluster's API.
        "automountServiceAccountToken": False,
        # Otherwise the cluster adds variables for each Service of the namespace.
        "enableServiceLinks": False,
        "restartPolicy": restart_policy,
        "terminationGracePeriodSeconds": run.stop_seconds,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            # Otherwise each start of a pod changes the owner of every file on the shared volume.
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [body],
        "volumes": volumes,
    }
    # The account gives access to S3, which Redis does not need.
    if run.service_account and component != REDIS:
        spec["serviceAccountName"] = run.service_account
    if run.image_pull_secret:
        spec["imagePullSecrets"] = [{"name": run.image_pull_secret}]
    if container.node_selector:
        spec["nodeSelector"] = dict(container.node_selector)
    if container.tolerations:
        spec["tolerations"] = [dict(one) for one in container.tolerations]
    # Coach's labels win: policies, Services and the search for pods depend on them.
    labels = {**container.labels, **_labels(run, component)}
    return {"metadata": {"labels": labels, "annotations": {RUN_ANNOTATION: run.run}}, "spec": spec}
