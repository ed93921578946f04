"""``coach tune``: search for a preset's best settings with Optuna. Each trial is a run of ``coach``."""

from __future__ import annotations

import argparse
import ast
import os
import pathlib
from collections import Counter
from typing import Any, Mapping, Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import (
    built_in_spaces,
    custom_parameters,
    flag_checks,
    preset_catalogue,
    search_space,
    several_runs,
    study_storage,
)
from rl_coach.command_line.search_space import Choice, Dimension, Distribution
from rl_coach.command_line.sweep import SECONDS_BETWEEN_CHECKPOINTS, texts_of
from rl_coach.runs import record, run_group
from rl_coach.runs.experiment_directory import ExperimentDirectory
from rl_coach.runs.side_by_side import Job, Outcome, SideBySide, num_cores
from rl_coach.runs.status import read_status
from rl_coach.runs.summary import print_dashboard_command
from rl_coach.utilities.files import refusing_unwritable, write_text
from rl_coach.utilities.system import shell_command, shown
from rl_coach.utils import CoachError

BEST_FILE = "best.py"
_STORAGE_FILE = "study.db"
_ENDLESS = 10**9
_EVALUATIONS = 20
_SCHEDULE = ("improve_steps", "steps_between_evaluation_periods", "evaluation_steps")
_OF_THE_TASK = ("level", "environment_type", "exploration_policy_type", "framework")


def run(arguments: Sequence[str], launcher: Any) -> int:
    """Run ``coach tune``.

    :param arguments: the arguments after ``tune``
    :param launcher: a ``CoachLauncher``, which loads the preset
    :return: the exit code: 0 if a trial has a result, 1 if no trial has a result, 128 + N after a signal N
    :raises CoachError: if a flag, the search space or the preset is wrong
    """
    parser = command_line.parser_of("tune")
    args = parser.parse_args(arguments)
    if args.storage:
        study_storage.hide_in_process_list(args.storage)
    if args.resume:
        return _go_on(args, launcher)
    if not args.preset:
        parser.error("no preset given: select a preset with -p; coach --list shows all presets")
    if args.seeds:
        parser.error("--seeds: each trial has its own seed; train the best preset with --seeds afterwards")
    if several_runs.cluster_settings(vars(args)) is not None:  # from there, trials could not report to the study
        raise CoachError(
            f"'{args.distributed_coach_config_path}' selects a cluster, but coach tune trains only on this machine; to "
            "tune on several machines, start coach tune on each machine with the same --storage"
        )
    flag_checks.refuse_budget(args, "all trials have the same number of steps: use --steps instead")
    graph_manager = launcher.get_graph_manager_from_args(args)
    steps = args.steps or _steps_of(graph_manager)
    space = args.space and "; ".join(text for text, _ in texts_of(args.space, "--space"))
    schedule = dict.fromkeys(_SCHEDULE, f"--steps sets {', '.join(_SCHEDULE)}") if args.steps else {}
    # before anything is written
    search_space.refuse_fixed(graph_manager, space_of(graph_manager, space, steps), args.custom_parameter, schedule)
    made = several_runs.make_directory(args)
    flags = several_runs.given(args, launcher.get_argument_parser(), several_runs.OF_THE_GROUP)
    if not any(name.startswith("checkpoint_save") for name in flags):
        flags["checkpoint_save_secs"] = SECONDS_BETWEEN_CHECKPOINTS
    storage = args.storage or os.environ.get(study_storage.STORAGE_VARIABLE)
    url = study_storage.lasting(storage) if storage else f"{study_storage.SQLITE}{made.path / _STORAGE_FILE}"
    tuning = {
        "trials": args.trials or command_line.DEFAULT_TRIALS,
        "steps": steps,
        "gives_schedule": args.steps is not None,
        "evaluations": _EVALUATIONS if args.steps else _evaluations_of(graph_manager, steps),
        "space": space,
        "storage": study_storage.recorded(url, made.path),
        "study": args.study or made.path.parent.name,
        "sampler": args.sampler,
        "pruner": args.pruner,
        "seed": args.seed,
        "parallel": args.parallel or args.at_once,
    }
    document = {"arguments": record.lasting(flags), "runs": [], run_group.TUNING: tuning}
    return _Tuning(made, document, graph_manager, args).run()


def _go_on(args: argparse.Namespace, launcher: Any) -> int:
    """``coach tune --resume DIR``: finish the interrupted trials, and run the remaining trials."""
    if not run_group.is_group(args.resume) or run_group.TUNING not in (document := run_group.read(args.resume)):
        raise CoachError(f"there are no trials in '{args.resume}': give the directory that coach tune has printed")
    if args.preset:
        raise CoachError(f"--resume continues the trials in '{args.resume}': leave out --preset")
    if not args.trust:
        record.check_owner(args.resume, run_group.GROUP_FILE)
    document[run_group.TUNING]["trials"] = args.trials or document[run_group.TUNING]["trials"]
    stored = vars(launcher.get_argument_parser().parse_args([])) | document["arguments"]
    graph_manager = launcher.get_graph_manager_from_args(argparse.Namespace(**stored))
    made = ExperimentDirectory(args.resume, may_exist=True)  # fails while another program runs these trials
    return _Tuning(made, document, graph_manager, args).run()


def _steps_of(graph_manager: Any) -> int:
    from rl_coach.core_types import EnvironmentSteps

    length = graph_manager.improve_steps
    if isinstance(length, EnvironmentSteps) and length.num_steps < _ENDLESS:
        return int(length.num_steps)
    raise CoachError(
        "--steps is missing: improve_steps of the preset has no end or is not a number of environment steps"
    )


def _evaluations_of(graph_manager: Any, steps: int) -> int:
    """The number of evaluations in a run of the preset; 20 if it cannot be computed."""
    from rl_coach.core_types import EnvironmentSteps

    between = graph_manager.steps_between_evaluation_periods
    return max(1, steps // max(1, between.num_steps)) if isinstance(between, EnvironmentSteps) else _EVALUATIONS


def space_of(graph_manager: Any, text: str | None, steps: int) -> list[Dimension]:
    """The dimensions of the search space.

    :param text: the text of --space; None for the built-in space of the agent's family
    :param steps: environment steps of a trial
    :raises CoachError: if a dimension does not fit the preset
    """
    if text is None:
        return built_in_spaces.built_in_space(graph_manager, steps)
    dimensions = search_space.parse(text, "--space")
    search_space.check_each_value(graph_manager, dimensions)
    return dimensions


class _Tuning:
    """A study of Optuna. Each trial is a run.

    :param made: the directory with a sub-directory for each trial
    :param document: the content of ``runs.json``: the flags, the trials so far, and the settings of ``coach tune``
    """

    def __init__(
        self, made: ExperimentDirectory, document: dict[str, Any], graph_manager: Any, args: argparse.Namespace
    ):
        from rl_coach.logger import screen

        if args.nocolor:
            screen.set_use_colors(False)
        self._screen = screen
        self._made, self._directory, self._document = made, made.path, document
        self._settings = document[run_group.TUNING]
        self._graph_manager = graph_manager
        self._at_once = args.parallel or args.at_once or self._settings.get("parallel") or num_cores()
        self._dimensions = space_of(graph_manager, self._settings["space"], self._settings["steps"])
        self._trials: dict[pathlib.Path, Any] = {}
        self._refused: str | None = None
        self._study = self._open_study()

    def run(self) -> int:
        """Run the trials. :return: the exit code"""
        with refusing_unwritable(self._directory):
            run_group.write(self._directory, self._document)
        self._say_what_is_searched()
        running = SideBySide(self._interrupted(), self._at_once, self._end, self._is_bad_for_all, more=self._next)
        running.run()
        if self._refused is not None:
            self._made.remove()
            raise CoachError(self._refused)
        self._say_best()
        if running.stopped_by is not None:
            again = shell_command("coach", "tune", "--resume", shown(self._directory))
            self._screen.print(f"continue the tuning: {again}")
            return 128 + running.stopped_by
        return several_runs.DONE if self._values() else several_runs.FAILED

    @property
    def _storage(self) -> str:
        """The URL of the storage, without a password."""
        from rl_coach.callbacks.tuning import url_of

        return study_storage.shown_url(url_of(self._settings["storage"]))

    def _open_study(self) -> Any:
        import optuna

        from rl_coach.callbacks.tuning import pruner_of, url_of
        from rl_coach.utilities.user_code import in_one_line

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        url, study = url_of(self._settings["storage"]), self._settings["study"]
        pruner = pruner_of(self._settings["pruner"], self._settings["evaluations"])
        try:
            opened = study_storage.opened(
                lambda: optuna.create_study(
                    storage=url, study_name=study, pruner=pruner, direction="maximize", load_if_exists=True
                )
            )
            opened.sampler = self._sampler(len(opened.get_trials(deepcopy=False)))
        except Exception as error:  # database clients raise errors of many kinds
            self._made.remove()
            why = study_storage.without_secret(in_one_line(error), url)
            raise CoachError(f"--storage {study_storage.shown_url(url)}: {why}") from error
        return opened

    def _sampler(self, trials: int) -> Any:
        """The sampler of Optuna. After earlier trials it gets another seed, so that it does not repeat their draws."""
        from optuna import samplers

        seed = None if self._settings["seed"] is None else self._settings["seed"] + trials
        if self._settings["sampler"] == "tpe":
            return samplers.TPESampler(seed=seed, multivariate=True, constant_liar=self._at_once > 1)
        return samplers.RandomSampler(seed=seed)

    def _interrupted(self) -> list[Job]:
        """The jobs of trials that have not ended. A trial that has ended while ``coach tune`` did not run is reported
        to the study.
        """
        import optuna

        jobs, known = [], self._study.trials
        for run in self._document["runs"]:
            directory = self._directory / run["name"]
            if run["trial"] >= len(known):
                raise CoachError(
                    f"study '{self._settings['study']}' in {self._storage} has no trial {run['trial']} any more"
                )
            trial = known[run["trial"]]
            if trial.state.is_finished():
                continue
            self._trials[directory] = optuna.trial.Trial(self._study, trial._trial_id)
            job = several_runs.next_run(self._directory, self._flags(self._trials[directory]), {}, run)
            if job is None:
                done = Job(several_runs.label_of(run["name"]), [], directory)
                self._end(Outcome(done, several_runs.DONE, read_status(directory)))
            else:
                jobs.append(job)
        return jobs

    def _next(self) -> Job | None:
        """The job of a new trial; None if there are enough trials."""
        if len(self._study.get_trials(deepcopy=False)) >= self._settings["trials"]:
            return None
        try:
            searched = search_space.distributions(self._dimensions)
            trial = self._study.ask(fixed_distributions={name: _of_optuna(one) for name, one in searched.items()})
        except ValueError as error:  # earlier trials of the study have another search space
            raise CoachError(
                f"study '{self._settings['study']}' searches other settings: {error}; name a new study with --study"
            ) from error
        name, seed = f"trial_{trial.number}", (self._settings["seed"] or 0) + trial.number
        run = {
            "name": name,
            "seed": seed,
            "trial": trial.number,
            "custom_parameter": self._custom_parameter(trial.params),
        }
        self._document["runs"].append(run)
        run_group.write(self._directory, self._document)
        directory = self._directory / name
        self._trials[directory] = trial
        return several_runs.first_run(self._directory, self._flags(trial), run)

    def _custom_parameter(self, values: Mapping[str, Any]) -> str:
        found = search_space.custom_parameter(self._graph_manager, self._dimensions, values)
        return record.joined_settings(self._schedule(), found)

    def _schedule(self) -> str:
        """The settings of a trial's length and evaluations, if --steps is given."""
        if not self._settings["gives_schedule"]:
            return ""
        steps = self._settings["steps"]
        return (
            f"improve_steps = EnvironmentSteps({steps}); steps_between_evaluation_periods = "
            f"EnvironmentSteps({max(1, steps // _EVALUATIONS)}); evaluation_steps = EnvironmentEpisodes(5)"
        )

    def _flags(self, trial: Any) -> dict[str, Any]:
        """The flags of a trial's run. They include the callback that reports to the study."""
        settings = self._settings
        own = (
            f"rl_coach.callbacks.tuning:ReportTrial(storage={settings['storage']!r}, study={settings['study']!r}, "
            f"trial={trial._trial_id}, pruner={settings['pruner']!r}, evaluations={settings['evaluations']})"
        )
        flags = self._document["arguments"]
        return {**flags, "callback": "; ".join(filter(None, (flags.get("callback"), own)))}

    def _end(self, outcome: Outcome) -> None:
        """Report a trial that has ended to the study and on the screen."""
        from optuna.trial import TrialState

        from rl_coach.callbacks.tuning import PRUNED

        trial = self._trials.pop(outcome.job.directory, None)
        if trial is None or outcome.was_stopped or outcome.code is None:
            return  # --resume continues the trial
        value = _value_of(self._study.trials[trial.number], outcome)
        name, took = outcome.job.name, f"{outcome.progress.get('steps', 0):,} steps"
        if not outcome.has_finished or value is None:
            self._study.tell(trial, state=TrialState.FAIL)
            why = "there was no reward" if outcome.has_finished else outcome.error
            if not self._is_bad_for_all(outcome):
                self._screen.error(f"{name} failed: {why} (its output: {shown(outcome.job.log)})", crash=False)
            return
        if self._study.trials[trial.number].user_attrs.get(PRUNED):
            self._study.tell(trial, state=TrialState.PRUNED)
            self._screen.print(f"{name}: pruned after {took}, mean reward {value:.5g}")
            return
        self._study.tell(trial, value)
        best = self._study.best_trial
        best_so_far = f"best: trial {best.number}, {best.value:.5g}"
        self._screen.print(f"{name}: mean reward {value:.5g} after {took} ({best_so_far})")
        self._write_best()

    def _is_bad_for_all(self, outcome: Outcome) -> bool:
        """True if the first trial has found an error in the input, because all trials have the same input."""
        if outcome.code == several_runs.BAD_INPUT and not read_status(outcome.job.directory) and not self._values():
            self._refused = outcome.error
            return True
        return False

    def _values(self) -> list[float]:
        """The values of all complete trials."""
        return [one.value for one in self._study.get_trials(deepcopy=False) if one.state.name == "COMPLETE"]

    def _say_what_is_searched(self) -> None:
        settings = self._settings
        place = "" if settings["storage"].endswith(_STORAGE_FILE) else f" in {self._storage}"
        about = f"up to {settings['trials']} trials of {settings['steps']:,} steps"
        self._screen.print(f"study '{settings['study']}'{place}: {about}")
        for dimension in self._dimensions:
            drawn = {name: str(one) for name, one in dimension.distributions.items()}
            self._screen.print(f"  {_shown_name(dimension)} = {dimension.text(drawn)}")

    def _write_best(self) -> pathlib.Path:
        best = self._study.best_trial
        trials = len(self._study.get_trials(deepcopy=False))
        preset = self._document["arguments"]["preset"]
        given = self._document["arguments"].get("custom_parameter")
        about = f"{preset}, tuned: trial {best.number} of {trials}; its mean reward at the end was {best.value:.5g}."
        settings = record.joined_settings(given, self._custom_parameter(best.params))
        path = self._directory / BEST_FILE
        write_text(path, text_of_preset(preset, settings, about))
        return path

    def _say_best(self) -> None:
        if not self._values():
            self._screen.print(f"no trial in {shown(self._directory)} has a result yet")
            return
        best = self._study.best_trial
        counts = Counter(one.state.name for one in self._study.get_trials(deepcopy=False))
        told = f"{counts['COMPLETE']} complete, {counts['PRUNED']} pruned, {counts['FAIL']} failed"
        self._screen.success(f"best: trial {best.number}, mean reward {best.value:.5g} ({told})")
        for dimension in self._dimensions:
            self._screen.print(f"  {_shown_name(dimension)} = {dimension.text(best.params)}")
        path = self._write_best()
        flags = [f"--{name}={value}" for name in _OF_THE_TASK if (value := self._document["arguments"].get(name))]
        self._screen.print(f"preset: {shown(path)}")
        self._screen.print(f"train with it: {shell_command('coach', '-p', shown(path), *flags, '--seeds', '5')}")
        print_dashboard_command(self._directory, self._screen, compares=True)


def _value_of(trial: Any, outcome: Outcome) -> float | None:
    """The last value that a trial has reported; without evaluations, the mean reward of its last training episodes."""
    if trial.intermediate_values:
        return float(trial.intermediate_values[max(trial.intermediate_values)])
    return outcome.score


def _of_optuna(distribution: Distribution) -> Any:
    from optuna import distributions

    if isinstance(distribution, Choice):
        return distributions.CategoricalDistribution(distribution.values)
    low, high = distribution.low, distribution.high
    if distribution.is_whole:
        return distributions.IntDistribution(int(low), int(high), log=distribution.is_log)
    return distributions.FloatDistribution(low, high, log=distribution.is_log)


def _shown_name(dimension: Dimension) -> str:
    return dimension.name.removeprefix("agent_params.").removeprefix("algorithm.")


def text_of_preset(preset: str, settings: str, about: str) -> str:
    """The text of a preset file.

    :param preset: the base preset, in one of the forms of ``-p``
    :param settings: the changes in the form of ``-cp``, with whole paths
    :param about: the description of the new preset, in one sentence
    """
    statements = custom_parameters.statements(settings, f"the settings of {preset}")
    names = {node.id for one in statements for node in ast.walk(one) if isinstance(node, ast.Name)}
    modules: dict[str, set[str]] = {}
    for name, module in {**custom_parameters.CONSTRUCTORS, **custom_parameters.ENUMS}.items():
        if name in names:
            modules.setdefault(module, set()).add(name)
    module, variable, loading = _base_of(preset)
    modules.setdefault(module, set()).add(variable)
    imports = [f"from {one} import {', '.join(sorted(modules[one]))}" for one in sorted(modules)]
    lines = [f'"""{about}"""', "", *imports, "", *loading, *(f"graph_manager.{ast.unparse(one)}" for one in statements)]
    return "\n".join(lines) + "\n"


def _base_of(preset: str) -> tuple[str, str, list[str]]:
    """The base preset's module, the name to import, and further lines if the import does not set ``graph_manager``."""
    path, _, variable = preset_catalogue.path_of(preset).rpartition(":")
    file, directory = pathlib.Path(path), preset_catalogue.preset_directory()
    if file.is_relative_to(directory):
        module = ".".join(["rl_coach.presets", *file.relative_to(directory).with_suffix("").parts])
        return module, variable if variable == "graph_manager" else f"{variable} as graph_manager", []
    if path.endswith(".py"):
        return "rl_coach.utils", "import_file", [f"graph_manager = import_file({str(file.absolute())!r}).{variable}"]
    return path, variable if variable == "graph_manager" else f"{variable} as graph_manager", []
