"""Starts several runs of ``coach`` at the same time: runs with several seeds and settings, or evaluations."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import pathlib
import shutil
import signal
import socket
import time
from collections import Counter
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import flag_checks
from rl_coach.command_line.search_space import Setting
from rl_coach.runs import record, run_group
from rl_coach.runs.comparison import table_of_scores
from rl_coach.runs.evaluation import Range, RunStatistics
from rl_coach.runs.experiment_directory import ExperimentDirectory
from rl_coach.runs.lock import lock, unlock
from rl_coach.runs.progress import duration
from rl_coach.runs.side_by_side import Job, Outcome, SideBySide, evaluation_of, num_cores
from rl_coach.runs.status import FINISHED, read_status
from rl_coach.runs.summary import print_dashboard_command
from rl_coach.utilities.files import refusing_unwritable
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utilities.system import shell_command, shown
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.orchestrators.distributed_settings import DistributedSettings
    from rl_coach.orchestrators.seeds_server import SeedsProcess

OF_THE_GROUP = ("seed", "seeds", "at_once", "run_directory", "experiment_name", "experiment_path", "open_dashboard",
                 "resume", "seeds_program")  # fmt: skip
_OF_SEVERAL_PROCESSES = ("num_workers", "evaluation_worker", "distributed_coach", "evaluate")
_OF_THE_CLUSTER = ("distributed_coach", "distributed_coach_config_path")
_OF_ONE_RUN_ON_A_CLUSTER = ("dry_run", "attach", "keep", "dump_worker_logs", "num_workers")
_JOBS_AT_ONCE = 50
"""The limit of Jobs at the same time on a cluster. Each Job needs a process on this machine that follows the Job."""
_CHECKPOINTS = "checkpoint"
_SECONDS_TO_SAVE, _SECONDS_BETWEEN_LOOKS = 60.0, 0.1
"""The longest time to wait for a run that still runs although its program was killed, and the time between two checks.
The run is asked to save and end. After the longest time the run is killed."""
DONE, FAILED, BAD_INPUT = 0, 1, 2


def train(args: argparse.Namespace, parser: argparse.ArgumentParser, settings: Sequence[Setting] = ()) -> int:
    """Train several runs at the same time, one for each seed, and print the results.

    :param settings: the settings; each setting is trained with all seeds. Empty trains with the preset's settings
    :return: the exit code of the first run that failed; 0 if no run failed
    :raises CoachError: if a flag, a setting or the preset is wrong
    """
    _check(args, parser)
    made = make_directory(args)
    flags = given(args, parser, OF_THE_GROUP)
    runs = _swept(settings, args.seeds) if settings else [{"name": f"seed_{n}", "seed": n} for n in args.seeds]
    group = _Group(made, {"arguments": record.lasting(flags), "runs": runs}, args)
    return group.run([first_run(made.path, flags, run) for run in runs])


def resume(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Continue all runs that have not ended, and print the results of all runs.

    :return: the exit code; see ``train``
    :raises CoachError: if there is no run to continue, or a flag contradicts the runs' settings
    """
    directory = pathlib.Path(args.resume).absolute()
    refused = next((name for name in ("seed", "seeds", "evaluate", "experiment_name", "run_directory", "preset", "play")
                    if getattr(args, name) not in (None, "", False)), None)  # fmt: skip
    if refused:
        raise CoachError(f"--resume continues all runs in '{args.resume}': leave out --{refused}")
    if not args.trust:
        record.check_owner(args.resume, run_group.GROUP_FILE)
    document = run_group.read(directory)
    _check_trains(directory, document)
    made = ExperimentDirectory(args.resume, may_exist=True)  # fails while another program runs these runs
    added = _replacing(args, parser, OF_THE_GROUP)
    jobs = [job for run in document["runs"] if (job := next_run(directory, document["arguments"], added, run))]
    return _Group(made, document, args, shares_input=False).run(jobs)


def evaluate(experiments: Sequence[str], flags: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """Evaluate the agents of several runs at the same time, and print the results.

    :param experiments: directories of single runs, or of several runs that were started together
    :param flags: flags of ``coach``
    :return: the exit code; see ``train``
    :raises CoachError: if a directory is not an experiment
    """
    directories = [found for one in experiments for found in run_group.run_directories(one)]
    if not directories:
        raise CoachError(f"no run in {', '.join(map(repr, experiments))} has begun, so there is nothing to evaluate")
    args = parser.parse_args(["--resume", directories[0], *flags])
    if args.seeds:
        parser.error("--seeds trains; to evaluate runs, give their directories, or their common directory")
    for flag, path in (("-crd", args.checkpoint_restore_dir), ("-crf", args.checkpoint_restore_file)):
        if path and len(directories) > 1:
            raise CoachError(
                f"{flag} names one checkpoint, but there are {len(directories)} runs to evaluate: leave it out, or "
                "evaluate only the run that has this checkpoint"
            )
    recorded = [record.read(directory)["arguments"] for directory in directories]
    args.experiment_name = args.experiment_name or "evaluation"
    made = make_directory(args)
    runs = [
        {"name": name, "evaluated": os.path.abspath(one), "environment": task}
        for name, one, task in zip(_names(directories), directories, _tasks(args, recorded))
    ]
    flags_of_all = _replacing(args, parser, [name for name in OF_THE_GROUP if name != "seed"])
    jobs = [_job(made.path, run["name"], {**flags_of_all, "resume": run["evaluated"]}) for run in runs]
    return _Group(made, {"arguments": flags_of_all, "runs": runs}, args, trains=False, shares_input=False).run(jobs)


class _Group:
    """Several runs that are started together. The class starts the runs, and prints and writes their results.

    :param made: the directory with a sub-directory for each run
    :param document: the content of ``runs.json``
    :param trains: True if the runs train; False if they evaluate
    :param shares_input: True if all runs have the same input, so that an error in the input stops all runs
    """

    def __init__(
        self,
        made: ExperimentDirectory,
        document: dict[str, Any],
        args: argparse.Namespace,
        trains: bool = True,
        shares_input: bool = True,
    ):
        from rl_coach.logger import screen

        if args.nocolor:
            screen.set_use_colors(False)
        self._screen = screen
        self._made, self._directory, self._document, self._args = made, made.path, document, args
        self._trains, self._shares_input = trains, shares_input
        self._is_sweep = any("setting" in run for run in document["runs"])
        self._program: SeedsProcess | None = None

    def run(self, jobs: Sequence[Job]) -> int:
        """Start runs, and print the results of all runs.

        :param jobs: the runs to start; the other runs in ``runs.json`` have ended earlier
        :return: the exit code
        """
        earlier = self._ended_earlier(jobs)
        is_on_cluster = cluster_settings(self._document["arguments"]) is not None
        at_once = self._args.at_once or min(len(jobs), _JOBS_AT_ONCE if is_on_cluster else num_cores())
        with refusing_unwritable(self._directory):
            run_group.write(self._directory, self._document)
        if self._args.open_dashboard:
            from rl_coach.dashboard import app

            app.open_dashboard(self._directory)
        for outcome in earlier:
            self._say(outcome)
        with contextlib.ExitStack() as stack:
            if (program := self._program_of_seeds()) is not None:
                stack.enter_context(program)
                jobs, at_once = self._in_one_program(jobs, program), len(jobs)
            running = SideBySide(jobs, at_once, self._end, self._is_bad_for_all)
            outcomes = running.run()
        self._check_input(outcomes)
        self._note([*earlier, *outcomes])
        self._say_what_does_not_count()
        if self._is_sweep:
            self._say_table()
        else:
            self._say_statistics()
        self._say_where(outcomes, running.stopped_by)
        if running.stopped_by is not None:
            return 128 + running.stopped_by
        return next((outcome.code if outcome.code in (FAILED, BAD_INPUT) else FAILED
                     for outcome in outcomes if not outcome.has_finished), DONE)  # fmt: skip

    def _program_of_seeds(self) -> SeedsProcess | None:
        """The process that computes all seeds in one program. None if the loop cannot be compiled, or the seeds do not
        run at the same time.
        """
        flags, runs = self._document["arguments"], self._document["runs"]
        if not self._trains or self._is_sweep or len(runs) < 2 or self._args.at_once or not _may_be_compiled(flags):
            return None
        from rl_coach.orchestrators.seeds_server import SeedsProcess

        of_the_graph = {name: flags[name] for name in (*record.OF_THE_TASK, "use_cpu") if name in flags}
        given = command_line.arguments_from_keywords({**of_the_graph, "seed": runs[0]["seed"]})
        return SeedsProcess(self._directory, "seeds-program", given, [run["name"] for run in runs])

    def _in_one_program(self, jobs: Sequence[Job], program: SeedsProcess) -> list[Job]:
        """Add the flag that connects the runs to the program. Report the runs that have already ended to the program,
        because it waits for all other runs.
        """
        self._program = program
        begun = {job.directory.name for job in jobs}
        for run in self._document["runs"]:
            if run["name"] not in begun:
                program.has_ended(run["name"])
        return [replace(job, flags=[*job.flags, f"--seeds_program={program.address}"]) for job in jobs]

    def _end(self, outcome: Outcome) -> None:
        if self._program is not None:
            self._program.has_ended(outcome.job.directory.name)
        self._say(outcome)

    def _ended_earlier(self, jobs: Sequence[Job]) -> list[Outcome]:
        """The outcomes of runs that ended earlier. :param jobs: the runs that are started now"""
        again = {job.directory for job in jobs}
        below = [self._directory / run["name"] for run in self._document["runs"]]
        ended = [(one, read_status(one)) for one in below if one not in again]
        return [
            Outcome(Job(label_of(one.name), [], one), DONE, status)
            for one, status in ended if status.get("state") == FINISHED
        ]  # fmt: skip

    def _is_bad_for_all(self, outcome: Outcome) -> bool:
        """True if a run has found an error in the input before its start, and the input of all runs is the same."""
        begun = (read_status(self._directory / run["name"]) for run in self._document["runs"])
        return self._shares_input and outcome.code == BAD_INPUT and not any(begun)

    def _check_input(self, outcomes: Iterable[Outcome]) -> None:
        """If the input is wrong for all runs, remove their directory and raise a ``CoachError``."""
        refused = next((outcome for outcome in outcomes if self._is_bad_for_all(outcome)), None)
        if refused is None:
            return
        self._made.remove()
        raise CoachError(refused.error)

    def _say(self, outcome: Outcome) -> None:
        name, progress = outcome.job.name, outcome.progress
        if outcome.has_finished:
            self._screen.print(f"{name}: {self._result(outcome)}")
        elif outcome.was_stopped:
            is_kept = not self._trains or _has_checkpoint(outcome.job.directory)
            when = "" if is_kept else ", before there was a checkpoint"
            self._screen.print(f"{name}: stopped after {progress.get('steps', 0):,} steps{when}")
        elif not self._is_bad_for_all(outcome):
            self._screen.error(f"{name} failed: {outcome.error} (its output: {shown(outcome.job.log)})", crash=False)

    def _result(self, outcome: Outcome) -> str:
        progress = outcome.progress
        took = f"{progress.get('steps', 0):,} steps in {duration(progress.get('seconds', 0.0))}"
        if outcome.score is None:
            return f"no reward, {took}"
        if not self._trains:
            return f"mean reward {outcome.score:.5g}, {outcome.status['evaluation']['episodes']:,} episodes"
        evaluation = evaluation_of(progress)
        return f"evaluation {evaluation}, {took}" if evaluation else f"training reward {outcome.score:.5g}, {took}"

    def _note(self, outcomes: Sequence[Outcome]) -> None:
        """Write the results of the runs to ``runs.json``."""
        by_name = {outcome.job.directory.name: outcome for outcome in outcomes}
        for run in self._document["runs"]:
            if outcome := by_name.get(run["name"]):
                run["state"] = outcome.state
                run["score"] = outcome.score if outcome.has_finished else None
                run["steps"] = outcome.progress.get("steps")
                run["steps_to_target"] = outcome.progress.get("steps_to_target")
                run["reward_range"] = outcome.progress.get("reward_range")
                run.pop("error", None)
                if outcome.code is not None and not outcome.has_finished and not outcome.was_stopped:
                    run["error"] = outcome.error
        self._document["statistics"] = {task: asdict(_statistics(runs)) for task, runs in self._scored().items()}
        try:
            run_group.write(self._directory, self._document)
        except OSError as error:  # the results of the runs are still valid
            self._screen.warning(f"'{self._directory / run_group.GROUP_FILE}' cannot be written: {error.strerror}")

    def _scored(self) -> dict[str, list[dict[str, Any]]]:
        """The runs that have a finite score, by their setting or environment."""
        scored: dict[str, list[dict[str, Any]]] = {}
        for run in self._document["runs"]:
            if run.get("score") is not None and math.isfinite(run["score"]):
                scored.setdefault(run.get("setting") or run.get("environment") or "", []).append(run)
        return scored

    def _say_what_does_not_count(self) -> None:
        scored = [run for run in self._document["runs"] if run.get("score") is not None]
        if lost := [label_of(run["name"]) for run in scored if not math.isfinite(run["score"])]:
            self._screen.warning(f"the score of {', '.join(lost)} is not a finite number, and does not count")

    def _say_table(self) -> None:
        scored = self._scored()
        scores = {setting: [run["score"] for run in runs] for setting, runs in scored.items()}
        steps = {setting: [_steps_of(run) for run in runs] for setting, runs in scored.items()}
        reached = {
            setting: [run["steps_to_target"] for run in runs if run.get("steps_to_target") is not None]
            for setting, runs in scored.items()
        }
        ranges = {setting: found for setting, runs in scored.items() if (found := _range_of(runs)) is not None}
        for line in table_of_scores(scores, steps, reached, ranges):
            self._screen.print(line)

    def _say_statistics(self) -> None:
        if len(self._document["runs"]) < 2:
            return
        for task, runs in self._scored().items():
            reached = [run["steps_to_target"] for run in runs if run.get("steps_to_target") is not None]
            if reached:
                self._screen.success(_steps_to_target(reached, len(runs)))
            what = f"{task}: " if task else f"{'new' if len(reached) == len(runs) else 'last'} evaluations: "
            self._screen.success(f"{what}{_statistics(runs)}")

    def _say_where(self, outcomes: Sequence[Outcome], stopped_by: int | None) -> None:
        directory = shown(self._directory)
        self._screen.print(f"experiment: {directory}")
        if self._trains and stopped_by is not None and not all(outcome.has_finished for outcome in outcomes):
            self._say_how_to_continue(directory, outcomes)
        print_dashboard_command(self._directory, self._screen, compares=self._is_sweep)

    def _say_how_to_continue(self, directory: str, outcomes: Sequence[Outcome]) -> None:
        if any(_shares_weights(outcome.job.directory) for outcome in outcomes):
            saved = [outcome.job.directory for outcome in outcomes if _has_checkpoint(outcome.job.directory)]
            again = f"-crd {shown(saved[0])} starts new runs from its checkpoint" if saved else "start them again"
            self._screen.print(f"runs with several workers cannot be continued: {again}")
        else:
            self._screen.print(f"continue all of them: {shell_command('coach', '--resume', directory)}")


def _check(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if not args.preset:
        parser.error("no preset given: select a preset with -p; coach --list shows all presets")
    for name, reason in (
        ("seed", "--seeds and --seed: give only one of them"),
        ("play", "--play starts one game, and this command starts several runs: leave out --play"),
        ("resume", "--seeds and --resume: the stopped runs continue with their seeds: leave out --seeds"),
        ("run_directory", "--run_directory: each of several runs has its own directory"),
    ):
        if getattr(args, name) not in (None, "", False):
            parser.error(reason)
    flag_checks.refuse_budget(args, "several runs would get different numbers of steps: set improve_steps with -cp")
    settings = cluster_settings(vars(args))
    if settings is not None:
        _check_cluster(args, parser, settings)


def _check_cluster(args: argparse.Namespace, parser: argparse.ArgumentParser, settings: DistributedSettings) -> None:
    from rl_coach.command_line import distribution
    from rl_coach.orchestrators import kubernetes_trial

    kubernetes_trial.check(settings)
    defaults = vars(parser.parse_args([]))
    refused = next((name for name in _OF_ONE_RUN_ON_A_CLUSTER if getattr(args, name) != defaults[name]), None)
    if refused is not None:
        raise CoachError(f"--{refused}: each of several runs on a cluster is one Job, without workers: leave it out")
    distribution.check_flags(args, defaults)


def _check_trains(directory: pathlib.Path, document: dict[str, Any]) -> None:
    """Refuse to resume evaluations, trials, or runs without seeds."""
    runs = document["runs"]
    if run_group.TUNING in document:
        again = shell_command("coach", "tune", "--resume", shown(directory))
        raise CoachError(f"'{shown(directory)}' contains the trials of coach tune; continue them with: {again}")
    evaluated = [run["evaluated"] for run in runs if isinstance(run.get("evaluated"), str)]
    if evaluated:
        steps = document["arguments"].get("evaluate")
        flags = ["--steps", str(steps)] if steps else []
        again = shell_command("coach", "evaluate", *(shown(pathlib.Path(one)) for one in evaluated), *flags)
        raise CoachError(f"'{shown(directory)}' is an evaluation, which cannot be continued; repeat it with: {again}")
    if not all(isinstance(run.get("seed"), int) for run in runs):
        path = directory / run_group.GROUP_FILE
        raise CoachError(f"'{path}' is damaged; continue its runs one by one: --resume {directory}/…")


def make_directory(args: argparse.Namespace) -> ExperimentDirectory:
    return ExperimentDirectory(command_line.free_experiment_path(args), may_exist=False)


def given(args: argparse.Namespace, parser: argparse.ArgumentParser, without: Sequence[str]) -> dict[str, Any]:
    """The flags with another value than their default, by their long names, and the framework."""
    defaults = vars(parser.parse_args([]))
    flags = {name: value for name, value in vars(args).items() if name in defaults and name not in without}
    return {name: value for name, value in flags.items() if value != defaults[name] or name == "framework"}


def _replacing(args: argparse.Namespace, parser: argparse.ArgumentParser, without: Sequence[str]) -> dict[str, Any]:
    """The flags that replace flags of recorded runs. Each run keeps its framework, unless ``-f`` is given."""
    kept = [] if "framework" in getattr(parser, "given", {}) else ["framework"]
    return given(args, parser, [*without, *kept])


def _swept(settings: Sequence[Setting], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """The runs of a sweep. A run's name contains its differences from the other runs. The runs with the first seed come
    first, then the runs with the second seed, and so on.
    """
    return [
        {
            "name": ",".join(filter(None, (one.name, f"seed={seed}" if len(seeds) > 1 or not one.name else ""))),
            "seed": seed,
            "setting": one.name or "as given",
            "custom_parameter": one.custom_parameter,
        }
        for seed in seeds
        for one in settings
    ]


def first_run(directory: pathlib.Path, flags: dict[str, Any], run: dict[str, Any], added: str | None = None) -> Job:
    settings = record.joined_settings(flags.get("custom_parameter"), run.get("custom_parameter"), added)
    flags = {**flags, "seed": run["seed"], "custom_parameter": settings or None}
    if cluster_settings(flags) is not None:
        return _job_on_cluster(directory / run["name"], flags)
    return _job(directory, run["name"], flags)


def next_run(directory: pathlib.Path, flags: dict[str, Any], added: dict[str, Any], run: dict[str, Any]) -> Job | None:
    """The job that continues a run; None if the run has ended. A run that was killed before its first checkpoint starts
    again.

    :param directory: the directory of all runs
    :param flags: the recorded flags of all runs
    :param added: flags that replace recorded flags
    :param run: the run's entry in ``runs.json``
    :raises CoachError: if the program that started the run still runs
    """
    below = directory / run["name"]
    status = read_status(below)
    if status.get("state") == FINISHED:
        return None
    if status or Job("", [], below).log.exists():  # it was started
        _end_survivor(below)
        status = read_status(below)
        if status.get("state") == FINISHED:
            return None
    if status and not _has_checkpoint(below):
        shutil.rmtree(below)
        status = {}
    if not status:
        return first_run(directory, {**flags, **added, "custom_parameter": flags.get("custom_parameter")}, run,
                          added.get("custom_parameter"))  # fmt: skip
    return Job(label_of(run["name"]), command_line.arguments_from_keywords({**added, "resume": str(below)}), below)


def _end_survivor(directory: pathlib.Path) -> None:
    """End a run that still runs although its program was killed, so that the run can continue from its checkpoint.

    :raises CoachError: if another process writes to the directory
    """
    from rl_coach.logger import screen

    end, number, ended = time.monotonic() + _SECONDS_TO_SAVE, signal.SIGTERM, None
    while True:
        pid = _process_of(directory)
        if pid is None:
            try:
                if directory.exists():
                    lock(directory)
                    unlock(directory)
                return
            except CoachError:
                # the workers of the run end a moment later
                if ended is None or time.monotonic() >= end:
                    raise
        elif pid != ended or (time.monotonic() >= end and number != signal.SIGKILL):
            if pid == ended:
                number = signal.SIGKILL
            else:
                screen.warning(
                    f"{directory.name}: stopping process {pid}, because the program that started it has ended"
                )
            ended = pid
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        stop_signals.stop_if_asked()
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _process_of(directory: pathlib.Path) -> int | None:
    """The id of the process that runs the run in a directory; None if there is no such process. It is found by its
    command line, because a run that has just been started has not locked its directory yet.
    """
    wanted = {f"--run_directory={directory}", f"--resume={directory}"}
    for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # the process has just ended
            if not wanted.isdisjoint(line.read_bytes().decode("utf-8", "replace").split("\0")):
                return int(line.parent.name)
    return None


def _job(directory: pathlib.Path, name: str, flags: dict[str, Any]) -> Job:
    below = directory / name
    return Job(label_of(name), command_line.arguments_from_keywords({**flags, "run_directory": str(below)}), below)


def _job_on_cluster(directory: pathlib.Path, flags: dict[str, Any]) -> Job:
    from rl_coach.orchestrators import kubernetes_trial

    of_coach = {name: value for name, value in flags.items() if name not in _OF_THE_CLUSTER}
    given = ["--settings", flags["distributed_coach_config_path"], "--directory", str(directory), "--"]
    flags_of_coach = command_line.arguments_from_keywords(of_coach)
    return Job(label_of(directory.name), [*given, *flags_of_coach], directory, kubernetes_trial.PROGRAM)


def cluster_settings(flags: Mapping[str, Any]) -> DistributedSettings | None:
    """The settings of ``-dcp`` if they select Kubernetes; otherwise None.

    :raises CoachError: if the file cannot be read
    """
    from rl_coach.orchestrators import distributed_settings

    path = flags.get("distributed_coach_config_path") if flags.get("distributed_coach") else None
    settings = distributed_settings.read(path) if path else None
    return settings if settings is not None and settings.orchestrator == "kubernetes" else None


def _may_be_compiled(flags: Mapping[str, Any]) -> bool:
    """True if runs with these flags may have compiled loops, which one process can compute together."""
    if flags.get("framework") != "jax" or any(flags.get(name) for name in (*_OF_SEVERAL_PROCESSES, "num_devices")):
        return False
    from rl_coach.environments.gym_levels import is_function_level

    return hasattr(socket, "AF_UNIX") and is_function_level(str(flags.get("level") or ""))


def label_of(name: str) -> str:
    return name.replace("_", " ") if name.startswith(("seed_", "trial_")) else name


def _names(directories: Sequence[str]) -> list[str]:
    """The names of evaluated runs: the names of their directories, with a number if several names are equal."""
    names = [pathlib.Path(directory).resolve().name for directory in directories]
    count = Counter(names)
    return [f"{index}_{name}" if count[name] > 1 else name for index, name in enumerate(names)]


def _tasks(args: argparse.Namespace, recorded: Sequence[dict[str, Any]]) -> list[str]:
    """The task of each run: its preset and level. If runs with the same preset and level differ in other flags, these
    flags are part of the task, because a mean over rewards of different tasks has no meaning.

    :param args: flags that replace flags of the runs
    :param recorded: the recorded flags of each run
    """
    from rl_coach.command_line import preset_catalogue

    trained = [_trained(args, arguments) for arguments in recorded]
    short = [" ".join(filter(None, (preset_catalogue.name_of(one["preset"]), one["level"]))) for one in trained]
    tasks = []
    for name, one in zip(short, trained):
        alike = [other for other_name, other in zip(short, trained) if other_name == name]
        differ = [key for key in one if any(other[key] != one[key] for other in alike)]
        own = {**one, "custom_parameter": _own_settings(one, alike)}
        tasks.append(" ".join([name, *(f"--{key} {own[key]}" for key in differ if own[key])]))
    return tasks


def _own_settings(one: dict[str, str], alike: Sequence[dict[str, str]]) -> str:
    """The settings of a run without the settings at the beginning that all runs share."""
    written = [other["custom_parameter"].split("; ") for other in alike]
    shortest = min(map(len, written))
    common = next((n for n in range(shortest) if any(other[n] != written[0][n] for other in written)), shortest)
    return "; ".join(one["custom_parameter"].split("; ")[common:])


def _trained(args: argparse.Namespace, arguments: dict[str, Any]) -> dict[str, str]:
    """The flags that define a run's task. Equal tasks have equal texts."""
    from rl_coach.command_line import preset_catalogue

    flags = {name: str(arguments.get(name) or "") for name in record.OF_THE_TASK}
    flags |= {
        name: str(record.lasting_path(vars(args)[name])) for name in ("level", "environment_type") if vars(args)[name]
    }
    settings = record.joined_settings(flags["custom_parameter"])
    return {**flags, "preset": preset_catalogue.path_of(flags["preset"]), "custom_parameter": settings}


def _has_checkpoint(directory: pathlib.Path) -> bool:
    from rl_coach.checkpoint import CheckpointStateFile

    return CheckpointStateFile(str(directory / _CHECKPOINTS)).exists()


def _shares_weights(directory: pathlib.Path) -> bool:
    """True if the run in a directory has workers that share weights (``-n``, ``-ew``), so it cannot be resumed."""
    try:
        given = record.read(str(directory))["arguments"]
    except CoachError:
        return False
    has_workers = given.get("num_workers", 1) > 1 or given.get("evaluation_worker", False)
    return has_workers and not given.get("distributed_coach", False)


def _statistics(runs: Sequence[dict[str, Any]]) -> RunStatistics:
    """Statistics of the scores of runs. The interval lies in the range of rewards, if all runs have the same range."""
    return RunStatistics.of([run["score"] for run in runs], _range_of(runs))


def _range_of(runs: Sequence[dict[str, Any]]) -> Range | None:
    """The range of rewards, if all runs have the same range; otherwise None."""
    ranges = [run.get("reward_range") for run in runs]
    known = ranges[0] if ranges[0] and all(one == ranges[0] for one in ranges) else None
    return known and (known[0], known[1])


def _steps_to_target(steps: Sequence[int], runs: int) -> str:
    """A text about the steps of the runs that have reached the target. :param runs: number of all runs"""
    mean = sum(steps) / len(steps)
    return f"steps to the target: mean {mean:,.0f}, {min(steps):,} to {max(steps):,}, reached by {len(steps)} of {runs}"


def _steps_of(run: dict[str, Any]) -> float:
    """The environment steps of a run; NaN if they are unknown."""
    steps = run.get("steps")
    return math.nan if steps is None else steps
