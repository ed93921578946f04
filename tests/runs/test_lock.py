"""One process at a time writes into an experiment's directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from rl_coach.coach import BAD_INPUT, DONE, main
from rl_coach.runs.lock import LOCK_FILE, lock, unlock
from rl_coach.utils import CoachError
from tests.zoo.presets import RECORDER

HOLDER = """\
import os, sys, time
from rl_coach.runs.lock import lock
lock(sys.argv[1])
child = os.fork()
if child == 0:
    print("held", os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds ``tmp_path``, and the number of a child that it has forked since."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline().split()[1])
    yield process
    process.kill()
    process.wait()
    os.kill(child, signal.SIGKILL)


def test_a_directory_that_another_process_writes_is_refused(holder, tmp_path):
    with pytest.raises(CoachError, match=rf"another run \(process {holder.pid}\) writes to .*: stop that run first"):
        lock(tmp_path)


def test_a_process_that_is_killed_holds_nothing_and_neither_do_its_children(holder, tmp_path):
    holder.kill()
    holder.wait()
    lock(tmp_path)
    assert (tmp_path / LOCK_FILE).read_text() == str(os.getpid())
    unlock(tmp_path)


def test_one_process_may_hold_a_directory_twice(tmp_path):
    lock(tmp_path)
    lock(tmp_path)
    unlock(tmp_path)
    unlock(tmp_path)


def test_two_resumes_of_one_experiment_at_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recorder.py").write_text(RECORDER)
    assert main(["-p", "recorder.py", "-e", "mine"]) == DONE
    (directory,) = (tmp_path / "experiments" / "mine").iterdir()
    before = (directory / "experiment.json").read_text()
    command = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline().split()[1])
        assert main(["--resume", str(directory)]) == BAD_INPUT
        error = capsys.readouterr().err
        os.kill(child, signal.SIGKILL)
        process.kill()
    assert f"process {process.pid}" in error and error.count("\n") == 1
    assert (directory / "experiment.json").read_text() == before
    assert main(["--resume", str(directory)]) == DONE
