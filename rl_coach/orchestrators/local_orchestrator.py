"""A distributed run on one machine: a redis-server, a trainer and rollout workers, each in its own process."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import signal
import sys
import time
from types import FrameType

from rl_coach.logger import screen
from rl_coach.memories.backend.connection import Connection, import_redis
from rl_coach.memories.backend.streams import stored_by_sender
from rl_coach.orchestrators.embedded_redis import LOOPBACK, EmbeddedRedis
from rl_coach.orchestrators.private_directory import private_directory
from rl_coach.orchestrators.run_order import ORPHANED, ROLLOUT_PROGRAM, TRAINING_PROGRAM, RunOrder
from rl_coach.orchestrators.watched_process import (
    BAD_INPUT,
    DONE,
    FAILED,
    LocalProcess,
    WatchedProcess,
    find_death_signal,
)
from rl_coach.utilities.stop_signals import SECONDS_OF_ONE_REQUEST, SIGNALS, leave_lost_terminal, stop_signals
from rl_coach.utilities.system import handling

_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_TO_SAVE = 600.0
"""The longest time for the trainer to save. A large memory, or the upload of a checkpoint, takes long."""
_SECONDS_FOR_THE_TRAINER = 10.0
"""The longest time for the trainer to end without saving."""
_SECONDS_FOR_WORKERS = 5.0
_SECONDS_TO_HEAR = 1.0
_SECONDS_TO_FOLLOW = 20.0
"""A worker that has ended without an error is restarted if the trainer still runs after this time."""
WORKER_LOGS = "workers"
"""The directory of the workers' outputs, in the experiment directory."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment variables for workers with one thread. Workers act with small networks, and several threads in each
worker would compete for the same cores."""


class LocalOrchestrator:
    """Runs a distributed run on this machine: starts its processes, restarts processes that die, and ends all processes
    at the end.

    :param order: the settings of the run; without the address of Redis if the run starts its own Redis
    :param keeps_logs: True writes the workers' output to the experiment's directory
    :param host: the address that the run's own Redis listens on
    """

    def __init__(self, order: RunOrder, keeps_logs: bool = False, host: str = LOOPBACK):
        import_redis()
        self._order = order
        self._keeps_logs = keeps_logs
        self._cleanup = contextlib.ExitStack()
        self._directory = self._cleanup.enter_context(private_directory())
        self._redis = None if order.redis_url else EmbeddedRedis(self._directory, find_death_signal(), host)
        self._connection: Connection | None = None
        self._trainer: LocalProcess | None = None
        self._trainer_environment: dict[str, str] = {}
        self._workers: list[WatchedProcess] = []
        self._asked: int | None = None
        self._asked_at = 0.0
        self._is_in_haste = False
        self._trouble = ""

    def run(self) -> int:
        """Run until the trainer ends. :return: the trainer's exit code"""
        stop_signals.stop_if_asked()
        with handling(SIGNALS, self._ask):
            try:
                self._start()
                code = self._watch()
            finally:
                self._end()
        # print the error last, after the messages about the end of the trainer
        if self._trouble:
            screen.error(self._trouble, crash=False)
        return code

    def _ask(self, number: int, frame: FrameType | None) -> None:
        # Only set flags: an exception here could interrupt the start of a process. This process would never be ended.
        now = time.monotonic()
        if self._asked is None:
            self._asked, self._asked_at = number, now
        # A closed terminal sends SIGHUP several times, and `timeout` sends its signal twice (to the process and to its
        # group). These signals are not a second request.
        elif signal.SIGHUP not in (number, self._asked) and now - self._asked_at >= SECONDS_OF_ONE_REQUEST:
            self._is_in_haste = True

    def _start(self) -> None:
        order = self._order
        if self._redis is not None:
            self._redis.start()
            order = dataclasses.replace(
                order, redis_url=self._redis.url, redis_password_file=str(self._redis.password_file)
            )
        self._connection = Connection(order.redis_url, order.password())
        self._cleanup.callback(self._connection.close)
        # Check before any process starts: a wrong address then causes one error, and not an error in each process.
        self._connection.check(order.limits.connect_seconds)
        file = self._directory / "order.json"
        order.write(file)
        training = [sys.executable, "-m", TRAINING_PROGRAM, "--order", str(file)]
        self._trainer = LocalProcess(
            "trainer", training, None, self._trainer_environment, death_signal=ORPHANED, holds_back=True
        )
        for index in range(order.num_workers):
            self._workers.append(self._worker(f"worker-{index}", file))
        for process in (self._trainer, *self._workers):
            process.start()

    def _worker(self, name: str, order: pathlib.Path) -> WatchedProcess:
        command = [sys.executable, "-m", ROLLOUT_PROGRAM, "--order", str(order), "--name", name]
        return LocalProcess(name, command, self._directory / f"{name}.log", ONE_THREAD)

    def _watch(self) -> int:
        """Wait for the end of the trainer, and restart other processes that die. :return: the exit code"""
        assert self._trainer is not None
        while self._asked is None:
            code = self._trainer.code
            # Restart the trainer only if a signal has killed it (code below 0).
            if code is not None and (code >= 0 or not self._starts_again(self._trainer)):
                return code if code >= 0 else FAILED
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

    def _trouble_of(self, worker: WatchedProcess) -> int | None:
        """Restart a worker that has ended, unless the trainer has said that the run is over.

        :return: an exit code if the run must end; None to continue
        """
        code = worker.code
        # At the end of a run, the workers may end some seconds before the trainer.
        if code is None or (code == DONE and not worker.is_gone_for(_SECONDS_TO_FOLLOW)):
            return None
        # A restart cannot help if the settings are wrong.
        if code == BAD_INPUT or not self._starts_again(worker, f"{worker.name}."):
            self._trouble = f"{worker.name} ended: {worker.last_words()}"
            return code if code > 0 else FAILED
        return None

    def _starts_again(self, process: WatchedProcess, senders: str = "") -> bool:
        """Restart a process. :return: False if the process has failed too often

        :param senders: the prefix of the sender's name in the process's chunks; empty for the trainer
        """
        assert self._connection is not None
        stored = stored_by_sender(self._connection, self._order.run)
        if stored is not None:
            process.note_stored({name: steps for name, steps in stored.items() if name.startswith(senders)})
        return process.starts_again()

    def _stop_trainer(self) -> int:
        """Let the trainer save its state and end, after a signal to this process. :return: its exit code"""
        assert self._trainer is not None and self._asked is not None
        if self._asked == signal.SIGHUP:
            leave_lost_terminal()
        screen.warning("stopping: the trainer saves a checkpoint and ends; a second Ctrl-C ends it without saving")
        self._let_trainer_end(self._asked)
        code = self._trainer.code
        return code if code is not None and code > 0 else 128 + self._asked

    def _let_trainer_end(self, number: int) -> None:
        """Let the trainer save its state and end. A second signal to this process ends the trainer without saving.

        :param number: the signal to send
        """
        assert self._trainer is not None
        self._trainer.signal(number)
        deadline = time.monotonic() + _SECONDS_TO_SAVE
        while self._trainer.code is None and not self._is_in_haste and time.monotonic() < deadline:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        self._trainer.signal(number)  # a second signal makes the trainer end in the middle of a step
        self._trainer.wait(_SECONDS_FOR_THE_TRAINER)

    def _end(self) -> None:
        # End the trainer first, while Redis and the workers still run, because the trainer saves and ends the workers.
        if self._trainer is not None:
            self._let_trainer_end(signal.SIGTERM)
        self._let_workers_hear()
        for worker in self._workers:
            worker.signal(signal.SIGTERM)
        # One deadline for all workers, because all workers end at the same time.
        deadline = time.monotonic() + _SECONDS_FOR_WORKERS
        for worker in self._workers:
            worker.wait(deadline - time.monotonic())
        if self._redis is not None:  # end Redis last, because workers need it until they end
            self._redis.stop()
        if self._keeps_logs:
            self._keep_logs()
        self._cleanup.close()

    def _let_workers_hear(self) -> None:
        """Wait until the workers have received the end of the run from the trainer."""
        deadline = time.monotonic() + _SECONDS_TO_HEAR
        while time.monotonic() < deadline and any(worker.code is None for worker in self._workers):
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _keep_logs(self) -> None:
        place = pathlib.Path(self._order.experiment_path)
        if not place.is_dir():
            return
        try:
            (place / WORKER_LOGS).mkdir(exist_ok=True)
            for worker in self._workers:
                (place / WORKER_LOGS / f"{worker.name}.log").write_text(worker.log())
        except OSError as error:
            screen.warning(f"the workers' logs cannot be written to '{place}': {error.strerror}")
