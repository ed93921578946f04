"""Ctrl-C, SIGTERM and a closed terminal at many moments of a run, from its first import to its training."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Callable

import pytest

from tests.faults.processes import ROOT, TOO_LONG, _groups_alive
from tests.terminal import terminal

MOMENTS = 20
SECONDS_BETWEEN_MOMENTS = 0.4
WAYS = {
    "one process": ["-p", "CartPole_A3C"],
    "-n 2": ["-p", "CartPole_A3C", "-n", "2"],
    "-dc": ["-p", "CartPole_ClippedPPO", "-dc", "-n", "1"],
    "--seeds": ["-p", "CartPole_A3C", "--seeds", "2"],
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def hears_signals(pid: int) -> bool:
    """Whether a process has set a handler for SIGTERM, which Python itself does not."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return bool(caught & (1 << (signal.SIGTERM - 1)))


def wait_until(is_so: Callable[[], bool], seconds: float = TOO_LONG) -> None:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)


def statuses(directory: pathlib.Path) -> list[dict]:
    """By ``os.walk``, which passes over a directory that goes while it looks: a run at work renames its checkpoints."""
    files = [pathlib.Path(place, "status.json") for place, _, names in os.walk(directory) if "status.json" in names]
    return [json.loads(file.read_text()) for file in files]


def has_trained(directory: pathlib.Path) -> bool:
    return any((status.get("progress") or {}).get("updates") for status in statuses(directory))


def _hear_sighup() -> None:
    """Even if these tests run under ``nohup``."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Stopped:
    """A run that is stopped some seconds after it has begun to hear signals.

    :param number: SIGINT goes to the whole group, as a terminal sends it; the others to the process
    """

    def __init__(self, directory: pathlib.Path, flags: list[str], number: int, seconds: float):
        output = directory / "output.txt"
        with open(output, "wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rl_coach", *flags, "-ep", str(directory), "-e", "run", "-s", "3600"],
                stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=directory, start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}, preexec_fn=_hear_sighup,
            )  # fmt: skip
        try:
            wait_until(lambda: hears_signals(self.process.pid))
            wait_until(lambda: has_trained(directory), seconds)
            self.had_trained = has_trained(directory)
            (os.killpg if number == signal.SIGINT else os.kill)(self.process.pid, number)
            self.code = self.process.wait(TOO_LONG)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
        self.text = output.read_text(errors="replace")
        logs = [file.read_text(errors="replace") for file in directory.rglob("*.log")]
        self.all_texts = "\n".join([self.text, *logs])


def check(run: Stopped, directory: pathlib.Path, number: int) -> None:
    assert run.code == 128 + number, run.all_texts
    said = "coach: stopped" if number == signal.SIGINT else f"coach: stopped by {signal.Signals(number).name}"
    of_a_group = "warning: stopping: each run that trains saves a checkpoint; a second Ctrl-C ends the runs without one"
    lines = [line for line in run.text.splitlines() if line in (said, of_a_group)]
    assert lines in ([said], [of_a_group]), run.all_texts
    for word in ("Traceback", "Exception ignored", "Error"):
        assert word not in run.all_texts, run.all_texts
    checkpoints = list((directory / "run").rglob("*.ckpt")) if (directory / "run").exists() else []
    assert checkpoints or not run.had_trained, run.all_texts
    assert all(status["state"] == "stopped" for status in statuses(directory)), statuses(directory)
    wait_until(lambda: run.process.pid not in _groups_alive())
    assert run.process.pid not in _groups_alive()


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(MOMENTS))
@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_is_stopped_at_any_moment(tmp_path, way, framework, moment):
    number = SIGNALS[moment % len(SIGNALS)]
    run = Stopped(tmp_path, [*WAYS[way], "-f", framework], number, moment * SECONDS_BETWEEN_MOMENTS)
    check(run, tmp_path, number)


def test_a_run_that_has_begun_to_train_is_kept_when_it_is_hung_up(tmp_path):
    run = Stopped(tmp_path, [*WAYS["one process"], "-f", "jax"], signal.SIGHUP, TOO_LONG)
    check(run, tmp_path, signal.SIGHUP)
    assert run.text.splitlines()[-1] == "coach: stopped by SIGHUP"


def test_a_run_whose_terminal_is_closed_saves_a_checkpoint(tmp_path):
    """As if the connection to another machine was lost: the terminal can no longer be written to."""
    command = [sys.executable, "-m", "rl_coach", "-p", "CartPole_A3C", "-f", "jax", "-e", "run"]
    with terminal(command, 100, tmp_path, PYTHONPATH=str(ROOT)) as shown:
        assert shown.watch(TOO_LONG, until="evaluation "), shown.lines()
        shown.hang_up()
        assert shown.return_code == 129
    assert list(tmp_path.glob("experiments/run/*/checkpoint/*.ckpt"))
    assert [status["state"] for status in statuses(tmp_path)] == ["stopped"]


def test_timeout_sends_a_signal_twice_and_the_run_saves_a_checkpoint(tmp_path):
    program = ["timeout", "-s", "INT", str(TOO_LONG), sys.executable, "-m", "rl_coach"]
    flags = ["-p", "CartPole_A3C", "-f", "jax", "-e", "run", "-cp", "improve_steps=EnvironmentSteps(10000000)"]
    with open(tmp_path / "errors.txt", "w") as errors:
        process = subprocess.Popen(
            [*program, *flags], stdout=subprocess.DEVNULL, stderr=errors, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    wait_until(lambda: has_trained(tmp_path))
    process.send_signal(signal.SIGALRM)  # of timeout's own clock
    assert process.wait(TOO_LONG) == 124  # of timeout
    said = (tmp_path / "errors.txt").read_text()
    assert said.endswith("coach: stopped\n") and "Traceback" not in said
    assert list(tmp_path.rglob("*.ckpt"))


OWN_PROGRAM = """
import signal, sys
from rl_coach.coach import CoachInterface
python = signal.getsignal(signal.SIGINT)
coach = CoachInterface(preset="CartPole_A3C", framework="jax", experiment_name="run")
assert signal.getsignal(signal.SIGINT) is python is signal.default_int_handler
try:
    coach.graph_manager.improve()
except KeyboardInterrupt:
    print("the program goes on", signal.getsignal(signal.SIGINT) is python)
"""


def test_a_program_that_calls_improve_gets_pythons_keyboard_interrupt(tmp_path):
    (tmp_path / "own.py").write_text(OWN_PROGRAM)
    with terminal([sys.executable, "own.py"], 100, tmp_path, PYTHONPATH=str(ROOT)) as shown:
        assert shown.watch(TOO_LONG, until="evaluation "), shown.lines()
        shown.type("\x03")
        shown.watch(TOO_LONG)
        assert shown.return_code == 0, shown.lines()
        assert shown.lines()[-1] == "the program goes on True" and "interrupted; saved" in "\n".join(shown.lines())


@pytest.mark.slow
@pytest.mark.parametrize("way", ["one process", "-n 2"])
def test_a_signal_to_a_run_that_has_ended_changes_nothing(tmp_path, way):
    flags = [*WAYS[way], "-f", "jax", "-e", "run", "-cp", "improve_steps=EnvironmentSteps(100)"]
    with subprocess.Popen(
        [sys.executable, "-m", "rl_coach", *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}, cwd=tmp_path, start_new_session=True,
        preexec_fn=_hear_sighup,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert any(line.startswith("look at it: ") for line in process.stdout), "all but the exit is done"
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGHUP)
            time.sleep(0.01)
        rest = process.stdout.read()
    assert process.returncode == 0 and rest == "", rest
