"""Faults of a distributed run: whatever dies, hangs or lies, the totals of trainer and workers agree."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from rl_coach.core_types import Batch
from rl_coach.memories.backend.connection import Connection, Keys
from rl_coach.memories.backend.wire import Chunk, EncodedChunk, unpack
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis
from rl_coach.orchestrators.run_order import Limits, RunOrder
from tests.orchestrators.distributed_runs import PROGRAM, ROOT, SLOW_POLE, SMALL, TOO_LONG, DistributedRun, wait_until
from tests.zoo.false_messages import VALUES, false_messages, packed

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
        wait_until(lambda: time.monotonic() - stopped_at > 30, "half a minute")
        before = {sender: numbers for sender, numbers in run.taken().items() if sender.startswith("worker-1.")}
        os.kill(frozen, signal.SIGCONT)
        (sender, (last, _, _)) = next(iter(before.items()))
        wait_until(lambda: run.taken()[sender][0] > last, "it goes on where it was")
        totals = run.stop()
        run.check_totals(totals)
        assert "worker-0 was killed by SIGKILL: it is restarted" in run.text()
        assert totals["refused"] == {} and len(run.acknowledged()) == 3


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["CartPole_IMPALA", "CartPole_ApexDQN"])  # segments; transitions with priorities
def test_what_a_killed_worker_has_sent_is_counted_once_and_nothing_is_discarded(preset, tmp_path):
    settings = "evaluation_steps=EnvironmentEpisodes(0); improve_steps=EnvironmentSteps(10000000)"
    with DistributedRun(tmp_path, "-lvl", SLOW_POLE, "-cp", settings, preset=preset) as run:
        run.wait_for_learning()
        killed = run.kill("worker-0")
        wait_until(lambda: run.children().get("worker-0", killed) != killed, "a new worker")
        wait_until(lambda: len(run.senders()) == 3, "it plays")
        run.wait_for_more()
        totals = run.stop()
        run.check_totals(totals)
        assert totals["refused"] == {} and totals["discarded"] == 0


@pytest.mark.slow
def test_workers_that_somebody_else_ends_are_restarted(tmp_path):
    with DistributedRun(tmp_path, *PLAYING) as run:
        run.wait_for_learning()
        ended = {name: run.kill(name, signal.SIGTERM) for name in ("worker-0", "worker-1")}
        wait_until(lambda: all(run.children().get(name, pid) != pid for name, pid in ended.items()), "new workers")
        wait_until(lambda: len(run.senders()) == 4, "they play")
        run.wait_for_more()
        run.check_totals(run.stop())
        for name in ended:
            assert f"{name} was ended by SIGTERM: it is restarted" in run.text()


def part(directory, program, redis, *arguments, **limits):
    """One process of a run, without the others."""
    order = RunOrder(
        "test", ["-p", "CartPole_DQN", *PLAYING], redis.url, 1, str(directory / "experiment"),
        str(redis.password_file), limits=Limits(**limits),
    )  # fmt: skip
    order.write(directory / "order.json")
    command = [sys.executable, "-m", f"rl_coach.{program}", "--order", str(directory / "order.json"), *arguments]
    settings = {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=directory,
        env={**os.environ, **settings},
    )  # fmt: skip


def test_an_evicted_worker_has_not_completed(tmp_path, redis):
    """Kubernetes counts an index of a Job as completed when its pod ends with 0."""
    server, client = redis
    worker = part(tmp_path, "rollout_worker", server, "--name", "worker-0")
    wait_until(lambda: any(one["cmd"] == "get" for one in client.client_list()), "it waits for a trainer")
    worker.send_signal(signal.SIGTERM)
    text = worker.communicate(timeout=TOO_LONG)[0]
    assert worker.returncode == 128 + signal.SIGTERM, text
    assert "Traceback" not in text


@pytest.mark.slow
def test_a_trainer_that_nobody_plays_for_says_so_saves_and_ends(tmp_path, redis):
    trainer = part(tmp_path, "training_worker", redis[0], silence_seconds=3)
    text = trainer.communicate(timeout=TOO_LONG)[0]
    check_that_it_gave_up(trainer.returncode, text, tmp_path / "experiment", "no worker sent anything for 3 s")


@pytest.mark.slow
def test_a_trainer_whose_workers_only_wait_says_so_saves_and_ends(tmp_path, redis):
    server, client = redis
    trainer = part(tmp_path, "training_worker", server, silence_seconds=3)
    report = {"phase": "WAITING", "rate": 0.0, "steps": 0, "acknowledged": 0, "outstanding": 0, "life": "1", "pid": 1}
    while trainer.poll() is None:
        client.set(Keys("test").worker("worker-0"), packed(report))
        time.sleep(0.2)
    text = trainer.communicate(timeout=TOO_LONG)[0]
    check_that_it_gave_up(trainer.returncode, text, tmp_path / "experiment", "all workers have waited for 3 s")


def check_that_it_gave_up(code, text, experiment, reason):
    """A run without something that it needs has said what, and has left a checkpoint and its totals."""
    assert code == 1 and "Traceback" not in text, text
    assert sum(line.startswith(("coach: ", "!!!! coach: ")) and reason in line for line in text.splitlines()) == 1, text
    assert "interrupted; saved" in text and list(experiment.glob("checkpoint/*.ckpt"))
    assert (experiment / "distributed.json").exists()


BROKEN_POLE = f"{ROOT / 'tests' / 'orchestrators' / 'broken_pole.py'}:BrokenPole"
IS_NAN = r"the reward that the environment gave in step \d+ of episode \d+ is nan"


def broken_after(steps):
    return f"{SMALL}; env_params.additional_simulator_parameters={{'good_steps': {steps}}}"


@pytest.mark.slow
def test_workers_that_fail_without_a_stored_step_end_a_run_that_says_why(tmp_path):
    with DistributedRun(tmp_path, "-lvl", BROKEN_POLE, "-cp", broken_after(0), num_workers=1) as run:
        assert run.process.wait(TOO_LONG) == 1, run.text()
        assert run.children() == {}, "nothing is left"
        restarts = re.findall(rf"worker-0 ended with exit code 1 \({IS_NAN}\): it is restarted", run.text())
        assert len(restarts) == 5
        assert "6 times, and no new steps were stored in between: worker-0 is not restarted" in run.text()
        assert re.fullmatch(rf"error: worker-0 ended: {IS_NAN}", run.text().splitlines()[-1])
        assert "Traceback" not in run.text() and list(run.experiment.glob("checkpoint/*.ckpt"))
        assert run.totals()["refused"] == {}


@pytest.mark.slow
def test_workers_that_fail_after_stored_steps_are_restarted_until_the_run_is_done(tmp_path):
    settings = broken_after(150).replace("10000000", "1200")
    with DistributedRun(tmp_path, "-lvl", BROKEN_POLE, "-cp", settings, num_workers=1) as run:
        assert run.process.wait(TOO_LONG) == 0, run.text()
        restarts = re.findall(rf"worker-0 ended with exit code 1 \({IS_NAN}\): it is restarted", run.text())
        assert len(restarts) > 6
        totals = run.totals()
        assert totals["steps"] == totals["stored"] >= 1250 and totals["refused"] == {}


@pytest.mark.slow
def test_a_trainer_that_another_one_has_taken_over_from_ends_and_leaves_the_run_to_it(tmp_path):
    with DistributedRun(tmp_path, *PLAYING) as run:
        run.wait_for_learning()
        order = dataclasses.replace(run.order, experiment_path=str(tmp_path / "other"))
        order.write(tmp_path / "other.json")
        command = [sys.executable, "-m", "rl_coach.training_worker", "--order", str(tmp_path / "other.json")]
        with open(tmp_path / "other.txt", "w") as output:
            other = subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT)
        try:
            assert run.process.wait(TOO_LONG) == 2, run.text()
            assert "another trainer controls this run now: this trainer ends" in run.text()
            wait_until(lambda: not unpack(run.client.get(run.keys.state))["is_over"], "the run goes on")
            assert other.poll() is None
        finally:
            other.kill()
            other.wait()


@pytest.mark.slow
def test_redis_may_die_and_come_back_empty(tmp_path):
    with DistributedRun(tmp_path, *PLAYING) as run:
        run.wait_for_learning()
        for pause in (10, 0):
            run.redis.process.kill()
            run.redis.process.wait()
            died_at = time.monotonic()
            wait_until(lambda: time.monotonic() - died_at >= pause, "a while")  # noqa: B023
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
        wait_until(lambda: list(run.experiment.glob("checkpoint/*.ckpt")), "a checkpoint")
        workers = {name: pid for name, pid in run.children().items() if name != "trainer"}
        stored, killed = run.stored(), run.kill("trainer")
        wait_until(lambda: run.children().get("trainer", killed) != killed, "a new trainer")
        wait_until(lambda: run.stored() > stored + 200, "it learns")
        assert {name: pid for name, pid in run.children().items() if name != "trainer"} == workers
        totals = run.stop()
        run.check_totals(totals, gone_back=True)
        assert totals["steps"] > 200, "it did not begin anew"


@contextlib.contextmanager
def refused(run, *kinds):
    """Wait at the end until Redis has refused a command with an error of these kinds."""

    def count():
        errors = run.client.info("errorstats")
        return sum(errors.get(f"errorstat_{kind}", {"count": 0})["count"] for kind in kinds)

    before = count()  # read first: a run that repairs a key at once makes one error only
    yield
    wait_until(lambda: count() > before, f"Redis says {' or '.join(kinds)}")


def full(run):
    with refused(run, "OOM"):
        run.client.config_set("maxmemory", 1)
    run.client.config_set("maxmemory", 0)


def read_only(run):
    with refused(run, "READONLY"):
        run.client.replicaof("127.0.0.1", 1)
    run.client.replicaof("NO", "ONE")


def without_its_password(run):
    with refused(run, "WRONGPASS", "NOAUTH"):
        run.client.config_set("requirepass", "another")
        run.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    run.client.config_set("requirepass", run.redis.password)


def with_others_under_its_keys(run):
    for key in (run.keys.experience, run.keys.taken):
        # UNBLOCKED, or NOGROUP since Redis 7: a trainer that waited for the stream may put it right first
        with refused(run, "WRONGTYPE", "UNBLOCKED", "NOGROUP"):
            run.client.pipeline().delete(key).rpush(key, "of another type").execute()
    # the trainer may write this key before anybody reads it, and then there is no error
    run.client.pipeline().delete(run.keys.state).rpush(run.keys.state, "of another type").execute()


def without_its_stream(run):
    run.client.delete(run.keys.experience)


@pytest.mark.slow
def test_whatever_redis_answers_the_run_goes_on_when_it_answers_again(tmp_path):
    with DistributedRun(tmp_path, *PLAYING) as run:
        run.wait_for_learning()
        for hurt in (full, read_only, without_its_password, with_others_under_its_keys, without_its_stream):
            hurt(run)
            run.wait_for_more()
        run.check_totals(run.stop())
        assert "Traceback" not in run.text()


@pytest.mark.slow
def test_a_run_whose_redis_stays_full_saves_and_says_why_it_ends(tmp_path):
    # long enough for the start of workers on a busy machine, which the trainer waits for as well
    with DistributedRun(tmp_path, *PLAYING, silence_seconds=60) as run:
        run.wait_for_learning()
        run.client.config_set("maxmemory", 1)
        code = run.process.wait(TOO_LONG)
        check_that_it_gave_up(code, run.text(), run.experiment, "no Redis for 60 s: ")
        assert run.children() == {}, "nothing is left"


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


PICKY = """
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import SimpleSchedule
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay, ExperienceReplayParameters
from rl_coach.utils import CoachError


class Picky(ExperienceReplay):
    def check_columns(self, chunk, episode_lengths=None):
        raise CoachError("nothing is good enough")


class PickyParameters(ExperienceReplayParameters):
    path = "picky:Picky"


agent_params = DQNAgentParameters()
agent_params.memory = PickyParameters()
graph_manager = BasicRLGraphManager(agent_params, GymVectorEnvironment("CartPole-v1"), SimpleSchedule())
"""


@pytest.mark.slow
def test_a_run_whose_memory_stores_nothing_ends_and_says_why(tmp_path):
    (tmp_path / "picky.py").write_text(PICKY)
    with DistributedRun(tmp_path, preset=str(tmp_path / "picky.py")) as run:
        assert run.process.wait(TOO_LONG) == 1, run.text()
        assert "none of 100 chunks of workers was stored: does not fit (nothing is good enough)" in run.text()
        assert "Traceback" not in run.text()


@pytest.mark.slow
def test_two_thousand_false_messages_do_not_end_a_run(tmp_path):
    with DistributedRun(tmp_path, *PLAYING) as run:
        run.wait_for_learning()
        client, keys = run.client, run.keys
        ((_, honest),) = wait_until(lambda: client.xrange(keys.experience, count=1), "a message of a worker")
        messages = [fields for _, fields in false_messages(honest)]
        messages += [damaged(honest, seed) for seed in range(2000 - len(messages))]
        random.Random(1).shuffle(messages)
        for number, fields in enumerate(messages):
            client.xadd(keys.experience, of_sender(fields, f"liar-{number}.1"))
            if number % 100 == 0:
                wait_until(lambda: client.xlen(keys.experience) < 50, "they are looked at")
        wait_until(lambda: client.xlen(keys.experience) < 50, "all are looked at")
        run.wait_for_more()
        totals = run.stop()
        run.check_totals(totals)
        assert sum(totals["refused"].values()) > len(messages) // 2
        assert "Traceback" not in run.text()


def damaged(fields, seed):
    """A message with other bytes in one of its fields."""
    rng = random.Random(seed)
    name = rng.choice(sorted(fields))
    content = bytearray(fields[name])
    for _ in range(3):
        content[rng.randrange(len(content))] = rng.randrange(256)
    return {**fields, name: bytes(content)}


def of_sender(fields, sender):
    """A message of somebody who has sent none before, unless it is its header that is false."""
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        header = unpack(fields[b"header"])
        if header["sender"].startswith("worker-"):
            header["sender"] = sender
        if header["number"] > 1:
            header["number"] = header["first"] = 1
        return {**fields, b"header": packed(header)}
    return fields


@pytest.mark.slow
def test_false_documents_do_not_end_a_run(tmp_path):
    with DistributedRun(tmp_path, *PLAYING) as run:
        run.wait_for_learning()
        client, keys = run.client, run.keys
        wait_until(lambda: client.exists(keys.worker("worker-0")), "the worker reports")
        state, report = unpack(client.get(keys.state)), unpack(client.get(keys.worker("worker-0")))
        for kind, value in VALUES.items():
            for key, document in ((keys.state, state), (keys.worker("worker-0"), report)):
                client.set(key, packed(value))
                # a worker believes that the run is over, ends, and comes back; that is another test's
                for name in document.keys() - {"is_over"}:
                    client.set(key, packed({**document, name: value}))
            for sender in run.taken_documents():
                client.hset(keys.taken, sender, packed(value))
            client.set(keys.worker("worker-1"), b"\xc1 garbage")
            assert client.ping(), kind
        client.set(keys.state, packed({**state, "incarnation": state["incarnation"] + 10**6}))
        run.wait_for_more()
        run.check_totals(run.stop())
        assert "Traceback" not in run.text()


@pytest.mark.slow
def test_workers_that_were_told_falsely_that_the_run_is_over_come_back(tmp_path):
    with DistributedRun(tmp_path, *PLAYING) as run:
        run.wait_for_learning()
        workers = {name: pid for name, pid in run.children().items() if name != "trainer"}
        document = unpack(run.client.get(run.keys.state))

        def all_are_gone():
            run.client.set(run.keys.state, packed({**document, "is_over": True}))
            return not any(run.children().get(name) == pid for name, pid in workers.items())

        wait_until(all_are_gone, "the workers believe it")
        wait_until(lambda: len(run.senders()) == 4, "others play")
        run.check_totals(run.stop())
        assert "worker-0 ended, although its trainer continues: it is restarted" in run.text()


@pytest.mark.slow
def test_a_slow_trainer_does_not_fill_redis(tmp_path):
    slow = SMALL + "; agent_params.algorithm.num_consecutive_training_steps=300"
    with DistributedRun(tmp_path, "-cp", slow, num_workers=2) as run:
        run.wait_for_learning(100)
        lengths = []

        def are_ahead():
            lengths.append(run.client.xlen(run.keys.experience))
            return len(lengths) > 60 and max(lengths) > 2

        wait_until(are_ahead, "workers are ahead of the trainer")
        assert max(lengths) <= 2 * 4, "a window of 4 chunks for each worker"
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
    """Start a run that cannot be. :return: exit code, what it said on standard error"""
    password = None if password_file is None else str(password_file)
    order = RunOrder("x", ["-p", "CartPole_DQN"], url, 1, str(directory / "e"), password, limits=Limits(**limits))
    order.write(directory / "order.json")
    command = [sys.executable, "-c", PROGRAM, str(directory / "order.json")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=TOO_LONG)
    return done.returncode, done.stderr


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
    # a run that waited for an answer would wait for an hour
    code, error = refusal(tmp_path, redis[0].url, tmp_path / "wrong", connect_seconds=3600.0)
    assert code == 2 and error.count("\n") == 1
    assert error.startswith("coach: Redis at 127.0.0.1:") and "refuses the password" in error


@pytest.mark.parametrize(
    ("place", "limits"), [("127.0.0.1:1", {}), ("no-such-host.invalid:6379", {"connect_seconds": 1.0})]
)
def test_a_wrong_host_is_said(tmp_path, place, limits):
    code, error = refusal(tmp_path, f"redis://{place}/0", **limits)
    assert code == 2
    assert error.startswith(f"coach: no Redis at {place}") and error.count("\n") == 1


def test_a_redis_that_evicts_is_refused(tmp_path, redis):
    server, client = redis
    client.config_set("maxmemory-policy", "allkeys-lru")
    code, error = refusal(tmp_path, server.url, server.password_file, connect_seconds=3600.0)
    assert code == 2 and error.count("\n") == 1
    assert "evicts keys (allkeys-lru)" in error and "set maxmemory-policy noeviction" in error
