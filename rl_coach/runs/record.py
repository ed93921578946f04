"""``experiment.json``: the flags and settings of an experiment. ``coach --resume DIR`` and ``coach evaluate DIR`` need
only this directory."""

from __future__ import annotations

import argparse
import ast
import datetime
import os
import pathlib
import re
from typing import Any

from rl_coach.utilities.errors import CoachError
from rl_coach.utilities.safe_reading import read_json

RECORD_FILE = "experiment.json"
GIT_DIFF_FILE = "git.diff"
_LARGEST_DIFF = 4 << 20
DATE = re.compile(r"(\d{1,2}_\d{1,2}_\d{4}-\d{1,2}_\d{1,2})(?:[-_]\d+)?")
"""The name of a run's directory: ``dd_mm_yyyy-hh_mm``, and a number if the name existed."""
_FIXED = ("preset", "level", "seed", "environment_type")
_NEW_EACH_TIME = (
    "resume", "trust", "evaluated", "list", "open_dashboard", "evaluate", "play", "checkpoint_restore_dir",
    "checkpoint_restore_file", "experiment_name", "experiment_path", "checkpoint_save_dir", "run_directory", "seeds",
    "at_once", "seeds_program", "imported", "budget",
)  # fmt: skip
_CHECKPOINTS = ("checkpoint_restore_dir", "checkpoint_restore_file")
OF_THE_TASK = ("preset", "level", "framework", "environment_type", "exploration_policy_type", "custom_parameter")
"""The flags that define the task of a run; their values are texts."""
PATHS = ("preset", "level", "environment_type", "exploration_policy_type")
_FIXED_IN_EVALUATIONS = ("preset", "exploration_policy_type")
_OF_EVALUATIONS = (
    "preset", "level", "framework", "environment_type", "exploration_policy_type", "custom_parameter", "use_cpu",
    "num_threads",
)  # fmt: skip


def write(
    directory: pathlib.Path,
    args: argparse.Namespace,
    defaults: dict[str, Any],
    seed: int | None,
    command_line: list[str] | None = None,
) -> None:
    """Write the record of a run at its start. If the record already exists, add that the run continues.

    :param defaults: the flags' default values; only other values are recorded
    :param seed: the run's seed, drawn or given
    :param command_line: the command line that started the run, if another process did
    """
    from rl_coach.logger import run_record
    from rl_coach.utilities import files

    path = directory / RECORD_FILE
    run = {**run_record()}
    if command_line:
        run["command_line"] = command_line
    if path.is_file():
        record = read_json(path)
        record["resumed"].append(run)
    else:
        record = {"resumed": [], "evaluate_only": args.evaluate is not None}
        if origin := args.imported or args.checkpoint_restore_dir or args.checkpoint_restore_file:
            record["begins_from"] = os.path.abspath(origin)
        if args.evaluated:
            record["evaluated"] = os.path.abspath(args.evaluated)
        now = datetime.datetime.now().astimezone().isoformat()  # the process may have started long before
        record["run"] = {**run, "seed": seed, "working_directory": os.getcwd(), "began": now}
        _write_git_diff(directory)
    # the framework always, because the default depends on what is installed
    given = {name: value for name, value in vars(args).items() if value != defaults.get(name) or name == "framework"}
    given = {name: value for name, value in given.items() if name not in _NEW_EACH_TIME}
    arguments = lasting(given)
    before = record.get("arguments", arguments)
    changed = [name for name in {**before, **arguments} if before.get(name) != arguments.get(name)]
    run["changed"] = [*changed, *(name for name in _CHECKPOINTS if getattr(args, name))]
    record["arguments"] = arguments
    files.write_json(path, record)


def _write_git_diff(directory: pathlib.Path) -> None:
    """Write the changes in the working directory since the last commit of git, if there are changes."""
    from rl_coach.logger import output_of_git

    if told := output_of_git("diff", "HEAD", "--no-color", "--no-ext-diff", "--no-textconv"):
        (directory / GIT_DIFF_FILE).write_bytes(told[:_LARGEST_DIFF])


def resumed_arguments(
    directory: str, explicit: argparse.Namespace, defaults: dict[str, Any]
) -> tuple[dict[str, Any], str]:
    """The flags that an experiment was started with, and its settings (``-cp``) followed by the new settings.

    :param explicit: the flags of the command line that resumes the experiment
    :raises CoachError: if the experiment does not exist, or a flag contradicts its record
    """
    record = read(directory)
    arguments = record["arguments"]
    if record["evaluate_only"]:
        raise CoachError(f"--resume {directory}: this run only evaluated, so there is no training to continue")
    if explicit.play:
        raise CoachError(f"--resume continues training; to play, start a new run with -p {arguments['preset']} --play")
    for name in ("experiment_name", "experiment_path"):
        if getattr(explicit, name):
            raise CoachError(f"--resume continues in '{directory}': leave out --{name}")
    _check_agreement(directory, _FIXED, arguments, explicit, defaults)
    return arguments, joined_settings(arguments.get("custom_parameter"), explicit.custom_parameter)


def evaluated_arguments(
    directory: str, explicit: argparse.Namespace, defaults: dict[str, Any]
) -> tuple[dict[str, Any], str]:
    """The flags of a new run that evaluates an experiment, and its settings (``-cp``) followed by the new settings.

    :param explicit: the flags of the command line that evaluates the experiment; it may name another level,
        environment, seed or checkpoint
    :raises CoachError: if the experiment does not exist or has not trained, or a flag contradicts its record
    """
    record = read(directory)
    if record["evaluate_only"]:
        of = f": evaluate '{record['evaluated']}'" if record.get("evaluated") else ""
        raise CoachError(f"the run in '{directory}' only evaluated, so it has no checkpoint{of}")
    arguments = record["arguments"]
    _check_agreement(directory, _FIXED_IN_EVALUATIONS, arguments, explicit, defaults)
    taken = {name: arguments[name] for name in _OF_EVALUATIONS if name in arguments}
    if not (explicit.checkpoint_restore_dir or explicit.checkpoint_restore_file):
        taken["checkpoint_restore_dir"] = directory
    name = experiment_name(pathlib.Path(directory))
    return taken | ({"experiment_name": name} if name else {}), joined_settings(
        arguments.get("custom_parameter"), explicit.custom_parameter
    )


def check_owner(directory: str, record_file: str = RECORD_FILE) -> None:
    """Refuse to run a preset, which is a program, from a directory or a record file of another user."""
    if not hasattr(os, "geteuid"):
        return
    for path in (pathlib.Path(directory), pathlib.Path(directory) / record_file):
        if os.path.exists(path) and path.stat().st_uid != os.geteuid():
            arguments = read_json(pathlib.Path(directory) / record_file).get("arguments")
            preset = arguments.get("preset") if isinstance(arguments, dict) else None
            raise CoachError(
                f"'{path}' belongs to another user and names the preset '{preset}', which is a program: "
                "give --trust to run it"
            )


def _check_agreement(
    directory: str,
    names: tuple[str, ...],
    arguments: dict[str, Any],
    explicit: argparse.Namespace,
    defaults: dict[str, Any],
) -> None:
    for name in names:
        value, was = getattr(explicit, name), arguments.get(name, defaults[name])
        if value not in (defaults[name], was) and lasting_path(value) != was:
            has = f"no --{name}" if was is None else f"--{name} {was}"
            raise CoachError(f"'{directory}': this run has {has}; leave out this flag, or start a new run with -crd")


def settings_in(text: str) -> list[tuple[str, str]]:
    """The path and the source of each setting (``-cp``) in a text; empty if the text cannot be parsed."""
    source = text.strip().strip(";")
    try:
        found = [one for one in ast.parse(source).body if isinstance(one, ast.Assign)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # the parser of settings reports the error
    paths = [ast.unparse(one.targets[0]).removeprefix("schedule_params.") for one in found]
    return [(path, ast.get_source_segment(source, one) or ast.unparse(one)) for path, one in zip(paths, found)]


def joined_settings(*texts: str | None) -> str:
    """The settings (``-cp``) of several texts in one text, in their order. A setting of a later text replaces the
    setting at the same path in an earlier text."""
    given = [text.strip().rstrip(";") for text in texts if text]
    parsed = [settings_in(text) for text in given]
    if not all(parsed):
        return "; ".join(given)
    last = {path: number for number, settings in enumerate(parsed) for path, _ in settings}
    return "; ".join(
        source for number, settings in enumerate(parsed) for path, source in settings if last[path] == number
    )


def experiment_name(directory: pathlib.Path) -> str:
    """The name in ``experiments/<name>/<date>``; empty for a directory with another name."""
    directory = directory.resolve()
    return directory.parent.name if DATE.fullmatch(directory.name) else ""


def read(directory: str) -> dict[str, Any]:
    """Read the record of the experiment in this directory.

    :raises CoachError: if there is no experiment, or its record is damaged
    """
    path = pathlib.Path(directory) / RECORD_FILE
    try:
        record = read_json(path)
    except FileNotFoundError:
        inner = sorted(path.parent.glob(f"*/{RECORD_FILE}"), key=os.path.getmtime)
        hint = f"; did you mean '{inner[-1].parent}'?" if inner else ""
        raise CoachError(f"no experiment in '{directory}', which has no {RECORD_FILE}{hint}") from None
    if not _is_record(record):
        raise CoachError(f"'{path}' is damaged; start a new run with -p and -crd {directory}")
    record["arguments"].setdefault("framework", "tensorflow")
    return record


def _is_record(record: dict[str, Any]) -> bool:
    arguments = record.get("arguments")
    return (
        isinstance(arguments, dict)
        and all(isinstance(arguments.get(name, ""), str) for name in OF_THE_TASK)
        and bool(arguments.get("preset"))
        and isinstance(record.get("evaluate_only"), bool)
        and isinstance(record.get("resumed"), list)
    )


def lasting(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags with absolute paths, so that they have the same meaning in any directory."""
    made = {name: lasting_path(value) if name in PATHS else value for name, value in flags.items()}
    path = flags.get("distributed_coach_config_path")
    return made | ({"distributed_coach_config_path": os.path.abspath(path)} if path else {})


def lasting_path(text: Any) -> Any:
    """``path.py`` and ``path.py:name`` with an absolute path, valid in any directory; other texts are returned
    unchanged."""
    if not isinstance(text, str):
        return text
    path, colon, name = text.rpartition(":")
    if not (colon and name.isidentifier()):
        path, colon, name = text, "", ""
    return f"{os.path.abspath(path)}{colon}{name}" if path.endswith(".py") and os.path.exists(path) else text
