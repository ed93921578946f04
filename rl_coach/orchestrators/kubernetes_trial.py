"""A run of a sweep (a trial) as a Job on a cluster: create, follow and remove the Job, and write its last status to
this machine.

``python -m rl_coach.orchestrators.kubernetes_trial --settings FILE --directory DIR -- FLAGS`` is the process on this
machine. The Job runs ``coach FLAGS`` in the trainer's image, without workers and Redis. Its pod copies ``status.json``
to the container's termination message, which the cluster stores with the pod.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import signal
import socket
import sys
import time
from typing import Any, Sequence

from rl_coach.orchestrators import distributed_settings
from rl_coach.orchestrators import kubernetes_manifests as manifests
from rl_coach.orchestrators import kubernetes_pods as pods
from rl_coach.orchestrators.distributed_settings import DistributedSettings
from rl_coach.orchestrators.kubernetes_following import Follower, Outcome, pods_of, remove_job
from rl_coach.orchestrators.kubernetes_manifests import KubernetesRun, Manifest
from rl_coach.orchestrators.kubernetes_orchestrator import container_of, raise_failure, run_name, say, show, terminate
from rl_coach.runs.status import FAILED, FINISHED, RUNNING, STATUS_FILE, STOPPED
from rl_coach.utilities import files
from rl_coach.utilities.kubernetes_cluster import CONFLICT, Cluster, ClusterError
from rl_coach.utilities.stop_signals import let_through
from rl_coach.utilities.system import handling
from rl_coach.utils import CoachError, TrainingError

PROGRAM = __name__
_DIGITS = 8


def check(settings: DistributedSettings) -> None:
    """Check the settings of a cluster for a sweep.

    :raises CoachError: if the Jobs of a sweep do not support the settings
    """
    if settings.data_store != "redis":
        raise CoachError(
            f"data_store = {settings.data_store} does not work with several runs on a cluster, because only the scores "
            "of the runs are kept: remove data_store, and send the signals of the runs to a service with --track"
        )


def name_of(directory: pathlib.Path) -> str:
    """The name of a trial in the cluster: the name of its directory, and a digest of the whole path."""
    # A restarted sweep must find its Jobs again, so the name depends only on the directory. The digest is different for
    # two directories with the same name.
    digest = hashlib.sha256(str(directory).encode()).hexdigest()[:_DIGITS]
    return f"{run_name(directory.name, manifests.MAX_NAME - _DIGITS - 1)}-{digest}"


def describe(settings: DistributedSettings, directory: pathlib.Path, flags: Sequence[str]) -> KubernetesRun:
    """The description of a trial, from which its manifests are made.

    :param settings: the settings from the file of ``-dcp``
    :param directory: the absolute path of the trial's directory on this machine
    :param flags: flags of ``coach``
    """
    pod = settings.trainer
    place = f"{manifests.DATA_DIRECTORY}/{directory.name}"
    command = ("python", "-m", "rl_coach", *flags, f"--run_directory={place}")
    container = container_of(pod.image or settings.image, command, vars(pod), settings.gpu_resource)
    return KubernetesRun(
        name=name_of(directory),
        namespace=settings.namespace,
        run=str(directory),
        trainer=container,
        worker=container,
        num_workers=0,
        redis=None,
        settings=settings,
    )


class Trial:
    """A trial on a cluster. The parameters are the same as in ``describe``.

    :raises CoachError: if no cluster can be reached
    """

    def __init__(self, settings: DistributedSettings, directory: pathlib.Path, flags: Sequence[str]):
        self._settings, self._directory = settings, directory
        self.cluster = Cluster(settings.namespace, settings.kubeconfig, settings.context)
        self.description = describe(settings, directory, flags)

    @property
    def _job(self) -> str:
        return manifests.owner_name(self.description.name)

    def run(self) -> None:
        """Create the Job, follow it to its end, and remove it. If the Job exists already, follow the existing Job.

        If the cluster does not respond any more, the Job stays in the cluster. A later process with the same directory
        can follow this Job.

        :raises CoachError: if the cluster refuses, or the run failed because of its input
        :raises TrainingError: if training failed
        """
        try:
            self._create()
            self._write({"state": RUNNING, "progress": {"phase": "on cluster"}})
            outcome = self._follow()
        except ClusterError:
            raise
        except BaseException:
            self._remove()
            raise
        self._remove()
        raise_failure(outcome)

    def _follow(self) -> Outcome:
        follower = Follower(self.cluster, self.description.name, 0, self._settings.start_seconds, say, show)
        try:
            outcome = follower.follow()
            self._write(self._last_status() | _ended(outcome))
        except ClusterError as error:
            self._write({"state": FAILED, "error": str(error)})
            raise
        except SystemExit:  # raised by a signal
            self._write({"state": STOPPED})
            raise
        return outcome

    def _create(self) -> None:
        owner, how = self._create_unless_there(manifests.suspended(manifests.trainer_job(self.description))), ""
        if owner is None:
            # An earlier process has created the Job and has ended. This process follows the same Job.
            owner, how = self._job_that_is_there(), "following the existing "
        say(f"{how}job '{self._job}' in namespace '{self.cluster.namespace}'")
        for manifest in manifests.dependents(self.description):
            # an earlier process may have created the object already
            self._create_unless_there(manifests.owned(manifest, owner))
        # Start the Job last: its pod needs the objects above, and these objects need the Job as their owner.
        self.cluster.patch("Job", self._job, {"spec": {"suspend": False}})

    def _job_that_is_there(self) -> Manifest:
        found = self.cluster.read("Job", self._job)
        if found is None or found["metadata"].get("deletionTimestamp"):
            raise CoachError(f"job '{self._job}' of an earlier run is still being removed: try again in a minute")
        return found

    def _create_unless_there(self, manifest: Manifest) -> Manifest | None:
        try:
            return self.cluster.create(manifest)
        except ClusterError as error:
            if error.status != CONFLICT:
                raise
            return None

    def _last_status(self) -> dict[str, Any]:
        """The last status that a pod of the trial wrote; empty without a status."""
        # A restarted trial has several pods. Use the newest pod that has written a status.
        found = pods_of(self.cluster, self.description.name, manifests.TRAINER)
        messages = [message for pod in found if (message := pods.termination_message(pod))]
        try:
            status = json.loads(messages[-1]) if messages else {}
        except json.JSONDecodeError:  # some clusters write the end of the log to the termination message
            return {}
        return status if isinstance(status, dict) else {}

    def _remove(self) -> None:
        remove_job(self.cluster, self._job, self._settings.stop_seconds)

    def _write(self, status: dict[str, Any]) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        here = {"pid": os.getpid(), "host": socket.gethostname(), "updated": time.time()}
        files.write_json(self._directory / STATUS_FILE, status | here, synced=False)


def _ended(outcome: Outcome) -> dict[str, Any]:
    """The state of a run that has ended, from the cluster. It is known even if the run could not write its status."""
    return {"state": FAILED, "error": outcome.message} if outcome.message else {"state": FINISHED}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a trial. :return: the exit code; see ``rl_coach.coach.main``"""
    parser = argparse.ArgumentParser(prog=f"python -m {PROGRAM}", description=__doc__)
    parser.add_argument("--settings", required=True, metavar="FILE", help="the file of -dcp")
    parser.add_argument("--directory", required=True, type=pathlib.Path, help="the trial's directory on this machine")
    parser.add_argument("flags", nargs="*", help="flags of coach, after --")
    args = parser.parse_args(arguments)
    try:
        # also SIGINT, which shells let background processes ignore; the signals are blocked at the start
        with handling((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), terminate), let_through():
            Trial(distributed_settings.read(args.settings), args.directory, args.flags).run()
    except TrainingError as error:
        print(f"coach: {error}", file=sys.stderr)
        return manifests.TRAINING_FAILED
    except CoachError as error:
        print(f"coach: {error}", file=sys.stderr)
        return manifests.BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
