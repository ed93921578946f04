"""A run as one zip: ``coach pack`` writes it, ``coach reproduce`` trains from it.

run.json              facts and flags of the run, see ``PackedRun``
source/...            the preset's file and its neighbours; missing for a preset by name
signals/NAME.csv      the signal CSVs
policy/...            the policy of the last checkpoint; missing if the agent has none
"""

from __future__ import annotations

import json
import pathlib
import shutil
import stat
import zipfile
from dataclasses import asdict, dataclass, field
from typing import Any, Mapping

from rl_coach.utilities.errors import CoachError
from rl_coach.utilities.files import replaced
from rl_coach.utilities.plain_data import ARCHIVE_DAMAGE

FORMAT_VERSION = 1
RUN_FILE = "run.json"
SOURCE, SIGNALS, POLICY = FOLDERS = ("source", "signals", "policy")
MOST_BYTES = 2 << 30
"""The largest size of all files together. A small zip can have a huge content."""
_MOST_FILES = 10_000
_LONGEST_RECORD = 4 << 20


@dataclass(frozen=True)
class PackedRun:
    """Facts and flags of a run.

    :param arguments: the flags that training depends on; files are named by their paths below ``source/``
    :param working_directory: where the run was started, as a path below ``source/``
    :param machine: the processor, its number of cores, the GPU and the platform
    :param git_revision: the commit of the working directory; None without git
    """

    name: str
    command: list[str]
    seed: int
    arguments: dict[str, Any]
    working_directory: str
    versions: dict[str, str]
    machine: dict[str, Any] = field(default_factory=dict)
    git_revision: str | None = None


def write(path: pathlib.Path, run: PackedRun, files: Mapping[str, pathlib.Path]) -> None:
    """Write a packed run.

    :param path: the zip; it must not exist
    :param files: the files to pack, by their names in the zip
    :raises CoachError: if a file cannot be read, the files are too large, or the zip exists or cannot be written
    """
    if path.exists():
        raise CoachError(f"'{path}' exists already: choose another name with -o")
    try:
        if (size := sum(file.stat().st_size for file in files.values())) > MOST_BYTES:
            raise CoachError(f"the run and its files have {size:,} bytes; a packed run has at most {MOST_BYTES:,}")
        with replaced(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(RUN_FILE, json.dumps({"format_version": FORMAT_VERSION, **asdict(run)}, indent=2))
            for name, file in files.items():
                archive.write(file, name)
    except OSError as error:
        raise CoachError(f"'{error.filename or path}' cannot be packed: {error.strerror}") from None


def unpack(path: str, directory: pathlib.Path) -> PackedRun:
    """Read a packed run, and write its files below a directory. Nothing is written outside of the directory.

    :raises CoachError: if the file is missing, damaged or not a packed run, or the directory cannot be written
    """
    if not pathlib.Path(path).is_file():
        raise CoachError(f"no file '{path}'")
    try:
        with zipfile.ZipFile(path) as archive:
            _check(archive)
            run = _run_in(archive)
            for entry in archive.infolist():
                if entry.filename != RUN_FILE and not entry.is_dir():
                    target = directory / entry.filename
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(entry) as content, open(target, "wb") as file:
                        shutil.copyfileobj(content, file)
            return run
    except OSError as error:
        raise CoachError(f"'{path}' cannot be unpacked: {error.strerror or error}") from None
    except ARCHIVE_DAMAGE as error:
        raise CoachError(f"'{path}' cannot be unpacked: {' '.join(str(error).split())[:200]}") from None


def _check(archive: zipfile.ZipFile) -> None:
    """Refuse an entry outside of the known folders, or not a plain file, or too large, with a ``ValueError``."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if RUN_FILE not in names or not any(name.startswith(f"{SIGNALS}/") for name in names):
        raise ValueError(f"it has no {RUN_FILE}, or no {SIGNALS}")
    if len(entries) > _MOST_FILES or len({name.lower() for name in names}) < len(names):
        raise ValueError("it has too many files, or a file twice")
    if (size := sum(entry.file_size for entry in entries)) > MOST_BYTES:
        raise ValueError(f"its files have {size:,} bytes, more than {MOST_BYTES:,}")
    for entry in entries:
        folder, *below = entry.filename.rstrip("/").split("/")
        is_plain = not stat.S_ISLNK(entry.external_attr >> 16) and not entry.flag_bits & 1
        is_known = entry.filename == RUN_FILE or (folder in FOLDERS and (below or entry.is_dir()))
        is_below = not any(part in ("", ".", "..") or set(part) & set("\\:\0") for part in below)
        if not (is_plain and is_known and is_below):
            raise ValueError(f"it has the entry {entry.filename!r}, which coach pack does not write")


def _run_in(archive: zipfile.ZipFile) -> PackedRun:
    """Read the facts of a packed run. :raises ValueError: if the record is damaged, or from a newer version"""
    if archive.getinfo(RUN_FILE).file_size > _LONGEST_RECORD:
        raise ValueError(f"its {RUN_FILE} is too large")
    try:
        content = json.loads(archive.read(RUN_FILE))
        if content.pop("format_version") > FORMAT_VERSION:
            raise ValueError("a newer version of Coach has written it: update Coach")
        run = PackedRun(**content)
    except (AttributeError, KeyError, RecursionError, TypeError):
        raise ValueError(f"its {RUN_FILE} is damaged") from None
    kinds = {"name": str, "command": list, "seed": int, "arguments": dict, "working_directory": str, "versions": dict,
             "machine": dict}  # fmt: skip
    is_sound = all(type(getattr(run, name)) is kind for name, kind in kinds.items())
    if not is_sound or not all(isinstance(one, str) for one in (*run.command, run.arguments.get("preset"))):
        raise ValueError(f"its {RUN_FILE} is damaged")
    return run
