"""Follows a run on a cluster: the trainer's log, the states of its pods, and its end."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from dataclasses import dataclass, field
from typing import Callable, Iterator, Sequence, TypeAlias

from rl_coach.orchestrators import kubernetes_pods as pods
from rl_coach.orchestrators.kubernetes_manifests import COMPONENT_LABEL, TRAINER, WORKER, owner_name, selector
from rl_coach.utilities.kubernetes_cluster import GONE, TOO_MANY_REQUESTS, Cluster, ClusterError, Manifest

Say = Callable[[str], None]

_WATCH_SECONDS = 240
_PAUSE = 1.0  # seconds, between two attempts
_LOG_SLACK = 5.0  # seconds of a log that are read again after a break
_LOG_END = 10.0  # seconds, for the rest of a log after the end of its pod
_PASSING = (GONE, TOO_MANY_REQUESTS)
_STOP = 1.0  # seconds, for requests in progress
_REMOVAL_SLACK = 30  # seconds, in addition to the time that pods have to end
_SILENCE = 60.0  # seconds without a response until the cluster counts as unreachable


@dataclass(frozen=True)
class Outcome:
    """The end of a run.

    :param message: the error message; empty without an error
    :param exit_code: the trainer's exit code; None without an exit code
    """

    message: str = ""
    exit_code: int | None = None


@dataclass(frozen=True)
class Change:
    """A change of an object in the cluster.

    :param kind: the kind of object, such as ``Pod``
    :param object: the object after the change
    :param is_deleted: True if the object was deleted
    """

    kind: str
    object: Manifest
    is_deleted: bool = False


Changes: TypeAlias = "queue.Queue[Change | ClusterError]"


class Watcher(threading.Thread):
    """A thread that puts all changes of the objects of one kind into a queue. After a lost connection it reconnects.

    :param cluster: the cluster
    :param kind: the kind of objects, such as ``Pod``
    :param changes: the queue. After each connection, all existing objects are put into it, too
    :param refused: called with the error that ends the thread: a refusal, or no answer for a minute
    :param selectors: see ``Cluster.find``
    """

    def __init__(
        self, cluster: Cluster, kind: str, changes: Changes, refused: Callable[[ClusterError], None], **selectors: str
    ):
        # daemonic, because it may still wait in a stream when the run has ended
        super().__init__(daemon=True, name=f"watch {kind}")
        self._cluster, self._kind, self._changes, self._selectors = cluster, kind, changes, selectors
        self._refused = refused
        self._names: set[str] = set()
        self._stopped = threading.Event()
        self._has_answer = False

    def stop(self) -> None:
        """Put no more changes into the queue."""
        self._stopped.set()

    def run(self) -> None:
        failing_since = math.inf
        while not self._stopped.is_set():
            self._has_answer = False
            try:
                self._watch()
            except ClusterError as error:
                now = time.monotonic()
                # If the cluster responded before the error, the time without a response begins now.
                failing_since = now if self._has_answer else min(failing_since, now)
                # The cluster refuses the request itself, so another attempt would not help.
                is_final = 400 <= error.status < 500 and error.status not in _PASSING
                if is_final or now - failing_since > _SILENCE:
                    self._refused(error)
                    return
            else:
                failing_since = math.inf
            self._stopped.wait(_PAUSE)

    def _watch(self) -> None:
        # The watch begins at the version of the list, so no change between list and watch is missed.
        objects, version = self._cluster.find(self._kind, **self._selectors)
        self._has_answer = True
        names = {one["metadata"]["name"] for one in objects}
        for name in self._names - names:  # deleted while no watch was open
            self._put(Change(self._kind, {"metadata": {"name": name}}, is_deleted=True))
        self._names = names
        for one in objects:
            self._put(Change(self._kind, one))
        for event, one in self._cluster.watch(self._kind, version, _WATCH_SECONDS, **self._selectors):
            self._put(Change(self._kind, one, is_deleted=event == "DELETED"))
            if self._stopped.is_set():
                return

    def _put(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        (self._names.discard if change.is_deleted else self._names.add)(name)
        if not self._stopped.is_set():
            self._changes.put(change)


class LogFollower(threading.Thread):
    """A thread that reads a pod's log. Each line is passed to ``say`` exactly once, even if the connection is lost.

    :param cluster: the cluster
    :param pod: the pod's name
    :param say: called with each line
    """

    def __init__(self, cluster: Cluster, pod: str, say: Say):
        super().__init__(daemon=True, name=f"log {pod}")
        self._cluster, self._pod, self._say = cluster, pod, say
        self._ended, self._stopped = threading.Event(), False
        self._last_stamp = ""
        self._last_time: float | None = None

    def finish(self) -> None:
        """Read the rest of the log, after the end of the pod."""
        self._ended.set()

    def stop(self) -> None:
        """Stop passing lines on."""
        self._stopped = True
        self._ended.set()

    def run(self) -> None:
        while not self._stopped:
            is_last = self._ended.is_set()  # check before reading: lines from before the end are still read
            with contextlib.suppress(ClusterError):  # there is no log yet or no longer; the pod's status has the reason
                self._read()
            if is_last:
                return
            self._ended.wait(_PAUSE)

    def _read(self) -> None:
        known = self._last_stamp
        since = None
        if self._last_time is not None:
            since = int(time.monotonic() - self._last_time + _LOG_SLACK)
        for line in self._cluster.log(self._pod, follow=True, since_seconds=since):
            stamp, _, text = line.partition(" ")
            # After a lost connection, some seconds are read again. Skip the lines that were passed to ``say`` before.
            if stamp <= known:
                continue
            if self._stopped:
                return
            self._last_stamp, self._last_time = stamp, time.monotonic()
            self._say(text)


@dataclass
class Follower:
    """Follows one run to its end.

    :param cluster: the cluster
    :param name: the run's name
    :param num_workers: number of workers of the run
    :param start_seconds: the longest time in seconds until a pod of the trainer has started
    :param say: called with each line for the user
    :param show: called with each line of the trainer
    """

    cluster: Cluster
    name: str
    num_workers: int
    start_seconds: float
    say: Say
    show: Say
    _changes: Changes = field(default_factory=queue.Queue)
    _pods: dict[str, Manifest] = field(default_factory=dict)
    _logs: dict[str, LogFollower] = field(default_factory=dict)
    _waiting_since: float = field(default_factory=time.monotonic)
    _said: set[tuple[str, str]] = field(default_factory=set)
    _uids: set[str] = field(default_factory=set)
    _unclaimed: dict[str, list[Manifest]] = field(default_factory=dict)

    def follow(self) -> Outcome:
        """Follow the run until it ends or cannot continue.

        :raises ClusterError: if the cluster refuses the request, or does not answer any more
        """
        with self._watching():
            while True:
                with contextlib.suppress(queue.Empty):
                    outcome = self._take(self._changes.get(timeout=_PAUSE / 2))
                    if outcome is not None:
                        # the last lines of the log may arrive after the end of the Job
                        self._end_logs()
                        return outcome
                outcome = self._check_start()
                if outcome is not None:
                    return outcome

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        labels = selector(self.name)
        watchers = [
            Watcher(self.cluster, kind, self._changes, self._changes.put, label_selector=labels)
            for kind in ("Job", "StatefulSet", "Pod")
        ]
        watchers.append(
            Watcher(self.cluster, "Event", self._changes, self._say_no_events, field_selector="type=Warning")
        )
        for watcher in watchers:
            watcher.start()
        try:
            yield
        finally:
            _stop_threads([*watchers, *self._logs.values()])

    def _take(self, change: Change | ClusterError) -> Outcome | None:
        if isinstance(change, ClusterError):
            raise change
        take = {"Pod": self._take_pod, "Job": self._take_job, "StatefulSet": self._take_set, "Event": self._take_event}
        return take[change.kind](change)

    # Pods

    def _take_pod(self, change: Change) -> Outcome | None:
        pod = change.object
        name = pod["metadata"]["name"]
        if change.is_deleted:
            self._pods.pop(name, None)
            return None
        before, self._pods[name] = self._pods.get(name), pod
        self._claim(pod)
        trouble = pods.trouble(pod)
        if trouble is not None:
            self._say_once(name, trouble.reason, str(trouble))
        ended = pods.end(pod)
        if ended is not None:
            self._say_once(name, "end", f"failed: {ended}")
        if pods.component(pod) == TRAINER:
            return self._take_trainer(name, pod, trouble)
        if pods.component(pod) == WORKER and pods.has_started(pod) and not (before and pods.has_started(before)):
            self._count_workers()
        return None

    def _take_trainer(self, name: str, pod: Manifest, trouble: pods.Trouble | None) -> Outcome | None:
        if trouble is not None and trouble.is_hopeless:
            return Outcome(f"the trainer's pod '{name}' cannot start: {trouble}")
        if not pods.has_started(pod):
            return None
        if name not in self._logs:
            self.say(f"the trainer is running in pod '{name}'")
            self._logs[name] = LogFollower(self.cluster, name, self.show)
            self._logs[name].start()
        if pods.has_ended(pod):
            self._logs[name].finish()
            # if the Job replaces the pod, the new pod has the whole time to start
            self._waiting_since = time.monotonic()
        return None

    def _count_workers(self) -> None:
        running = [pod for pod in self._pods.values() if pods.component(pod) == WORKER]
        count = sum(pods.has_started(pod) and not pods.has_ended(pod) for pod in running)
        self.say(f"{count} of {self.num_workers} workers are running")

    def _check_start(self) -> Outcome | None:
        """The outcome if the trainer has not started in time; otherwise None."""
        trainers = [pod for pod in self._pods.values() if pods.component(pod) == TRAINER and not pods.has_ended(pod)]
        if any(pods.has_started(pod) for pod in trainers):
            self._waiting_since = time.monotonic()
            return None
        if time.monotonic() - self._waiting_since < self.start_seconds:
            return None
        reasons = [str(pods.trouble(pod) or "its pod is waiting") for pod in trainers] or ["it has no pod"]
        return Outcome(f"the trainer did not start within {self.start_seconds:.0f} s: {'; '.join(reasons)}")

    # Jobs

    def _take_job(self, change: Change) -> Outcome | None:
        job = change.object
        is_trainer = job["metadata"]["name"] == owner_name(self.name)
        if change.is_deleted:
            return Outcome(f"the run '{self.name}' was removed from the cluster") if is_trainer else None
        self._claim(job)
        failed = pods.condition(job, "Failed")
        if failed is not None:
            return self._failure(TRAINER if is_trainer else WORKER, failed)
        if is_trainer and pods.condition(job, "Complete") is not None:
            return Outcome()
        return None

    def _failure(self, component: str, failed: Manifest) -> Outcome:
        """The outcome of a failed Job, with the end of its last pod."""
        found = pods_of(self.cluster, self.name, component)
        ends = [ended for pod in found if (ended := pods.end(pod)) is not None]
        last = f"; its last pod: {ends[-1]}" if ends else ""
        reason = ": ".join(part for part in (failed.get("reason"), failed.get("message")) if part)
        code = ends[-1].exit_code if ends and component == TRAINER else None
        return Outcome(f"the {component}'s Job failed: {reason}{last}", code)

    # Events

    def _take_set(self, change: Change) -> None:
        if not change.is_deleted:
            self._claim(change.object)

    def _take_event(self, change: Change) -> None:
        """Print a warning of the cluster about an object of this run. A warning about an unknown object is kept until
        the object is known."""
        event = change.object
        if change.is_deleted:
            return
        uid = event["involvedObject"].get("uid", "")
        if uid in self._uids:
            self._say_event(event)
        else:
            # an event may arrive before its object
            self._unclaimed.setdefault(uid, []).append(event)

    def _say_no_events(self, error: ClusterError) -> None:
        self.say(f"the warnings of the cluster are not shown: {error}")

    def _claim(self, one: Manifest) -> None:
        uid = one["metadata"]["uid"]
        self._uids.add(uid)
        for event in self._unclaimed.pop(uid, []):
            self._say_event(event)

    def _say_event(self, event: Manifest) -> None:
        reason = event.get("reason", "")
        message = " ".join((event.get("message") or "").split())
        self._say_once(event["involvedObject"]["name"], reason, f"{reason}: {message}")

    def _say_once(self, name: str, reason: str, text: str) -> None:
        if (name, reason) not in self._said:
            self._said.add((name, reason))
            self.say(f"{name}: {text}")

    def _end_logs(self) -> None:
        for log in self._logs.values():
            log.finish()
        deadline = time.monotonic() + _LOG_END
        for log in self._logs.values():
            log.join(max(0.0, deadline - time.monotonic()))


def _stop_threads(threads: Sequence[Watcher | LogFollower]) -> None:
    """Stop threads. A thread may continue to wait for a stream. But a thread that is inside a request when Python ends
    would crash in the client's compiled code."""
    for thread in threads:
        thread.stop()
    deadline = time.monotonic() + _STOP
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def pods_of(cluster: Cluster, name: str, component: str) -> list[Manifest]:
    """The pods of a part of a run, the oldest pod first."""
    found, _ = cluster.find("Pod", label_selector=f"{selector(name)},{COMPONENT_LABEL}={component}")
    return sorted(found, key=lambda pod: pod["metadata"].get("creationTimestamp") or "")


def remove_job(cluster: Cluster, name: str, stop_seconds: float) -> bool:
    """Delete a Job with all objects that it owns, and wait until the Job no longer exists.

    :param cluster: the cluster
    :param name: the Job's name
    :param stop_seconds: the time in seconds that its pods have to end
    :return: False if the Job still exists 30 seconds after this time
    """
    job = cluster.read("Job", name)
    if job is None:
        return True
    cluster.delete("Job", name)
    deadline = time.monotonic() + stop_seconds + _REMOVAL_SLACK
    while time.monotonic() < deadline:
        found = cluster.read("Job", name)
        # A later run may create a new Job with the same name.
        if found is None or found["metadata"]["uid"] != job["metadata"]["uid"]:
            return True
        time.sleep(_PAUSE / 2)
    return False
