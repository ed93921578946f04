"""A worker of a run with shared weights (``-n``): the graph of the preset in a separate process, on shared networks."""

from __future__ import annotations

import logging
import signal
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Callable

import numpy as np

from rl_coach.agents.core.transport import FILTERS
from rl_coach.architectures.shared_networks import SharedBlock, SharedFile, SharedNetworks
from rl_coach.base_parameters import TaskParameters
from rl_coach.core_types import EnvironmentEpisodes, RunPhase
from rl_coach.logger import screen
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
from rl_coach.runs.progress import NoDisplay, Progress, Status
from rl_coach.utilities.standard_streams import drop_lost_output
from rl_coach.utilities.stop_signals import StopSignals, ignore, stop_signals
from rl_coach.utils import CoachError, TrainingError

_SECONDS_BETWEEN_LOOKS = 0.05  # while a worker waits for the others at the start


@dataclass(frozen=True)
class WorkerPlan:
    """The description of one worker, sent to the worker's process.

    :param index: the worker's number, from 0; a worker with the number ``num_training`` or more only evaluates
    :param num_training: number of workers that train
    :param is_evaluated_apart: True if a separate worker evaluates and the other workers do not evaluate
    :param seed: the run's seed
    :param make_graph: makes the graph manager
    :param make_task: makes the task parameters of a graph manager, as for a run in one process
    """

    index: int
    num_training: int
    is_evaluated_apart: bool
    seed: int
    make_graph: Callable[[], Any]
    make_task: Callable[[Any], TaskParameters]

    @property
    def trains(self) -> bool:
        """False for a worker that only evaluates."""
        return self.index < self.num_training

    @property
    def is_first(self) -> bool:
        """True for the worker that restores and writes checkpoints."""
        return self.index == 0


class ParentLink:
    """The worker's connection to the parent process.

    :param connection: the pipe
    :param stop_signals: receive the request to end the run
    """

    def __init__(self, connection: Connection, stop_signals: StopSignals):
        self._connection = connection
        self._stop_signals = stop_signals
        self._has_finished = False
        self._memory: Attach | None = None
        self._statistics: list[Statistics] = []
        self._receivers: dict[type, Callable[[Any], None]] = {
            Attach: self._take_memory, Statistics: self._statistics.append, Stop: self._end,
        }  # fmt: skip

    def send(self, message: Any) -> None:
        """Send a message to the parent. If the parent has ended, the worker stops."""
        try:
            self._connection.send(message)
        except (BrokenPipeError, ConnectionError):
            self._stop()

    def line(self, text: str, style: str | None, prefix: str) -> None:
        """Let the parent print a line. After the run has reached its goal, no more lines are printed."""
        if not self._has_finished:
            self.send(Line(text, style, prefix))

    def listen(self, seconds: float = 0.0) -> None:
        """Read the parent's messages since the last call.

        :param seconds: time to wait for a first message
        """
        try:
            while self._connection.poll(seconds):
                message = self._connection.recv()
                self._receivers[type(message)](message)
                seconds = 0.0
        except (EOFError, ConnectionError):
            self._stop()

    def wait_for_memory(self) -> Attach:
        """Wait for the parent's message with the path of the shared memory.

        :raises SystemExit: if the run ends meanwhile
        """
        while self._memory is None:
            self._stop_signals.stop_if_asked()
            self.listen(_SECONDS_BETWEEN_LOOKS)
        return self._memory

    def heard_statistics(self) -> list[Statistics]:
        """The filter statistics that other workers have sent since the last call."""
        heard = list(self._statistics)
        self._statistics.clear()
        return heard

    def _take_memory(self, message: Attach) -> None:
        self._memory = message

    def _end(self, message: Stop) -> None:
        self._has_finished = self._has_finished or message.has_finished
        self._stop()

    def _stop(self) -> None:
        # ask only once: a second request would end the run in the middle of a step
        if self._stop_signals.asked is None:
            self._stop_signals.ask(signal.SIGTERM)


class ReportedProgress(Progress):
    """Progress of a worker. It is sent to the parent a few times a second, and the worker shows nothing.

    :param link: the connection to the parent
    :param exchange: exchanges filter statistics; called with each report
    """

    def __init__(self, link: ParentLink, exchange: Callable[[], None]):
        super().__init__()
        self._link = link
        self._exchange = exchange

    def start(self) -> None:
        super().start()
        # Only the parent draws on the terminal.
        self._display = NoDisplay()

    def update(self, status: Status) -> None:
        rewards = (self._rewards[-1], sum(self._rewards) / len(self._rewards)) if self._rewards else None
        last, best = self.last_evaluation, self.best_evaluation
        self._link.send(Report(status, rewards, None if last is None or best is None else (last, best)))
        self._link.listen()
        self._exchange()

    def add_evaluation(self, reward: float, episodes: int, status: Status) -> None:
        super().add_evaluation(reward, episodes, status)
        self.update(status)


class Worker:
    """Builds the graph, shares its networks, and runs it.

    :param plan: the worker's description
    :param connection: the pipe to the parent
    """

    def __init__(self, plan: WorkerPlan, connection: Connection):
        self._plan = plan
        self._link = ParentLink(connection, stop_signals)
        self._file: SharedFile | None = None
        self._graph: Any = None

    def run(self) -> None:
        """Run to the end, and report the end to the parent."""
        screen.forward(self._link.line)
        logger = logging.getLogger("rl_coach")
        if not logger.hasHandlers():
            logger.addHandler(_ToScreen(logging.WARNING))
        try:
            self._build()
            self._attach()
            self._train_or_evaluate()
            self._link.send(Ended(self._graph.reason_to_stop()))
        # a stop is an ordinary end: the parent has asked for it, or has ended
        except (KeyboardInterrupt, SystemExit):
            self._link.send(Ended())
        except (CoachError, TrainingError) as error:
            self._link.send(Failed(" ".join(str(error).split()), isinstance(error, CoachError)))
        except Exception as error:  # the parent prints one line; the traceback is for developers
            traceback.print_exc()
            self._link.send(Failed(f"{type(error).__name__}: {error}", False))
        finally:
            # Joint updates wait for every worker that has not left.
            if self._file is not None and self._plan.trains:
                self._file.leave(self._plan.index)

    def _build(self) -> None:
        plan = self._plan
        graph = self._graph = plan.make_graph()
        task = plan.make_task(graph)
        task.task_index = plan.index
        task.seed = plan.seed
        if not plan.is_first:
            # Workers with the same seed would draw the same random numbers.
            task.seed = int(np.random.SeedSequence([plan.seed, plan.index]).generate_state(1)[0])
            # This worker gets the restored weights through the shared memory.
            task.checkpoint_restore_path = None
        if not plan.trains:
            task.evaluate_only = 0
        elif plan.is_evaluated_apart:
            graph.evaluation_steps = EnvironmentEpisodes(0)
        if graph.env_params.seed is not None:
            # Each copy of an environment has its own seed: the first seeds belong to the copies of the workers before
            # this one.
            graph.env_params.seed += plan.index * getattr(graph.env_params, "num_environments", 1)
        # The parent prints one summary of all workers.
        graph.prints_summary = False
        graph.progress = ReportedProgress(self._link, self._exchange_statistics)
        graph.create_graph(task)

    @property
    def _agent(self) -> Any:
        return self._graph.get_agent()

    def _attach(self) -> None:
        """Share the networks: all workers use the first worker's weights."""
        learner = self._agent.update_loop.learner
        block = SharedBlock(learner.networks, self._plan.num_training)
        clock = self._agent.agent_logger
        self._link.send(Built(block.num_bytes, self._filters("get_state"), clock.get_current_wall_clock_time()))
        attach = self._link.wait_for_memory()
        file = SharedFile(attach.path, self._plan.num_training)
        shared = SharedNetworks(block, file, learner.step, self._plan.index)
        if self._plan.is_first:
            shared.publish(learner.networks)
        else:
            for name, state in attach.filters.items():
                getattr(self._agent, name).set_state(state)
            clock.continue_wall_clock_time(attach.minutes)
        # From this call on, the filters gather new statistics. All workers begin with the same statistics, which must
        # not be sent again.
        self._filters("take_gathered")
        self._agent.update_loop.share(shared)
        if not self._plan.is_first:
            # This worker's target networks still have its own initial weights.
            for network in self._agent.networks.values():
                if network.has_target:
                    network.update_target_network()
        self._file = file
        if self._plan.trains:
            # Only now: joint updates wait for every worker that has joined.
            file.join(self._plan.index)
        self._link.send(Attached())

    def _filters(self, method: str) -> dict[str, Any]:
        return {name: getattr(getattr(self._agent, name), method)() for name in FILTERS}

    def _exchange_statistics(self) -> None:
        """Send the new filter statistics of this worker, and merge the statistics of the other workers. Do nothing
        during an evaluation, because the filters' statistics are restored after it."""
        if self._file is None or self._graph.phase is RunPhase.TEST:
            return
        gathered = {name: states for name, states in self._filters("take_gathered").items() if states}
        if gathered:
            self._link.send(Statistics(gathered))
        for message in self._link.heard_statistics():
            for name, states in message.filters.items():
                getattr(self._agent, name).merge_gathered(states)

    def _train_or_evaluate(self) -> None:
        try:
            if self._plan.trains:
                self._graph.improve()
            else:
                self._graph.keep_evaluating()
        finally:
            self._graph.close()


class _ToScreen(logging.Handler):
    """Prints log records through the parent, because direct output of this process would damage the parent's
    display."""

    def emit(self, record: logging.LogRecord) -> None:
        screen.print(self.format(record))


def work(plan: WorkerPlan, connection: Connection) -> None:
    """The function that runs in a worker's process."""
    with stop_signals.listening():
        drop_lost_output()
        Worker(plan, connection).run()
    ignore()  # the end is already reported
