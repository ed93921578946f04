"""Distributed runs on Kubernetes: create, follow and remove the trainer, the workers and Redis."""

from __future__ import annotations

import pathlib
import re
import secrets
import signal
import sys
from typing import Any, Mapping, NoReturn, Sequence

from rl_coach.base_parameters import RunType
from rl_coach.data_stores.data_store import DataStoreParameters
from rl_coach.orchestrators import kubernetes_manifests as manifests
from rl_coach.orchestrators.deploy import Deploy, DeployParameters
from rl_coach.orchestrators.distributed_settings import DistributedSettings, PodSettings
from rl_coach.orchestrators.kubernetes_following import Follower, Outcome, pods_of, remove_job
from rl_coach.orchestrators.kubernetes_manifests import Container, KubernetesRun, Manifest, Volume
from rl_coach.orchestrators.run_order import ROLLOUT_PROGRAM, TRAINING_PROGRAM, DataStoreOrder, RunOrder, new_run_id
from rl_coach.utilities.kubernetes_cluster import CONFLICT, Cluster, ClusterError
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utilities.system import handling
from rl_coach.utils import CoachError, TrainingError

TRAINER_COMMAND = ("python", "-m", TRAINING_PROGRAM, "--order", manifests.ORDER_FILE)
WORKER_COMMAND = ("python", "-m", ROLLOUT_PROGRAM, "--order", manifests.ORDER_FILE)
WORKER_LOGS = "workers"
"""The directory of the workers' logs, in the experiment directory."""


class RunTypeParameters:
    """The containers of one part of a run.

    :param image: the image
    :param command: the program of the container
    :param arguments: the program's arguments
    :param run_type: the part of the run
    :param checkpoint_dir: the directory of checkpoints in the container
    :param num_replicas: number of pods
    :param orchestration_params: resources by name: ``cpu``, ``memory``, ``cpu_limit``, ``memory_limit``, ``gpus``
    """

    def __init__(
        self,
        image: str,
        command: Sequence[str],
        arguments: Sequence[str] | None = None,
        run_type: str = str(RunType.TRAINER),
        checkpoint_dir: str = "/checkpoint",
        num_replicas: int = 1,
        orchestration_params: Mapping[str, Any] | None = None,
    ):
        self.image = image
        self.command = command
        self.arguments = list(arguments or [])
        self.run_type = run_type
        self.checkpoint_dir = checkpoint_dir
        self.num_replicas = num_replicas
        self.orchestration_params = dict(orchestration_params or {})


class KubernetesParameters(DeployParameters):
    """Settings of a run on Kubernetes.

    :param run_type_params: trainer and workers
    :param kubeconfig: the kubeconfig; None uses ``KUBECONFIG``, ``~/.kube/config``, or the account of the pod in which
        Coach runs
    :param namespace: the namespace; None uses the namespace of the kubeconfig's context
    :param nfs_server: host of an NFS export that trainer and workers share
    :param nfs_path: the exported path
    :param checkpoint_dir: the directory of checkpoints in containers
    :param memory_backend_parameters: no effect, because the run has its own Redis
    :param data_store_params: parameters of the data store
    :param settings: all other settings. ``kubeconfig``, ``namespace``, ``nfs_server`` and ``nfs_path`` override these
        settings if given
    :param name: the run's name, made of a-z, 0-9 and '-'; empty for a random name
    :param order: the run order; None for containers that read no run order
    """

    def __init__(
        self,
        run_type_params: Sequence[RunTypeParameters],
        kubeconfig: str | None = None,
        namespace: str | None = None,
        nfs_server: str | None = None,
        nfs_path: str | None = None,
        checkpoint_dir: str = "/checkpoint",
        memory_backend_parameters: Any = None,
        data_store_params: DataStoreParameters | None = None,
        settings: DistributedSettings | None = None,
        name: str = "",
        order: RunOrder | None = None,
    ):
        self.run_type_params = {one.run_type: one for one in run_type_params}
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self.nfs_server = nfs_server
        self.nfs_path = nfs_path
        self.checkpoint_dir = checkpoint_dir
        self.memory_backend_parameters = memory_backend_parameters
        self.data_store_params = data_store_params
        self.settings = settings or DistributedSettings(orchestrator="kubernetes")
        self.order = order
        self.name = name or f"coach-{new_run_id()}"


class Kubernetes(Deploy):
    """Orchestrator of a run on Kubernetes.

    ``setup()`` creates the objects that the processes need, ``deploy()`` starts the processes, ``follow()`` waits for
    the end, and ``undeploy()`` removes all objects.

    :param params: the settings of the run
    :raises CoachError: if no cluster can be reached
    """

    def __init__(self, params: KubernetesParameters):
        super().__init__(params)
        self.params = params
        settings = params.settings
        self.cluster = Cluster(
            params.namespace or settings.namespace, params.kubeconfig or settings.kubeconfig, settings.context
        )
        self.description = describe(params, self.cluster.namespace)
        self._owner: Manifest | None = None

    @property
    def name(self) -> str:
        """The run's name."""
        return self.description.name

    @property
    def is_set_up(self) -> bool:
        """True if this object has created the run and must remove it."""
        return self._owner is not None

    def setup(self, crd: str | None = None) -> bool:
        """Create all objects that trainer and workers need. The trainer's Job, which owns the other objects, does not
        start a pod yet.

        :param crd: the checkpoint that training starts from, which is copied to the data store; None for no checkpoint
        :return: True
        :raises CoachError: if a run with this name exists, or the cluster refuses
        """
        # Copy the checkpoint first: if this fails, no objects remain in the cluster.
        if crd is not None and self.params.data_store_params is not None:
            from rl_coach.data_stores.data_store_impl import get_data_store

            get_data_store(self.params.data_store_params).setup_checkpoint_dir(crd)
        try:
            # The other objects name the Job's uid as their owner, so the Job must exist first. It is suspended, because
            # its pod needs these objects at its start.
            self._owner = self.cluster.create(manifests.suspended(manifests.trainer_job(self.description)))
        except ClusterError as error:
            if error.status == CONFLICT:
                raise CoachError(self._says_that_it_exists()) from error
            raise
        except (KeyboardInterrupt, SystemExit):
            self._owner = self._own_job()  # the response may be missing although the Job was created
            raise
        # create these objects before the suspended Job starts, because its pod needs them
        for manifest in manifests.dependents(self.description):
            self.cluster.create(manifests.owned(manifest, self._owner))
        return True

    def attach(self) -> bool:
        """Connect to an existing run.

        :raises CoachError: if the run does not exist
        """
        self._owner = self.cluster.read("Job", manifests.owner_name(self.name))
        if self._owner is None:
            raise CoachError(f"there is no run '{self.name}' in namespace '{self.cluster.namespace}' to attach to")
        return True

    def deploy(self) -> bool:
        """Start trainer and workers."""
        return self.deploy_trainer() and self.deploy_worker()

    def deploy_trainer(self) -> bool:
        """Start the trainer.

        :raises CoachError: if the cluster refuses
        """
        self.cluster.patch("Job", manifests.owner_name(self.name), {"spec": {"suspend": False}})
        return True

    def deploy_worker(self) -> bool:
        """Start the workers.

        :raises CoachError: if the cluster refuses, or ``setup()`` was not called
        """
        if self._owner is None:
            raise CoachError(f"run '{self.name}': call setup() first")
        self.cluster.create(manifests.owned(manifests.worker_job(self.description), self._owner))
        return True

    def follow(self) -> Outcome:
        """Show the trainer's log, and problems of pods, until the run ends.

        :raises CoachError: if the cluster does not answer any more
        """
        return Follower(
            self.cluster, self.name, self.description.num_workers, self.params.settings.start_seconds, say, show
        ).follow()

    def worker_logs(self, path: str = "./logs") -> list[pathlib.Path]:
        """Write the log of each worker's pod, also of pods that were replaced.

        :param path: the directory of the files, ``<pod>.log``
        :return: the files
        """
        found = pods_of(self.cluster, self.name, manifests.WORKER)
        directory = pathlib.Path(path)
        directory.mkdir(parents=True, exist_ok=True)
        return [self._write_log(pod["metadata"]["name"], directory) for pod in found]

    def _write_log(self, pod: str, directory: pathlib.Path) -> pathlib.Path:
        file = directory / f"{pod}.log"
        with file.open("w", encoding="utf-8") as opened:
            try:
                # Each line begins with a time, which the Follower needs to continue a log after a lost connection.
                opened.writelines(f"{line.partition(' ')[2]}\n" for line in self.cluster.log(pod))
            except ClusterError as error:  # a pod that never started must not prevent the logs of the others
                opened.write(f"{error}\n")
        return file

    def trainer_logs(self) -> None:
        """Show the trainer's log until the run ends.

        :raises TrainingError: if the trainer reports that training failed
        :raises CoachError: if the run failed for another reason; the message has the reason
        """
        raise_failure(self.follow())

    def tail_log(self, pod_name: str, corev1_api: Any = None) -> None:
        """Show a pod's log until the pod ends.

        :param pod_name: the pod's name
        :param corev1_api: no effect; Coach 1.0.1 passes its client here
        :raises CoachError: if there is no log
        """
        for line in self.cluster.log(pod_name, follow=True):
            show(line.partition(" ")[2])

    def undeploy(self) -> bool:
        """Remove the run: the trainer's Job, all objects that it owns, and the PersistentVolume.

        :return: False if objects still exist 30 seconds after the time that pods have to end
        :raises CoachError: if the cluster refuses
        """
        is_gone = remove_job(self.cluster, manifests.owner_name(self.name), self.params.settings.stop_seconds)
        if self._volume_name is not None:
            self.cluster.delete("PersistentVolume", self._volume_name)
        return is_gone

    def removal_command(self) -> str:
        """The command line that removes the run, with its PersistentVolume."""
        volume = "" if self._volume_name is None else f" persistentvolume/{self._volume_name}"
        return f"kubectl --namespace {self.cluster.namespace} delete job/{manifests.owner_name(self.name)}{volume}"

    @property
    def _volume_name(self) -> str | None:
        """The name of the run's PersistentVolume; None if the run creates no PersistentVolume."""
        # An object in a namespace cannot own a PersistentVolume, so the cluster does not remove it with the Job.
        volume = self.description.volume
        if volume is None or volume.claim or not volume.server:
            return None
        return manifests.volume_name(self.cluster.namespace, self.name)

    def _own_job(self) -> Manifest | None:
        """The trainer's Job if it belongs to this run, not to another run with the same name."""
        found = self.cluster.read("Job", manifests.owner_name(self.name))
        run = found["metadata"].get("annotations", {}).get(manifests.RUN_ANNOTATION) if found is not None else None
        return found if run == self.description.run else None

    def _says_that_it_exists(self) -> str:
        found = self.cluster.read("Job", manifests.owner_name(self.name))
        place = f"in namespace '{self.cluster.namespace}'"
        if found is not None and found["metadata"].get("deletionTimestamp"):
            return f"the previous run '{self.name}' {place} is still being removed: try again in a minute"
        return (
            f"a run '{self.name}' {place} already exists: --attach follows this run, -e gives the new run another name,"
            f" and '{self.removal_command()}' removes the existing run"
        )


# Descriptions of runs


def describe(params: KubernetesParameters, namespace: str) -> KubernetesRun:
    """The description of a run for its manifests.

    :param params: the settings of the run
    :param namespace: the namespace; empty if it is not known
    :raises CoachError: if trainer or worker is missing, or a file of credentials cannot be read
    """
    settings = params.settings
    parts = params.run_type_params
    for part in (RunType.TRAINER, RunType.ROLLOUT_WORKER):
        if str(part) not in parts:
            raise CoachError(f"run_type_params must name '{part}'")
    trainer, worker = parts[str(RunType.TRAINER)], parts[str(RunType.ROLLOUT_WORKER)]
    has_redis = not settings.redis_url
    # Some network plugins ignore network policies: then only the password protects Redis from other pods.
    password = secrets.token_urlsafe(24) if has_redis else settings.redis_password
    return KubernetesRun(
        name=params.name,
        namespace=namespace,
        run=params.order.run if params.order is not None else params.name,
        trainer=_container(trainer, settings.gpu_resource),
        worker=_container(worker, settings.gpu_resource),
        num_workers=worker.num_replicas,
        redis=container_of(settings.redis.image, (), vars(settings.redis)) if has_redis else None,
        redis_password=password,
        order=params.order.as_json() if params.order is not None else "",
        s3_credentials=_credentials(settings),
        volume=_volume(params),
        settings=settings,
    )


def parameters(
    settings: DistributedSettings,
    experiment: str,
    arguments: Sequence[str],
    num_workers: int,
    directory: str,
    command_line: Sequence[str] = (),
    config_path: str | None = None,
) -> KubernetesParameters:
    """The parameters of a run that ``coach`` starts.

    :param settings: the settings from the file of ``-dcp``
    :param experiment: the experiment's name, from which the run's name is made
    :param arguments: flags of ``coach`` that define the graph
    :param num_workers: number of workers
    :param directory: name of the run's directory in the experiment's directory
    :param command_line: the command that started the run, for its record
    :param config_path: the absolute path of the ``-dcp`` file on this machine, for the record
    """
    name = run_name(experiment)
    place = f"{experiment}/{directory}"
    experiment_path = f"{manifests.DATA_DIRECTORY}/{place}"
    has_password = not settings.redis_url or settings.redis_password is not None
    order = RunOrder(
        run=new_run_id(),
        arguments=list(arguments),
        redis_url=settings.redis_url or f"redis://{name}-redis:{manifests.REDIS_PORT}/0",
        redis_password_file=manifests.PASSWORD_FILE if has_password else None,
        num_workers=num_workers,
        experiment_path=experiment_path,
        data_store=_data_store(settings, experiment_path, place),
        command_line=list(command_line),
        config_path=config_path,
    )
    parts = [
        _run_type(settings, settings.trainer, TRAINER_COMMAND, RunType.TRAINER, 1),
        _run_type(settings, settings.worker, WORKER_COMMAND, RunType.ROLLOUT_WORKER, num_workers),
    ]
    return KubernetesParameters(parts, settings=settings, name=name, order=order)


def run_name(experiment: str, longest: int = manifests.MAX_NAME) -> str:
    """The name of a run in the cluster, made from its experiment's name.

    :param longest: the largest number of letters
    """
    label = re.sub(r"[^a-z0-9]+", "-", f"coach-{experiment}".lower())
    # The shortened name may end with a hyphen, which Kubernetes refuses.
    return label[:longest].strip("-")


def place_of_results(params: KubernetesParameters) -> str:
    """The place of checkpoints and signals, as a text for the user; empty if they are removed with the run."""
    settings, order = params.settings, params.order
    if order is None:
        return ""
    if settings.data_store == "s3":
        return f"s3://{settings.s3_bucket_name}/{order.data_store.settings['prefix']}"
    relative = order.experiment_path.removeprefix(f"{manifests.DATA_DIRECTORY}/")
    if settings.nfs_server:
        return f"{settings.nfs_server}:{settings.nfs_path}/{relative}"
    return f"claim '{settings.nfs_claim}', {relative}" if settings.nfs_claim else ""


def _data_store(settings: DistributedSettings, experiment_path: str, place: str) -> DataStoreOrder:
    if settings.data_store == "nfs":
        return DataStoreOrder("nfs", {"checkpoint_dir": f"{experiment_path}/store"})
    if settings.data_store == "s3":
        credentials = manifests.S3_CREDENTIALS_FILE if settings.s3_creds_file else None
        return settings.s3_order(experiment_path, place, credentials)
    return DataStoreOrder()


def _run_type(
    settings: DistributedSettings, pod: PodSettings, command: Sequence[str], part: RunType, replicas: int
) -> RunTypeParameters:
    return RunTypeParameters(
        pod.image or settings.image, command, run_type=str(part), num_replicas=replicas, orchestration_params=vars(pod)
    )


def _container(part: RunTypeParameters, gpu_resource: str) -> Container:
    command = (*part.command, *part.arguments)
    return container_of(part.image, command, part.orchestration_params, gpu_resource)


def container_of(image: str, command: tuple[str, ...], given: Mapping[str, Any], gpu_resource: str = "") -> Container:
    """The container of a pod.

    :param image: the image
    :param command: the program and its arguments
    :param given: the pod's settings, by the names of the fields of ``PodSettings``
    :param gpu_resource: name of the GPU resource in the cluster, such as ``nvidia.com/gpu``
    """
    requests = {name: str(given[name]) for name in ("cpu", "memory") if given.get(name)}
    limits = {name: str(given[f"{name}_limit"]) for name in ("cpu", "memory") if given.get(f"{name}_limit")}
    if gpus := given.get("gpus"):
        # Kubernetes accepts GPUs only as limits, and reserves the same number.
        limits[gpu_resource] = str(gpus)
    names = ("node_selector", "tolerations", "labels", "env", "secrets")
    pod = PodSettings(**{name: given[name] for name in names if given.get(name)})
    return Container(image, command, requests, limits, pod)


def _volume(params: KubernetesParameters) -> Volume | None:
    settings = params.settings
    server, path = params.nfs_server or settings.nfs_server, params.nfs_path or settings.nfs_path
    if not params.nfs_server and settings.data_store != "nfs":
        return None
    return Volume(
        claim=settings.nfs_claim, server=server, path=path, storage_class=settings.nfs_storage_class,
        size=settings.nfs_size,
    )  # fmt: skip


def _credentials(settings: DistributedSettings) -> bytes | None:
    if settings.data_store != "s3" or not settings.s3_creds_file:
        return None
    try:
        return pathlib.Path(settings.s3_creds_file).read_bytes()
    except OSError as error:
        raise CoachError(f"s3_creds_file '{settings.s3_creds_file}' cannot be read: {error.strerror}") from error


# Running


def dry_run(params: KubernetesParameters) -> str:
    """The manifests of a run as YAML. No cluster is needed."""
    run = describe(params, params.namespace or params.settings.namespace)
    holds = "the password of its Redis" + (" and the credentials of S3" if run.s3_credentials is not None else "")
    header = (
        f"# Run '{run.name}'. The Secrets below contain {holds}.\n"
        f"# Objects made from this file have no owner: remove them by label {manifests.INSTANCE_LABEL}={run.name}\n"
    )
    return header + manifests.as_yaml(manifests.manifests(run))


def run(
    params: KubernetesParameters, keeps: bool = False, attaches: bool = False, worker_logs: str | None = None
) -> None:
    """Run on a cluster until the end, and remove the run.

    :param params: the settings of the run
    :param keeps: True does not remove the run; the cluster removes the run later
    :param attaches: True follows an existing run, which continues if this process is interrupted
    :param worker_logs: a directory for the workers' logs; None does not write these logs
    :raises CoachError: if the cluster refuses, or the run cannot start
    :raises TrainingError: if training failed
    """
    orchestrator = Kubernetes(params)
    # This process has nothing to save: the trainer in the cluster saves when its pod is removed.
    with stop_signals.ending_at_once(), handling((signal.SIGTERM, signal.SIGHUP), terminate):
        if attaches:
            outcome = _attach(orchestrator)
            _end(orchestrator, keeps, worker_logs)
        else:
            outcome = _start_and_follow(orchestrator, keeps, worker_logs)
    raise_failure(outcome)
    place = place_of_results(params)
    say(f"done; checkpoints and signals: {place}" if place else "done")


def _start_and_follow(orchestrator: Kubernetes, keeps: bool, worker_logs: str | None) -> Outcome:
    if not place_of_results(orchestrator.params) and not keeps:
        say("checkpoints are deleted with the run; to keep them: data_store = s3, or nfs with nfs_claim or nfs_server")
    try:
        orchestrator.setup()
        orchestrator.deploy()
        say(f"run '{orchestrator.name}' in namespace '{orchestrator.cluster.namespace}' of {orchestrator.cluster.host}")
        return orchestrator.follow()
    finally:
        # Do this also after an error or a signal: objects in the cluster do not end with this process.
        if orchestrator.is_set_up:
            _end(orchestrator, keeps, worker_logs)


def _attach(orchestrator: Kubernetes) -> Outcome:
    orchestrator.attach()
    say(f"attached to run '{orchestrator.name}' in namespace '{orchestrator.cluster.namespace}'")
    try:
        return orchestrator.follow()
    except (KeyboardInterrupt, SystemExit):
        say(f"the run continues; remove it with: {orchestrator.removal_command()}")
        raise


def _end(orchestrator: Kubernetes, keeps: bool, worker_logs: str | None) -> None:
    """Write the workers' logs, and remove the run. A failure of this function does not change the result of the run."""
    try:
        if worker_logs is not None:
            files = orchestrator.worker_logs(worker_logs)
            say(f"logs of {len(files)} worker pods: {worker_logs}")
    except (ClusterError, OSError) as error:
        say(f"the workers' logs were not written: {error}")
    finally:
        _remove(orchestrator, keeps)


def _remove(orchestrator: Kubernetes, keeps: bool) -> None:
    if keeps:
        seconds = orchestrator.params.settings.keep_seconds
        say(f"the run is kept until {seconds} s after its end; remove it with: {orchestrator.removal_command()}")
        return
    say(f"removing run '{orchestrator.name}'")
    try:
        is_gone = orchestrator.undeploy()
    except ClusterError as error:
        say(f"the run could not be removed: {error}; remove it with: {orchestrator.removal_command()}")
        return
    if not is_gone:
        say(f"some objects still exist; list them with: kubectl --namespace {orchestrator.cluster.namespace} get all"
            f" -l {manifests.INSTANCE_LABEL}={orchestrator.name}")  # fmt: skip


def terminate(number: int, frame: Any) -> NoReturn:
    """Handle SIGTERM and SIGHUP: raise ``SystemExit``, so that the run is removed before the process ends."""
    sys.exit(128 + number)


def raise_failure(outcome: Outcome) -> None:
    """Raise an error if a run has failed.

    :raises TrainingError: if the trainer reports that training failed
    :raises CoachError: if the run failed for another reason
    """
    if not outcome.message:
        return
    if outcome.exit_code == manifests.TRAINING_FAILED:
        raise TrainingError(outcome.message)
    raise CoachError(outcome.message)


def say(text: str) -> None:
    """Print a line about the run."""
    print(f"kubernetes: {text}", flush=True)


def show(text: str) -> None:
    """Print a line from the trainer's log."""
    print(text, flush=True)
