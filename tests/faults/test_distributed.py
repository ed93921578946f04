"""Faults of a distributed run: whatever dies, hangs or lies, the totals of trainer and workers agree."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from rl_coach.core_types import Batch
from rl_coach.memories.backend.connection import Connection
from rl_coach.memories.backend.wire import Chunk, EncodedChunk
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis
from rl_coach.orchestrators.run_order import Limits, RunOrder
from tests.orchestrators.distributed_runs import PROGRAM, ROOT, SLOW_POLE, SMALL, TOO_LONG, DistributedRun, wait_until

pytestmark = pytest.mark.faults

PLAYING = ("-lvl", SLOW_POLE, "-cp", SMALL)


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_a_stopped_one_goes_on(tmp_path):
    with DistributedRun(tmp_path, *PLAYING, num_workers=3) as run:
        run.wait_for_learning()
        frozen = run.kill("worker-1", signal.SIGSTOP)
        stopped_at = time.monotonic()
        killed = run.kill("worker-0")
        wait_until(lambda: run.children().get("worker-0", killed) != killed, "a new worker")
        wait_until(lambda: len(run.senders()) == 4, "it plays")
        wait_until(lambda: time.monotonic() - stopped_at > 30, "half a minute", 40)
        before = {sender: numbers for sender, numbers in run.taken().items() if sender.startswith("worker-1.")}
        os.kill(frozen, signal.SIGCONT)
        (sender, (last, _, _)) = next(iter(before.items()))
        wait_until(lambda: run.taken()[sender][0] > last, "it goes on where it was")
        totals = run.stop()
        run.check_totals(totals)
        assert "worker-0 was killed by SIGKILL: it is restarted" in run.text()
        assert totals["refused"] == {} and len(run.acknowledged()) == 3


@pytest.mark.slow
def test_redis_may_die_and_come_back_empty(tmp_path):
    with DistributedRun(tmp_path, *PLAYING) as run:
        run.wait_for_learning()
        for pause in (10, 0):
            run.redis.process.kill()
            run.redis.process.wait()
            died_at = time.monotonic()
            wait_until(lambda: time.monotonic() - died_at >= pause, "a while", 20)  # noqa: B023
            run.redis.start()
            wait_until(lambda: run.taken(), "the trainer puts back what it wrote")
            run.wait_for_more()
        run.client.flushall()  # the connections stay
        run.wait_for_more()
        run.check_totals(run.stop())


@pytest.mark.slow
def test_a_killed_trainer_goes_on_from_its_checkpoint_and_workers_carry_on(tmp_path):
    with DistributedRun(tmp_path, *PLAYING, "-s", "1") as run:
        run.wait_for_learning()
        wait_until(lambda: list(run.experiment.glob("checkpoint/*.ckpt")), "a checkpoint", 30)
        workers = {name: pid for name, pid in run.children().items() if name != "trainer"}
        stored, killed = run.stored(), run.kill("trainer")
        wait_until(lambda: run.children().get("trainer", killed) != killed, "a new trainer")
        wait_until(lambda: run.stored() > stored + 200, "it learns")
        assert {name: pid for name, pid in run.children().items() if name != "trainer"} == workers
        totals = run.stop()
        run.check_totals(totals, gone_back=True)
        assert totals["steps"] > 200, "it did not begin anew"


def chunk(number=1, first=1, sender="liar.1", run="test", width=4, rows=3):
    states = {"observation": np.zeros((rows, width), np.float32)}
    ends = np.zeros(rows, bool)
    columns = Batch.from_columns(states, np.zeros(rows, np.int64), np.zeros(rows), ends, states)
    return EncodedChunk(Chunk(run, sender, number, first, (0, 0), 0, rows, [], columns)).fields(first)


@pytest.mark.slow
def test_lies_are_refused_and_counted(tmp_path):
    with DistributedRun(tmp_path, *PLAYING) as run:
        run.wait_for_learning()
        sent = [
            {b"header": b"garbage"},
            {b"nothing": b"at all"},
            chunk(run="another"),
            chunk(width=7),  # number 1 of this sender: does not fit
            chunk(2),  # and a good one
            chunk(2),  # a duplicate
            chunk(5, 3),  # a gap
            chunk(4, 3),
            chunk(3, 3),  # in the wrong order
            {b"header": bytes(50 << 20)},
            {b"header": b"large", b"0": bytes(65 << 20)},
        ]
        for fields in sent:
            run.client.xadd(run.keys.experience, fields)
        wait_until(lambda: run.taken().get("liar.1", [0])[0] == 3, "the last good one")
        run.wait_for_more()
        assert run.client.xlen(run.keys.experience) <= 2 * 4, "nothing stays"
        totals = run.stop()
        run.check_totals(totals)
        refused = totals["refused"]
        assert refused["garbage"] == 3 and refused["another run"] == 1 and refused["too large"] == 1
        assert refused["gap"] == 2 and sum("does not fit" in reason for reason in refused) == 1
        assert totals["workers"]["liar.1"] == {"last": 3, "stored": 6, "discarded": 3}
        assert "messages of workers were refused so far" in run.text()


@pytest.mark.slow
def test_a_slow_trainer_does_not_fill_redis(tmp_path):
    slow = SMALL + "; agent_params.algorithm.num_consecutive_training_steps=300"
    with DistributedRun(tmp_path, "-cp", slow, num_workers=2) as run:
        run.wait_for_learning(100)
        lengths = []
        for _ in range(60):
            lengths.append(run.client.xlen(run.keys.experience))
            time.sleep(0.05)
        assert max(lengths) <= 2 * 4, "a window of 4 chunks for each worker"
        assert max(lengths) > 2, "workers are ahead of the trainer"
        used = run.client.info("memory")["used_memory"]
        assert used < 20 << 20
        run.check_totals(run.stop())


@pytest.mark.slow
def test_a_full_disk_at_the_trainer_does_not_end_the_run(tmp_path):
    disk = tmp_path / "experiment"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        with DistributedRun(tmp_path, *PLAYING, "-s", "1") as run:
            run.wait_for_learning(100)
            fill(disk)
            wait_until(lambda: "no checkpoint was saved" in run.text(), "it is said")
            run.wait_for_more()
            (disk / "filler").unlink()
            run.check_totals(run.stop())
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: pathlib.Path) -> None:
    with open(disk / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


def refusal(directory, url, password_file=None, **limits):
    """Start a run that cannot be. :return: exit code, seconds, what it said on standard error"""
    password = None if password_file is None else str(password_file)
    order = RunOrder("x", ["-p", "CartPole_DQN"], url, 1, str(directory / "e"), password, limits=Limits(**limits))
    order.write(directory / "order.json")
    started = time.monotonic()
    command = [sys.executable, "-c", PROGRAM, str(directory / "order.json")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=TOO_LONG)
    return done.returncode, time.monotonic() - started, done.stderr


@pytest.fixture
def redis(tmp_path):
    server = EmbeddedRedis(tmp_path)
    server.start()
    connection = Connection(server.url, server.password)
    connection.check(10)
    yield server, connection.client
    server.stop()


def test_a_wrong_password_is_said_at_once(tmp_path, redis):
    (tmp_path / "wrong").write_text("wrong\n")
    code, seconds, error = refusal(tmp_path, redis[0].url, tmp_path / "wrong")
    assert code == 2 and seconds < 10 and error.count("\n") == 1
    assert error.startswith("coach: Redis at 127.0.0.1:") and "refuses the password" in error


@pytest.mark.parametrize(
    ("place", "limits"), [("127.0.0.1:1", {}), ("no-such-host.invalid:6379", {"connect_seconds": 1.0})]
)
def test_a_wrong_host_is_said_within_ten_seconds(tmp_path, place, limits):
    code, seconds, error = refusal(tmp_path, f"redis://{place}/0", **limits)
    assert code == 2 and seconds < 13, "the imports included"
    assert error.startswith(f"coach: no Redis at {place}") and error.count("\n") == 1


def test_a_redis_that_evicts_is_refused(tmp_path, redis):
    server, client = redis
    client.config_set("maxmemory-policy", "allkeys-lru")
    code, seconds, error = refusal(tmp_path, server.url, server.password_file)
    assert code == 2 and seconds < 10 and error.count("\n") == 1
    assert "evicts (allkeys-lru)" in error and "set maxmemory-policy noeviction" in error
