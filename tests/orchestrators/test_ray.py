"""Distributed runs on a Ray cluster of two nodes, with Ray's own processes."""

from __future__ import annotations

import contextlib
import pathlib
import signal
import tempfile

import pytest

from rl_coach.coach import BAD_INPUT
from tests.orchestrators.distributed_runs import PROGRAM, SLOW_POLE, SMALL, TOO_LONG, DistributedRun, wait_until
from tests.orchestrators.test_local_run import read_until, start

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
pytestmark = pytest.mark.faults

ON_RAY = (
    PROGRAM.replace("LocalOrchestrator(RunOrder.read(sys.argv[1]), keeps_logs=True)", "orchestrator()")
    .replace("from rl_coach.orchestrators.local_orchestrator import LocalOrchestrator; ", "")
    .replace(
        "sys.exit(",
        "from rl_coach.orchestrators.distributed_settings import DistributedSettings; "
        "from rl_coach.orchestrators.ray_orchestrator import RayOrchestrator; "
        "settings = DistributedSettings('ray', ray_address='{address}'); "
        "orchestrator = lambda: RayOrchestrator(RunOrder.read(sys.argv[1]), settings, True); "
        "sys.exit(",
    )
)


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    # the first node has room for both workers, so that the second one can be lost
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 100 * 2**20})
    yield cluster
    cluster.shutdown()


def test_a_worker_and_a_node_are_lost_and_the_counts_agree(tmp_path, cluster):
    node = cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    program = ON_RAY.replace("{address}", cluster.address)
    with DistributedRun(tmp_path, "-lvl", SLOW_POLE, "-cp", SMALL, program=program) as run:
        run.wait_for_learning()
        before = run.children()
        run.kill("worker-0")
        wait_until(lambda: "worker-0 was killed by SIGKILL: it is restarted" in run.text(), run.text)
        wait_until(lambda: run.children().get("worker-0", before["worker-0"]) != before["worker-0"], run.text)
        cluster.remove_node(node)
        wait_until(lambda: "Ray has restarted it on" in run.text(), run.text)
        wait_until(lambda: len(run.children()) == 3, run.text)
        run.wait_for_more()
        run.wait_for_learning(senders=4)
        totals = run.stop()
    run.check_totals(totals)
    assert "interrupted; saved" in run.text()
    assert (run.experiment / "checkpoint").is_dir()


def settings_of(directory, address, *lines):
    (directory / "ray.ini").write_text("\n".join(["[coach]", "orchestrator = ray", f"ray_address = {address}", *lines]))
    return "-dcp", "ray.ini"


def left_by_actors(directory):
    """The orders of runs of a directory that actors have left in theirs, beside a password."""
    found = []
    for file in pathlib.Path(tempfile.gettempdir()).glob("coach-distributed-*/order.json"):
        with contextlib.suppress(FileNotFoundError):  # of another run, which ends meanwhile
            found += [file] * (str(directory) in file.read_text())
    return found


def test_the_command_runs_there_and_its_redis_is_the_clusters(tmp_path, cluster):
    settings = settings_of(tmp_path, cluster.address, "[trainer]", "cpu = 1")
    short = SMALL.replace("10000000", "300")
    run = start(tmp_path, *settings, "-cp", short, "--nocolor", "--seed", "3")
    text = run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == 0, text
    assert "Name=worker-0, State=ended" in text
    assert not list(tmp_path.glob("coach-distributed-*")) and not left_by_actors(tmp_path), "nothing of it stays"


def test_a_cluster_without_room_is_told_of_in_a_line(tmp_path, cluster):
    settings = settings_of(tmp_path, cluster.address, "start_seconds = 1", "[worker]", "cpu = 64")
    run = start(tmp_path, *settings)
    text = run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == BAD_INPUT, text
    assert "coach: the Ray cluster has no room for the workers (1, of 64 CPU each): it has 2 CPU" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_a_signal_while_it_waits_for_room_ends_it(tmp_path, cluster, number):
    settings = settings_of(tmp_path, cluster.address, "[worker]", "cpu = 64")
    run = start(tmp_path, *settings)
    read_until(run, "waiting for room for the workers (1, of 64 CPU each)")
    run.send_signal(number)
    text = run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == 128 + number, text
    assert "Traceback" not in text


def test_no_cluster_is_told_of_in_a_line(tmp_path):
    settings = settings_of(tmp_path, "127.0.0.1:9")
    run = start(tmp_path, *settings)
    text = run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == BAD_INPUT and "Traceback" not in text, text
    assert "[coach] ray_address = 127.0.0.1:9: no Ray cluster answers" in text and "ray start --head" in text
