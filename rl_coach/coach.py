"""The programs ``coach`` and ``dashboard``, and ``CoachInterface``, which starts runs from Python.

The module imports no large package at the top, so that ``coach --help`` and ``coach --list`` answer immediately.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import flag_checks
from rl_coach.launcher import (
    BAD_INPUT,
    DONE,
    FOUND,
    STOPPED,
    TERMINATED,
    TRAINING_FAILED,
    CoachLauncher,
    exit_code_of,
    hide_warnings,
    open_dashboard,
    report_missing_package,
)
from rl_coach.utilities.errors import CoachError, refuse
from rl_coach.utilities.stop_signals import stop_signals

if TYPE_CHECKING:
    from rl_coach.base_parameters import TaskParameters
    from rl_coach.callbacks import Callback
    from rl_coach.graph_managers.graph_manager import GraphManager

__all__ = [
    "BAD_INPUT", "DONE", "FOUND", "STOPPED", "TERMINATED", "TRAINING_FAILED",
    "CoachInterface", "CoachLauncher", "add_items_to_dict", "dashboard", "exit_code_of",
    "handle_distributed_coach_orchestrator", "handle_distributed_coach_tasks", "main", "open_dashboard", "start_graph",
]  # fmt: skip

_SEVERAL = (
    "{}: CoachInterface starts only one run: to run several seeds, call the command coach with --seeds or --resume, "
    "or create a CoachInterface with seed=... for each seed"
)


class CoachInterface(CoachLauncher):
    """Runs Coach from Python. The keywords are the long names of the command line's flags.

    ``CoachInterface(preset="CartPole_DQN", seed=1, custom_parameter="improve_steps=EnvironmentSteps(5000)").run()``

    The constructor builds the graph, so a program may also call methods of ``graph_manager`` instead of ``run()``. A
    keyword with None or False has the same effect as a missing flag; ``checkpoint_memory=False`` is
    ``--no-checkpoint_memory``. A notebook displays the object as the run's summary and a plot of its rewards.

    :param callbacks: callback objects, in addition to the callbacks of the preset and of the keyword ``callback``
    :raises CoachError: if a keyword or its value is wrong
    """

    distributes = False  # its graph is in this process

    def __init__(
        self,
        preset: str | None = None,
        *,
        experiment_name: str | None = None,
        experiment_path: str | None = None,
        seed: int | None = None,
        level: str | None = None,
        custom_parameter: str | None = None,
        environment_type: str | None = None,
        exploration_policy_type: str | None = None,
        framework: Literal["tensorflow", "jax", "mxnet", "torch"] | None = None,
        use_cpu: bool = False,
        num_threads: int | None = None,
        num_devices: int | None = None,
        apply_stop_condition: bool = False,
        evaluate: int | bool | None = None,
        play: bool = False,
        checkpoint_save_secs: int | None = None,
        checkpoint_save_steps: int | None = None,
        checkpoint_save_episodes: int | None = None,
        checkpoint_keep: int | None = None,
        checkpoint_memory: bool = True,
        checkpoint_restore_dir: str | None = None,
        checkpoint_restore_file: str | None = None,
        resume: str | None = None,
        trust: bool = False,
        export_onnx_graph: bool = False,
        render: bool = False,
        dump_gifs: bool = False,
        dump_mp4: bool = False,
        track: str | None = None,
        tensorboard: bool = False,
        open_dashboard: bool = False,
        print_networks_summary: bool = False,
        no_summary: bool = False,
        verbosity: Literal["low", "high"] | None = None,
        tf_verbosity: int | None = None,
        nocolor: bool = False,
        num_workers: int | None = None,
        evaluation_worker: bool = False,
        distributed_coach: bool = False,
        distributed_coach_config_path: str | None = None,
        memory_backend_params: str | None = None,
        data_store_params: str | None = None,
        distributed_coach_run_type: str | None = None,
        dry_run: bool = False,
        attach: bool = False,
        keep: bool = False,
        dump_worker_logs: bool = False,
        callback: str | None = None,
        callbacks: Sequence[Callback] = (),
        **unknown: NoReturn,
    ):
        given = {name: value for name, value in locals().items() if name in command_line.keywords()}
        # flags that are on by default are passed on only if they are switched off
        given |= {name: None for name in command_line.NEGATABLE if given[name]}
        others: dict[str, Any] = {**unknown}
        others = {name: value for name, value in others.items() if value is not None and value is not False}
        if "seeds" in others:
            raise CoachError(_SEVERAL.format(f"seeds={others['seeds']!r}"))
        for name in command_line.ONLY_OF_THE_COMMAND & others.keys():
            raise CoachError(
                f"{name}={others[name]!r}: CoachInterface does not have this keyword; use the command coach"
            )
        with warnings.catch_warnings():  # the program shows its warnings again afterwards
            self._prepare(command_line.arguments_from_keywords(given | unknown), callbacks)

    def _prepare(self, arguments: Sequence[str], callbacks: Sequence[Callback]) -> None:
        from rl_coach.callbacks import Callback

        self.args = self.get_config_args(self.get_argument_parser(), arguments)
        if flag_checks.are_several(self.args):
            raise CoachError(_SEVERAL.format(f"resume={self.args.resume!r}"))
        self._has_workers = flag_checks.wants_workers(self.args)
        if not isinstance(callbacks, Sequence) or not all(isinstance(one, Callback) for one in callbacks):
            raise CoachError(
                f"callbacks is {callbacks!r:.100}, not a list of objects of rl_coach.callbacks.Callback: write "
                "callbacks=[MyCallback()]"
            )
        if self.args.distributed_coach:
            raise CoachError("a distributed run has no graph in this process: call main(['-p', ..., '-dc'])")
        if callbacks and self._has_workers:
            raise CoachError(
                'callbacks: objects cannot be sent to worker processes; use callback="module:Class(...)" instead'
            )
        self.graph_manager = self.get_graph_manager_from_args(self.args)
        self.graph_manager.callbacks = [*self.graph_manager.callbacks, *callbacks]
        self._directory = self.make_directory(self.graph_manager, self.args)
        try:
            if self._has_workers:
                refuse(flag_checks.unmet_by_workers(self.graph_manager, self.args))
            else:
                task_parameters = self.create_task_parameters(self.graph_manager, self.args)
                self.build(task_parameters, self.graph_manager, self.args)
        except BaseException:
            self._directory.remove()
            raise

    def run(self) -> GraphManager:
        """Train (or evaluate) to the end and return the graph manager.

        :raises TrainingError: if training itself fails
        """
        try:
            with warnings.catch_warnings():
                hide_warnings(self.args)
                if self._has_workers:
                    self.start_multi_process(self.graph_manager, self.args)
                else:
                    self.run_built(self.graph_manager, self.args)
        finally:
            self._directory.release()
        return self.graph_manager

    def for_workers(self) -> CoachLauncher:
        return CoachLauncher()  # this object holds a graph manager, which is not sent to workers

    def _repr_html_(self) -> str:
        return self.graph_manager._repr_html_()


def start_graph(graph_manager: GraphManager, task_parameters: TaskParameters) -> None:
    """Build a graph and run it.

    :raises CoachError: if agent and environment do not fit
    :raises TrainingError: if training itself fails
    """
    graph_manager.create_graph(task_parameters)
    graph_manager.run()


def add_items_to_dict(target_dict: dict, source_dict: dict) -> dict:
    """A new dict with the items of both dicts. If a key is in both, the value of ``target_dict`` is used."""
    return {**source_dict, **target_dict}


def handle_distributed_coach_orchestrator(args: argparse.Namespace) -> NoReturn:
    """Start the parts of a distributed run, wait for their end, and exit with the trainer's exit code.

    :param args: the flags of Coach's command line
    :raises CoachError: if a flag is wrong, or the run cannot start
    """
    CoachLauncher().distribute_and_exit(args)


def handle_distributed_coach_tasks(
    graph_manager: GraphManager, args: argparse.Namespace, task_parameters: TaskParameters
) -> None:
    """Run the trainer or a rollout worker, as ``args.distributed_coach_run_type`` says, until the run is over.

    :param graph_manager: the preset's graph manager, not created yet
    :param args: the flags of Coach's command line; ``memory_backend_params`` and ``data_store_params`` are JSON.
        Without ``data_store_params``, policies are stored in the Redis of the memory backend
    :param task_parameters: the settings of this process
    :raises CoachError: if ``distributed_coach_run_type`` is unknown, the JSON names an unknown backend or store, or the
        worker receives no data from the trainer
    :raises TrainingError: if training itself fails
    """
    from rl_coach.command_line import distribution

    part = str(args.distributed_coach_run_type)
    if part not in (command_line.TRAINER, command_line.ROLLOUT_WORKER):
        raise CoachError(
            f"distributed_coach_run_type must be '{command_line.TRAINER}' or '{command_line.ROLLOUT_WORKER}', not "
            f"'{part}'"
        )
    backend, store = distribution.open_backend_and_store(args)
    for parameters in graph_manager.parameters_by_stream.values():
        parameters.memory.register_var("memory_backend_params", backend)
    if part == command_line.TRAINER:
        from rl_coach.training_worker import training_worker

        training_worker(graph_manager, task_parameters, store, num_workers=args.num_workers)
        return
    from rl_coach.rollout_worker import Silence, rollout_worker, worker_seed

    name = distribution.name_of_this_worker()
    task_parameters.seed = worker_seed(task_parameters.seed, name)
    try:
        rollout_worker(graph_manager, store, args.num_workers, task_parameters, name=name)
    except Silence as error:
        raise CoachError(f"{name}: the trainer has sent nothing for too long") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """The program ``coach``.

    :param arguments: the command line's arguments; None uses the arguments of this process
    :return: the exit code: 0 success, 1 training failed, 2 wrong input, 130 stopped by Ctrl-C, 143 stopped by SIGTERM,
        129 stopped by SIGHUP
    """
    with stop_signals.listening():
        launcher = CoachLauncher()
        return exit_code_of(lambda: launcher.launch(arguments), lambda: launcher.shows_tracebacks)


def dashboard(arguments: Sequence[str] | None = None) -> int:
    """The program ``dashboard``.

    :param arguments: the command line's arguments; None uses the arguments of this process
    :return: the exit code: 0 success, 2 wrong input
    """
    try:
        from rl_coach.dashboard import app
    except ModuleNotFoundError as error:
        return report_missing_package("dashboard", error)
    return app.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
