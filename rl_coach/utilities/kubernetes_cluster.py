"""Objects of one namespace of a Kubernetes cluster, as plain dicts, through the official client."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
from typing import Any, Iterator

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from rl_coach.utilities.errors import CoachError

Manifest = dict[str, Any]

CONNECT_SECONDS = 5
ANSWER_SECONDS = 30
SILENCE_SECONDS = 600  # the connection of a followed log counts as broken after this time without lines
NOT_FOUND, CONFLICT, GONE, TOO_MANY_REQUESTS = 404, 409, 410, 429

_SERVICE_ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
_KINDS = {
    "ConfigMap": ("CoreV1Api", "namespaced_config_map"),
    "Event": ("CoreV1Api", "namespaced_event"),
    "Job": ("BatchV1Api", "namespaced_job"),
    "NetworkPolicy": ("NetworkingV1Api", "namespaced_network_policy"),
    "PersistentVolume": ("CoreV1Api", "persistent_volume"),
    "PersistentVolumeClaim": ("CoreV1Api", "namespaced_persistent_volume_claim"),
    "Pod": ("CoreV1Api", "namespaced_pod"),
    "Secret": ("CoreV1Api", "namespaced_secret"),
    "Service": ("CoreV1Api", "namespaced_service"),
    "StatefulSet": ("AppsV1Api", "namespaced_stateful_set"),
}


class ClusterError(CoachError):
    """Error of the API server, or of the connection to it.

    :ivar status: the HTTP status; 0 if there was no answer
    """

    def __init__(self, message: str, status: int = 0):
        super().__init__(message)
        self.status = status


class Cluster:
    """Client for a namespace of a cluster.

    :param namespace: the namespace; empty uses the namespace of the context, or of this pod
    :param kubeconfig: the path of the kubeconfig; empty uses ``KUBECONFIG``, ``~/.kube/config``, or the pod's service
        account
    :param context: the context of the kubeconfig; empty uses the current context
    :raises CoachError: if the configuration does not exist
    """

    def __init__(self, namespace: str = "", kubeconfig: str = "", context: str = ""):
        settings = client.Configuration()
        settings.retries = 1  # an address that does not answer gives an error within 10 s
        try:
            default_namespace = _load(settings, kubeconfig, context)
        except (config.ConfigException, OSError) as error:
            places = f"'{kubeconfig}'" if kubeconfig else "KUBECONFIG, ~/.kube/config, a pod's service account"
            raise CoachError(f"found no Kubernetes cluster in {places}: {' '.join(str(error).split())}") from error
        self.namespace = namespace or default_namespace
        self.host = settings.host
        self._client = client.ApiClient(settings)

    def create(self, manifest: Manifest) -> Manifest:
        """Create an object.

        :return: the object as stored in the cluster
        :raises ClusterError: if the object exists already, is not valid or is not allowed
        """
        kind = manifest["kind"]
        return self._json("create", kind, self._place(kind), f"{kind} '{manifest['metadata']['name']}'", body=manifest)

    def read(self, kind: str, name: str) -> Manifest | None:
        """An object; None if it does not exist.

        :raises ClusterError: if the API server refuses
        """
        try:
            return self._json("read", kind, [name, *self._place(kind)], f"{kind} '{name}'")
        except ClusterError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def patch(self, kind: str, name: str, change: Manifest) -> Manifest:
        """Change an object.

        :raises ClusterError: if the object does not exist, or the change is not allowed
        """
        return self._json("patch", kind, [name, *self._place(kind)], f"{kind} '{name}'", body=change)

    def delete(self, kind: str, name: str) -> None:
        """Delete an object after all objects that it owns; a missing object is not an error.

        :raises ClusterError: if the API server refuses
        """
        try:
            place = [name, *self._place(kind)]
            self._json("delete", kind, place, f"{kind} '{name}'", propagation_policy="Foreground")
        except ClusterError as error:
            if error.status != NOT_FOUND:
                raise

    def find(self, kind: str, **selectors: str) -> tuple[list[Manifest], str]:
        """The objects of a kind.

        :param selectors: ``label_selector`` and ``field_selector``, to select objects
        :return: the objects, and their resource version
        :raises ClusterError: if the API server refuses
        """
        answer = self._json("list", kind, self._place(kind), f"{kind}s", **selectors)
        return answer.get("items") or [], answer["metadata"]["resourceVersion"]

    def watch(self, kind: str, version: str, seconds: int, **selectors: str) -> Iterator[tuple[str, Manifest]]:
        """Changes of objects after a version, as (``'ADDED'``, ``'MODIFIED'`` or ``'DELETED'``, object).

        :param version: the resource version that ``find`` returned
        :param seconds: the server ends the watch after this time
        :raises ClusterError: if the version is too old; its status is then 410
        """
        options: dict[str, Any] = {**selectors, "resource_version": version, "timeout_seconds": seconds, "watch": True}
        waits = (CONNECT_SECONDS, seconds + ANSWER_SECONDS)
        response = self._call("list", kind, self._place(kind), f"{kind}s", _request_timeout=waits, **options)
        with contextlib.closing(response):
            for line in _lines(response):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ClusterError(str(event["object"].get("message")), int(event["object"].get("code", 0)))
                yield event["type"], event["object"]

    def log(self, pod: str, follow: bool = False, since_seconds: int | None = None) -> Iterator[str]:
        """The lines of a pod's log. Each line begins with its time stamp and a space.

        :param follow: wait for more lines, until the pod ends
        :param since_seconds: only lines of the last ``since_seconds`` seconds; None for all lines
        :raises ClusterError: if there is no log
        """
        options: dict[str, Any] = {"follow": follow, "timestamps": True}
        if since_seconds is not None:
            options["since_seconds"] = since_seconds
        waits = (CONNECT_SECONDS, SILENCE_SECONDS if follow else ANSWER_SECONDS)
        response = self._call(
            "read", "Pod", [pod, self.namespace], f"the log of pod '{pod}'", "_log", _request_timeout=waits, **options
        )
        with contextlib.closing(response):
            for line in _lines(response):
                yield line.decode(errors="replace")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _place(self, kind: str) -> list[str]:
        return [self.namespace] if _KINDS[kind][1].startswith("namespaced_") else []

    def _json(self, verb: str, kind: str, place: list[str], subject: str, **options: Any) -> Manifest:
        waits = (CONNECT_SECONDS, ANSWER_SECONDS)
        response = self._call(verb, kind, place, subject, _request_timeout=waits, **options)
        with contextlib.closing(response):
            return json.loads(_read(response))

    def _call(self, verb: str, kind: str, place: list[str], subject: str, suffix: str = "", **options: Any) -> Any:
        """The HTTP response to a request. Its body has not been read yet.

        :raises ClusterError: if the request is refused, or there is no answer
        """
        api, name = _KINDS[kind]
        method = getattr(getattr(client, api)(self._client), f"{verb}_{name}{suffix}")
        try:
            return method(*place, _preload_content=False, **options)
        except ApiException as error:
            said = f"the cluster does not {verb} {subject} in namespace '{self.namespace}': {_reason(error)}"
            raise ClusterError(said, error.status or 0) from error
        except urllib3.exceptions.HTTPError as error:
            raise ClusterError(f"the cluster at {self.host} does not answer: {_cause(error)}") from error


def _load(settings: client.Configuration, kubeconfig: str, context: str) -> str:
    """Set the fields of ``settings`` for a connection.

    :return: the namespace of the kubeconfig or the pod
    """
    if not kubeconfig and not context and _is_in_pod():
        config.load_incluster_config(client_configuration=settings)
        return (_SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    file, name = kubeconfig or None, context or None
    config.load_kube_config(config_file=file, context=name, client_configuration=settings)
    contexts, current = config.list_kube_config_contexts(config_file=file)
    chosen = next((one for one in contexts if one["name"] == name), current)
    return chosen["context"].get("namespace") or "default"


def _is_in_pod() -> bool:
    """True in a pod with a service account and without a kubeconfig."""
    places = config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION.split(os.pathsep)
    return _SERVICE_ACCOUNT.is_dir() and not any(os.path.exists(os.path.expanduser(place)) for place in places)


def _lines(response: urllib3.HTTPResponse) -> Iterator[bytes]:
    """The lines of a response as they arrive. They end if the connection breaks."""
    rest = b""
    try:
        for chunk in response.stream(amt=None, decode_content=False):
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole
    except (urllib3.exceptions.HTTPError, OSError):
        return
    if rest:
        yield rest


def _read(response: urllib3.HTTPResponse) -> bytes:
    try:
        return response.read()
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ClusterError(f"the connection to the cluster broke: {_cause(error)}") from error


def _reason(error: ApiException) -> str:
    """The message of the API server in one line."""
    body = error.body or getattr(error, "data", None) or ""
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
    with contextlib.suppress(ValueError, AttributeError):
        text = json.loads(text).get("message") or text
    return " ".join(text.split()) or str(error.reason)


def _cause(error: Exception) -> str:
    """The innermost reason in one line."""
    inner = getattr(error, "reason", None) or error
    return " ".join(str(inner).split())
