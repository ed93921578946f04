"""``CoachLauncher``, which runs a command line, and the exit codes of the programs.

The module imports no large package at the top, so that ``coach --help`` and ``coach --list`` answer immediately.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import os
import pathlib
import sys
import time
import traceback
import warnings
from typing import TYPE_CHECKING, Any, Callable, Mapping, NoReturn, Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import flag_checks, preset_catalogue
from rl_coach.command_line.reports import FOUND as FOUND
from rl_coach.command_line.reports import list_presets
from rl_coach.installation import missing_package, predecessor_warning
from rl_coach.runs import record as experiment_record
from rl_coach.runs.run_group import is_group
from rl_coach.utilities.errors import CoachError, CoachErrors, TrainingError, refuse
from rl_coach.utilities.overrides import OverrideTable
from rl_coach.utilities.stop_signals import Terminated, stop_signals
from rl_coach.utilities.system import shell_command, shown

if TYPE_CHECKING:
    from rl_coach.base_parameters import TaskParameters
    from rl_coach.graph_managers.graph_manager import GraphManager
    from rl_coach.runs.experiment_directory import ExperimentDirectory

DONE, TRAINING_FAILED, BAD_INPUT, STOPPED, TERMINATED = 0, 1, 2, 130, 143
"""The exit codes of ``coach``. After Ctrl-C or SIGTERM, a run saves a checkpoint, prints its path and exits with code
130 or 143. A second signal exits at once with the same code. If the terminal is closed (SIGHUP), the code is 129."""


STEPS_TO_A_RUN = (
    "launch", "get_argument_parser", "get_config_args", "expand_preset", "get_graph_manager_from_args",
    "run_graph_manager", "make_directory", "create_task_parameters", "build", "start_single_threaded",
    "start_single_process", "start_multi_process", "run_built", "take_part_and_exit",
)  # fmt: skip
"""The methods of a launcher that start a run."""

OVERRIDES = OverrideTable({"distributes": STEPS_TO_A_RUN})


class CoachLauncher:
    """Runs a command line. A subclass can override a method to change a step.

    ``launch`` calls ``get_argument_parser()``, ``get_config_args(parser)``, ``get_graph_manager_from_args(args)`` and
    ``run_graph_manager(graph_manager, args)``. ``run_graph_manager`` calls ``create_task_parameters(graph_manager,
    args)`` and ``start_single_threaded(task_parameters, graph_manager, args)``, which builds the graph and runs it.

    An override of ``get_config_args`` can get the defaults from ``parser.parse_known_args([])`` and change values. The
    run then writes to ``args.experiment_path``, and its checkpoints to ``args.checkpoint_save_dir``.

    :ivar shows_tracebacks: True if the flag ``-v high`` is given
    :ivar command_line: the command line that started the distributed run; None for the command line of this process
    :cvar distributes: True if this launcher can start a distributed run. A subclass that overrides a method of
        ``STEPS_TO_A_RUN`` cannot start a distributed run, because its processes use ``CoachLauncher``
    """

    shows_tracebacks = False
    distributes = True
    command_line: list[str] | None = None
    _names_framework = False
    _free_path: str | None = None  # the directory that was chosen from the run's name; None if the user gave one

    def launch(self, arguments: Sequence[str] | None = None) -> None:
        """Run a command line.

        :param arguments: the arguments, without the program's name; None uses the arguments of this process
        :raises CoachError: if a flag, a preset or a file is wrong
        :raises TrainingError: if training itself fails
        """
        with warnings.catch_warnings():  # a program that launches runs shows its warnings again afterwards
            self._launch(arguments)

    def _launch(self, arguments: Sequence[str] | None) -> None:
        began = time.monotonic()
        given = sys.argv[1:] if arguments is None else list(arguments)
        command = command_line.COMMANDS.get(given[0]) if given else None
        if command is not None and command.program is not None:
            signals = stop_signals.ending_at_once() if command.has_nothing_to_save else contextlib.nullcontext()
            module, _, function = command.program.partition(":")
            with signals:  # the module is imported only now, so that other commands start quickly
                program = getattr(importlib.import_module(module), function)
                code = program(given[1:], self) if command.builds_graphs else program(given[1:])
            if code is not None:
                sys.exit(code)
            return
        if given[:1] == ["evaluate"]:
            evaluated, flags = command_line.evaluation_arguments(given[1:])
            for one in evaluated:
                flag_checks.require_run(one)
            if flag_checks.is_policy(evaluated[0]):
                from rl_coach.command_line import policy_evaluation

                policy_evaluation.evaluate(given[1], given[2:])
                return
            if len(evaluated) > 1 or is_group(evaluated[0]):
                from rl_coach.command_line import several_runs

                sys.exit(several_runs.evaluate(evaluated, flags, self.get_argument_parser()))
            arguments = ["--resume", evaluated[0], *flags]
        parser = self.get_argument_parser()
        # an override may have no parameter for arguments
        args = self.get_config_args(parser) if arguments is None else self.get_config_args(parser, arguments)
        # in Intel's Coach the flag was a boolean, and launchers written for Intel's Coach set a boolean
        if args.list is not None and args.list is not False:
            self.display_all_presets_and_exit("" if args.list is True else args.list)
        if flag_checks.are_several(args):
            from rl_coach.command_line import several_runs

            sys.exit(several_runs.resume(args, parser) if args.resume else several_runs.train(args, parser))
        if flag_checks.was_started_as_a_part(args):
            self.take_part_and_exit(args)
        if args.distributed_coach:
            self.distribute_and_exit(args)
        graph_manager = self.get_graph_manager_from_args(args)
        if self._can_distribute() and flag_checks.wants_rollout_workers(graph_manager, args):
            self.distribute_and_exit(args)
        if args.budget:
            from rl_coach.command_line import budget

            budget.run(graph_manager, args, self, began)
        else:
            self.run_graph_manager(graph_manager, args)

    def get_argument_parser(self) -> argparse.ArgumentParser:
        """The parser of the command line."""
        return command_line.get_argument_parser()

    def get_config_args(
        self, parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None
    ) -> argparse.Namespace:
        """The values of all flags. ``framework`` is a ``Frameworks``, and ``experiment_path`` is the run's directory.

        :param arguments: the arguments, without the program's name; None uses the arguments of this process
        :raises CoachError: if a flag or a value does not exist, or this version does not support the flag
        """
        args = parser.parse_args(arguments)
        self._names_framework = bool(args.resume) or "framework" in getattr(parser, "given", {})
        self.shows_tracebacks = args.verbosity == "high"
        if flag_checks.are_several(args):
            return args  # each of the runs parses its own flags
        if args.resume:
            flag_checks.require_run(args.resume)
            args = _with_recorded_arguments(args, parser, arguments)
        if args.list is None:
            for line in flag_checks.unmet(args):
                parser.error(line)
            _set_process_environment(args)
            self._choose_places(args)
        return args

    def _choose_places(self, args: argparse.Namespace) -> None:
        from rl_coach.base_parameters import Frameworks
        from rl_coach.logger import screen

        known = [name for name in Frameworks.__members__ if name != Frameworks.acting.name]
        if args.framework not in known:  # the parser checks a flag, but this framework is in the record of a run
            run = args.resume or args.evaluated
            raise CoachError(f"'{run}' was trained on '{args.framework}'; this version supports {', '.join(known)}")
        args.framework = Frameworks[args.framework]
        if not self._names_framework and args.framework is not Frameworks.tensorflow:
            screen.print(
                f"framework: {args.framework.value}, because TensorFlow is not installed; -f selects another framework"
            )
        chosen = args.resume or args.run_directory
        if not chosen:
            chosen = self._free_path = command_line.free_experiment_path(args)
        args.experiment_path = chosen

    def display_all_presets_and_exit(self, text: str = "") -> None:
        """Print the presets that contain a text, in upper or lower case, as ``coach --list`` does, and exit.

        :raises CoachError: if no preset contains the text
        """
        list_presets(text)
        sys.exit(DONE)

    def expand_preset(self, preset: str) -> str:
        """``path.py:variable`` for the name of a preset, in upper or lower case. Other texts are returned unchanged."""
        path = preset_catalogue.expand(preset)
        return path if path == preset else f"{path}:{preset_catalogue.DEFAULT_VARIABLE}"

    def get_graph_manager_from_args(self, args: argparse.Namespace) -> GraphManager:
        """Load the preset, and apply the flags to its graph manager.

        :raises CoachError: if the preset, level, class or parameter does not exist
        """
        from rl_coach.architectures.native_messages import quiet_native_code
        from rl_coach.command_line import graph_changes
        from rl_coach.logger import screen

        if args.nocolor:
            screen.set_use_colors(False)
        screen.keep(None)  # the lines of an earlier run of this process are in its own file
        # a preset may import anything, TensorFlow included
        with screen.waiting_for(f"loading {args.preset}"), quiet_native_code():
            graph_manager: Any = preset_catalogue.load(args.preset)
        stop_signals.stop_if_asked()
        graph_changes.apply_flags(graph_manager, args)
        return graph_manager

    def run_graph_manager(self, graph_manager: GraphManager, args: argparse.Namespace) -> None:
        """Build the graph and run it in a new directory.

        :raises CoachError: if a flag or the preset is wrong; the new directory is removed
        :raises TrainingError: if training itself fails
        """
        if flag_checks.wants_workers(args):
            refuse(flag_checks.unmet_by_workers(graph_manager, args))
        directory = self.make_directory(graph_manager, args)
        try:
            stop_signals.stop_if_asked()
            if flag_checks.wants_workers(args):
                self.start_multi_process(graph_manager, args)
            else:
                task_parameters = self.create_task_parameters(graph_manager, args)
                self.start_single_threaded(task_parameters, graph_manager, args)
        except CoachError:
            if not directory.has_signals():
                directory.remove()
            raise
        except (KeyboardInterrupt, Terminated):
            if not directory.has_begun():
                directory.remove()
            raise
        finally:
            directory.release()

    def distribute_and_exit(self, args: argparse.Namespace) -> NoReturn:
        """Start the processes of a distributed run on this machine or on a cluster, wait for their end, and exit with
        the trainer's exit code.

        :raises CoachError: if a flag is wrong, or the run cannot start
        :raises TrainingError: if training itself fails
        """
        from rl_coach.command_line import distribution

        if not self._can_distribute():
            raise CoachError(
                f"-dc does not work with {type(self).__name__}, because the processes of a distributed run do not use "
                f"your launcher: use the command coach, or leave out -dc"
            )
        sys.exit(distribution.run(args, _defaults(self.get_argument_parser()), self.get_graph_manager_from_args))

    def _can_distribute(self) -> bool:
        return self.distributes and not OVERRIDES.is_replaced(self, "distributes")

    def take_part_and_exit(self, args: argparse.Namespace) -> NoReturn:
        """Run this process as the trainer or as a rollout worker, as orchestrators written for Intel's Coach expect,
        and exit with its exit code. :raises CoachError: if a flag is wrong"""
        from rl_coach.command_line import distribution

        distribution.take_part(args, _defaults(self.get_argument_parser()))

    def make_directory(self, graph_manager: GraphManager, args: argparse.Namespace) -> ExperimentDirectory:
        """Make the run's directory, and pass to the graph the commands that it prints at the end.

        :raises CoachError: if the directory cannot be written
        """
        from rl_coach.logger import CONSOLE_FILE, screen
        from rl_coach.runs.experiment_directory import ExperimentDirectory

        if args.nocolor:  # again, because a launcher may override get_graph_manager_from_args
            screen.set_use_colors(False)
        if not args.experiment_path:
            args.experiment_path = self._free_path = command_line.free_experiment_path(args)
        warning = predecessor_warning()
        if warning is not None:
            screen.warning(warning)
        is_chosen = bool(args.resume) or args.experiment_path != self._free_path
        directory = ExperimentDirectory(args.experiment_path, may_exist=is_chosen)
        args.experiment_path = str(directory.path)
        screen.keep(directory.path / CONSOLE_FILE)
        graph_manager.prints_only_counts = args.no_summary
        can_be_named = bool(args.preset) and args.checkpoint_save_dir is None
        if args.evaluate is None and not args.play and can_be_named:
            graph_manager.playback_hint = _playback_hint(directory.path)
            graph_manager.resume_hint = shell_command("coach", "--resume", shown(directory.path))
        return directory

    def build(self, task_parameters: TaskParameters, graph_manager: GraphManager, args: argparse.Namespace) -> None:
        """Build the graph, and record how the run was started.

        :raises CoachError: if agent and environment do not fit, or the directory cannot be written
        """
        from rl_coach.utilities.files import refusing_unwritable

        with refusing_unwritable(args.experiment_path):
            graph_manager.create_graph(task_parameters)
            self._write_record(args, graph_manager.task_parameters.seed)

    def _write_record(self, args: argparse.Namespace, seed: int | None) -> None:
        flags = argparse.Namespace(**{**vars(args), "framework": args.framework.name})  # as on the command line
        defaults = _defaults(self.get_argument_parser())
        experiment_record.write(pathlib.Path(args.experiment_path), flags, defaults, seed, self.command_line)

    def create_task_parameters(self, graph_manager: GraphManager, args: argparse.Namespace) -> TaskParameters:
        """The task parameters of this process, from the flags."""
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
            num_devices=args.num_devices,
            seeds_program=args.seeds_program,
        )

    def start_single_threaded(
        self, task_parameters: TaskParameters, graph_manager: GraphManager, args: argparse.Namespace
    ) -> None:
        """Call ``start_single_process``. Launchers written for Intel's Coach override this method."""
        self.start_single_process(task_parameters, graph_manager, args)

    def start_single_process(
        self, task_parameters: TaskParameters, graph_manager: GraphManager, args: argparse.Namespace
    ) -> None:
        """Build the graph and run it, in this process."""
        self.build(task_parameters, graph_manager, args)
        self.run_built(graph_manager, args)

    def start_multi_process(self, graph_manager: GraphManager, args: argparse.Namespace) -> None:
        """Train with several workers, each in its own process.

        :raises CoachError: if agent and environment do not fit
        :raises TrainingError: if training itself fails
        """
        from rl_coach.orchestrators.asynchronous_workers import AsynchronousWorkers
        from rl_coach.runs.status import FINISHED, RunStatus
        from rl_coach.utilities.files import refusing_unwritable

        if args.num_threads is None:
            args.num_threads = max(1, (os.cpu_count() or 1) // args.num_workers)
        mine = self.for_workers()
        workers = AsynchronousWorkers(
            args.num_workers, args.evaluation_worker, args.seed,
            make_graph=functools.partial(mine.get_graph_manager_from_args, args),
            make_task=functools.partial(mine.create_task_parameters, args=args),
        )  # fmt: skip
        with refusing_unwritable(args.experiment_path):
            self._write_record(args, workers.seed)
        if args.open_dashboard:
            open_dashboard(args.experiment_path)
        is_told = graph_manager.visualization_parameters.dump_csv
        status = RunStatus(args.experiment_path if is_told else None, workers.report)
        try:
            workers.run()
        except BaseException as error:
            status.set_by(error)
            if isinstance(error, (KeyboardInterrupt, Terminated)) and workers.have_stepped:
                _print_what_can_be_done(graph_manager, args)
            raise
        status.set(FINISHED)
        _print_what_can_be_done(graph_manager, args)

    def for_workers(self) -> CoachLauncher:
        """The launcher that makes the graph and the task parameters of each worker. Each worker gets a copy. The
        default is this launcher, which must be picklable.
        """
        return self

    def run_built(self, graph_manager: GraphManager, args: argparse.Namespace) -> None:
        """Run a graph that ``build`` has built."""
        if args.open_dashboard:
            open_dashboard(args.experiment_path)
        graph_manager.run()


def open_dashboard(experiment_path: str) -> None:
    """Open the dashboard with an experiment, in another process. :param experiment_path: the experiment's directory"""
    from rl_coach.dashboard import app

    app.open_dashboard(experiment_path)


def exit_code_of(program: Callable[[], int | None], shows_tracebacks: Callable[[], bool] = lambda: False) -> int:
    """Run a program, and return its exit code. If it raises an error, print the error in one line.

    :param shows_tracebacks: returns True if the traceback of an error must be printed, too
    """
    try:
        return program() or DONE
    except KeyboardInterrupt:
        print("coach: stopped", file=sys.stderr)
        return STOPPED
    except Terminated as stop:
        if not (stop_signals.has_reader or stop_signals.stopped_between_steps):
            return DONE  # no run has ended: the reader of a list, such as ``head``, needed no more lines
        reason = f"by {stop.name}" if stop_signals.has_reader else "because the reader of the output has ended"
        print(f"coach: stopped {reason}", file=sys.stderr)
        return stop.code
    except ModuleNotFoundError as error:
        return report_missing_package("coach", error)
    except (CoachError, TrainingError) as error:
        if shows_tracebacks() and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        for mistake in error.mistakes if isinstance(error, CoachErrors) else [str(error)]:
            _print_error(" ".join(mistake.split()))
        return BAD_INPUT if isinstance(error, CoachError) else TRAINING_FAILED


def _print_error(text: str) -> None:
    from rl_coach.logger import screen

    screen.note(f"coach: {text}")
    print(f"{'!!!! ' if screen.is_read_by_programs else ''}coach: {text}", file=sys.stderr)


def report_missing_package(name: str, error: ModuleNotFoundError) -> int:
    """Print a message about a package that a program misses. If a module of Coach itself is missing, raise the error
    again, because this is a bug."""
    if error.name is None or error.name.partition(".")[0] == "rl_coach":
        raise error
    print(f"{name}: {missing_package(error)}", file=sys.stderr)
    return BAD_INPUT


def _with_recorded_arguments(
    args: argparse.Namespace, parser: argparse.ArgumentParser, arguments: Sequence[str] | None
) -> argparse.Namespace:
    """The recorded flags of the run of ``--resume``, replaced by flags of this command line. With ``--evaluate``, they
    define a new run."""
    if not args.trust:
        experiment_record.check_owner(args.resume)
    evaluates = args.evaluate is not None
    recorded = experiment_record.evaluated_arguments if evaluates else experiment_record.resumed_arguments
    stored, settings = recorded(args.resume, args, _defaults(parser))
    _check_recorded(stored, parser, args.resume)
    args = parser.parse_args(arguments, type(args)(**stored))
    args.custom_parameter = settings or None
    args.evaluated = args.resume if evaluates else None
    args.resume = None if evaluates else args.resume
    return args


def _check_recorded(stored: Mapping[str, Any], parser: argparse.ArgumentParser, directory: str) -> None:
    """Raise a ``CoachError`` if a flag in the record of a run has a value that the command line refuses."""
    for action in parser._actions:
        value = stored.get(action.dest)
        try:
            if callable(action.type) and value is not None:
                action.type(str(value))
        except (argparse.ArgumentTypeError, ValueError):
            path = os.path.join(directory, experiment_record.RECORD_FILE)
            raise CoachError(f"'{path}' is damaged: {action.dest} is {value!r}") from None


def _defaults(parser: argparse.ArgumentParser) -> dict[str, Any]:
    return vars(parser.parse_args([]))


def _set_process_environment(args: argparse.Namespace) -> None:
    """Set the environment variables that libraries read when they are imported."""
    if args.tf_verbosity is not None:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = str(args.tf_verbosity)
    hide_warnings(args)
    if args.use_cpu or args.seeds_program:  # the process that computes all seeds uses the GPU
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"


def hide_warnings(args: argparse.Namespace) -> None:
    """Hide the warnings of libraries, unless ``-v high`` or ``python -W`` asks for them."""
    if args.verbosity == "low" and not sys.warnoptions:
        warnings.simplefilter("ignore")


def _print_what_can_be_done(graph_manager: GraphManager, args: argparse.Namespace) -> None:
    from rl_coach.runs.summary import print_what_can_be_done

    if not args.no_summary:
        print_what_can_be_done(
            args.experiment_path, graph_manager.visualization_parameters.tensorboard, graph_manager.playback_hint
        )


def _playback_hint(experiment_path: pathlib.Path) -> str:
    """The command that shows the run's trained agent."""
    from rl_coach.environments.rendering import has_display

    window = ["--render"] if has_display() else []
    return shell_command("coach", "evaluate", shown(experiment_path), *window)
