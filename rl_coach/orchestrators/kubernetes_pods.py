"""Reads from a pod's status why the pod does not start, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator

from rl_coach.orchestrators.kubernetes_manifests import COMPONENT_LABEL, Manifest

_STARTING = frozenset({"ContainerCreating", "PodInitializing", ""})
_HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_ENDED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True)
class Trouble:
    """The reason why a pod does not run.

    :param reason: the reason's name in Kubernetes, such as ``ErrImagePull``
    :param message: the details in one line
    """

    reason: str
    message: str

    @property
    def is_hopeless(self) -> bool:
        """True if waiting cannot help."""
        return self.reason in _HOPELESS

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


@dataclass(frozen=True)
class End:
    """The end of a pod's container.

    :param exit_code: the exit code of the container's process; None without an exit code, such as for an evicted pod
    :param reason: the reason's name in Kubernetes, such as ``OOMKilled``
    """

    exit_code: int | None
    reason: str

    def __str__(self) -> str:
        code = "" if self.exit_code is None else f"exit code {self.exit_code}"
        return ", ".join(part for part in (self.reason, code) if part)


def component(pod: Manifest) -> str:
    """The part of the run that a pod belongs to, such as ``trainer`` or ``worker``."""
    return pod["metadata"].get("labels", {}).get(COMPONENT_LABEL, "")


def trouble(pod: Manifest) -> Trouble | None:
    """The reason why a pod does not run; None if it runs, has ended, or is still starting."""
    if has_ended(pod):
        return None
    for condition in pod.get("status", {}).get("conditions") or []:
        # Check this before the containers: if no node has room for a pod, the pod has no container yet.
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return Trouble(condition.get("reason", "Unschedulable"), _line(condition.get("message")))
    for status in _container_statuses(pod):
        waiting = status.get("state", {}).get("waiting")
        if waiting is not None and waiting.get("reason", "") not in _STARTING:
            return Trouble(waiting["reason"], _line(waiting.get("message")))
    return None


def has_started(pod: Manifest) -> bool:
    """True if a pod runs or has run."""
    return pod.get("status", {}).get("phase") in {"Running"} | _ENDED


def has_ended(pod: Manifest) -> bool:
    """True if a pod has ended."""
    return pod.get("status", {}).get("phase") in _ENDED


def end(pod: Manifest) -> End | None:
    """The end of a pod that has failed; None if the pod has not failed."""
    status = pod.get("status", {})
    if status.get("phase") != "Failed":
        return None
    for container in _container_statuses(pod):
        terminated = container.get("state", {}).get("terminated")
        if terminated is not None:
            reason = terminated.get("reason", "")
            # "Error" says nothing that the exit code does not say.
            return End(terminated.get("exitCode"), "" if reason == "Error" else reason)
    # An evicted pod may have no status of its container. Then only the pod's own reason is known.
    return End(None, status.get("reason", ""))


def termination_message(pod: Manifest) -> str:
    """The termination message of the pod's container; empty without one."""
    ended = (container.get("state", {}).get("terminated") for container in _container_statuses(pod))
    return next((one["message"] for one in ended if one and one.get("message")), "")


def condition(job: Manifest, name: str) -> Manifest | None:
    """A condition of a Job; None if the condition is not true. :param name: the condition, such as ``Failed``"""
    conditions = job.get("status", {}).get("conditions") or []
    return next((one for one in conditions if one["type"] == name and one["status"] == "True"), None)


def _container_statuses(pod: Manifest) -> Iterator[Manifest]:
    status = pod.get("status", {})
    yield from status.get("initContainerStatuses") or []
    yield from status.get("containerStatuses") or []


def _line(text: str | None) -> str:
    return " ".join((text or "").split())
