"""``coach -dc`` as a person starts it: what is shown, how it ends, and what its workers are."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import pyte
import pytest

from rl_coach.coach import BAD_INPUT, main
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis
from rl_coach.orchestrators.private_directory import private_directory
from tests.data_stores.stand_in_s3 import ACCESS_KEY, BUCKET, SECRET_KEY, StandInS3
from tests.orchestrators.distributed_runs import ROOT, SLOW_POLE, SMALL, TOO_LONG, wait_until

pytestmark = pytest.mark.faults

LISTS_ITS_MODULES = """
import atexit, os, sys
place = os.environ.get("MODULES_OF_WORKERS")
if place and "rl_coach.rollout_worker" in " ".join(sys.orig_argv):
    atexit.register(lambda: open(place, "w").write(" ".join(sys.modules)))
"""


def processes_of(directory):
    """Pids of all processes that were started for a run in this directory, redis-server included."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            environment, works_in = (place / "environ").read_bytes(), os.readlink(place / "cwd")
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        # redis-server writes its title over its environment, and works in the run's temporary directory
        is_of_run = f"COACH_TEST={directory}".encode() in environment or works_in.startswith(f"{directory}/")
        if is_of_run and state != "Z":
            found.append(int(place.name))
    return found


def start(directory, *arguments, command=("-p", "CartPole_DQN", "-dc", "-ep", "."), **environment):
    command = [sys.executable, "-m", "rl_coach.coach", *command, *arguments]
    settings = {
        "PYTHONPATH": f"{directory}:{ROOT}",
        "COACH_TEST": str(directory),
        "TMPDIR": str(directory),
        "PYTHONUNBUFFERED": "1",
    }
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=directory, start_new_session=True,
        env={**os.environ, **settings, **environment},
    )  # fmt: skip


def read_until(process, text):
    lines = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError("".join(lines))


PLAYING = ("-lvl", SLOW_POLE, "-cp", SMALL)


def test_workers_import_no_training_framework_and_lines_are_for_programs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(LISTS_ITS_MODULES)
    short = SMALL.replace("10000000", "300")
    arguments = ("-cp", short, "--nocolor", "--dump_worker_logs", "--seed", "3")
    run = start(tmp_path, *arguments, MODULES_OF_WORKERS=str(tmp_path / "modules"))
    text = run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == 0, text
    modules = set((tmp_path / "modules").read_text().split())
    assert "rl_coach.memories.backend.streams" in modules and "onnxruntime" in modules
    assert not modules & {"tensorflow", "keras", "jax", "torch", "mxnet", "pandas"}
    assert "\x1b" not in text
    episode = r"> [\d:.-]{26} , Name=main_level/agent, Worker=0, Episode=\d+, Total reward=[\d.]+, Exploration=[\d.]+, "
    for phase in ("Heatup", "Training"):
        assert re.search(rf"^{phase}{episode}Steps=\d+, Training iteration=\d+$", text, re.MULTILINE), text
    assert "\n## simple_rl_graph: Starting heatup\n" in text
    (file,) = tmp_path.glob("*/*/distributed.json")
    totals = json.loads(file.read_text())
    assert totals["steps"] >= 350
    lines = [line.partition(" , ")[2] for line in text.splitlines() if line.startswith("Worker> ")]
    assert lines[0] == "Name=worker-0, State=joined"
    assert lines[-1] == f"Name=worker-0, State=ended, Steps={totals['stored'] + totals['discarded']}"
    assert list(tmp_path.glob("*/*/workers/worker-0.log"))
    assert processes_of(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=lambda one: str(one)
)
def test_a_signal_ends_all_processes_and_the_trainer_saves(tmp_path, number, code):
    run = start(tmp_path, *PLAYING)
    read_until(run, "compiling the training step")
    time.sleep(1)
    os.kill(run.pid, number)
    text = run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == code and "interrupted; saved" in text, text
    wait_until(lambda: not processes_of(tmp_path), "the end of all")


@pytest.mark.slow
def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    """Counters, books and memory are those of the checkpoint, and it ends where it was to end."""
    wanted = 1500
    settings = SMALL.replace("10000000", str(wanted))
    run = start(tmp_path, "-n", "2", "-lvl", SLOW_POLE, "-cp", settings, "--nocolor")
    read_until(run, "Training iteration=")
    read_until(run, "Training> ")
    os.kill(run.pid, signal.SIGINT)
    assert "coach --resume" in run.communicate(timeout=TOO_LONG)[0]
    (file,) = tmp_path.glob("*/*/distributed.json")
    before = json.loads(file.read_text())
    assert 50 < before["steps"] < wanted
    again = start(tmp_path, "--resume", str(file.parent), "--nocolor", command=())
    text = again.communicate(timeout=TOO_LONG)[0]
    assert again.returncode == 0, text
    after = json.loads(file.read_text())
    assert after["steps"] == after["stored"] >= wanted + 50
    assert {name: after["workers"][name] for name in before["workers"]} == before["workers"]
    assert len(after["workers"]) == 4, "two workers, started twice"
    (signals,) = file.parent.glob("worker_0*.csv")
    rows = list(csv.DictReader(signals.read_text().splitlines()))
    assert [int(row["Episode #"]) for row in rows] == list(range(1, len(rows) + 1))
    steps = [float(row["Total steps"]) for row in rows if row["Total steps"]]
    assert steps == sorted(steps) and steps[-1] > before["steps"] > steps[0]
    assert processes_of(tmp_path) == []


@pytest.mark.slow
def test_workers_that_wait_for_the_newest_policy_play_on_after_a_heatup_longer_than_a_training_period(tmp_path):
    """DQN learns after each step: after heatup nothing is left to be played before it does."""
    waits = "agent_params.algorithm.distributed_coach_synchronization_type=DistributedCoachSynchronizationType.SYNC"
    run = start(tmp_path, "-n", "2", "-cp", f"{SMALL.replace('10000000', '20')}; {waits}", "--nocolor")
    text = run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == 0, text
    (file,) = tmp_path.glob("*/*/distributed.json")
    assert json.loads(file.read_text())["steps"] >= 70


@pytest.mark.slow
def test_policies_go_through_a_shared_directory(tmp_path):
    (tmp_path / "run.ini").write_text(f"[coach]\ndata_store = nfs\nnfs_path = {tmp_path / 'shared'}\n")
    run = start(tmp_path, "-n", "2", "-dcp", "run.ini", *PLAYING, "--nocolor")
    lines = read_until(run, "Training> ")
    documents = {file.name for file in tmp_path.glob("shared/*/*/*")}
    os.kill(run.pid, signal.SIGINT)
    text = "".join(lines) + run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == 130, text
    assert documents >= {"policy.document", "blueprint.document"}, text
    record = json.loads(next(tmp_path.glob("*/*/experiment.json")).read_text())
    assert record["run"]["command_line"][-1] == "--nocolor" and "-dcp" in record["run"]["command_line"]
    assert record["arguments"]["distributed_coach_config_path"] == str(tmp_path / "run.ini")
    assert not list(tmp_path.glob("shared/*/*/*.document")), "they go with the run"


@pytest.mark.slow
def test_a_shared_directory_that_is_gone_does_not_fail_a_run_that_finishes(tmp_path):
    shared = tmp_path / "shared"
    (tmp_path / "run.ini").write_text(f"[coach]\ndata_store = nfs\nnfs_path = {shared}\n")
    run = start(tmp_path, "-dcp", "run.ini", "-lvl", SLOW_POLE, "-cp", SMALL.replace("10000000", "400"), "--nocolor")
    lines = read_until(run, "Training> ")
    shared.rename(tmp_path / "gone")
    shared.touch()
    text = "".join(lines) + run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == 0 and "Traceback" not in text, text
    assert "documents of this run could not be deleted from the data store: " in text
    (file,) = tmp_path.glob("*/*/distributed.json")
    assert json.loads(file.read_text())["steps"] >= 450


@pytest.mark.slow
def test_policies_go_through_a_bucket(tmp_path):
    """Of a stand-in for S3, an HTTP server on loopback."""
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
    )
    with StandInS3() as bucket:
        (tmp_path / "run.ini").write_text(
            f"[coach]\ndata_store = s3\ns3_end_point = {bucket.url}\ns3_bucket_name = {BUCKET}\n"
            f"s3_creds_file = {tmp_path / 'credentials'}\n"
        )
        run = start(tmp_path, "-n", "2", "-dcp", "run.ini", *PLAYING, "--nocolor", "-s", "1")
        read_until(run, "Training> ")
        os.kill(run.pid, signal.SIGINT)
        text = run.communicate(timeout=TOO_LONG)[0]
        assert run.returncode == 130, text
        assert any(one.startswith("GET") and one.endswith("/store/policy") for one in bucket.requests), text
        kept = {key.partition("/files/")[2] for key in bucket.objects}
        assert {"experiment.json", "distributed.json"} <= kept and any(".ckpt/" in key for key in kept)
        assert not any(key.endswith("/store/policy") for key in bucket.objects), "it goes with the run"


@pytest.mark.slow
def test_a_bucket_that_fails_at_the_end_changes_neither_the_exit_code_nor_the_totals(tmp_path):
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
    )
    with StandInS3() as bucket:
        (tmp_path / "run.ini").write_text(
            f"[coach]\ndata_store = s3\ns3_end_point = {bucket.url}\ns3_bucket_name = {BUCKET}\n"
            f"s3_creds_file = {tmp_path / 'credentials'}\n"
        )
        run = start(tmp_path, "-dcp", "run.ini", *PLAYING, "--nocolor")
        lines = read_until(run, "Training> ")
        bucket.fails = True
        os.kill(run.pid, signal.SIGINT)
        text = "".join(lines) + run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == 130 and "interrupted; saved" in text and "Traceback" not in text, text
    assert list(tmp_path.glob("*/*/distributed.json"))


@pytest.mark.slow
@pytest.mark.parametrize("failure", [(503, "SlowDown"), (403, "ExpiredToken")], ids=["server", "rights"])
def test_a_bucket_that_refuses_in_the_middle_is_waited_for(failure, tmp_path):
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
    )
    with StandInS3() as bucket:
        (tmp_path / "run.ini").write_text(
            f"[coach]\ndata_store = s3\ns3_end_point = {bucket.url}\ns3_bucket_name = {BUCKET}\n"
            f"s3_creds_file = {tmp_path / 'credentials'}\n"
        )
        run = start(tmp_path, "-dcp", "run.ini", *PLAYING, "--nocolor", "-s", "1")
        lines = read_until(run, "Training> ")
        bucket.failure, bucket.fails = failure, True
        lines += read_until(run, "Coach tries again at the next checkpoint")
        bucket.fails = False
        asked = len(bucket.requests)
        lines += read_until(run, "Training> ")
        wait_until(lambda: any(one.endswith("/store/policy") for one in bucket.requests[asked:]), "a policy")
        os.kill(run.pid, signal.SIGINT)
        text = "".join(lines) + run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == 130 and "interrupted; saved" in text and "Traceback" not in text, text


@pytest.mark.slow
def test_the_flags_of_coachs_orchestrator_start_the_parts_of_a_run(tmp_path):
    redis = EmbeddedRedis(tmp_path)
    redis.start()
    backend = {
        "store_type": "redispubsub", "redis_address": "127.0.0.1", "redis_port": redis.port, "channel": "mine",
        "orchestrator_params": {"redis_password": redis.password}, "orchestrator_type": "mine", "deployed": True,
    }  # fmt: skip
    store = {"store_type": "nfs", "orchestrator_type": "mine", "orchestrator_params": {},
             "checkpoint_dir": str(tmp_path / "shared")}  # fmt: skip
    flags = ("--memory_backend_params", json.dumps(backend), "--data_store_params", json.dumps(store))
    settings = ("-p", "CartPole_DQN", "-ep", ".", "-cp", SMALL.replace("10000000", "300"), "--nocolor")
    try:
        parts = [
            start(tmp_path, *settings, *flags, "--distributed_coach_run_type", part, command=())
            for part in ("trainer", "rollout-worker")
        ]
        texts = [part.communicate(timeout=TOO_LONG)[0] for part in parts]
    finally:
        redis.stop()
    assert [part.returncode for part in parts] == [0, 0], texts
    (file,) = tmp_path.glob("*/*/distributed.json")
    totals = json.loads(file.read_text())
    ((worker, account),) = totals["workers"].items()
    assert totals["steps"] == totals["stored"] >= 350
    assert f"{worker}: {account['stored'] + account['discarded']} steps acknowledged" in texts[1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--memory_backend_params", "{}"],
            "--memory_backend_params: only with --distributed_coach_run_type trainer or",
        ),
        (
            ["--distributed_coach_run_type", "trainer"],
            "--memory_backend_params is missing, which contains the address of Redis",
        ),
        (["--distributed_coach_run_type", "boss"], "invalid choice: 'boss'"),
        (["--distributed_coach_run_type", "trainer", "--memory_backend_params", "{"], "give a JSON object"),
        (["-dc", "-ew"], "-ew has no effect with -dc, because the trainer evaluates: leave out -ew"),
    ],
)
def test_flags_that_cannot_be_are_refused_in_a_line(flags, message, capsys):
    assert main(["-p", "CartPole_DQN", *flags]) == BAD_INPUT
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.mark.slow
def test_processes_do_not_outlive_a_killed_orchestrator_and_the_trainer_saves(tmp_path, monkeypatch):
    run = start(tmp_path, *PLAYING, "--nocolor")
    read_until(run, "Training> ")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with private_directory():
        passwords = list(tmp_path.glob("coach-distributed-*/redis-password"))
    assert len(passwords) == 1 and passwords[0].exists(), "a run that lives keeps its own"
    run.kill()
    text = run.stdout.read()
    wait_until(lambda: not processes_of(tmp_path), "the end of all")
    run.wait()
    run.stdout.close()
    assert "interrupted; saved" in text and list(tmp_path.glob("*/*/checkpoint/*.ckpt")), text
    assert list(tmp_path.glob("*/*/distributed.json"))
    assert passwords[0].exists(), "nobody was left to remove it"
    with private_directory() as mine:
        assert list(tmp_path.glob("coach-distributed-*")) == [mine]


@pytest.mark.slow
def test_one_display_shows_all_and_everything_ends_with_the_terminal(tmp_path):
    command = [sys.executable, "-m", "rl_coach.coach", "-p", "CartPole_DQN", "-dc", "-n", "2", "-ep", str(tmp_path)]
    pid, terminal = pty.fork()
    if pid == 0:
        settings = {
            "PYTHONPATH": str(ROOT),
            "COACH_TEST": str(tmp_path),
            "TMPDIR": str(tmp_path),
            "TERM": "xterm-256color",
        }
        os.execve(sys.executable, [*command, *PLAYING], {**os.environ, **settings})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    screen = pyte.Screen(200, 50)
    stream = pyte.ByteStream(screen)
    deadline = time.monotonic() + TOO_LONG
    wanted = ("worker-0", "worker-1", "lag", "discarded", "steps/s", "reward", "/s playing")
    while not all(text in "\n".join(screen.display) for text in wanted):
        assert time.monotonic() < deadline, "\n".join(screen.display)
        if select.select([terminal], [], [], 1.0)[0]:
            stream.feed(os.read(terminal, 1 << 16))
    os.close(terminal)
    os.waitpid(pid, 0)
    wait_until(lambda: not processes_of(tmp_path), "the end of all")
