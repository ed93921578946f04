"""A distributed run on one machine: a redis-server, a trainer and rollout workers as processes of their own."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Callable

from rl_coach.logger import screen
from rl_coach.memories.backend.connection import Connection, import_redis
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis
from rl_coach.orchestrators.private_directory import private_directory
from rl_coach.orchestrators.run_order import ORPHANED, ROLLOUT_PROGRAM, TRAINING_PROGRAM, RunOrder
from rl_coach.utilities.stop_signals import (
    SECONDS_OF_ONE_REQUEST,
    SIGNALS,
    held_back,
    leave_lost_terminal,
    stop_signals,
)
from rl_coach.utilities.system import handling

_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_TO_SAVE = 600.0
"""A trainer with a large memory, or one that uploads its checkpoint, takes its time."""
_SECONDS_FOR_THE_TRAINER = 10.0
"""The time that it has to end once it need not save."""
_SECONDS_FOR_WORKERS = 5.0
_SECONDS_TO_HEAR = 1.0
_SECONDS_TO_FOLLOW = 20.0
"""A worker that ended because the run is over was told a lie if its trainer runs for this time after it."""
_SECONDS_FOR_RESTARTS = 60.0
_MOST_RESTARTS = 5
"""A process that dies more often than this within ``_SECONDS_FOR_RESTARTS`` is not started again."""
_DONE, _BAD_INPUT, _FAILED = 0, 2, 1
WORKER_LOGS = "workers"
"""The directory of the workers' outputs in that of the experiment."""


def _find_death_signal(number: int = signal.SIGTERM) -> Callable[[], None] | None:
    """A function for a new process that has the system send it a signal when its parent dies; None where there is no
    such way. The signal comes once for each thread that the parent had."""
    if not sys.platform.startswith("linux"):
        return None
    # Looked up before the fork: between fork and exec, only calls that need no locks are safe.
    set_option, parent_death_signal = ctypes.CDLL(None, use_errno=True).prctl, 1

    def end_with_parent() -> None:
        set_option(parent_death_signal, number)

    return end_with_parent


class _Process:
    """A process of the run that is started again when it dies.

    :param name: what it is called in messages
    :param command: its command line
    :param log: the file that its output goes to; None shows it
    :param death_signal: sent to it when this process dies
    :param holds_back: it hears signals by ``stop_signals``, and none before it listens
    """

    def __init__(
        self,
        name: str,
        command: list[str],
        log: pathlib.Path | None,
        environment: dict[str, str],
        death_signal: int = signal.SIGTERM,
        holds_back: bool = False,
    ):
        self.name, self._command, self._log = name, command, log
        self._holding = held_back if holds_back else contextlib.nullcontext
        self._environment = {**os.environ, **environment}
        self._starts: collections.deque[float] = collections.deque(maxlen=_MOST_RESTARTS + 1)
        self._before_start = _find_death_signal(death_signal)
        self._gone_at: float | None = None
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start it, anew if it ran before."""
        self._starts.append(time.monotonic())
        self._gone_at = None
        with self._holding():
            if self._log is None:
                self._start(None)
                return
            with open(self._log, "ab") as log:
                self._start(log)

    def _start(self, output: object) -> None:
        # a session of its own: Ctrl-C and the end of the terminal reach the orchestrator, which ends all in order
        self.process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self._environment,  # type: ignore[call-overload]
            start_new_session=True, preexec_fn=self._before_start,
        )  # fmt: skip

    @property
    def code(self) -> int | None:
        """The exit code, None while it runs."""
        return None if self.process is None else self.process.poll()

    @property
    def dies_too_often(self) -> bool:
        """True if it is of no use to start it again."""
        starts = self._starts
        return len(starts) == starts.maxlen and time.monotonic() - starts[0] < _SECONDS_FOR_RESTARTS

    def is_gone_for(self, seconds: float) -> bool:
        """True if its end was noticed, by this question, at least so long ago."""
        now = time.monotonic()
        if self._gone_at is None:
            self._gone_at = now
        return now - self._gone_at >= seconds

    def signal(self, number: int) -> None:
        """Send it a signal if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def wait(self, seconds: float) -> None:
        """Give it time to end, then kill it."""
        if self.process is None:
            return
        try:
            self.process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def last_words(self) -> str:
        """The last line of its output."""
        if self._log is None or not self._log.exists():
            return ""
        lines = self._log.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "").removeprefix("coach: ")


def _way_of_ending(code: int) -> str:
    if code == _DONE:
        return "ended, though its trainer goes on"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    names = {128 + one: one.name for one in signal.Signals}  # a process that listens to it, as a shell reports it
    return f"was ended by {names[code]}" if code in names else f"ended with exit code {code}"


class LocalOrchestrator:
    """Orchestrator that starts the processes of a run on this machine, restarts those that die, and ends all when it
    ends.

    :param order: the run's order; without the address of Redis if the run starts its own Redis
    :param keeps_logs: keep the workers' output in the experiment's directory
    """

    def __init__(self, order: RunOrder, keeps_logs: bool = False):
        import_redis()
        self._order = order
        self._keeps_logs = keeps_logs
        self._cleanup = contextlib.ExitStack()
        self._directory = self._cleanup.enter_context(private_directory())
        self._redis = None if order.redis_url else EmbeddedRedis(self._directory, _find_death_signal())
        self._trainer: _Process | None = None
        self._workers: list[_Process] = []
        self._asked: int | None = None
        self._asked_at = 0.0
        self._is_in_haste = False
        self._trouble = ""

    def run(self) -> int:
        """Run to the end. :return: the trainer's exit code"""
        stop_signals.stop_if_asked()
        with handling(SIGNALS, self._ask):
            try:
                self._start()
                code = self._watch()
            finally:
                self._end()
        # last, so that it is no signal of this process to the trainer that a user reads of
        if self._trouble:
            screen.error(self._trouble, crash=False)
        return code

    def _ask(self, number: int, frame: FrameType | None) -> None:
        # Only flags: a handler that raised could interrupt the start of a process that nobody would end later.
        now = time.monotonic()
        if self._asked is None:
            self._asked, self._asked_at = number, now
        elif signal.SIGHUP not in (number, self._asked) and now - self._asked_at >= SECONDS_OF_ONE_REQUEST:
            self._is_in_haste = True

    def _start(self) -> None:
        order = self._order
        if self._redis is not None:
            self._redis.start()
            order = dataclasses.replace(
                order, redis_url=self._redis.url, redis_password_file=str(self._redis.password_file)
            )
        connection = Connection(order.redis_url, order.password())
        connection.check(order.limits.connect_seconds)
        connection.close()
        file = self._directory / "order.json"
        order.write(file)
        command = [sys.executable, "-m"]
        training = [*command, TRAINING_PROGRAM, "--order", str(file)]
        self._trainer = _Process("trainer", training, None, {}, death_signal=ORPHANED, holds_back=True)
        # Workers act with small networks: threads of several workers would only compete for the same cores.
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        for index in range(order.num_workers):
            name = f"worker-{index}"
            arguments = [*command, ROLLOUT_PROGRAM, "--order", str(file), "--name", name]
            self._workers.append(_Process(name, arguments, self._directory / f"{name}.log", one_thread))
        for process in (self._trainer, *self._workers):
            process.start()

    def _watch(self) -> int:
        """Wait for the end of the trainer, and start again what dies meanwhile. :return: the exit code"""
        assert self._trainer is not None
        while self._asked is None:
            code = self._trainer.code
            if code is not None and (code >= 0 or not self._starts_again(self._trainer)):
                return code if code >= 0 else _FAILED
            for worker in self._workers:
                trouble = self._trouble_of(worker)
                if trouble is not None:
                    return trouble
            redis = self._redis
            if redis is not None and redis.process is not None and redis.process.poll() is not None:
                screen.warning("redis-server has ended: it is restarted, and workers send unacknowledged chunks again")
                redis.start()
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return self._stop_trainer()

    def _trouble_of(self, worker: _Process) -> int | None:
        """Start a worker again if it has ended, unless the trainer has told it that the run is over.

        :return: an exit code if that is of no use
        """
        code = worker.code
        if code is None or (code == _DONE and not worker.is_gone_for(_SECONDS_TO_FOLLOW)):
            return None
        if code == _BAD_INPUT or not self._starts_again(worker):
            self._trouble = f"{worker.name} ended: {worker.last_words()}"
            return code if code > 0 else _FAILED
        return None

    @staticmethod
    def _starts_again(process: _Process) -> bool:
        how = _way_of_ending(process.code or 0)
        if process.code == _FAILED:
            how += f" ({process.last_words()})"
        if process.dies_too_often:
            screen.warning(f"{process.name} {how} {_MOST_RESTARTS + 1} times within a minute: it is not restarted")
            return False
        screen.warning(f"{process.name} {how}: it is restarted")
        process.start()
        return True

    def _stop_trainer(self) -> int:
        """Have the trainer save its state and end, because this process was asked to. :return: its exit code"""
        assert self._trainer is not None and self._asked is not None
        if self._asked == signal.SIGHUP:
            leave_lost_terminal()
        screen.warning("stopping: the trainer saves a checkpoint; a second Ctrl-C ends it without one")
        self._let_trainer_end(self._asked)
        code = self._trainer.code
        return code if code is not None and code > 0 else 128 + self._asked

    def _let_trainer_end(self, number: int) -> None:
        """Have the trainer save its state and end; a second request to end this process ends it without that.

        :param number: the signal that tells it
        """
        assert self._trainer is not None
        self._trainer.signal(number)
        deadline = time.monotonic() + _SECONDS_TO_SAVE
        while self._trainer.code is None and not self._is_in_haste and time.monotonic() < deadline:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        self._trainer.signal(number)  # the second one, at which it does not wait for the end of a step
        self._trainer.wait(_SECONDS_FOR_THE_TRAINER)

    def _end(self) -> None:
        # The trainer first, while Redis and the workers still run: it saves, and tells workers that the run is over.
        if self._trainer is not None:
            self._let_trainer_end(signal.SIGTERM)
        self._let_workers_hear()
        for worker in self._workers:
            worker.signal(signal.SIGTERM)
        deadline = time.monotonic() + _SECONDS_FOR_WORKERS
        for worker in self._workers:
            worker.wait(deadline - time.monotonic())
        if self._redis is not None:
            self._redis.stop()
        if self._keeps_logs:
            self._keep_logs()
        self._cleanup.close()

    def _let_workers_hear(self) -> None:
        """Give workers the time to hear from the trainer that the run is over."""
        deadline = time.monotonic() + _SECONDS_TO_HEAR
        while time.monotonic() < deadline and any(worker.code is None for worker in self._workers):
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _keep_logs(self) -> None:
        place = pathlib.Path(self._order.experiment_path)
        if not place.is_dir():
            return
        try:
            (place / WORKER_LOGS).mkdir(exist_ok=True)
            for log in self._directory.glob("worker-*.log"):
                shutil.copy(log, place / WORKER_LOGS / log.name)
        except OSError as error:
            screen.warning(f"the workers' logs cannot be written to '{place}': {error.strerror}")
