"""``experiment.json``: how an experiment was started, so that ``coach --resume DIR`` alone can go on with it."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
from typing import Any

from rl_coach.utilities import files

RECORD_FILE = "experiment.json"
_FIXED = ("preset", "level", "framework", "seed", "environment_type")
_NEW_EACH_TIME = (
    "resume", "list", "open_dashboard", "evaluate", "play", "checkpoint_restore_dir", "checkpoint_restore_file",
    "experiment_name", "experiment_path",
)  # fmt: skip
_TEXTS = ("preset", "custom_parameter", "level", "framework", "environment_type", "exploration_policy_type")
_PATHS = ("preset", "environment_type", "exploration_policy_type")


def write(directory: pathlib.Path, args: argparse.Namespace, defaults: dict[str, Any], seed: int | None) -> None:
    """Write the record of a run that begins or, where there is one already, that it goes on.

    :param defaults: what the flags are where they are not given; only others are recorded
    :param seed: the run's seed, drawn or given
    """
    from rl_coach.logger import run_record

    path = directory / RECORD_FILE
    run = run_record()
    if path.is_file():
        record = json.loads(path.read_text(encoding="utf-8"))
        record["resumed"].append(run)
    else:
        record = {"resumed": [], "evaluate_only": args.evaluate is not None}
        record["run"] = {**run, "seed": seed, "working_directory": os.getcwd()}
    given = {name: value for name, value in vars(args).items() if value != defaults.get(name)}
    given = {name: value for name, value in given.items() if name not in _NEW_EACH_TIME}
    record["arguments"] = {**given, **{name: _lasting(given[name]) for name in _PATHS if name in given}}
    files.write_text(path, json.dumps(record, indent=2) + "\n")


def resumed_arguments(
    directory: str, explicit: argparse.Namespace, defaults: dict[str, Any]
) -> tuple[dict[str, Any], str]:
    """The flags that an experiment was started with, and its settings (``-cp``), to which new ones are added.

    :param explicit: the flags of the command line that resumes it
    :raises CoachError: there is no such experiment, or a flag contradicts what it is
    """
    from rl_coach.utils import CoachError

    record = _read(directory)
    arguments = record["arguments"]
    if record["evaluate_only"]:
        raise CoachError(f"--resume {directory}: that run only evaluated; there is no training to go on with")
    if explicit.evaluate is not None or explicit.play:
        raise CoachError(f"--resume trains on; to evaluate or play, start anew with -crd {directory}")
    for name in ("experiment_name", "experiment_path"):
        if getattr(explicit, name):
            raise CoachError(f"--resume goes on in '{directory}': leave out --{name}")
    for name in _FIXED:
        value, was = getattr(explicit, name), arguments.get(name, defaults[name])
        if value not in (defaults[name], was) and _lasting(value) != was:
            raise CoachError(
                f"--resume {directory}: that run has --{name} {was}; leave it out, or start a new run with -crd"
            )
    settings = [text for text in (arguments.get("custom_parameter"), explicit.custom_parameter) if text]
    return arguments, "; ".join(text.strip().rstrip(";") for text in settings)


def _read(directory: str) -> dict[str, Any]:
    from rl_coach.utilities.safe_reading import read_json
    from rl_coach.utils import CoachError

    path = pathlib.Path(directory) / RECORD_FILE
    try:
        record = read_json(path)
    except FileNotFoundError:
        inner = sorted(path.parent.glob(f"*/{RECORD_FILE}"), key=os.path.getmtime)
        hint = f"; did you mean '{inner[-1].parent}'?" if inner else ""
        raise CoachError(f"--resume: no experiment in '{directory}', which has no {RECORD_FILE}{hint}") from None
    if not _is_record(record):
        raise CoachError(f"--resume: '{path}' is damaged; start a new run with -p and -crd {directory}")
    return record


def _is_record(record: dict[str, Any]) -> bool:
    arguments = record.get("arguments")
    return (
        isinstance(arguments, dict)
        and all(isinstance(arguments.get(name, ""), str) for name in _TEXTS)
        and bool(arguments.get("preset"))
        and isinstance(record.get("evaluate_only"), bool)
        and isinstance(record.get("resumed"), list)
    )


def _lasting(text: Any) -> Any:
    """``path.py`` and ``path.py:name`` with the whole path, so that it holds in any directory; others unchanged."""
    if not isinstance(text, str):
        return text
    path, colon, name = text.rpartition(":")
    if not (colon and name.isidentifier()):
        path, colon, name = text, "", ""
    return f"{os.path.abspath(path)}{colon}{name}" if path.endswith(".py") and os.path.exists(path) else text
