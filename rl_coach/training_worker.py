"""A process that learns from the experience of rollout workers: ``python -m rl_coach.training_worker --order FILE``."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from types import FrameType
from typing import Any, Iterator, Sequence

from rl_coach.base_parameters import TaskParameters, TaskRole
from rl_coach.checkpoint import CHECKPOINT_DIRECTORY, CheckpointStateReader
from rl_coach.data_stores.data_store import DataStore
from rl_coach.data_stores.data_store_impl import open_data_store
from rl_coach.graph_managers.agent_exchange import Exchange
from rl_coach.graph_managers.workers import Workers
from rl_coach.launcher import CoachLauncher, exit_code_of
from rl_coach.logger import screen
from rl_coach.memories.backend.connection import Connection
from rl_coach.memories.backend.streams import TrainerLink
from rl_coach.orchestrators.run_order import ORPHANED, RunOrder
from rl_coach.utilities.standard_streams import drop_lost_output
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utils import CoachError


class TrainerLauncher(CoachLauncher):
    """The launcher of the trainer in a distributed run.

    :param order: the settings of the distributed run, which all its processes read
    """

    distributes = False  # this process is a part of a distributed run already

    def __init__(self, order: RunOrder):
        self._order = order
        self.command_line = order.command_line
        self._connection = Connection(order.redis_url, order.password())
        self._store = open_data_store(order.data_store.kind, order.data_store.settings, order.run, self._connection)

    def _choose_places(self, args: argparse.Namespace) -> None:
        super()._choose_places(args)
        order = self._order
        args.experiment_path = order.experiment_path
        has_checkpoint = CheckpointStateReader(os.path.join(order.experiment_path, CHECKPOINT_DIRECTORY)).get_all()
        if order.resume or has_checkpoint:
            args.resume = order.experiment_path

    def launch(self, arguments: Sequence[str] | None = None) -> None:
        self._connection.check(self._order.limits.connect_seconds)
        try:
            self._store.load_from_store()  # the files of an earlier trainer of this run on another machine
        except OSError as error:
            raise CoachError(str(error)) from error
        super().launch(self._order.arguments)

    def run_graph_manager(self, graph_manager: Any, args: argparse.Namespace) -> None:
        # The run's record must contain these flags. Set before, they would make the launcher distribute the run again.
        args.distributed_coach, args.num_workers = True, self._order.num_workers
        args.distributed_coach_config_path = self._order.config_path
        super().run_graph_manager(graph_manager, args)

    def create_task_parameters(self, graph_manager: Any, args: argparse.Namespace) -> TaskParameters:
        task = super().create_task_parameters(graph_manager, args)
        task.role = TaskRole.TRAINING
        return task

    def run_built(self, graph_manager: Any, args: argparse.Namespace) -> None:
        order, limits = self._order, self._order.limits
        exchange = Exchange(
            order.num_workers, limits.window, limits.chunk_rows, limits.publish_seconds, limits.silence_seconds
        )
        with _workers_of(graph_manager, self._connection, order.run, self._store, exchange):
            super().run_built(graph_manager, args)


@contextlib.contextmanager
def _workers_of(
    graph_manager: Any, connection: Connection, run: str, store: DataStore, exchange: Exchange
) -> Iterator[None]:
    """A context in which a graph, created in the role of a trainer, receives the experience of rollout workers."""
    ledgers = graph_manager.level_managers[0].ledgers
    links = {stream: TrainerLink(connection, run, ledger, stream) for stream, ledger in ledgers.items()}
    workers = Workers(graph_manager, links, store, exchange)
    graph_manager.data_store = store
    last = max(link.last_incarnation() for link in links.values())
    workers.start(max(time.time_ns() // 1_000_000, last + 1))
    try:
        yield
    finally:
        workers.end(graph_manager.task_parameters.experiment_path)
        data_store_ckpt_save(store)


def training_worker(
    graph_manager: Any,
    task_parameters: TaskParameters,
    data_store: DataStore,
    is_multi_node_test: bool = False,
    num_workers: int = 1,
) -> None:
    """Learn from the experience of rollout workers until the end of the schedule.

    :param graph_manager: the preset's graph manager, before ``create_graph``; the parameters of the agent's memory have
        ``memory_backend_params`` with the address of Redis
    :param task_parameters: the settings of this process
    :param data_store: the data store for policies
    :param is_multi_node_test: True ends the run when the stop condition is met
    :param num_workers: number of workers
    """
    backend = next(iter(graph_manager.parameters_by_stream.values())).memory.memory_backend_params
    task_parameters.role = TaskRole.TRAINING
    task_parameters.apply_stop_condition = task_parameters.apply_stop_condition or is_multi_node_test
    graph_manager.create_graph(task_parameters)
    with _workers_of(graph_manager, backend.connect(), backend.channel, data_store, Exchange(num_workers)):
        graph_manager.run()


def data_store_ckpt_load(data_store: DataStore | None) -> None:
    """Copy the files of a data store to the trainer's directory."""
    if data_store is not None:
        data_store.load_from_store()


def data_store_ckpt_save(data_store: DataStore) -> None:
    """Copy the trainer's files to a data store."""
    try:
        data_store.save_to_store()
    except (OSError, CoachError) as error:
        screen.warning(str(error))


def _end_once(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGTERM)


def main(arguments: Sequence[str] | None = None) -> int:
    """The program ``python -m rl_coach.training_worker``. :return: the exit code, as ``coach`` returns it"""
    parser = argparse.ArgumentParser(prog="python -m rl_coach.training_worker", description=__doc__.partition(":")[0])
    parser.add_argument("--order", required=True, metavar="FILE", help="the JSON file with the run's settings")
    with stop_signals.listening():
        signal.signal(ORPHANED, _end_once)
        drop_lost_output()
        args = parser.parse_args(arguments)
        return exit_code_of(lambda: TrainerLauncher(RunOrder.read(args.order)).launch())


if __name__ == "__main__":
    sys.exit(main())
