"""The command line ``coach``, and ``CoachInterface``, which does the same from Python.

Nothing heavy is imported at the top: ``coach --help`` and ``coach --list`` answer at once.
"""

from __future__ import annotations

import argparse
import errno
import functools
import os
import pathlib
import shlex
import shutil
import sys
import traceback
import warnings
from typing import TYPE_CHECKING, Any, Callable, Literal, NoReturn, Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import preset_catalogue, user_classes
from rl_coach.installation import is_installed, missing_package, predecessor_warning
from rl_coach.runs import record as experiment_record
from rl_coach.runs.run_group import is_group
from rl_coach.utilities.system import program

if TYPE_CHECKING:
    from rl_coach.base_parameters import TaskParameters
    from rl_coach.graph_managers.graph_manager import GraphManager

FOUND = 1
"""The exit code of ``coach check-env`` where it found something."""

DONE, TRAINING_FAILED, BAD_INPUT, STOPPED, TERMINATED = 0, 1, 2, 130, 143
"""The exit codes of ``coach``. Stopped by Ctrl-C or terminated by SIGTERM, a run has saved a checkpoint and said where;
a second signal exits at once, with the same code."""


_STEPS_PER_SECOND = 30  # at most, for a person who plays
_ABOUT_TRAINED_AGENTS = (
    "evaluate", "apply_stop_condition", "export_onnx_graph", "checkpoint_restore_dir", "checkpoint_restore_file",
    "checkpoint_save_secs", "checkpoint_save_steps", "checkpoint_save_episodes",
)  # fmt: skip


class CoachLauncher:
    """From the arguments of a command line to a run. Override a step to change it: ``launch`` calls
    ``get_argument_parser()``, ``get_config_args(parser)``, ``get_graph_manager_from_args(args)`` and
    ``run_graph_manager(graph_manager, args)``; the last one ``create_task_parameters(graph_manager, args)`` and
    ``start_single_threaded(task_parameters, graph_manager, args)``, which builds the graph and runs it.

    A ``get_config_args`` of one's own takes what the flags are by default from ``parser.parse_known_args([])`` and
    sets what it wants. ``args.experiment_path`` is then the directory that the run writes to, as it is, and
    ``args.checkpoint_save_dir`` that of its checkpoints.

    :ivar shows_tracebacks: ``-v high`` is given
    :ivar command_line: started the run that this process is a part of; None for this process's own
    :cvar is_part_of_a_run: it runs in one of the processes of a distributed run
    :cvar distributes: it can start the processes of a distributed run, which build their graphs by Coach's own command
        line; subclasses cannot, of which those know nothing
    """

    shows_tracebacks = False
    is_part_of_a_run = False
    distributes = True
    command_line: list[str] | None = None
    _free_path: str | None = None  # the directory that was chosen for the run by its name; others are given

    def __init_subclass__(cls) -> None:
        cls.distributes = False

    def launch(self, arguments: Sequence[str] | None = None) -> None:
        """Do what the command line asks for.

        :param arguments: without the program's name; None takes those of this process
        :raises CoachError: for bad input
        :raises TrainingError: if training itself fails
        """
        given = sys.argv[1:] if arguments is None else list(arguments)
        if given[:1] == [command_line.EXPORT]:
            self.export(given[1:])
            return
        if given[:1] == [command_line.CHECK_ENVIRONMENT]:
            self.check_environment_and_exit(given[1:])
        if given[:1] == [command_line.DASHBOARD]:
            self.serve_dashboard_and_exit(given[1:])
        if given[:1] == [command_line.EVALUATE]:
            evaluated, flags = command_line.evaluation_arguments(given[1:])
            if len(evaluated) > 1 or is_group(evaluated[0]):
                self.evaluate_several_and_exit(evaluated, flags)
            arguments = ["--resume", evaluated[0], *flags]
        parser = self.get_argument_parser()
        # one that is overridden need not take arguments
        args = self.get_config_args(parser) if arguments is None else self.get_config_args(parser, arguments)
        if args.list:
            self.display_all_presets_and_exit()
        if _are_several(args):
            self.train_several_and_exit(args, parser)
        if _was_started_as_a_part(args):
            self.take_part_and_exit(args)
        if args.distributed_coach and not self.is_part_of_a_run:
            self.distribute_and_exit(args)
        graph_manager = self.get_graph_manager_from_args(args)
        if self.distributes and _wants_rollout_workers(graph_manager, args):
            self.distribute_and_exit(args)
        self.run_graph_manager(graph_manager, args)

    def export(self, arguments: Sequence[str]) -> None:
        """``coach export``: write a trained policy into a folder of its own.

        :raises CoachError: for bad input
        """
        args = command_line.get_export_parser().parse_args(arguments)
        from rl_coach.policy import export as policy_export  # after --help has answered

        policy_export.export(args.experiment, args.output, args.agent)
        print(f"exported to {args.output}; {os.path.join(args.output, policy_export.README_FILE)} says how to use it")

    def check_environment_and_exit(self, arguments: Sequence[str]) -> NoReturn:
        """``coach check-env``: print what is wrong with an environment, a line each, and exit: with 1 if anything is.

        :raises CoachError: there is no such environment
        """
        args = command_line.get_check_environment_parser().parse_args(arguments)
        from rl_coach.environments.environment_checks import check_level  # after --help has answered

        report = check_level(args.level, args.steps, args.seed)
        for line in [*report.lines, *(f"advice of Gymnasium's checker: {note}" for note in report.notes)]:
            print(line)
        if not report.lines:
            print(f"level '{args.level}': nothing wrong in {report.num_steps} steps, {report.num_episodes} episodes")
        sys.exit(FOUND if report.lines else DONE)

    def serve_dashboard_and_exit(self, arguments: Sequence[str]) -> NoReturn:
        """``coach dashboard``: serve the dashboard until interrupted, and exit with its exit code."""
        from rl_coach.dashboard import app

        sys.exit(app.main(arguments, "coach dashboard"))

    def train_several_and_exit(self, args: argparse.Namespace, parser: argparse.ArgumentParser) -> NoReturn:
        """``coach -p PRESET --seeds SEEDS``, or ``--resume`` of what that left: train side by side, and exit.

        :raises CoachError: for bad input
        """
        from rl_coach.command_line import several_runs

        resumed = args.resume
        sys.exit(several_runs.resume(args, parser) if resumed else several_runs.train(args, parser))

    def evaluate_several_and_exit(self, experiments: Sequence[str], flags: Sequence[str]) -> NoReturn:
        """``coach evaluate EXPERIMENT EXPERIMENT ...``: evaluate side by side, and exit.

        :raises CoachError: for bad input
        """
        from rl_coach.command_line import several_runs

        sys.exit(several_runs.evaluate(experiments, flags, self.get_argument_parser()))

    def get_argument_parser(self) -> argparse.ArgumentParser:
        """The parser of the command line."""
        return command_line.get_argument_parser()

    def get_config_args(
        self, parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None
    ) -> argparse.Namespace:
        """The values of all flags: ``framework`` as a ``Frameworks``, ``experiment_path`` as the directory that the
        run will write to.

        :param arguments: without the program's name; None takes those of this process
        :raises CoachError: for a flag or a value that does not exist, or a flag that this version does not serve
        """
        args = parser.parse_args(arguments)
        self.shows_tracebacks = args.verbosity == "high"
        if _are_several(args):
            return args  # each run of them reads its own
        if args.resume:
            args = _with_recorded_arguments(args, parser, arguments)
        if not args.list:
            _check(args, parser)
            _set_process_environment(args)
            self._choose_places(args)
        return args

    def _choose_places(self, args: argparse.Namespace) -> None:
        from rl_coach.base_parameters import Frameworks

        args.framework = Frameworks[args.framework]
        chosen = args.resume or args.run_directory
        if not chosen:
            chosen = self._free_path = command_line.free_experiment_path(args)
        args.experiment_path = chosen

    def display_all_presets_and_exit(self) -> None:
        """Print the presets with environment and algorithm, those of Coach and then the tuned ones, and exit."""
        tuned = preset_catalogue.summaries(preset_catalogue.list_tuned_presets())
        parts = [("preset", preset_catalogue.summaries()), ("tuned preset", tuned)]
        tables = [
            [(title, "environment", "algorithm"), *((one.name, one.environment, one.algorithm) for one in summaries)]
            for title, summaries in parts
        ]
        widths = [max(map(len, column)) for column in zip(*(row for rows in tables for row in rows))]
        texts = (
            "\n".join("  ".join(cell.ljust(n) for cell, n in zip(row, widths)).rstrip() for row in rows)
            for rows in tables
        )
        print("\n\n".join(texts))
        sys.exit(DONE)

    def expand_preset(self, preset: str) -> str:
        """``path.py:variable`` for the name of a preset in any case; other texts unchanged."""
        path = preset_catalogue.expand(preset)
        return path if path == preset else f"{path}:{preset_catalogue.DEFAULT_VARIABLE}"

    def get_graph_manager_from_args(self, args: argparse.Namespace) -> GraphManager:
        """The preset's graph manager, changed as the flags say.

        :raises CoachError: if there is no such preset, level, class or parameter
        """
        from rl_coach.architectures.native_messages import quiet_native_code
        from rl_coach.logger import screen

        if args.nocolor:
            screen.set_use_colors(False)
        # a preset may import anything, TensorFlow included
        with screen.waiting_for(f"loading {args.preset}"), quiet_native_code():
            graph_manager: Any = preset_catalogue.load(args.preset)
        if args.environment_type:
            _check_has(graph_manager, "env_params", "-et")
            graph_manager.env_params = user_classes.make_environment(args.environment_type)
        if args.level:
            _select_level(graph_manager, args.level)
        if args.exploration_policy_type:
            _check_has(graph_manager, "agent_params", "-ept")
            graph_manager.agent_params.exploration = user_classes.make_exploration(args.exploration_policy_type)
        if args.play:
            _hand_over_to_human(graph_manager)
        _set_visualization(graph_manager, args)
        if args.custom_parameter:
            from rl_coach.command_line.custom_parameters import apply_custom_parameters

            apply_custom_parameters(graph_manager, args.custom_parameter)
        return graph_manager

    def run_graph_manager(self, graph_manager: GraphManager, args: argparse.Namespace) -> None:
        """Build the graph and run it, in a directory of its own.

        :raises CoachError: for input that shows to be bad only now; nothing is left behind then
        :raises TrainingError: if training itself fails
        """
        from rl_coach.utils import CoachError

        if _wants_workers(args):
            _check_asynchronous(graph_manager, args)
        directory = self.make_directory(graph_manager, args)
        try:
            if _wants_workers(args):
                self.start_multi_process(graph_manager, args)
            else:
                task_parameters = self.create_task_parameters(graph_manager, args)
                self.start_single_threaded(task_parameters, graph_manager, args)
        except CoachError:
            if not directory.has_signals():
                directory.remove()
            raise
        finally:
            directory.release()

    def distribute_and_exit(self, args: argparse.Namespace) -> NoReturn:
        """Start the parts of a distributed run, here or on a cluster, wait for their end, and exit with the trainer's
        exit code.

        :raises CoachError: for bad input, or a run that cannot start
        :raises TrainingError: if training itself fails
        """
        from rl_coach.command_line import distribution
        from rl_coach.utils import CoachError

        if not self.distributes:
            raise CoachError(f"-dc: {type(self).__name__} cannot be split into processes: start coach itself")
        sys.exit(distribution.run(args, _defaults(self.get_argument_parser()), self.get_graph_manager_from_args))

    def take_part_and_exit(self, args: argparse.Namespace) -> NoReturn:
        """Be the trainer or a rollout worker of a run that an orchestrator written for Coach has started, and exit with
        its exit code.

        :raises CoachError: for bad input
        """
        from rl_coach.command_line import distribution

        distribution.take_part(args, _defaults(self.get_argument_parser()))

    def make_directory(self, graph_manager: GraphManager, args: argparse.Namespace) -> ExperimentDirectory:
        """Make the directory that the run writes to, and tell the graph what to say about it at the end.

        :raises CoachError: it cannot be written
        """
        from rl_coach.logger import screen

        if args.nocolor:  # again: a launcher may have a get_graph_manager_from_args of its own
            screen.set_use_colors(False)
        if not args.experiment_path:
            args.experiment_path = self._free_path = command_line.free_experiment_path(args)
        _warn_of_predecessor()
        is_chosen = bool(args.resume) or args.experiment_path != self._free_path
        directory = ExperimentDirectory(args.experiment_path, may_exist=is_chosen)
        args.experiment_path = str(directory.path)
        graph_manager.prints_summary = not args.no_summary
        can_be_named = bool(args.preset) and args.checkpoint_save_dir is None
        if args.evaluate is None and not args.play and can_be_named:
            graph_manager.playback_hint = _playback_hint(directory.path)
            graph_manager.resume_hint = shlex.join([program("coach"), "--resume", _shown(directory.path)])
        return directory

    def build(self, task_parameters: TaskParameters, graph_manager: GraphManager, args: argparse.Namespace) -> None:
        """Build the graph, and record how the run was started.

        :raises CoachError: agent and environment do not fit, or the directory cannot be written
        """
        from rl_coach.utils import CoachError

        try:
            graph_manager.create_graph(task_parameters)
            experiment_record.write(
                pathlib.Path(args.experiment_path), _with_plain_values(args), _defaults(self.get_argument_parser()),
                graph_manager.task_parameters.seed, self.command_line,
            )  # fmt: skip
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
                raise
            raise CoachError(f"'{args.experiment_path}' cannot be written: {error.strerror or error}") from error

    def create_task_parameters(self, graph_manager: GraphManager, args: argparse.Namespace) -> TaskParameters:
        """Task of this process in the run."""
        from rl_coach.base_parameters import TaskParameters

        return TaskParameters(
            framework_type=args.framework,
            evaluate_only=args.evaluate,
            use_cpu=args.use_cpu,
            experiment_path=args.experiment_path,
            seed=args.seed,
            checkpoint_save_secs=args.checkpoint_save_secs,
            checkpoint_restore_path=args.checkpoint_restore_dir or args.checkpoint_restore_file or args.resume,
            checkpoint_save_dir=args.checkpoint_save_dir or os.path.join(args.experiment_path, "checkpoint"),
            export_onnx_graph=args.export_onnx_graph,
            apply_stop_condition=args.apply_stop_condition,
            checkpoint_memory=args.checkpoint_memory,
            checkpoint_save_steps=args.checkpoint_save_steps,
            checkpoint_save_episodes=args.checkpoint_save_episodes,
            checkpoint_keep=args.checkpoint_keep,
            resume=bool(args.resume),
            preset=preset_catalogue.name_of(args.preset) if args.preset else None,
            num_threads=args.num_threads,
        )

    def start_single_threaded(
        self, task_parameters: TaskParameters, graph_manager: GraphManager, args: argparse.Namespace
    ) -> None:
        """Build the graph and run it, in this process; the older name, under which launchers override it."""
        self.start_single_process(task_parameters, graph_manager, args)

    def start_single_process(
        self, task_parameters: TaskParameters, graph_manager: GraphManager, args: argparse.Namespace
    ) -> None:
        """Build the graph and run it, in this process."""
        self.build(task_parameters, graph_manager, args)
        self.run_built(graph_manager, args)

    def start_multi_process(self, graph_manager: GraphManager, args: argparse.Namespace) -> None:
        """Train with several workers, each in a process of its own.

        :raises CoachError: agent and environment do not fit
        :raises TrainingError: if training itself fails
        """
        from rl_coach.logger import screen
        from rl_coach.orchestrators.asynchronous_workers import AsynchronousWorkers
        from rl_coach.runs.status import FINISHED, RunStatus

        if args.num_threads is None:
            args.num_threads = max(1, (os.cpu_count() or 1) // args.num_workers)
        mine = self.for_workers()
        workers = AsynchronousWorkers(
            args.num_workers, args.evaluation_worker, args.seed,
            make_graph=functools.partial(mine.get_graph_manager_from_args, args),
            make_task=functools.partial(mine.create_task_parameters, args=args),
        )  # fmt: skip
        directory = pathlib.Path(args.experiment_path)
        experiment_record.write(
            directory, _with_plain_values(args), _defaults(self.get_argument_parser()), workers.seed
        )
        if args.open_dashboard:
            open_dashboard(args.experiment_path)
        status = RunStatus(directory if graph_manager.visualization_parameters.dump_csv else None)
        try:
            workers.run()
        except BaseException as error:
            status.set_by(error)
            raise
        status.set(FINISHED)
        if not args.no_summary:
            screen.print(f"experiment: {args.experiment_path}")

    def for_workers(self) -> CoachLauncher:
        """The launcher that each worker gets a copy of, to make its graph and its task; this one, if it can be
        pickled."""
        return self

    def run_built(self, graph_manager: GraphManager, args: argparse.Namespace) -> None:
        """Run a graph that is built."""
        if args.open_dashboard:
            open_dashboard(args.experiment_path)
        graph_manager.run()


class CoachInterface(CoachLauncher):
    """Coach from Python: the long names of the command line's flags as keywords.

    ``CoachInterface(preset="CartPole_DQN", seed=1, custom_parameter="improve_steps=EnvironmentSteps(5000)").run()``

    The graph is built at once, so that ``graph_manager`` can be driven step by step instead of ``run()``. A keyword
    that is None or False is as a flag that is not given; ``checkpoint_memory=False`` is ``--no-checkpoint_memory``.
    In a notebook it shows the run's summary and a plot of its rewards.

    :raises CoachError: for bad input
    """

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
        framework: Literal["tensorflow", "jax", "mxnet"] | None = None,
        use_cpu: bool = False,
        num_threads: int | None = None,
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
        **unknown: NoReturn,
    ):
        given = {name: value for name, value in locals().items() if name in command_line.keywords()}
        # those that are on by default are only said where they are switched off
        given |= {name: None for name in command_line.NEGATABLE if given[name]}
        arguments = command_line.arguments_from_keywords(given | unknown)
        self.args = self.get_config_args(self.get_argument_parser(), arguments)
        self._has_workers = _wants_workers(self.args)
        if self.args.distributed_coach:
            from rl_coach.utils import CoachError

            raise CoachError("a distributed run has no graph in this process: call main(['-p', ..., '-dc'])")
        self.graph_manager = self.get_graph_manager_from_args(self.args)
        self._directory = self.make_directory(self.graph_manager, self.args)
        try:
            if self._has_workers:
                _check_asynchronous(self.graph_manager, self.args)
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
            if self._has_workers:
                self.start_multi_process(self.graph_manager, self.args)
            else:
                self.run_built(self.graph_manager, self.args)
        finally:
            self._directory.release()
        return self.graph_manager

    def for_workers(self) -> CoachLauncher:
        return CoachLauncher()  # the graph manager of this one is the description of the run, and stays here

    def _repr_html_(self) -> str:
        return self.graph_manager._repr_html_()


def start_graph(graph_manager: GraphManager, task_parameters: TaskParameters) -> None:
    """Build a graph and run it.

    :raises CoachError: agent and environment do not fit
    :raises TrainingError: if training itself fails
    """
    graph_manager.create_graph(task_parameters)
    graph_manager.run()


def open_dashboard(experiment_path: str) -> None:
    """Open the dashboard on an experiment, in a process of its own."""
    from rl_coach.dashboard import app

    app.open_dashboard(experiment_path)


def add_items_to_dict(target_dict: dict, source_dict: dict) -> dict:
    """A dict of the items of both; those of ``target_dict`` win."""
    return {**source_dict, **target_dict}


def handle_distributed_coach_orchestrator(args: argparse.Namespace) -> NoReturn:
    """Start the parts of a distributed run, wait for their end, and exit with the trainer's exit code.

    :param args: of Coach's command line
    :raises CoachError: for bad input, or a run that cannot start
    """
    CoachLauncher().distribute_and_exit(args)


def main(arguments: Sequence[str] | None = None) -> int:
    """The program ``coach``.

    :return: the exit code: 0 done, 1 training failed, 2 bad input, 130 stopped from the keyboard
    :raises SystemExit: with code 143, terminated by SIGTERM
    """
    launcher = CoachLauncher()
    return exit_code_of(lambda: launcher.launch(arguments), lambda: launcher.shows_tracebacks)


def exit_code_of(program: Callable[[], int | None], shows_tracebacks: Callable[[], bool] = lambda: False) -> int:
    """Run a program and say what went wrong in one line.

    :param program: returns its exit code; None for 0
    :param shows_tracebacks: the cause of an error is shown, too
    :return: the exit code
    """
    try:
        return program() or DONE
    except KeyboardInterrupt:
        print("coach: stopped", file=sys.stderr)
        return STOPPED
    except ModuleNotFoundError as error:
        return _without_package("coach", error)
    except Exception as error:
        code = _exit_code(error)
        if code is None:
            raise
        if shows_tracebacks() and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        for mistake in _mistakes(error):
            _print_error(" ".join(mistake.split()))
        return code


def dashboard(arguments: Sequence[str] | None = None) -> int:
    """The program ``dashboard``.

    :return: the exit code: 0 done, 2 bad input
    """
    try:
        from rl_coach.dashboard import app
    except ModuleNotFoundError as error:
        return _without_package("dashboard", error)
    return app.main(arguments)


def _print_error(text: str) -> None:
    from rl_coach.logger import screen

    print(f"{'!!!! ' if screen.is_read_by_programs else ''}coach: {text}", file=sys.stderr)


def _without_package(name: str, error: ModuleNotFoundError) -> int:
    """Say in one line which package is missing; one of Coach's own that is missing is our mistake.

    :return: the exit code
    """
    if error.name is None or error.name.partition(".")[0] == "rl_coach":
        raise error
    print(f"{name}: {missing_package(error)}", file=sys.stderr)
    return BAD_INPUT


def _mistakes(error: Exception) -> list[str]:
    from rl_coach.utils import CoachErrors

    return error.mistakes if isinstance(error, CoachErrors) else [str(error)]


def _exit_code(error: Exception) -> int | None:
    """The code for an error that the user can mend; None for one that is ours."""
    from rl_coach.utils import CoachError, TrainingError

    if isinstance(error, CoachError):
        return BAD_INPUT
    return TRAINING_FAILED if isinstance(error, TrainingError) else None


def _check(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse what cannot be done, before anything is imported or written."""
    if not args.preset:
        parser.error("no preset given; name one with -p, coach --list shows all")
    is_part = _was_started_as_a_part(args)
    for name in ("memory_backend_params", "data_store_params"):
        if getattr(args, name) and not is_part:
            parts = f"{command_line.TRAINER} or {command_line.ROLLOUT_WORKER}"
            parser.error(f"--{name}: only with --distributed_coach_run_type {parts}; -dcp says where Redis is")
    if is_part and not args.memory_backend_params:
        parser.error("--distributed_coach_run_type: --memory_backend_params, which says where Redis is, is missing")
    for name in ("distributed_coach_config_path", "dry_run", "attach", "keep", "dump_worker_logs"):
        if getattr(args, name) and not args.distributed_coach:
            parser.error(f"--{name}: only with -dc")
    if args.distributed_coach and (args.play or args.evaluate is not None):
        parser.error(f"-dc trains: leave out --{'play' if args.play else 'evaluate'}")
    if args.distributed_coach and args.evaluation_worker:
        parser.error("-ew goes with -n alone: with -dc the trainer evaluates anyway: leave out -ew")
    if _wants_workers(args):
        for is_given, flag in (
            (args.evaluate is not None, "--evaluate"),
            (args.play, "--play"),
            (args.resume, "--resume"),
        ):
            if is_given:
                parser.error(f"-n and -ew start workers that train from the beginning, or from -crd: leave out {flag}")
    if args.open_dashboard and not is_installed("panel"):
        parser.error(f"-d: {missing_package(ModuleNotFoundError(name='panel'))}")
    trained = [name for name in _ABOUT_TRAINED_AGENTS if getattr(args, name) not in (None, False)]
    if args.play and trained:
        parser.error(f"--play leaves the acting to you, not to a trained agent: leave out --{trained[0]}")
    if args.checkpoint_restore_dir and args.checkpoint_restore_file:
        parser.error("-crd and -crf both name a checkpoint: give one of them")
    for flag, path in (("-crd", args.checkpoint_restore_dir), ("-crf", args.checkpoint_restore_file)):
        if path and not os.path.exists(path) and os.path.basename(path) != "best":
            parser.error(f"{flag}: no checkpoint at '{path}'")
    if args.checkpoint_restore_file and os.path.exists(os.path.join(args.checkpoint_restore_file, ".coach_checkpoint")):
        parser.error("-crf names one checkpoint; for the newest of a directory use -crd")


def _was_started_as_a_part(args: argparse.Namespace) -> bool:
    return args.distributed_coach_run_type in (command_line.TRAINER, command_line.ROLLOUT_WORKER)


def _wants_workers(args: argparse.Namespace) -> bool:
    is_distributed = args.distributed_coach or _was_started_as_a_part(args)
    return bool(args.num_workers > 1 or args.evaluation_worker) and not is_distributed


def _wants_rollout_workers(graph_manager: GraphManager, args: argparse.Namespace) -> bool:
    """True if several workers are asked for, which cannot share the weights of this agent: they play for a trainer."""
    if not _wants_workers(args) or args.evaluation_worker:
        return False
    from rl_coach.orchestrators.asynchronous_workers import trains_asynchronously

    return not trains_asynchronously(graph_manager)


def _check_asynchronous(graph_manager: GraphManager, args: argparse.Namespace) -> None:
    """
    :raises CoachError: the preset's agent is not one that several workers train on shared weights
    """
    import multiprocessing

    from rl_coach.orchestrators.asynchronous_workers import trains_asynchronously
    from rl_coach.utils import CoachError

    flag = f"-n {args.num_workers}" if args.num_workers > 1 else "-ew"
    if multiprocessing.parent_process() is not None:
        raise CoachError(f"{flag}: a script that starts workers must do so under if __name__ == '__main__':")
    if not trains_asynchronously(graph_manager):
        raise CoachError(
            f"{flag}: workers that share weights train actor-critic agents and their like; for others "
            f"act in several copies: -cp 'env_params.num_environments = {max(2, args.num_workers)}'"
        )
    if args.evaluation_worker and not graph_manager.evaluation_steps.num_steps:
        raise CoachError("-ew: evaluation_steps is 0, so there is nothing to evaluate: set it")


def _are_several(args: argparse.Namespace) -> bool:
    """True if the flags ask for several runs."""
    return bool(args.seeds) or bool(args.resume and is_group(args.resume))


def _with_plain_values(args: argparse.Namespace) -> argparse.Namespace:
    """As the flags are written on a command line."""
    return argparse.Namespace(**{**vars(args), "framework": args.framework.name})


def _with_recorded_arguments(
    args: argparse.Namespace, parser: argparse.ArgumentParser, arguments: Sequence[str] | None
) -> argparse.Namespace:
    """The flags of ``--resume DIR``: those that the run in DIR was started with, and those given now. With
    ``--evaluate`` they are those of a new run.

    :raises CoachError: there is no such run, it is another user's, or a flag contradicts what it is
    """
    if not args.trust:
        experiment_record.check_owner(args.resume)
    evaluates = args.evaluate is not None
    recorded = experiment_record.evaluated_arguments if evaluates else experiment_record.resumed_arguments
    stored, settings = recorded(args.resume, args, _defaults(parser))
    args = parser.parse_args(arguments, type(args)(**stored))
    args.custom_parameter = settings or None
    args.evaluated = args.resume if evaluates else None
    args.resume = None if evaluates else args.resume
    return args


def _warn_of_predecessor() -> None:
    from rl_coach.logger import screen

    warning = predecessor_warning()
    if warning is not None:
        screen.warning(warning)


def _defaults(parser: argparse.ArgumentParser) -> dict[str, Any]:
    return vars(parser.parse_args([]))


def _set_process_environment(args: argparse.Namespace) -> None:
    """Set the environment variables that libraries read when they are imported."""
    if args.tf_verbosity is not None:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = str(args.tf_verbosity)
    if args.verbosity == "low" and not sys.warnoptions:
        warnings.simplefilter("ignore")
    if args.use_cpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"


def _check_has(graph_manager: Any, parameters: str, flag: str) -> None:
    from rl_coach.utils import CoachError

    if not hasattr(graph_manager, parameters):
        raise CoachError(f"{flag} cannot change this preset: its {type(graph_manager).__name__} has no '{parameters}'")


def _select_level(graph_manager: Any, level: str) -> None:
    """Choose the level: one of a selection where the preset offers one, any text otherwise."""
    from rl_coach.environments.environment import LevelSelection

    _check_has(graph_manager, "env_params", "-lvl")
    parameters = graph_manager.env_params
    if isinstance(parameters.level, LevelSelection):
        parameters.level.select(level)
    else:
        parameters.level = level


def _hand_over_to_human(graph_manager: Any) -> None:
    from rl_coach.agents.human_agent import HumanAgentParameters
    from rl_coach.base_parameters import VisualizationParameters
    from rl_coach.graph_managers.graph_manager import HumanPlayScheduleParameters

    _check_has(graph_manager, "agent_params", "--play")
    trained, player = graph_manager.agent_params, HumanAgentParameters()
    # what is recorded is then what the preset's own agent would have seen and done, and can learn from
    player.input_filter, player.output_filter = trained.input_filter, trained.output_filter
    graph_manager.agent_params = player
    environment = graph_manager.env_params
    environment.human_control = True
    if hasattr(environment, "num_environments"):
        environment.num_environments = 1
    graph_manager.set_schedule_params(HumanPlayScheduleParameters())
    visualization = graph_manager.visualization_parameters
    if visualization.max_fps_for_human_control == VisualizationParameters().max_fps_for_human_control:
        visualization.max_fps_for_human_control = _STEPS_PER_SECOND


def _set_visualization(graph_manager: GraphManager, args: argparse.Namespace) -> None:
    """A flag switches on what the preset leaves off, and never the other way round."""
    from rl_coach.core_types import MaxDumpFilter

    visualization = graph_manager.visualization_parameters
    for name in ("render", "dump_gifs", "dump_mp4", "tensorboard", "print_networks_summary"):
        if getattr(args, name):
            setattr(visualization, name, True)
    visualization.render = visualization.render or args.play
    if (args.dump_gifs or args.dump_mp4) and not visualization.video_dump_filters:
        visualization.video_dump_filters = [MaxDumpFilter()]


def _playback_hint(experiment_path: pathlib.Path) -> str:
    """The command that shows what this run has trained."""
    from rl_coach.environments.rendering import has_display

    window = ["--render"] if has_display() else []
    return shlex.join([program("coach"), command_line.EVALUATE, _shown(experiment_path), *window])


def _shown(path: pathlib.Path) -> str:
    """A path as the user can type it here."""
    return os.path.relpath(path) if path.is_relative_to(pathlib.Path.cwd()) else str(path)


class ExperimentDirectory:
    """The directory of one run, which is taken away again if it was made for a run that never starts. Until it is
    released, this process alone writes there.

    :param may_exist: the directory was chosen and may be there already, with another run in it that goes on;
        otherwise one that another run has taken meanwhile is avoided: ``-1``, ``-2``, … is appended
    :raises CoachError: if it cannot be written, or another process writes there
    """

    def __init__(self, path: str, may_exist: bool):
        from rl_coach.runs.lock import lock
        from rl_coach.utils import CoachError

        self.path = pathlib.Path(path).absolute()
        self._is_new = not (may_exist and os.path.isdir(self.path))
        self._absent = [directory for directory in self.path.parents if not os.path.exists(directory)]
        if self._is_new:
            self._make()
        try:
            lock(self.path)
        except CoachError:
            self.remove()
            raise

    def _make(self) -> None:
        from rl_coach import logger

        try:
            self.path = pathlib.Path(logger.make_free_directory(str(self.path)))
        except BaseException:
            self._remove_above()
            raise

    def has_signals(self) -> bool:
        """True once a run has got so far that it wrote signals."""
        return any(self.path.rglob("*.csv"))

    def release(self) -> None:
        """Let another process write there."""
        from rl_coach.runs.lock import unlock

        unlock(self.path)

    def remove(self) -> None:
        """Take away the directory with all that was written into it, and those above that were made for it."""
        self.release()
        if self._is_new:
            shutil.rmtree(self.path, ignore_errors=True)
            self._remove_above()

    def _remove_above(self) -> None:
        for directory in self._absent:
            if os.path.isdir(directory) and not any(directory.iterdir()):
                directory.rmdir()


if __name__ == "__main__":
    sys.exit(main())
