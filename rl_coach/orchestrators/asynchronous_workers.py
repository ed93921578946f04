"""Starts, shows and ends several worker processes of one machine, which train one agent on shared weights."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Callable

import numpy as np

from rl_coach.agents.core.overrides import is_replaced
from rl_coach.architectures.shared_networks import CAN_SHARE, SharedFile
from rl_coach.base_parameters import TaskParameters
from rl_coach.logger import screen
from rl_coach.orchestrators.asynchronous_worker import WorkerPlan, work
from rl_coach.orchestrators.background_sender import BackgroundSender
from rl_coach.orchestrators.worker_messages import (
    Attach,
    Attached,
    Built,
    Ended,
    Failed,
    Line,
    Report,
    Statistics,
    Stop,
)
from rl_coach.runs.live_region import Fields
from rl_coach.runs.progress import SECONDS_BETWEEN_REDRAWS, Rate, display_on
from rl_coach.utilities.stop_signals import held_back, leave_lost_terminal, stop_signals
from rl_coach.utils import CoachError, TrainingError, short_dynamic_import

_SECONDS_TO_DIE = 5.0
_IN_MEMORY = "/dev/shm"  # files there use memory, not disk
_FIRST = 0  # the worker that restores and writes checkpoints


def trains_asynchronously(graph_manager: Any) -> bool:
    """True if several workers of one machine can train the graph's agent on shared weights."""
    agent = getattr(graph_manager, "agent_params", None)
    if agent is None or hasattr(graph_manager, "agents_params"):  # several agents
        return False
    kind = short_dynamic_import(agent.path)
    return bool(kind.trains_asynchronously and not is_replaced(kind, "make_update_rule"))


@dataclass
class _Running:
    """A worker that has been started.

    :param name: the worker's name in printed lines
    :param process: the worker's process
    :param connection: the pipe to the worker
    :ivar steps: the worker's steps per second
    :ivar report: the newest report
    :ivar has_attached: True if the worker uses the shared networks
    :ivar has_ended: True if the worker has reported its end
    :ivar is_over: True if the worker's process has ended
    """

    name: str
    process: Any
    connection: Connection
    steps: Rate = field(default_factory=Rate)
    report: Report | None = None
    has_attached: bool = False
    has_ended: bool = False
    is_over: bool = False

    def __post_init__(self) -> None:
        self._sender = BackgroundSender(self.connection)

    def tell(self, message: Any) -> None:
        """Send a message without waiting until the worker reads it. A message to a dead worker is ignored."""
        self._sender.post(message)

    def part(self) -> None:
        """Close the pipe after the end of the process."""
        self._sender.close()
        self.connection.close()


class AsynchronousWorkers:
    """A run with several workers. Each worker has the graph of the preset in a separate process.

    :param num_workers: number of workers that train
    :param is_evaluated_apart: True starts one more worker, which only evaluates
    :param seed: the run's seed; None draws a seed
    :param make_graph: makes the graph manager; called in each worker's process
    :param make_task: makes the task parameters, as for a run in one process; called in each worker's process
    :ivar seed: the run's seed
    """

    def __init__(
        self,
        num_workers: int,
        is_evaluated_apart: bool,
        seed: int | None,
        make_graph: Callable[[], Any],
        make_task: Callable[[Any], TaskParameters],
    ):
        self.seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        self._num_training = num_workers
        self._plans = [
            WorkerPlan(index, num_workers, is_evaluated_apart, self.seed, make_graph, make_task)
            for index in range(num_workers + is_evaluated_apart)
        ]
        self._receivers: dict[type, Callable[[int, Any], None]] = {
            Built: self._is_built, Attached: self._is_attached, Statistics: self._relay, Line: self._print_line,
            Report: self._take_report, Ended: self._has_ended, Failed: self._has_failed,
        }  # fmt: skip
        self._running: list[_Running] = []
        self._path = ""
        self._file: SharedFile | None = None
        self._filters: dict[str, Any] = {}
        self._run_began = time.monotonic()
        self._stop: Stop | None = None
        self._is_stopping = False
        self._failure: Exception | None = None
        self._display: Any = None
        self._time = Rate()
        self._began = time.monotonic()

    def run(self) -> None:
        """Start the workers, show their progress, and return after all workers have ended.

        :raises CoachError: if a worker has refused the settings
        :raises TrainingError: if a worker failed, or the first worker died
        :raises KeyboardInterrupt: if the user has pressed Ctrl-C; the first worker has saved a checkpoint
        :raises Terminated: if SIGTERM or SIGHUP was received; the first worker has saved a checkpoint
        """
        if not CAN_SHARE:
            raise CoachError(
                "workers that share weights (-n) need Linux or macOS: leave out -n, and act in several copies of the "
                "environment: -cp 'env_params.num_environments = 4'"
            )
        with stop_signals.listening():
            self._run()

    def _run(self) -> None:
        try:
            self._start()
            self._display = display_on(screen)
            while any(not worker.is_over for worker in self._running):
                self._look()
        finally:
            if self._display is not None:
                self._display.close()
            self._clear_up()
        self._print_summary()
        stop_signals.stop_if_asked()
        if self._failure is not None:
            raise self._failure

    # processes

    def _start(self) -> None:
        resource_tracker.ensure_running()  # start it now, because starting it unblocks signals
        context = multiprocessing.get_context("spawn")  # training frameworks do not survive a fork
        for plan in self._plans:
            here, there = context.Pipe()
            # daemonic: Python ends it with this process
            process = context.Process(target=work, args=(plan, there), daemon=True)
            with held_back():
                process.start()
            # With the parent's copy closed, the pipe ends when the worker dies.
            there.close()
            name = f"worker {plan.index}" if plan.trains else f"worker {plan.index} (evaluation)"
            self._running.append(_Running(name, process, here))

    def _look(self) -> None:
        """Wait a short time for messages of the workers, process the messages, and find workers that have ended."""
        if stop_signals.asked is not None and not self._is_stopping:
            self._stop_all()
        alive = [worker for worker in self._running if not worker.is_over]
        # the sentinels too, because a worker that was killed sends no message
        wait([*(w.connection for w in alive), *(w.process.sentinel for w in alive)], SECONDS_BETWEEN_REDRAWS)
        for index, worker in enumerate(self._running):
            if not worker.is_over:
                # Check before reading: the pipe of a dead worker may still contain its last messages.
                is_dead = worker.process.exitcode is not None
                self._hear(index, worker)
                if is_dead:
                    self._bury(index, worker)
        self._display.show(self._fields())

    def _hear(self, index: int, worker: _Running) -> None:
        # A broken pipe is no error here: ``_look`` reads the exit code.
        with contextlib.suppress(EOFError, ConnectionError):
            while worker.connection.poll():
                message = worker.connection.recv()
                self._receivers[type(message)](index, message)

    def _bury(self, index: int, worker: _Running) -> None:
        worker.is_over = True
        worker.part()
        # The others must not wait for a dead worker's gradients in synchronous training.
        if self._file is not None and index < self._num_training:
            self._file.leave(index)
        if not worker.has_ended:
            self._tell_of_death(index, worker)
        if all(other.is_over for other in self._running[: self._num_training]):
            self._end_all(Stop(has_finished=True))

    def _tell_of_death(self, index: int, worker: _Running) -> None:
        code = worker.process.exitcode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        others = [one for one in self._running[: self._num_training] if not one.is_over]
        if index != _FIRST and worker.has_attached and others:
            screen.warning(f"{worker.name} {how}; the other workers continue")
            return
        what = "which writes the checkpoints, " if index == _FIRST else ""
        self._fail(TrainingError(f"{worker.name}{', ' + what if what else ' '}{how}"))

    def _fail(self, error: Exception) -> None:
        # Report only the first failure: later failures may be its effects.
        self._failure = self._failure or error
        self._end_all(Stop(has_finished=True))

    def _end_all(self, stop: Stop) -> None:
        if self._stop is None or not stop.has_finished:
            self._stop = stop
            for worker in self._running:
                if not worker.is_over:
                    worker.tell(stop)

    def _stop_all(self) -> None:
        self._is_stopping = True
        if stop_signals.asked == signal.SIGHUP:
            leave_lost_terminal()
        screen.warning("stopping all workers after this step; a second Ctrl-C exits immediately, without a checkpoint")
        self._end_all(Stop(has_finished=False))

    def _clear_up(self) -> None:
        # Kill all workers first: a sender can be closed only if its reader reads or is gone.
        for worker in self._running:
            if worker.process.exitcode is None:
                worker.process.kill()
                worker.process.join(_SECONDS_TO_DIE)
        for worker in self._running:
            # A process that is still alive may never read, and its sender would wait for it forever.
            if worker.process.exitcode is not None:
                worker.part()
        self._delete_file()

    # the shared memory

    def _is_built(self, index: int, message: Built) -> None:
        """Create the shared memory after the first worker has reported the needed size."""
        if index == _FIRST:
            self._filters = message.filters
            # the wall clock of a resumed run continues where the last run has stopped
            self._run_began = time.monotonic() - 60 * message.minutes
            self._path = _make_file(message.num_bytes)
            self._running[_FIRST].tell(Attach(self._path, {}, message.minutes))

    def _is_attached(self, index: int, message: Attached) -> None:
        """Let the other workers attach to the shared networks after the first worker has created them."""
        self._running[index].has_attached = True
        if index == _FIRST:
            self._file = SharedFile(self._path, self._num_training)
            for worker in self._running[_FIRST + 1 :]:
                worker.tell(Attach(self._path, self._filters, (time.monotonic() - self._run_began) / 60))
        # a worker that died before it attached is not waited for
        if all(worker.has_attached or worker.is_over for worker in self._running):
            self._delete_file()

    def _delete_file(self) -> None:
        """Delete the file of the shared memory. Workers still use the open file. The system frees its memory when the
        last worker ends."""
        if self._path:
            with contextlib.suppress(FileNotFoundError):
                os.remove(self._path)

    def _relay(self, index: int, message: Statistics) -> None:
        """Send a worker's filter statistics to the other workers."""
        for other, worker in enumerate(self._running):
            if other != index and worker.has_attached and not worker.is_over:
                worker.tell(message)

    # progress

    def _print_line(self, index: int, message: Line) -> None:
        """Print a worker's line, with the worker's name. Lines for programs contain the name already."""
        name = "" if screen.is_read_by_programs else f"{self._running[index].name}: "
        screen.print_forwarded(name + message.text, message.style, message.prefix)

    def _take_report(self, index: int, message: Report) -> None:
        """Store a worker's progress. If an evaluation has ended, print a line."""
        worker = self._running[index]
        before = worker.report and worker.report.evaluation
        worker.report = message
        worker.steps.sample(message.status.steps)
        if message.evaluation is not None and message.evaluation != before:
            last, best = message.evaluation
            self._display.say(f"{worker.name}: evaluation {last:.5g} (best {best:.5g}) | steps {self._steps:,}")

    def _has_ended(self, index: int, message: Ended) -> None:
        """Record the end of a worker. If the worker has reached its goal, stop all workers, because all share the same
        weights."""
        self._running[index].has_ended = True
        if message.reason is not None:
            screen.success(message.reason)
            self._end_all(Stop(has_finished=True))

    def _has_failed(self, index: int, message: Failed) -> None:
        """End all workers, because one worker has failed."""
        worker = self._running[index]
        worker.has_ended = True
        kind = CoachError if message.is_input_bad else TrainingError
        self._fail(kind(message.reason if message.is_input_bad else f"{worker.name}: {message.reason}"))

    @property
    def _steps(self) -> int:
        return sum(worker.report.status.steps for worker in self._running if worker.report is not None)

    @property
    def have_stepped(self) -> bool:
        """True if a worker has acted."""
        return self._steps > 0

    def report(self) -> dict[str, Any]:
        """The progress of all workers together, in the form of ``Progress.report``. Counts are sums over the workers.
        ``last_evaluation`` is the mean of the workers' last evaluations. ``best_evaluation`` is the maximum of their
        best evaluations."""
        reports = [worker.report for worker in self._running if worker.report is not None]
        rewards = [report.rewards[1] for report in reports if report.rewards is not None]
        evaluations = [report.evaluation for report in reports if report.evaluation is not None]
        return {
            "phase": "Training",
            "episodes": sum(report.status.episodes for report in reports),
            "steps": self._steps,
            "steps_per_second": self._time.per_second,
            "updates": sum(report.status.updates for report in reports),
            "mean_reward": sum(rewards) / len(rewards) if rewards else None,
            "last_evaluation": sum(last for last, _ in evaluations) / len(evaluations) if evaluations else None,
            "best_evaluation": max(best for _, best in evaluations) if evaluations else None,
            "seconds": time.monotonic() - self._began,
            "done": None,
            "total": None,
        }

    def _fields(self) -> Fields:
        self._time.sample(self._steps)
        reports = [worker.report for worker in self._running if worker.report is not None]
        alive = sum(not worker.is_over for worker in self._running)
        speed = self._time.per_second
        fields = [
            ("", "Training" if reports else "starting"),
            ("workers", f"{alive} of {len(self._running)}"),
            ("steps", f"{self._steps:,}"),
            ("steps/s", "-" if speed is None else f"{speed:,.0f}"),
            ("updates", f"{sum(report.status.updates for report in reports):,}"),
        ]
        return fields + [(w.name, _state_of(w)) for w in self._running if w.report is not None]

    def _print_summary(self) -> None:
        for worker in self._running:
            if worker.report is not None:
                screen.print(f"{worker.name}: {_summary_of(worker.report)}")


def _state_of(worker: _Running) -> str:
    """The state of a worker in a few words, for the display."""
    assert worker.report is not None
    speed, rewards = worker.steps.per_second, worker.report.rewards
    words = [worker.report.status.activity.lower() if not worker.is_over else "ended"]
    words += [] if speed is None else [f"{speed:,.0f}/s"]
    words += [] if rewards is None else [f"reward {rewards[0]:.5g} (mean {rewards[1]:.5g})"]
    return " ".join(words)


def _summary_of(report: Report) -> str:
    """A worker's results in a line."""
    status = report.status
    line = f"{status.episodes:,} episodes, {status.steps:,} steps, {status.updates:,} updates"
    if report.evaluation is None:
        return line
    last, best = report.evaluation
    return f"{line}; evaluation reward {last:.5g} (best {best:.5g})"


def _make_file(num_bytes: int) -> str:
    """Make a file of zeros, in memory if possible. :return: the path of the file

    :raises CoachError: if there is no space for the file
    """
    has_room = os.path.isdir(_IN_MEMORY) and shutil.disk_usage(_IN_MEMORY).free > num_bytes
    handle, path = tempfile.mkstemp(prefix="coach-networks-", dir=_IN_MEMORY if has_room else None)
    try:
        with os.fdopen(handle, "wb") as file:
            # Write the zeros: on a full disk, a sparse file would kill a worker later, at its first write.
            file.write(bytes(num_bytes))
    except OSError as error:
        os.remove(path)
        raise CoachError(
            f"no room for the {num_bytes / 1e6:,.0f} MB that workers share, in '{_IN_MEMORY}' or "
            f"'{tempfile.gettempdir()}': {error.strerror}"
        ) from error
    return path
