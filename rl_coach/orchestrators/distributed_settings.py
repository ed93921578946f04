"""Settings of a distributed run, from the INI file of ``-dcp``. Files of Intel's Coach can be read, too.

All mistakes in the file are reported together, one line for each mistake.
"""

from __future__ import annotations

import configparser
import os
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Callable, Iterator, Literal, Mapping
from urllib.parse import urlsplit, urlunsplit

from rl_coach.checkpoint import CHECKPOINT_DIRECTORY
from rl_coach.memories.backend import redis_url as redis_urls
from rl_coach.orchestrators.run_order import DataStoreOrder
from rl_coach.runs.status import STATUS_COPY
from rl_coach.utilities.errors import CoachError, CoachErrors, did_you_mean

Orchestrator = Literal["local", "ray", "kubernetes"]
StoreType = Literal["redis", "nfs", "s3"]

REDIS_IMAGE = "redis:7.4.1-alpine"
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
# Texts, because a Decimal of the float 0.001 is not exact.
_UNITS: Mapping[str, str | int] = {"m": "0.001", "": "1", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12",
          "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}  # fmt: skip


@dataclass(frozen=True)
class PodSettings:
    """Resources and placement of one kind of pod. Resources are texts in the form of Kubernetes; if a text is empty,
    the cluster decides.

    :param image: the image; empty uses the run's image
    :param cpu: reserved processors, such as ``2`` or ``500m``
    :param memory: reserved memory, such as ``2Gi``
    :param cpu_limit: upper limit of processors
    :param memory_limit: upper limit of memory; a pod that uses more is killed
    :param gpus: number of GPUs
    :param node_selector: labels that the pod's node must have
    :param tolerations: taints of nodes that the pod tolerates, in Kubernetes' form: ``key``, ``operator``, ``value``,
        ``effect``
    :param labels: labels of the pod, in addition to the labels that Coach sets
    :param env: environment variables of the pod
    :param secrets: (variable, Secret, key): environment variables from Secrets; with an empty variable and key, all
        keys of the Secret become variables
    """

    image: str = ""
    cpu: str = ""
    memory: str = ""
    cpu_limit: str = ""
    memory_limit: str = ""
    gpus: int = 0
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, str], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class DistributedSettings:
    """Settings of a distributed run. The defaults are for a run on one machine.

    :param orchestrator: the orchestrator that starts the processes. A file with an image and without an orchestrator
        selects Kubernetes, because files of Coach 1.0.1 have this form
    :param image: image of trainer and workers, if their sections do not set an image
    :param memory_backend: the transport of experience; ``redispubsub`` of Coach 1.0.1 also means ``redis``
    :param data_store: the place of policies and checkpoints
    :param ray_address: the Ray cluster; ``auto`` is the cluster of this machine
    :param redis_url: address of an existing Redis, without its password (``redis://``, ``rediss://`` or ``unix://``);
        empty starts a Redis for the run
    :param redis_password: the password of that Redis; None without a password
    :param s3_end_point: URL of the service; empty uses Amazon S3
    :param s3_bucket_name: the bucket, which must exist
    :param s3_creds_file: an AWS credentials file; empty uses the credentials that AWS tools find by themselves
    :param nfs_path: the shared directory, or the exported path if ``nfs_server`` is given
    :param nfs_server: host of an NFS export; a volume is created for this export
    :param nfs_claim: an existing PersistentVolumeClaim
    :param nfs_storage_class: the storage class of a claim that is created and removed with the run
    :param nfs_size: the size of the claim
    :param namespace: the namespace; empty uses the namespace of the kubeconfig's context
    :param kubeconfig: the kubeconfig; empty uses ``KUBECONFIG``, ``~/.kube/config``, or the account of the pod in which
        Coach runs
    :param context: the kubeconfig's context; empty uses the current context
    :param service_account: the service account of trainer and workers, for clusters in which the account gives access
        to S3
    :param image_pull_secret: a Secret with the registry's credentials
    :param gpu_resource: name of the GPUs in the cluster
    :param keep_seconds: seconds after the end of a run until the cluster removes the run
    :param start_seconds: the longest time in seconds until the trainer's pod has started, including finding a node and
        pulling images; with Ray, the longest time to get the resources
    :param stop_seconds: the longest time in seconds for a pod to save and end after the request to stop
    :param restarts: number of times that the trainer, and each worker, is restarted after a failure
    """

    orchestrator: Orchestrator = "local"
    image: str = ""
    memory_backend: Literal["redis"] = "redis"
    data_store: StoreType = "redis"
    ray_address: str = "auto"
    redis_url: str = ""
    redis_password: str | None = field(default=None, repr=False)
    s3_end_point: str = ""
    s3_bucket_name: str = ""
    s3_creds_file: str = ""
    nfs_path: str = ""
    nfs_server: str = ""
    nfs_claim: str = ""
    nfs_storage_class: str = ""
    nfs_size: str = "10Gi"
    namespace: str = ""
    kubeconfig: str = ""
    context: str = ""
    service_account: str = ""
    image_pull_secret: str = ""
    gpu_resource: str = "nvidia.com/gpu"
    keep_seconds: int = 3600
    start_seconds: int = 300
    stop_seconds: int = 60
    restarts: int = 5
    trainer: PodSettings = PodSettings()
    worker: PodSettings = PodSettings()
    redis: PodSettings = PodSettings(image=REDIS_IMAGE)

    def unmet(self) -> Iterator[str]:
        """A message for each setting that contradicts other settings."""
        for name, pod in (("trainer", self.trainer), ("worker", self.worker), ("redis", self.redis)):
            for key, request, limit in (("cpu", pod.cpu, pod.cpu_limit), ("memory", pod.memory, pod.memory_limit)):
                if request and limit and quantity(limit) < quantity(request):
                    yield f"[{name}] {key}_limit = {limit}: allowed: at least {key} = {request}"
            if self.orchestrator == "kubernetes" and not (pod.image or self.image):
                yield f"[{name}] image is missing: orchestrator = kubernetes needs image in [{name}] or in [coach]"
        yield from self._unmet_by_redis()
        if self.data_store == "s3" and not self.s3_bucket_name:
            yield "[coach] data_store = s3: s3_bucket_name is missing"
        if self.data_store == "nfs" and self.orchestrator == "kubernetes":
            yield from self._unmet_by_volume()
        elif self.data_store == "nfs" and not self.nfs_path:
            yield "[coach] data_store = nfs: nfs_path, a directory that all processes share, is missing"

    def _unmet_by_redis(self) -> Iterator[str]:
        where = f"[coach] redis_url = {self.redis_url}"
        if self.redis_url.startswith("unix://") and self.orchestrator != "local":
            yield f"{where}: a socket of this machine, which orchestrator = {self.orchestrator} cannot reach"
        # other orchestrators read files on their own machines
        for name, path in redis_urls.files_of(self.redis_url).items() if self.orchestrator == "local" else ():
            if not os.access(path, os.R_OK):
                yield f"{where}: {name} is not a file that can be read"

    def _unmet_by_volume(self) -> Iterator[str]:
        # these are alternatives for the same volume
        chosen = [name for name in ("nfs_claim", "nfs_server", "nfs_storage_class") if getattr(self, name)]
        if len(chosen) != 1:
            said = " and ".join(chosen) or "none is given"
            yield f"[coach] data_store = nfs: allowed: exactly one of nfs_claim, nfs_server, nfs_storage_class ({said})"
        if self.nfs_server and not self.nfs_path:
            yield f"[coach] nfs_server = {self.nfs_server}: nfs_path, the exported path, is missing"

    def s3_order(self, experiment_path: str, prefix: str, credentials: str | None) -> DataStoreOrder:
        """The settings of a data store in the bucket, for the run order.

        :param experiment_path: the experiment's directory on the trainer's machine
        :param prefix: beginning of the keys in the bucket
        :param credentials: the path of the credentials file on the machines of trainer and workers; None for no file
        """
        settings = {
            "end_point": self.s3_end_point or None,
            "bucket_name": self.s3_bucket_name,
            "creds_file": credentials,
            "prefix": prefix,
            "expt_dir": experiment_path,
            "checkpoint_dir": os.path.join(experiment_path, CHECKPOINT_DIRECTORY),
        }
        return DataStoreOrder("s3", settings)


def read(path: str) -> DistributedSettings:
    """Read the settings from an INI file.

    :raises CoachErrors: if the file cannot be read, or a key or value is not allowed
    """
    sections, wrong = _sections(path), list[str]()
    values = {name: _section_values(name, sections[name], wrong) for name in sections if name in _KEYS}
    for name in sections:
        if name not in _KEYS:
            suggestion = did_you_mean(name, _KEYS)
            wrong.append(f"no section [{name}]{suggestion} (the sections are {', '.join(f'[{key}]' for key in _KEYS)})")
    settings = _assemble(values, wrong)
    wrong.extend(settings.unmet())
    given, understood = sections.get("coach", {}), values.get("coach", {})
    if "orchestrator" in understood or "orchestrator" not in given:
        wrong.extend(_without_effect(settings.orchestrator, values))
    if wrong:
        raise CoachErrors(f"'{path}': {line}" for line in wrong)
    return settings


# Values


def _one_of(*allowed: str) -> _Kind:
    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError
        return text.lower()

    return _Kind(parse, f"allowed: {', '.join(allowed)}")


def _matching(pattern: str, allowed: str) -> _Kind:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError
        return text

    return _Kind(parse, allowed)


def _whole(smallest: int) -> _Kind:
    def parse(text: str) -> int:
        number = int(text)
        if number < smallest:
            raise ValueError
        return number

    return _Kind(parse, f"allowed: a whole number, {smallest} or more")


def _file(text: str) -> str:
    path = os.path.abspath(os.path.expanduser(text))
    with open(path, "rb"):
        return path


def _url(text: str) -> str:
    """Parse a URL. ``https://`` is added to a host name, because files of Coach 1.0.1 contain only the host."""
    parts = urlsplit(text if "://" in text else f"https://{text}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError
    return urlunsplit(parts)


def _redis_url(text: str) -> str:
    if (wrong := redis_urls.mistake(text)) is not None:
        raise _WrongText(wrong)
    return text


def _quantity(text: str) -> str:
    quantity(text)
    return text


def quantity(text: str) -> Decimal:
    """The value of a Kubernetes quantity such as ``500m`` or ``2Gi``.

    :raises ValueError: if the text is not a quantity
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(m|k|[KMGT]i|[MGT])?", text)
    if match is None:
        raise ValueError(f"'{text}' is not a quantity")
    return Decimal(match[1]) * Decimal(_UNITS[match[2] or ""])


class _WrongText(ValueError):
    """Raised for a text that is not allowed. Its message is shown instead of the description of the allowed texts."""


def _entries(text: str) -> list[str]:
    """The entries of a list. Entries are separated by new lines or commas."""
    return [entry for part in re.split(r"[\n,]", text) if (entry := part.strip())]


_LABEL_NAME = r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
_LABEL_KEY = rf"({_LABEL}(\.{_LABEL})*/)?{_LABEL_NAME}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _labels(text: str) -> dict[str, str]:
    found = {}
    for entry in _entries(text):
        key, separator, value = entry.partition("=")
        if not separator or not re.fullmatch(_LABEL_KEY, key) or not re.fullmatch(f"{_LABEL_NAME}?", value):
            raise ValueError
        found[key] = value
    return found


def _pod_labels(text: str) -> dict[str, str]:
    found = _labels(text)
    if owned := [key for key in found if key.startswith("app.kubernetes.io/")]:
        raise _WrongText(f"allowed: other labels than {owned[0]}, which Coach sets")
    return found


def _tolerations(text: str) -> tuple[dict[str, str], ...]:
    return tuple(_toleration(entry) for entry in _entries(text))


def _toleration(entry: str) -> dict[str, str]:
    """Parse a toleration in the form of ``kubectl taint``: ``key``, ``key=value``, ``key:effect``, ``key=value:effect``
    or ``*``, which tolerates all taints."""
    taint, _, effect = entry.partition(":")
    key, separator, value = taint.partition("=")
    if effect not in ("", *_EFFECTS) or (":" in entry and not effect):
        raise ValueError
    if key == "*" and not separator:
        found = {"operator": "Exists"}
    elif re.fullmatch(_LABEL_KEY, key) and re.fullmatch(f"{_LABEL_NAME}?", value):
        found = {"key": key, **({"operator": "Equal", "value": value} if separator else {"operator": "Exists"})}
    else:
        raise ValueError
    return {**found, **({"effect": effect} if effect else {})}


def _variables(text: str) -> dict[str, str]:
    """Parse variables, separated by new lines or commas. A comma belongs to the value if no ``NAME=`` follows it."""
    found = {}
    for entry in re.split(rf"\n|,(?=\s*{_VARIABLE}=)", text):
        name, separator, value = entry.strip().partition("=")
        if not name and not separator:
            continue
        if not separator or not re.fullmatch(_VARIABLE, name):
            raise ValueError
        # With another value, the cluster would not report why a trainer ended.
        if name == STATUS_COPY:
            raise _WrongText(f"allowed: other variables than {name}, which Coach sets")
        found[name] = value
    return found


def _secrets(text: str) -> tuple[tuple[str, str, str], ...]:
    found = []
    for entry in _entries(text):
        if not re.fullmatch(rf"{_VARIABLE}={_SUBDOMAIN}/[-\w.]+|{_SUBDOMAIN}", entry):
            raise ValueError
        variable, secret, key = re.split(r"[=/]", entry) if "=" in entry else ("", entry, "")
        found.append((variable, secret, key))
    return tuple(found)


@dataclass(frozen=True)
class _Kind:
    """The kind of values of a key.

    :param parse: converts a text to a value; raises ValueError, or OSError with the reason
    :param allowed: description of the allowed texts
    """

    parse: Callable[[str], Any]
    allowed: str


_NAME = _matching(_SUBDOMAIN, "allowed: a Kubernetes name of a-z, 0-9, '-' and '.'")
_QUANTITY = _Kind(_quantity, "allowed: a quantity such as 2, 500m, 512Mi or 4Gi")
_IMAGE = _matching(r"[\w][\w.\-/:@]*", "allowed: an image such as registry.example.com/coach:2.0.0")
_FILE = _Kind(_file, "allowed: a file that can be read")
_OF_NODES = {
    "node_selector": _Kind(_labels, "allowed: labels of nodes such as pool=gpu, zone=a"),
    "tolerations": _Kind(
        _tolerations,
        f"allowed: taints such as nvidia.com/gpu:NoSchedule or team=rl, or *; effects: {', '.join(_EFFECTS)}",
    ),
    "labels": _Kind(_pod_labels, "allowed: labels such as team=rl, cost-centre=42"),
}
_OF_PROGRAMS = {
    "env": _Kind(_variables, "allowed: variables such as WANDB_PROJECT=mine, one on each line"),
    "secrets": _Kind(
        _secrets, "allowed: WANDB_API_KEY=secret/key for a variable, or secret for all its keys as variables"
    ),
}
_PLACEMENT = (*_OF_NODES, *_OF_PROGRAMS)
_POD_KEYS = {
    "image": _IMAGE,
    **dict.fromkeys(("cpu", "memory", "cpu_limit", "memory_limit"), _QUANTITY),
    "gpus": _whole(0),
    **_OF_NODES,
    **_OF_PROGRAMS,
}
_KEYS: Mapping[str, Mapping[str, _Kind]] = {
    "coach": {
        "orchestrator": _one_of("local", "ray", "kubernetes"),
        "image": _IMAGE,
        "memory_backend": _one_of("redis", "redispubsub"),
        "data_store": _one_of("redis", "nfs", "s3"),
        "ray_address": _matching(
            r"auto|[\w.\-]+:\d+",
            "allowed: auto, or host:port of a cluster that this machine is a node of; from another machine, submit the "
            "command with: ray job submit",
        ),
        "redis_url": _Kind(_redis_url, f"allowed: {redis_urls.FORMS}"),
        "redis_password_file": _FILE,
        "s3_end_point": _Kind(_url, "allowed: a host, or a URL such as https://s3.example.com:9000"),
        "s3_bucket_name": _matching(
            r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]", "allowed: the name of a bucket, made of a-z, 0-9, '-' and '.'"
        ),
        "s3_creds_file": _FILE,
        "nfs_path": _matching(r"/.*", "allowed: an absolute path of a directory, such as /export/coach"),
        "nfs_server": _matching(r"[\w.\-:]+", "allowed: a host or an address"),
        "nfs_claim": _NAME,
        "nfs_storage_class": _NAME,
        "nfs_size": _QUANTITY,
        "namespace": _matching(_LABEL, "allowed: at most 63 characters of a-z, 0-9 and '-'"),
        "kubeconfig": _FILE,
        "context": _matching(r".+", "allowed: the name of a context in the kubeconfig"),
        "service_account": _NAME,
        "image_pull_secret": _NAME,
        "gpu_resource": _matching(rf"{_LABEL}(\.{_LABEL})*/[\w.\-]+", "allowed: a resource such as nvidia.com/gpu"),
        "keep_seconds": _whole(0),
        "start_seconds": _whole(1),
        "stop_seconds": _whole(1),
        "restarts": _whole(0),
        **_OF_NODES,
        **_OF_PROGRAMS,
    },
    "trainer": _POD_KEYS,
    "worker": _POD_KEYS,
    "redis": {name: kind for name, kind in _POD_KEYS.items() if name != "gpus" and name not in _OF_PROGRAMS},
}
_READ_BY: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("image", "nfs_server", "nfs_claim", "nfs_storage_class", "nfs_size", "namespace", "kubeconfig", "context",
         "service_account", "image_pull_secret", "gpu_resource", "keep_seconds", "stop_seconds", "restarts",
         "cpu_limit", "memory_limit", *_PLACEMENT),
        ("kubernetes",),
    ),
    **dict.fromkeys(("start_seconds", "cpu", "memory", "gpus"), ("kubernetes", "ray")),
    "ray_address": ("ray",),
}  # fmt: skip
"""The orchestrators that read a key. All orchestrators read the other keys of [coach], and only Kubernetes reads
[redis]."""


def _sections(path: str) -> dict[str, dict[str, str]]:
    """Read the sections of the file. The texts of the values are not changed."""
    # no interpolation, because a % may be a part of a path or a password
    parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=("#", ";"))
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file, source=path)
    except OSError as error:
        raise CoachError(f"-dcp: cannot read '{path}': {error.strerror}") from error
    except (configparser.Error, UnicodeDecodeError) as error:
        raise CoachError(f"-dcp: '{path}' is not an INI file: {' '.join(str(error).split())}") from error
    return {name: dict(parser[name]) for name in parser.sections()}


def _section_values(section: str, texts: Mapping[str, str], wrong: list[str]) -> dict[str, Any]:
    """The values in a section, by key. A line is added to ``wrong`` for each text that is not allowed."""
    values = {}
    for key, text in texts.items():
        kind = _KEYS[section].get(key)
        if kind is None:
            hidden = "***" if "password" in key or "secret" in key else text
            wrong.append(f"[{section}] {key} = {hidden}: no such key{did_you_mean(key, _KEYS[section])}")
            continue
        try:
            values[key] = kind.parse(text)
        except OSError as error:
            wrong.append(f"[{section}] {key} = {text}: {kind.allowed} ({error.strerror})")
        except ValueError as error:
            reason = str(error) if isinstance(error, _WrongText) else kind.allowed
            # the text is hidden in the message, because a URL may contain a password
            wrong.append(f"[{section}] {key} = {redis_urls.hidden(text)}: {reason}")
    return values


def _without_effect(orchestrator: str, values: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A message for each key that the orchestrator does not read, because the user expects an effect."""
    for section, found in values.items():
        for key in found:
            readers = ("kubernetes",) if section == "redis" else _READ_BY.get(key, (orchestrator,))
            if orchestrator not in readers:
                works = " or ".join(readers)
                yield f"[{section}] {key}: works only with orchestrator = {works}, not with {orchestrator}"


def _assemble(values: Mapping[str, Mapping[str, Any]], wrong: list[str]) -> DistributedSettings:
    given = dict(values.get("coach", {}))
    password = _password(given, wrong)
    if "redis_url" in given:
        # The URL is written to orders, logs and records, which other users can read.
        given["redis_url"] = redis_urls.without_password(given["redis_url"])
    given["memory_backend"] = "redis"
    shared = {name: given.pop(name) for name in _PLACEMENT if name in given}
    trainer, worker = (PodSettings(**_joined(shared, values.get(name, {}))) for name in ("trainer", "worker"))
    of_redis = _joined({name: shared[name] for name in _OF_NODES if name in shared}, values.get("redis", {}))
    redis = PodSettings(**{"image": REDIS_IMAGE, **of_redis})
    if given.get("image") or trainer.image or worker.image:
        # Files of Coach 1.0.1 name an image and no orchestrator, because Kubernetes was the only one. Without this rule
        # an image would have no effect.
        given.setdefault("orchestrator", "kubernetes")
    return DistributedSettings(**given, redis_password=password, trainer=trainer, worker=worker, redis=redis)


def _joined(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a pod: the values of its section, and the values of [coach] for all pods. If a label or variable is
    in both, the value of the pod's section is used."""
    joined = {**shared, **own}
    for name in shared.keys() & own.keys():
        joined[name] = shared[name] | own[name] if isinstance(own[name], dict) else (*shared[name], *own[name])
    return joined


def _password(given: dict[str, Any], wrong: list[str]) -> str | None:
    """The password of an external Redis, from its file or its URL."""
    url, file = given.get("redis_url", ""), given.pop("redis_password_file", None)
    written = redis_urls.password_of(url)
    where = f"[coach] redis_password_file = {file}"
    if file is not None and not url:
        wrong.append(f"{where}: only with redis_url; without it, the run starts its own Redis")
    if file is not None and written is not None:
        wrong.append(f"{where}: redis_url has a password too: give only one of them")
    if file is None:
        return written
    try:
        with open(file, encoding="utf-8") as opened:
            password = opened.read().rstrip("\r\n")
    except UnicodeDecodeError:
        wrong.append(f"{where}: allowed: a text file in UTF-8")
        return None
    if not password or "\n" in password:
        wrong.append(f"{where}: allowed: a file with one line, the password")
    return password
