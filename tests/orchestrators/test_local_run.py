"""``coach -dc`` as a person starts it: what is shown, how it ends, and what its workers are."""

from __future__ import annotations

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
import termios
import time

import pyte
import pytest

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
            environment = (place / "environ").read_bytes()
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if f"COACH_TEST={directory}".encode() in environment and state != "Z":
            found.append(int(place.name))
    return found


def start(directory, *arguments, **environment):
    command = [sys.executable, "-m", "rl_coach.coach", "-p", "CartPole_DQN", "-dc", "-ep", str(directory), *arguments]
    settings = {"PYTHONPATH": f"{directory}:{ROOT}", "COACH_TEST": str(directory), "PYTHONUNBUFFERED": "1"}
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
    (totals,) = tmp_path.glob("*/*/distributed.json")
    assert json.loads(totals.read_text())["steps"] >= 350
    assert list(tmp_path.glob("*/*/workers/worker-0.log"))
    assert processes_of(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)], ids=lambda one: str(one)
)
def test_a_signal_ends_all_processes_and_the_trainer_saves(tmp_path, number, code):
    run = start(tmp_path, *PLAYING)
    read_until(run, "compiling the training step")
    time.sleep(1)
    os.kill(run.pid, number)
    text = run.communicate(timeout=TOO_LONG)[0]
    assert run.returncode == code and "interrupted; saved" in text, text
    wait_until(lambda: not processes_of(tmp_path), "the end of all", 5)


@pytest.mark.slow
def test_processes_do_not_outlive_a_killed_orchestrator(tmp_path):
    run = start(tmp_path, *PLAYING)
    read_until(run, "building the graph")
    assert len(processes_of(tmp_path)) >= 4
    run.kill()
    wait_until(lambda: not processes_of(tmp_path), "the end of all", 30)
    run.wait()
    run.stdout.close()


@pytest.mark.slow
def test_one_display_shows_all_and_everything_ends_with_the_terminal(tmp_path):
    command = [sys.executable, "-m", "rl_coach.coach", "-p", "CartPole_DQN", "-dc", "-n", "2", "-ep", str(tmp_path)]
    pid, terminal = pty.fork()
    if pid == 0:
        settings = {"PYTHONPATH": str(ROOT), "COACH_TEST": str(tmp_path), "TERM": "xterm-256color"}
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
    wait_until(lambda: not processes_of(tmp_path), "the end of all", 30)
