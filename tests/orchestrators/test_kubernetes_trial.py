"""Several runs on Kubernetes, each a Job: on the stand-in, and (``-m cluster``) on a genuine API server. No kubelet is
there, so a test sets what pods do and what they leave in their termination messages."""

from __future__ import annotations

import json
import os
import pathlib
import signal

import pytest

from rl_coach.coach import BAD_INPUT, DONE, STOPPED, main
from rl_coach.orchestrators.kubernetes_manifests import MAX_NAME
from rl_coach.orchestrators.kubernetes_trial import name_of
from rl_coach.runs.status import FAILED, FINISHED
from rl_coach.runs.status import STOPPED as IS_STOPPED
from tests.orchestrators.clusters import CoachOnCluster, wait_until
from tests.orchestrators.test_kubernetes import SETTINGS, cluster, genuine  # noqa: F401

SWEEP = ["sweep", "-p", "CartPole_DQN", "discount=0.9,0.99", "-dc"]
RUNS = ["discount=0.9", "discount=0.99"]


@pytest.fixture
def coach(tmp_path, cluster):  # noqa: F811
    """Starts ``coach`` with the settings of the cluster."""
    file = tmp_path / "cluster.ini"
    file.write_text(SETTINGS.format(more=f"namespace = {cluster.namespace}\nrestarts = 0"))
    started = []

    def start(*arguments: str) -> CoachOnCluster:
        started.append(CoachOnCluster(tmp_path, cluster.kubeconfig, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def sweep(coach) -> CoachOnCluster:
    return coach(*SWEEP, "-dcp", "cluster.ini")


def group_of(directory: pathlib.Path) -> pathlib.Path:
    (group,) = (directory / "experiments" / "CartPole_DQN").iterdir()
    return group


def status_of(directory: pathlib.Path, run: str) -> dict:
    return json.loads((group_of(directory) / run / "status.json").read_text())


def argument_of(cluster, pod: str, flag: str) -> str:  # noqa: F811
    (container,) = cluster.core.read_namespaced_pod(pod, cluster.namespace).spec.containers
    return next(word.partition("=")[2] for word in container.command if word.startswith(f"--{flag}="))


def end_with_scores(cluster, scores: dict[str, float]) -> None:  # noqa: F811
    """Let each fresh pod train, leave its status and end."""
    for pod in cluster.wait_for_fresh("trainer", len(scores)):
        run = argument_of(cluster, pod, "run_directory").rpartition("/")[2]
        cluster.start(pod)
        progress = {"steps": 500, "seconds": 2.0, "last_evaluation": scores[run], "best_evaluation": 200.0}
        cluster.end(pod, message=json.dumps({"state": "finished", "pid": 1, "host": pod, "progress": progress}))


@pytest.mark.slow
def test_each_run_of_a_sweep_is_a_job_and_its_score_comes_back(cluster, coach, tmp_path):  # noqa: F811
    run = sweep(coach)
    pods = cluster.wait_for_fresh("trainer", 2)
    assert sorted(argument_of(cluster, pod, "run_directory") for pod in pods) == [f"/coach/{name}" for name in RUNS]
    (container,) = cluster.core.read_namespaced_pod(pods[0], cluster.namespace).spec.containers
    assert container.command[:3] == ["python", "-m", "rl_coach"] and "--seed=0" in container.command
    assert "algorithm.discount = 0.9" in argument_of(cluster, pods[0], "custom_parameter")
    assert not any("distributed" in word for word in container.command)
    assert {one.name: one.value for one in container.env}["COACH_STATUS_COPY"] == "/dev/termination-log"
    assert not cluster.pods("redis") and not cluster.pods("worker")
    end_with_scores(cluster, dict(zip(RUNS, (150.0, 180.0))))
    assert run.end() == DONE, run.text
    assert "discount=0.9: evaluation 150 (best 200), 500 steps in 0:02" in run.text
    lines = [line.split()[:4] for line in run.text.splitlines()]
    assert lines.index(["discount=0.99", "1", "500", "180"]) < lines.index(["discount=0.9", "1", "500", "150"])
    assert status_of(tmp_path, RUNS[0])["state"] == FINISHED
    wait_until(cluster.is_empty)


@pytest.mark.slow
def test_a_run_that_fails_is_said_and_the_others_go_on(cluster, coach, tmp_path):  # noqa: F811
    run = sweep(coach)
    first, second = sorted(
        cluster.wait_for_fresh("trainer", 2), key=lambda pod: argument_of(cluster, pod, "run_directory")
    )
    cluster.start(first)
    cluster.end(first, 1, "Error")
    run.wait_for("discount=0.9 failed")
    cluster.start(second)
    cluster.end(second, message=json.dumps({"state": "finished", "progress": {"last_evaluation": 7.0}}))
    assert run.end() == 1 and "discount=0.99  " in run.text
    assert status_of(tmp_path, RUNS[0])["state"] == FAILED
    wait_until(cluster.is_empty)


@pytest.mark.slow
def test_ctrl_c_removes_the_jobs_and_the_sweep_goes_on_later(cluster, coach, tmp_path):  # noqa: F811
    run = sweep(coach)
    for pod in cluster.wait_for_fresh("trainer", 2):
        cluster.start(pod)
    wait_until(lambda: all((group_of(tmp_path) / name / "status.json").exists() for name in RUNS))
    run.send(signal.SIGINT)
    assert run.end() == STOPPED, run.text
    assert "continue all of them: " in run.text and status_of(tmp_path, RUNS[1])["state"] == IS_STOPPED
    wait_until(cluster.is_empty)
    again = coach("--resume", str(group_of(tmp_path)))
    end_with_scores(cluster, dict(zip(RUNS, (150.0, 180.0))))
    assert again.end() == DONE, again.text
    wait_until(cluster.is_empty)


@pytest.mark.slow
def test_jobs_that_outlived_their_sweep_are_taken_up(cluster, coach, tmp_path):  # noqa: F811
    run = sweep(coach)
    cluster.wait_for_fresh("trainer", 2)
    wait_until(lambda: all((group_of(tmp_path) / name / "status.json").exists() for name in RUNS))
    for one in (run.process.pid, *(status_of(tmp_path, name)["pid"] for name in RUNS)):
        os.kill(one, signal.SIGKILL)  # as if the machine had lost its power
    run.process.wait()
    pods = {pod.metadata.uid for pod in cluster.pods("trainer")}
    again = coach("--resume", str(group_of(tmp_path)))
    logs = [group_of(tmp_path) / f"{name}.log" for name in RUNS]
    wait_until(lambda: all("following the existing job" in log.read_text() for log in logs))
    end_with_scores(cluster, dict(zip(RUNS, (150.0, 180.0))))
    assert again.end() == DONE, again.text
    assert {pod.metadata.uid for pod in cluster.pods("trainer")} <= pods
    wait_until(cluster.is_empty)


def test_a_trial_has_one_name_that_fits_a_cluster(tmp_path):
    names = [name_of(tmp_path / f"learning_rate=1e-4,discount={value},seed=0") for value in (0.9, 0.99)]
    assert len(set(names)) == 2 and names[0] == name_of(tmp_path / "learning_rate=1e-4,discount=0.9,seed=0")
    assert all(len(name) <= MAX_NAME and name.startswith("coach-learning-rate-1e-4-") for name in names)


@pytest.mark.parametrize(
    ("given", "more", "said"),
    [
        (["-n", "4"], "", "--num_workers: each of several runs on a cluster is one Job"),
        (["--keep"], "", "--keep: each of several runs on a cluster is one Job"),
        ([], "data_store = nfs\nnfs_claim = claim", "data_store = nfs does not work with several runs"),
        ("mine.py", "", "give the file's absolute path in the image"),
    ],
)
def test_what_jobs_cannot_do_is_one_line(tmp_path, monkeypatch, capsys, given, more, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.ini").write_text(SETTINGS.format(more=more))
    (tmp_path / "mine.py").write_text("from rl_coach.presets.CartPole_DQN import graph_manager\n")
    sweep = [given if one == "CartPole_DQN" else one for one in SWEEP] if isinstance(given, str) else [*SWEEP, *given]
    assert main([*sweep, "-dcp", "cluster.ini"]) == BAD_INPUT
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not (tmp_path / "experiments").exists()


def test_a_cluster_that_does_not_answer_ends_the_sweep_with_one_line(tmp_path):
    from tests.orchestrators.clusters import write_kubeconfig

    (tmp_path / "cluster.ini").write_text(SETTINGS.format(more=""))
    run = CoachOnCluster(tmp_path, write_kubeconfig(tmp_path, "http://127.0.0.1:9"), *SWEEP, "-dcp", "cluster.ini")
    assert run.end() == BAD_INPUT, run.text
    assert run.text.splitlines()[-1].startswith("coach: ") and "failed" not in run.text
    assert not (tmp_path / "experiments").exists()


def test_a_tuning_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.ini").write_text(SETTINGS.format(more=""))
    assert main(["tune", "-p", "CartPole_DQN", "--steps", "100", "-dc", "-dcp", "cluster.ini"]) == BAD_INPUT
    assert "start coach tune on each machine with the same --storage" in capsys.readouterr().err
