"""Runs on Kubernetes, from the command line to the last object that is removed: on the stand-in, and (``-m cluster``)
on a genuine API server. No kubelet is there, so a test sets what pods do."""

from __future__ import annotations

import os
import pathlib
import signal

import pytest

from rl_coach.coach import BAD_INPUT, DONE, STOPPED, TERMINATED, TRAINING_FAILED
from rl_coach.orchestrators import kubernetes_orchestrator
from rl_coach.orchestrators.distributed_settings import DistributedSettings
from tests.orchestrators import clusters
from tests.orchestrators.clusters import CoachOnCluster, wait_until, write_kubeconfig

NAME = "coach-cartpole-dqn"
SETTINGS = """\
[coach]
orchestrator = kubernetes
image = registry.example.com/coach:2.0.0
start_seconds = 60
stop_seconds = 1
{more}
"""
GENUINE = pytest.param(
    "genuine",
    marks=[
        pytest.mark.cluster,
        pytest.mark.skipif(clusters.APISERVER not in os.environ, reason=f"{clusters.APISERVER} names no API server"),
    ],
)


@pytest.fixture(scope="session")
def genuine(tmp_path_factory):
    with clusters.genuine_cluster(tmp_path_factory.mktemp("genuine")) as kubeconfig:
        yield kubeconfig


@pytest.fixture(params=["stand-in", GENUINE])
def cluster(request, tmp_path):
    if request.param == "stand-in":
        with clusters.stand_in_cluster(tmp_path) as found:
            yield found
        return
    kubeconfig = request.getfixturevalue("genuine")
    yield clusters.ClusterOfTest(kubeconfig, clusters.new_namespace(kubeconfig))


@pytest.fixture
def stand_in(tmp_path):
    with clusters.stand_in_cluster(tmp_path) as found:
        yield found


@pytest.fixture
def coach(tmp_path):
    """Starts ``coach -dc`` on a cluster with some flags; ``more`` are lines of its settings."""
    started = []

    def start(cluster, *flags: str, more: str = "") -> CoachOnCluster:
        file = tmp_path / f"{len(started)}.ini"
        file.write_text(SETTINGS.format(more=f"namespace = {cluster.namespace}\n{more}"))
        command = ["-p", "CartPole_DQN", "-dc", "-dcp", str(file), "-n", "2", *flags]
        started.append(CoachOnCluster(tmp_path, cluster.kubeconfig, *command))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def bring_up(cluster, run: CoachOnCluster) -> tuple[str, list[str]]:
    """Let all pods run, once ``coach`` has created the run. :return: the trainer's pod, and those of the workers"""
    run.wait_for(f"run '{NAME}' in namespace '{cluster.namespace}'")
    (redis,) = cluster.wait_for_fresh("redis")
    (trainer,) = cluster.wait_for_fresh("trainer")
    workers = cluster.wait_for_fresh("worker", 2)
    for pod in (redis, *workers, trainer):
        cluster.start(pod)
    return trainer, workers


def test_a_run_is_created_followed_and_removed(cluster, coach):
    run = coach(cluster)
    trainer, workers = bring_up(cluster, run)
    run.wait_for(f"the trainer is running in pod '{trainer}'")
    run.wait_for("2 of 2 workers are running")
    there = cluster.objects()
    for kind in ("config_map", "secret", "service", "stateful_set", "job", "network_policy"):
        assert any(one.startswith(f"{kind}/{NAME}") for one in there), (kind, there)
    for pod in (*workers, trainer):
        cluster.end(pod)
    assert run.end() == DONE, run.text
    wait_until(cluster.is_empty)


PLACEMENT = """\
node_selector = pool=cpu
tolerations = spot=yes:NoSchedule
labels = team=rl
env = WANDB_MODE=offline
secrets = wandb, WANDB_API_KEY=keys/wandb
"""


def test_pods_have_what_the_settings_say_of_their_nodes_labels_and_variables(cluster, coach):
    run = coach(cluster, more=PLACEMENT)
    trainer, workers = bring_up(cluster, run)
    found = {pod.metadata.name: pod for pod in cluster.core.list_namespaced_pod(cluster.namespace).items}
    for pod in found.values():
        assert pod.spec.node_selector == {"pool": "cpu"} and pod.metadata.labels["team"] == "rl"
        tolerated = {(one.key, one.operator, one.value, one.effect) for one in pod.spec.tolerations}
        assert ("spot", "Equal", "yes", "NoSchedule") in tolerated
    for name in (trainer, *workers):
        (container,) = found[name].spec.containers
        variables = {one.name: one for one in container.env}
        assert variables["WANDB_MODE"].value == "offline"
        reference = variables["WANDB_API_KEY"].value_from.secret_key_ref
        assert (reference.name, reference.key) == ("keys", "wandb")
        assert [one.secret_ref.name for one in container.env_from] == ["wandb"]
    for pod in (*workers, trainer):
        cluster.end(pod)
    assert run.end() == DONE, run.text


@pytest.mark.slow
def test_the_deletion_of_the_owner_removes_all(cluster, coach):
    run = coach(cluster, "--keep", more="data_store = nfs\nnfs_storage_class = shared")
    trainer, _ = bring_up(cluster, run)
    cluster.end(trainer)
    assert run.end() == DONE, run.text
    assert any(one.startswith("persistent_volume_claim/") for one in cluster.objects())
    cluster.batch.delete_namespaced_job(f"{NAME}-trainer", cluster.namespace, propagation_policy="Background")
    wait_until(lambda: not [one for one in cluster.objects() if not one.startswith("persistent_volume_claim/")])
    if cluster.stand_in is None:
        claims = cluster.core.list_namespaced_persistent_volume_claim(cluster.namespace).items
        # the claim waits for its protection, which ends where a kubelet has unmounted it
        assert all(claim.metadata.deletion_timestamp for claim in claims)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "reason", "shown"),
    [(137, "OOMKilled", "OOMKilled, exit code 137"), (143, "Error", "exit code 143")],
    ids=["killed", "evicted"],
)
def test_a_worker_that_fails_is_replaced_and_the_run_goes_on(cluster, coach, code, reason, shown):
    run = coach(cluster)
    trainer, workers = bring_up(cluster, run)
    run.wait_for("2 of 2 workers are running")
    cluster.end(workers[0], code, reason)
    run.wait_for(f"{workers[0]}: failed: {shown}")
    (replacement,) = cluster.wait_for_fresh("worker")
    cluster.start(replacement)
    wait_until(lambda: run.text.count("2 of 2 workers are running") == 2)
    for pod in (workers[1], replacement, trainer):
        cluster.end(pod)
    assert run.end() == DONE, run.text
    wait_until(cluster.is_empty)


@pytest.mark.slow
def test_a_trainer_that_is_evicted_is_replaced_and_followed(cluster, coach):
    run = coach(cluster)
    trainer, _ = bring_up(cluster, run)
    run.wait_for(f"pod '{trainer}'")
    cluster.end(trainer, 137, "Evicted")
    (replacement,) = cluster.wait_for_fresh("trainer")
    cluster.start(replacement)
    run.wait_for(f"the trainer is running in pod '{replacement}'")
    cluster.end(replacement)
    assert run.end() == DONE, run.text


@pytest.mark.slow
def test_an_image_that_cannot_be_pulled_is_said_and_ends_the_run_in_time(cluster, coach):
    run = coach(
        cluster,
    )
    (trainer,) = cluster.wait_for_fresh("trainer")
    cluster.cannot_start(trainer, "ErrImagePull", "manifest unknown")
    run.wait_for(f"{trainer}: ErrImagePull: manifest unknown")
    assert run.process.poll() is None
    cluster.cannot_start(trainer, "InvalidImageName", "couldn't parse image")
    assert run.end() == BAD_INPUT
    assert f"coach: the trainer's pod '{trainer}' cannot start: InvalidImageName" in run.text
    wait_until(cluster.is_empty)


@pytest.mark.slow
def test_a_trainer_that_does_not_start_in_time_ends_the_run(cluster, coach, tmp_path):
    file = tmp_path / "short.ini"
    file.write_text("[coach]\nimage = a\nstop_seconds = 1\nstart_seconds = 3\n" + f"namespace = {cluster.namespace}\n")
    run = CoachOnCluster(tmp_path, cluster.kubeconfig, "-p", "CartPole_DQN", "-dc", "-dcp", str(file))
    (trainer,) = cluster.wait_for_fresh("trainer")
    cluster.cannot_be_placed(trainer, "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    assert run.end() == BAD_INPUT
    assert f"{trainer}: Unschedulable: 0/3 nodes are available" in run.text
    assert "coach: the trainer did not start within 3 s: Unschedulable: 0/3 nodes" in run.text
    wait_until(cluster.is_empty)


@pytest.mark.slow
def test_a_warning_of_the_cluster_about_an_object_of_the_run_is_said(cluster, coach):
    run = coach(cluster)
    trainer, _ = bring_up(cluster, run)
    cluster.warn(cluster.job(f"{NAME}-worker"), "Job", "FailedCreate", "exceeded quota: compute")
    run.wait_for(f"{NAME}-worker: FailedCreate: exceeded quota: compute")
    cluster.end(trainer)
    assert run.end() == DONE, run.text


@pytest.mark.slow
@pytest.mark.parametrize("code, expected", [(1, TRAINING_FAILED), (2, BAD_INPUT)])
def test_a_trainer_that_fails_ends_the_run_with_its_exit_code(cluster, coach, code, expected):
    run = coach(cluster, more="restarts = 0")
    trainer, _ = bring_up(cluster, run)
    cluster.end(trainer, code, "Error")
    assert run.end() == expected, run.text
    assert f"its last pod: exit code {code}" in run.text
    wait_until(cluster.is_empty)


@pytest.mark.slow
def test_workers_that_fail_too_often_end_the_run(cluster, coach):
    run = coach(cluster, more="restarts = 0")
    _, workers = bring_up(cluster, run)
    cluster.end(workers[0], 1, "Error")
    assert run.end() == BAD_INPUT
    assert "the worker's Job failed" in run.text
    wait_until(cluster.is_empty)


@pytest.mark.slow
@pytest.mark.parametrize("number, code", [(signal.SIGINT, STOPPED), (signal.SIGTERM, TERMINATED), (signal.SIGHUP, 129)])
def test_a_run_that_is_stopped_is_removed(cluster, coach, number, code):
    run = coach(cluster)
    bring_up(cluster, run)
    run.wait_for("the trainer is running")
    run.send(number)
    assert run.end() == code, run.text
    wait_until(cluster.is_empty)


def test_a_run_of_the_same_name_is_refused_and_leaves_the_first_alone(cluster, coach):
    first = coach(cluster)
    trainer, _ = bring_up(cluster, first)
    first.wait_for("the trainer is running")
    second = coach(cluster)
    assert second.end() == BAD_INPUT
    assert f"a run '{NAME}' in namespace '{cluster.namespace}' already exists: --attach follows this run" in second.text
    assert first.process.poll() is None and cluster.job(f"{NAME}-trainer")
    cluster.end(trainer)
    assert first.end() == DONE, first.text


@pytest.mark.slow
def test_who_attaches_follows_to_the_end_and_may_leave(cluster, coach):
    first = coach(cluster, "--keep")
    trainer, _ = bring_up(cluster, first)
    first.wait_for("the trainer is running")
    first.send(signal.SIGTERM)
    assert first.end() == TERMINATED
    second = coach(cluster, "--attach")
    second.wait_for(f"the trainer is running in pod '{trainer}'")
    second.send(signal.SIGINT)
    assert second.end() == STOPPED, second.text
    assert "the run continues" in second.text and cluster.job(f"{NAME}-trainer")
    third = coach(cluster, "--attach")
    third.wait_for("attached to run")
    cluster.end(trainer)
    assert third.end() == DONE, third.text
    wait_until(cluster.is_empty)


def test_there_must_be_a_run_to_attach_to(cluster, coach):
    run = coach(cluster, "--attach")
    assert run.end() == BAD_INPUT
    assert f"no run '{NAME}' in namespace '{cluster.namespace}' to attach to" in run.text


@pytest.mark.slow
def test_a_run_that_somebody_removes_ends(cluster, coach):
    run = coach(cluster)
    bring_up(cluster, run)
    run.wait_for("the trainer is running")
    cluster.batch.delete_namespaced_job(f"{NAME}-trainer", cluster.namespace, propagation_policy="Background")
    assert run.end() == BAD_INPUT
    assert f"the run '{NAME}' was removed from the cluster" in run.text


@pytest.mark.slow
def test_an_external_redis_is_not_created(cluster, coach):
    run = coach(cluster, more="redis_url = redis://user:hush@redis.example.com:6380/1")
    (trainer,) = cluster.wait_for_fresh("trainer")
    wait_until(lambda: cluster.fresh("worker"))
    there = cluster.objects()
    assert not any(one.startswith(("stateful_set/", "service/")) for one in there)
    assert f"secret/{NAME}-redis" in there
    order = cluster.core.read_namespaced_config_map(f"{NAME}-order", cluster.namespace).data["order.json"]
    assert '"redis://user@redis.example.com:6380/1"' in order and "hush" not in order
    cluster.end(trainer)
    assert run.end() == DONE, run.text


@pytest.mark.slow
def test_the_volume_of_an_nfs_server_is_removed_and_its_results_are_named(cluster, coach):
    run = coach(cluster, more="data_store = nfs\nnfs_server = nfs.example.com\nnfs_path = /export\nnfs_size = 1Gi")
    name = f"{cluster.namespace}-{NAME}-data"
    trainer, _ = bring_up(cluster, run)
    assert cluster.core.read_persistent_volume(name).spec.nfs.server == "nfs.example.com"
    cluster.end(trainer)
    assert run.end() == DONE, run.text
    assert "checkpoints and signals: nfs.example.com:/export/CartPole_DQN/" in run.text
    volumes = cluster.core.list_persistent_volume().items
    assert all(volume.metadata.deletion_timestamp for volume in volumes if volume.metadata.name == name)


@pytest.mark.parametrize(
    ("volume", "also_removed"),
    [
        ({}, ""),
        ({"nfs_storage_class": "shared"}, ""),
        ({"nfs_server": "nfs.example.com", "nfs_path": "/export"}, f" persistentvolume/rl-{NAME}-data"),
    ],
    ids=["none", "class", "server"],
)
def test_the_command_that_removes_a_run_names_the_volume_that_its_job_cannot_own(tmp_path, volume, also_removed):
    settings = DistributedSettings(
        orchestrator="kubernetes", image="coach", namespace="rl", data_store="nfs" if volume else "redis",
        kubeconfig=str(write_kubeconfig(tmp_path, "http://127.0.0.1:1")), **volume,
    )  # fmt: skip
    run = kubernetes_orchestrator.parameters(settings, "CartPole_DQN", [], 2, "run")
    command = kubernetes_orchestrator.Kubernetes(run).removal_command()
    assert command == f"kubectl --namespace rl delete job/{NAME}-trainer{also_removed}"


# with logs, which a genuine API server asks a kubelet for


@pytest.mark.slow
def test_the_trainers_log_is_shown_once_over_broken_connections(stand_in, coach):
    run = coach(stand_in)
    trainer, _ = bring_up(stand_in, run)
    stand_in.stand_in.write_log(trainer, "one", "two")
    run.wait_for("two")
    stand_in.stand_in.break_logs()
    stand_in.stand_in.write_log(trainer, "three")
    run.wait_for("three")
    stand_in.stand_in.write_log(trainer, "last words")
    stand_in.end(trainer)
    assert run.end() == DONE, run.text
    shown = [line for line in run.text.splitlines() if not line.startswith(("kubernetes:", "loading"))]
    assert shown == ["one", "two", "three", "last words"]


@pytest.mark.slow
def test_the_logs_of_workers_are_written_also_of_those_that_were_replaced(stand_in, coach, tmp_path):
    run = coach(stand_in, "--dump_worker_logs")
    trainer, workers = bring_up(stand_in, run)
    stand_in.stand_in.write_log(workers[0], "hello", "out of memory")
    stand_in.end(workers[0], 137, "OOMKilled")
    stand_in.wait_for_fresh("worker")
    stand_in.end(trainer)
    assert run.end() == DONE, run.text
    (directory,) = tmp_path.glob("experiments/CartPole_DQN/*/workers")
    assert len(list(directory.iterdir())) == 3
    assert (directory / f"{workers[0]}.log").read_text() == "hello\nout of memory\n"


@pytest.mark.slow
def test_a_run_that_is_stopped_before_its_creation_is_confirmed_is_removed(stand_in, coach):
    stand_in.stand_in.hold_answers()
    run = coach(stand_in)
    wait_until(stand_in.objects)
    run.send(signal.SIGINT)
    assert run.end() == STOPPED, run.text
    assert stand_in.is_empty(), stand_in.objects()
    stand_in.stand_in.give_answers()


@pytest.mark.parametrize("code", [DONE, TRAINING_FAILED])
def test_a_run_that_cannot_be_removed_keeps_its_exit_code(stand_in, coach, code):
    run = coach(stand_in, more="restarts = 0")
    trainer, _ = bring_up(stand_in, run)
    run.wait_for("the trainer is running")
    stand_in.stand_in.refuse_to_delete()
    stand_in.end(trainer, code)
    assert run.end() == code, run.text
    assert "the run could not be removed: " in run.text and "kubectl" in run.text


# without a cluster


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path, coach):
    (port,) = clusters._free_ports(1)
    kubeconfig = write_kubeconfig(tmp_path, f"http://127.0.0.1:{port}")
    run = coach(clusters.ClusterOfTest(kubeconfig, "rl"))
    assert run.end() == BAD_INPUT
    (line,) = [line for line in run.text.splitlines() if line.startswith("coach:")]
    assert f"the cluster at http://127.0.0.1:{port} does not answer" in line and "Traceback" not in run.text


def test_a_missing_kubeconfig_is_one_line(tmp_path, coach):
    (tmp_path / "empty.ini").write_text("[coach]\nimage = a\n")
    run = CoachOnCluster(
        tmp_path, pathlib.Path("/nowhere/kubeconfig"), "-p", "CartPole_DQN", "-dc", "-dcp", "empty.ini"
    )
    assert run.end() == BAD_INPUT
    assert run.text.count("coach: found no Kubernetes cluster") == 1 and "Traceback" not in run.text
