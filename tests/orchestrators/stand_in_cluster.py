"""A stand-in for a Kubernetes API server: an HTTP server with versions, watches, owners and the two controllers that
a run needs. It does what the genuine one does in the tests that both go through."""

from __future__ import annotations

import copy
import datetime
import http.server
import itertools
import json
import re
import threading
import time
import urllib.parse
import uuid
from typing import Any, Iterator

Manifest = dict[str, Any]
Key = tuple[str, str, str]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_PATH = re.compile(
    r"/(?:api/v1|apis/[^/]+/v1)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[a-z]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<part>status|log))?)?"
)
_KINDS = {
    "configmaps": "ConfigMap", "events": "Event", "jobs": "Job", "networkpolicies": "NetworkPolicy",
    "persistentvolumeclaims": "PersistentVolumeClaim", "persistentvolumes": "PersistentVolume", "pods": "Pod",
    "secrets": "Secret", "services": "Service", "statefulsets": "StatefulSet",
}  # fmt: skip

_FIRST_STATUS = {"pods": {"phase": "Pending"}, "statefulsets": {"replicas": 1}}


class Refusal(Exception):
    """An answer other than 2xx."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class Objects:
    """The objects of a cluster, and their history."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.history: list[tuple[int, str, str, str, Manifest]] = []
        self.logs: dict[str, list[str]] = {}
        self.log_breaks = 0
        self.answers = threading.Event()
        self.answers.set()
        self.refuses_to_delete = False
        self._looks = 0
        self._objects: dict[Key, Manifest] = {}
        self._versions = itertools.count(1)

    @property
    def version(self) -> int:
        return self.history[-1][0] if self.history else 0

    def all(self, plural: str, namespace: str) -> list[Manifest]:
        return [one for (kind, place, _), one in self._objects.items() if (kind, place) == (plural, namespace)]

    def get(self, key: Key) -> Manifest:
        if key not in self._objects:
            raise Refusal(404, f'{key[0]} "{key[2]}" not found')
        return self._objects[key]

    def create(self, plural: str, namespace: str, manifest: Manifest) -> Manifest:
        metadata = manifest["metadata"]
        name = metadata.get("name") or metadata["generateName"] + uuid.uuid4().hex[:5]
        key = plural, namespace, name
        if not _NAME.fullmatch(name):
            raise Refusal(422, f'{plural} "{name}" is invalid: metadata.name')
        if key in self._objects:
            raise Refusal(409, f'{plural} "{name}" already exists')
        created = copy.deepcopy(manifest)
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        created["metadata"] |= {"name": name, "uid": str(uuid.uuid4()), "creationTimestamp": now}
        if namespace:
            created["metadata"]["namespace"] = namespace
        created.setdefault("status", dict(_FIRST_STATUS.get(plural, {})))
        self._objects[key] = created
        self._record("ADDED", key)
        self._control()
        return created

    def patch(self, key: Key, change: Manifest) -> Manifest:
        _merge(self.get(key), change)
        self._record("MODIFIED", key)
        self._control()
        return self.get(key)

    def delete(self, key: Key) -> None:
        """Delete an object after all that it owns."""
        uid = self.get(key)["metadata"]["uid"]
        self._objects[key]["metadata"]["deletionTimestamp"] = "now"
        for other in self._owned_by(uid):
            self.delete(other)
        self._record("DELETED", key)
        del self._objects[key]
        self._control()

    def _owned_by(self, uid: str) -> list[Key]:
        def owners(one: Manifest) -> list[str]:
            return [reference["uid"] for reference in one["metadata"].get("ownerReferences", [])]

        return [key for key, one in self._objects.items() if uid in owners(one)]

    def _record(self, event: str, key: Key) -> None:
        with self.changed:
            version = next(self._versions)
            self._objects[key]["metadata"]["resourceVersion"] = str(version)
            self.history.append((version, key[0], key[1], event, copy.deepcopy(self._objects[key])))
            self.changed.notify_all()

    # Controllers

    def _control(self) -> None:
        """Let the controllers look until they change nothing; what they change themselves calls for one look more."""
        self._looks += 1
        if self._looks > 1:
            return
        while self._looks:
            seen = self._looks
            self._look()
            self._looks -= seen

    def _look(self) -> None:
        for (plural, namespace, _), one in list(self._objects.items()):
            if "deletionTimestamp" in one["metadata"]:
                continue
            if plural == "jobs":
                self._control_job(namespace, one)
            if plural == "statefulsets" and not self._pods_of(one):
                self._make_pod(namespace, one, one["metadata"]["name"] + "-0", {})

    def _pods_of(self, owner: Manifest) -> list[Manifest]:
        keys = self._owned_by(owner["metadata"]["uid"])
        return [self._objects[key] for key in keys if key[0] == "pods"]

    def _control_job(self, namespace: str, job: Manifest) -> None:
        spec, pods = job["spec"], self._pods_of(job)
        if spec.get("suspend") or job["status"].get("conditions"):
            return
        phases = [pod["status"]["phase"] for pod in pods]
        hopeless = [pod for pod in pods if pod["status"]["phase"] == "Failed" and _exit_code(pod) in _hopeless(spec)]
        if hopeless:
            self._end_job(job, "Failed", "PodFailurePolicy", f"exit code {_exit_code(hopeless[0])}")
        elif phases.count("Failed") > spec["backoffLimit"]:
            self._end_job(job, "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        elif phases.count("Succeeded") >= spec.get("completions", 1):
            self._end_job(job, "Complete", "", "")
        else:
            self._make_pods_of_job(namespace, job, pods)

    def _make_pods_of_job(self, namespace: str, job: Manifest, pods: list[Manifest]) -> None:
        taken = {pod["metadata"]["annotations"]["index"] for pod in pods if pod["status"]["phase"] != "Failed"}
        for index in range(job["spec"].get("parallelism", 1)):
            if str(index) not in taken:
                name = f"{job['metadata']['name']}-{index}-{uuid.uuid4().hex[:5]}"
                self._make_pod(namespace, job, name, {"index": str(index)})

    def _make_pod(self, namespace: str, owner: Manifest, name: str, annotations: Manifest) -> None:
        pod = {"kind": "Pod", "apiVersion": "v1", **copy.deepcopy(owner["spec"]["template"])}
        pod["metadata"] |= {"name": name, "ownerReferences": [_reference(owner)]}
        pod["metadata"].setdefault("annotations", {}).update(annotations)
        self.create("pods", namespace, pod)

    def _end_job(self, job: Manifest, kind: str, reason: str, message: str) -> None:
        condition = {"type": kind, "status": "True", "reason": reason, "message": message}
        key = "jobs", job["metadata"]["namespace"], job["metadata"]["name"]
        job["status"]["conditions"] = [condition]
        self._record("MODIFIED", key)


def _reference(owner: Manifest) -> Manifest:
    metadata = owner["metadata"]
    names = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return {**names, "name": metadata["name"], "uid": metadata["uid"], "controller": True}


def _exit_code(pod: Manifest) -> int | None:
    for status in pod["status"].get("containerStatuses", []):
        return status.get("state", {}).get("terminated", {}).get("exitCode")
    return None


def _hopeless(spec: Manifest) -> list[int]:
    rules = spec.get("podFailurePolicy", {}).get("rules", [])
    return [code for rule in rules if rule["action"] == "FailJob" for code in rule["onExitCodes"]["values"]]


def _merge(target: Manifest, change: Manifest) -> None:
    for name, value in change.items():
        if isinstance(value, dict) and isinstance(target.get(name), dict):
            _merge(target[name], value)
        else:
            target[name] = value


class StandInCluster:
    """An API server on loopback; the block's end stops it.

    :ivar objects: the objects, which a test changes as a kubelet would
    """

    def __init__(self) -> None:
        self.objects = objects = Objects()

        class Handler(_Handler):
            cluster = objects

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> StandInCluster:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def write_log(self, pod: str, *lines: str) -> None:
        """Let a pod write lines."""
        with self.objects.changed:
            for line in lines:
                now = datetime.datetime.now(datetime.timezone.utc)
                stamp = now.strftime("%Y-%m-%dT%H:%M:%S.%f") + f"{time.perf_counter_ns() % 1000:03d}Z"
                self.objects.logs.setdefault(pod, []).append(f"{stamp} {line}\n")
            self.objects.changed.notify_all()

    def hold_answers(self) -> None:
        """Create what is asked for, and answer only after ``give_answers``."""
        self.objects.answers.clear()

    def give_answers(self) -> None:
        """Answer again."""
        self.objects.answers.set()

    def refuse_to_delete(self) -> None:
        """Answer deletions with 403 from now on."""
        self.objects.refuses_to_delete = True

    def break_logs(self) -> None:
        """Break the connections that follow a log."""
        with self.objects.changed:
            self.objects.log_breaks += 1
            self.objects.changed.notify_all()


class _Handler(http.server.BaseHTTPRequestHandler):
    cluster: Objects
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing on the terminal."""

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PATCH = do_DELETE = do_GET

    def _answer(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        match = _PATH.fullmatch(url.path)
        query = {name: values[0] for name, values in urllib.parse.parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            if match is None or match["plural"] not in _KINDS:
                raise Refusal(404, f"no path {url.path}")
            if match["part"] == "log":
                self._stream(self._log(match["name"], query))
            elif query.get("watch") in ("true", "True"):
                self._stream(self._watch(match, query))
            else:
                with self.cluster.changed:
                    answer = json.dumps(self._done(match, query, json.loads(body) if body else {})).encode()
                if self.command == "POST":
                    self.cluster.answers.wait()
                self._send(201 if self.command == "POST" else 200, answer)
        except Refusal as refusal:
            status = {"kind": "Status", "status": "Failure", "message": str(refusal), "code": refusal.status}
            self._send(refusal.status, json.dumps(status).encode())
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # whoever watched is gone

    def _done(self, match: re.Match, query: dict[str, str], body: Manifest) -> Manifest:
        plural, namespace, name = match["plural"], match["namespace"] or "", match["name"]
        if self.command == "POST":
            return self.cluster.create(plural, namespace, body)
        if name is None:
            items = [one for one in self.cluster.all(plural, namespace) if _is_chosen(one, query)]
            version = str(self.cluster.version)
            return {"kind": f"{_KINDS[plural]}List", "metadata": {"resourceVersion": version}, "items": items}
        if self.command == "GET":
            return self.cluster.get((plural, namespace, name))
        if self.command == "PATCH":
            return self.cluster.patch((plural, namespace, name), body)
        if self.cluster.refuses_to_delete:
            raise Refusal(403, f"{plural} cannot be deleted")
        self.cluster.delete((plural, namespace, name))
        return {"kind": "Status", "status": "Success"}

    def _watch(self, match: re.Match, query: dict[str, str]) -> Iterator[bytes]:
        deadline = time.monotonic() + float(query.get("timeoutSeconds", 60))
        seen = int(query.get("resourceVersion") or 0)
        wanted = match["plural"], match["namespace"] or ""
        while (left := deadline - time.monotonic()) > 0:
            with self.cluster.changed:
                if self.cluster.version <= seen:
                    self.cluster.changed.wait(min(left, 1.0))
                new = [entry for entry in self.cluster.history if entry[0] > seen]
            for version, plural, namespace, event, one in new:
                seen = version
                if (plural, namespace) == wanted and _is_chosen(one, query):
                    yield json.dumps({"type": event, "object": one}).encode() + b"\n"
            yield b""

    def _log(self, pod: str, query: dict[str, str]) -> Iterator[bytes]:
        sent, breaks = 0, self.cluster.log_breaks
        while self.cluster.log_breaks == breaks:
            with self.cluster.changed:
                lines = self.cluster.logs.get(pod, [])[sent:]
                ended = not self._runs(pod)
                if not lines and not ended and query.get("follow") in ("true", "True"):
                    self.cluster.changed.wait(1.0)
            sent += len(lines)
            yield "".join(lines).encode()
            if not lines and (ended or query.get("follow") not in ("true", "True")):
                return

    def _runs(self, pod: str) -> bool:
        found = [entry for entry in self.cluster.history if entry[1] == "pods" and entry[4]["metadata"]["name"] == pod]
        return bool(found) and found[-1][3] != "DELETED" and found[-1][4]["status"]["phase"] in ("Pending", "Running")

    def _stream(self, chunks: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in filter(None, chunks):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _is_chosen(one: Manifest, query: dict[str, str]) -> bool:
    labels = one["metadata"].get("labels", {})
    for part in filter(None, query.get("labelSelector", "").split(",")):
        name, _, value = part.partition("=")
        if labels.get(name) != value:
            return False
    for part in filter(None, query.get("fieldSelector", "").split(",")):
        name, _, value = part.partition("=")
        if one.get(name) != value:
            return False
    return True
