"""``runs.json``: runs that were started together, such as the seeds of one preset. The file is in the directory above
the runs. Readers of experiments treat this directory as one experiment. This module imports nothing heavy, because
``coach`` needs it at its start.

    {"arguments": {...}, "runs": [{"name": "seed_0", "state": "finished", "score": 200.0}, ...], "statistics": {...}}
"""

from __future__ import annotations

import os
import pathlib
from typing import Any, Mapping

from rl_coach.utilities.errors import CoachError
from rl_coach.utilities.safe_reading import read_json

GROUP_FILE = "runs.json"
TUNING = "tuning"
"""The key of the settings that ``coach tune`` needs to continue."""


def is_group(directory: str | os.PathLike[str]) -> bool:
    """True if the directory contains runs that were started together."""
    return os.path.isfile(os.path.join(directory, GROUP_FILE))


def write(directory: pathlib.Path, document: Mapping[str, Any]) -> None:
    """Write the record of the runs in this directory."""
    from rl_coach.utilities import files

    files.write_json(directory / GROUP_FILE, document)


def read(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the record of the runs in this directory. :raises CoachError: if the record is damaged"""
    path = pathlib.Path(directory) / GROUP_FILE
    document = read_json(path)
    runs = document.get("runs")
    are_named = isinstance(runs, list) and all(isinstance(run, dict) and _is_name(run.get("name")) for run in runs)
    if not are_named or not isinstance(document.get("arguments"), dict):
        raise CoachError(f"'{path}' is damaged; continue its runs one by one: --resume {directory}/…")
    return document


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and pathlib.PurePath(name).name == name


def run_directories(directory: str | os.PathLike[str]) -> list[str]:
    """The directories of the group's runs that have begun; the directory itself for a single run.

    :raises CoachError: if the record of the group is damaged
    """
    if not is_group(directory):
        return [os.fspath(directory)]
    below = [os.path.join(directory, run["name"]) for run in read(directory)["runs"]]
    return [path for path in below if os.path.isdir(path)]


def refuse_group(directory: str | os.PathLike[str], verb: str) -> None:
    """Raise a ``CoachError`` if the directory contains several runs. :param verb: the use of a run, for the message"""
    if is_group(directory):
        one = run_directories(directory)[:1] or [os.fspath(directory)]
        raise CoachError(f"'{directory}' has several runs: {verb} one of them, such as {one[0]}")
