"""Annotations of runs (name, tags, note, archived), and the trash for deleted runs.

Annotations are stored next to the signals, in ``annotations.json``, so they move with the run:

    {"worker_0.simple_rl_graph.main_level.main_level.agent_0": {"name": "good one", "tags": ["paper"]}}
"""

from __future__ import annotations

import os
import pathlib
import time
from dataclasses import asdict, dataclass
from typing import Any, Iterable, Mapping

from rl_coach.logger import free_path
from rl_coach.utilities import files
from rl_coach.utilities.safe_reading import read_json_if_whole
from rl_coach.utils import CoachError

ANNOTATIONS_FILE = "annotations.json"
TRASH = ".trash"
_LONGEST_NAME = 200
_LONGEST_NOTE = 10_000
_MOST_TAGS = 20


@dataclass(frozen=True)
class Annotation:
    """Name, tags and note of one run.

    :param name: a name that replaces the experiment's name; empty keeps the experiment's name
    :param archived: the run is hidden in lists
    """

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    archived: bool = False


def read(signal_file: str | os.PathLike) -> Annotation:
    """The annotation of the run whose signals are at ``signal_file``; empty if it is missing or damaged."""
    path = pathlib.Path(signal_file)
    return _annotation(read_json_if_whole(path.parent / ANNOTATIONS_FILE).get(path.stem))


def write(signal_file: str | os.PathLike, changes: Mapping[str, Any]) -> Annotation:
    """Change fields of a run's annotation, and return the new annotation.

    :raises CoachError: if a field does not exist, or the file cannot be written
    """
    path = pathlib.Path(signal_file)
    unknown = set(changes) - set(asdict(Annotation()))
    if unknown:
        raise CoachError(f"a run has no '{sorted(unknown)[0]}' that you can edit")
    document = read_json_if_whole(path.parent / ANNOTATIONS_FILE)
    changed = _annotation({**asdict(_annotation(document.get(path.stem))), **changes})
    document[path.stem] = {name: value for name, value in asdict(changed).items() if value}
    try:
        files.write_json(path.parent / ANNOTATIONS_FILE, document, indent=1)
    except OSError as error:
        raise CoachError(f"'{path.parent / ANNOTATIONS_FILE}' cannot be written: {error.strerror}") from None
    return changed


def _annotation(said: Any) -> Annotation:
    said = said if isinstance(said, dict) else {}
    tags = said.get("tags", ())
    words = [" ".join(str(tag).split())[:_LONGEST_NAME] for tag in tags] if isinstance(tags, (list, tuple)) else []
    return Annotation(
        name=" ".join(str(said.get("name", "")).split())[:_LONGEST_NAME],
        tags=tuple(dict.fromkeys(word for word in words if word))[:_MOST_TAGS],
        note=str(said.get("note", "")).strip()[:_LONGEST_NOTE],
        archived=said.get("archived") is True,
    )


def move_to_trash(paths: Iterable[pathlib.Path], root: pathlib.Path) -> list[tuple[pathlib.Path, pathlib.Path]]:
    """Move files or directories below ``root`` into its folder ``.trash``, which readers ignore.

    :return: the old and the new path of each, for ``take_back``
    :raises CoachError: if a path is not below ``root`` or cannot be moved; all others are moved back
    """
    folder = root / TRASH / time.strftime("%Y-%m-%d_%H-%M-%S")
    moved: list[tuple[pathlib.Path, pathlib.Path]] = []
    for path in paths:
        try:
            below = path.relative_to(root)
            if below == pathlib.Path(".") or ".." in below.parts:
                raise ValueError
        except ValueError:
            take_back(moved)
            raise CoachError(f"'{path}' is not below '{root}'") from None
        target = pathlib.Path(free_path(str(folder / below)))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
        except OSError as error:
            take_back(moved)
            raise CoachError(f"'{path}' cannot be moved to '{target}': {error.strerror}") from None
        moved.append((path, target))
    return moved


def take_back(moved: Iterable[tuple[pathlib.Path, pathlib.Path]]) -> None:
    """Undo ``move_to_trash``. :raises CoachError: if another file exists at an old path"""
    for was, now in moved:
        if was.exists():
            raise CoachError(f"'{was}' exists again; the deleted run stays at '{now}'")
        try:
            was.parent.mkdir(parents=True, exist_ok=True)
            now.rename(was)
        except OSError as error:
            raise CoachError(f"'{now}' cannot be moved back to '{was}': {error.strerror}") from None
