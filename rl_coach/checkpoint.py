"""Checkpoints. If a process is killed while it saves, the previous checkpoint stays valid. Damaged checkpoints are
never loaded.

A checkpoint is a directory ``<num>_Step-<steps>.ckpt``; the name may contain another unit. Its files:

- ``arrays.safetensors``: all arrays, in the safetensors format, which many tools can read;
- ``state.json``: the plain values, with a reference to each array;
- ``manifest.json``: the format version, the size and SHA-256 of the other files, and facts about the run;
- optional attachments: the policy for deployment, networks as ONNX models.

The directory is written under a temporary name, synced and renamed. Then its name is written to the state file
``.coach_checkpoint``. No pickle is ever loaded, so a checkpoint cannot run code.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from rl_coach.utilities import files, plain_data
from rl_coach.utilities.files import Path
from rl_coach.utilities.safe_reading import read_json, read_text
from rl_coach.utils import CoachError

FORMAT_VERSION = 2  # format 1 stored objects of memories as JSON texts
ARRAYS_FILE = "arrays.safetensors"
STATE_FILE = "state.json"
MANIFEST_FILE = "manifest.json"
BEST_CHECKPOINT_FILE = ".best_checkpoint"
CHECKPOINT_DIRECTORY = "checkpoint"
BEST = "best"
_TEMPORARY_PREFIX = ".saving-"


@dataclass(frozen=True)
class SingleCheckpoint:
    """The number and the name of a checkpoint. :param num: the number; newer checkpoints have higher numbers"""

    num: int
    name: str

    def __str__(self) -> str:
        return self.name


class CheckpointState:
    """The checkpoints of a directory, oldest first."""

    def __init__(self, checkpoints: list[SingleCheckpoint], checkpoint_dir: str):
        self._checkpoints = checkpoints
        self._checkpoint_dir = checkpoint_dir

    @property
    def all_checkpoints(self) -> list[SingleCheckpoint]:
        """All checkpoints, the oldest first."""
        return self._checkpoints

    @property
    def last_checkpoint(self) -> SingleCheckpoint:
        """The newest checkpoint."""
        return self._checkpoints[-1]

    @property
    def all_model_checkpoint_paths(self) -> list[str]:
        """The paths of all checkpoints, the oldest first."""
        return [os.path.join(self._checkpoint_dir, checkpoint.name) for checkpoint in self._checkpoints]

    @property
    def model_checkpoint_path(self) -> str:
        """The path of the newest checkpoint."""
        return self.all_model_checkpoint_paths[-1]

    def __repr__(self) -> str:
        return f"CheckpointState({self._checkpoints!r}, {self._checkpoint_dir!r})"


class CheckpointFilenameParser:
    """Finds the number in a checkpoint's name: ``12_Step-3400.ckpt`` is number 12, ``model.ckpt-12`` too."""

    coach_checkpoint_filename_pattern = r"\A(([0-9]+)[^0-9])?.*?\.ckpt(-([0-9]+))?"

    def __init__(self) -> None:
        self._pattern = re.compile(self.coach_checkpoint_filename_pattern)

    def parse(self, filename: str) -> SingleCheckpoint | None:
        """The checkpoint of a file or directory; None if its name is not a checkpoint's name or has no number.

        :param filename: a checkpoint's name, or the name of one of its files (``12_Step-3400.ckpt.index``)
        """
        match = self._pattern.search(filename)
        number = None if match is None else match.group(2) or match.group(4)
        return None if match is None or number is None else SingleCheckpoint(int(number), match.group(0))


def _filter_checkpoint_files(filenames: Iterable[str], sort_by_num: bool = True) -> list[SingleCheckpoint]:
    """The checkpoints of the given files, each checkpoint once. Other programs import this function.

    :param sort_by_num: True for the oldest checkpoint first; False for the order of the files
    """
    parser = CheckpointFilenameParser()
    found = list(dict.fromkeys(checkpoint for checkpoint in map(parser.parse, filenames) if checkpoint is not None))
    return sorted(found, key=lambda checkpoint: checkpoint.num) if sort_by_num else found


class CheckpointStateFile:
    """The file that names a directory's newest checkpoint."""

    checkpoint_state_filename = ".coach_checkpoint"

    def __init__(self, checkpoint_dir: str):
        self._path = os.path.join(checkpoint_dir, self.checkpoint_state_filename)

    @property
    def filename(self) -> str:
        return self.checkpoint_state_filename

    @property
    def path(self) -> str:
        return self._path

    def exists(self) -> bool:
        return os.path.exists(self._path)

    def read(self) -> SingleCheckpoint | None:
        """The newest checkpoint; None if the file does not exist or contains another name than a checkpoint's.

        :raises CoachError: if the content of the file is not a name
        """
        name = _name_in(self._path)
        return None if name is None else CheckpointFilenameParser().parse(name)

    def write(self, data: SingleCheckpoint) -> None:
        """Write the name of the newest checkpoint. The old name is replaced only when the new name is on the disk.

        :param data: the newest checkpoint
        """
        files.write_text(self._path, data.name)


class CheckpointStateReader:
    """Finds the checkpoints of a directory.

    :param checkpoint_state_optional: True also finds checkpoints in a directory without a state file; False treats
        this directory as empty
    """

    def __init__(self, checkpoint_dir: str, checkpoint_state_optional: bool = True):
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_state_optional = checkpoint_state_optional
        self._state_file = CheckpointStateFile(checkpoint_dir)

    def _is_there(self, checkpoint: SingleCheckpoint) -> bool:
        """True if the checkpoint exists, or files that savers wrote under its name (``NAME.PATH``)."""
        if os.path.exists(os.path.join(self._checkpoint_dir, checkpoint.name)):
            return True
        return os.path.isdir(self._checkpoint_dir) and any(
            name.startswith(f"{checkpoint.name}.") for name in os.listdir(self._checkpoint_dir)
        )

    def get_latest(self) -> SingleCheckpoint | None:
        """The newest checkpoint; None without a checkpoint."""
        named = self._state_file.read()
        if named is not None and self._is_there(named):
            return named
        if not self._checkpoint_state_optional:
            return None
        checkpoints = self.get_all()
        return checkpoints[-1] if checkpoints else None

    def get_all(self) -> list[SingleCheckpoint]:
        """All checkpoints, oldest first."""
        if not os.path.isdir(self._checkpoint_dir) or not (
            self._checkpoint_state_optional or self._state_file.exists()
        ):
            return []
        return _filter_checkpoint_files(os.listdir(self._checkpoint_dir))


class CheckpointStateUpdater:
    """Updates the state file of a directory when its checkpoints change.

    :param read_all: True reads all existing checkpoints; False reads only the newest checkpoint
    """

    def __init__(self, checkpoint_dir: str, read_all: bool = False):
        self._checkpoint_dir = checkpoint_dir
        self._state_file = CheckpointStateFile(checkpoint_dir)
        reader = CheckpointStateReader(checkpoint_dir)
        latest = reader.get_latest()
        self._all_checkpoints = reader.get_all() if read_all else [latest] if latest is not None else []

    def update(self, checkpoint: SingleCheckpoint) -> None:
        """Write to the state file that ``checkpoint`` is the newest checkpoint."""
        self._all_checkpoints.append(checkpoint)
        self._state_file.write(checkpoint)

    def get_checkpoint_state(self) -> CheckpointState | None:
        """The known checkpoints; None if there are none."""
        return CheckpointState(self._all_checkpoints, self._checkpoint_dir) if self._all_checkpoints else None

    @property
    def last_checkpoint(self) -> SingleCheckpoint | None:
        return self._all_checkpoints[-1] if self._all_checkpoints else None

    @property
    def all_checkpoints(self) -> list[SingleCheckpoint]:
        return self._all_checkpoints


def get_checkpoint_state(checkpoint_dir: str, all_checkpoints: bool = False) -> CheckpointState | None:
    """The checkpoints of a directory; None if there are none.

    :param all_checkpoints: True for all checkpoints; False for only the newest checkpoint
    """
    return CheckpointStateUpdater(checkpoint_dir, read_all=all_checkpoints).get_checkpoint_state()


def checkpoint_name(num: int, count: int, unit: str = "Step") -> str:
    """The name of a checkpoint, such as ``12_Step-3400.ckpt``.

    :param count: the run's progress
    :param unit: the unit of the progress, in the singular: ``Step``, ``Epoch`` or ``Update``
    """
    return f"{num}_{unit}-{count}.ckpt"


def save_checkpoint(
    directory: Path,
    name: str,
    state: dict[str, Any],
    manifest: dict[str, Any],
    attachments: Mapping[str, bytes] | None = None,
) -> str:
    """Write a checkpoint. If its name has the form of a checkpoint's name, record it as the newest checkpoint.

    :param state: nested dicts and lists with string keys; the values are arrays, int, float, bool, str or None
    :param manifest: facts about the run, as plain values
    :param attachments: more files, by their path within the checkpoint
    :return: the checkpoint's path
    :raises plain_data.UnsavableError: if a value cannot be saved; the message contains its path in the state
    :raises OSError: if the disk is full, the directory cannot be written, or the checkpoint exists; earlier checkpoints
        are unchanged
    """
    plain, arrays = plain_data.separate(state)
    contents: dict[str, Iterable[Any]] = {
        ARRAYS_FILE: plain_data.safetensors_chunks(arrays),
        STATE_FILE: [json.dumps(plain).encode()],
        **{path: [data] for path, data in (attachments or {}).items()},
    }
    os.makedirs(directory, exist_ok=True)
    for entry in os.listdir(directory):
        if entry.startswith(_TEMPORARY_PREFIX):  # an incomplete checkpoint of a process that was killed
            shutil.rmtree(os.path.join(directory, entry), ignore_errors=True)
    final = os.path.join(directory, name)
    if os.path.exists(final):
        raise FileExistsError(f"the checkpoint '{final}' already exists")
    temporary = os.path.join(directory, f"{_TEMPORARY_PREFIX}{os.getpid()}")
    try:
        os.mkdir(temporary)
        _write_contents(temporary, contents, manifest)
        os.replace(temporary, final)
        files.sync_directory(directory)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    parsed = CheckpointFilenameParser().parse(name)
    if parsed is not None:
        CheckpointStateFile(str(directory)).write(parsed)
    return final


def load_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a checkpoint's state and manifest, after a check of all files.

    :raises CoachError: if a file is missing, truncated or changed, or was written by a newer version
    """
    manifest = read_manifest(path)
    for name, expected in manifest["files"].items():
        files.check_file(os.path.join(path, name), expected, "checkpoint", "manifest")
    try:
        with open(os.path.join(path, ARRAYS_FILE), "rb") as file:
            arrays = plain_data.read_safetensors(file)
        plain = json.loads(pathlib.Path(path, STATE_FILE).read_text(encoding="utf-8"))
        return plain_data.join(plain, arrays), manifest
    except plain_data.DAMAGE as error:
        raise CoachError(f"the checkpoint '{path}' is damaged: {error!r}; choose another checkpoint") from error


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a checkpoint's manifest.

    :raises CoachError: if the manifest does not exist, is damaged, or was written by a newer version
    """
    file = os.path.join(path, MANIFEST_FILE)
    try:
        manifest = read_json(file)
    except FileNotFoundError:
        raise CoachError(f"'{path}' is not a checkpoint: it has no {MANIFEST_FILE}") from None
    version, listed = manifest.get("format_version"), manifest.get("files", {})
    if not isinstance(version, int) or (version <= FORMAT_VERSION and not _lists_files(listed)):
        raise CoachError(f"the checkpoint's '{file}' is damaged; choose another checkpoint")
    if version > FORMAT_VERSION:
        raise CoachError(
            f"'{path}' has checkpoint format {version}, this version reads up to {FORMAT_VERSION}; update Coach"
        )
    if not {ARRAYS_FILE, STATE_FILE} <= listed.keys():
        raise CoachError(f"the checkpoint's '{file}' does not list all its files; choose another checkpoint")
    return manifest


def _lists_files(files: Any) -> bool:
    """True if each file in the manifest is inside the checkpoint and has a size and a digest."""
    return isinstance(files, dict) and all(
        isinstance(entry, dict) and isinstance(entry.get("size"), int) and "sha256" in entry and _is_within(name)
        for name, entry in files.items()
    )


def _is_within(name: str) -> bool:
    parts = pathlib.PurePath(name)
    return not parts.is_absolute() and ".." not in parts.parts and "\0" not in name


def _name_in(file: Path) -> str | None:
    """Read a file that contains the name of a checkpoint in the same directory.

    :return: the name; None if the file does not exist
    :raises CoachError: if the content is not a name
    """
    try:
        name = read_text(file, most_bytes=4096).strip()
    except FileNotFoundError:
        return None
    if not name or pathlib.PurePath(name).name != name or len(name) > 255 or not name.isprintable():
        raise CoachError(
            f"'{file}' is damaged: it does not contain the name of a checkpoint; remove the file, or give the path of "
            f"a checkpoint"
        )
    return name


def find_checkpoint(path: Path) -> str:
    """The path of the checkpoint that a user's path selects.

    :param path: a checkpoint; one of its files; the directory of checkpoints or of an experiment, which selects the
        newest checkpoint; or ``DIR/best``, which selects the best checkpoint in such a directory
    :raises CoachError: if there is no checkpoint
    """
    place = pathlib.Path(path).expanduser()
    if place.name == BEST and not os.path.exists(place):
        return _find_best(place.parent)
    if not os.path.exists(place):
        raise CoachError(f"no checkpoint at '{path}': there is no such file or directory")
    if os.path.isfile(place):
        place = place.parent
    if os.path.isfile(place / MANIFEST_FILE):
        return str(place)
    for directory in (place, place / CHECKPOINT_DIRECTORY):
        latest = CheckpointStateReader(str(directory)).get_latest()
        if latest is not None:
            return str(directory / latest.name)
    raise CoachError(f"no checkpoint in '{path}'")


def _find_best(place: pathlib.Path) -> str:
    if not place.is_dir():
        raise CoachError(f"there is no best checkpoint in '{place}': there is no such directory")
    for directory in (place, place / CHECKPOINT_DIRECTORY):
        name = best_checkpoint(directory)
        if name is not None:
            return str(directory / name)
    raise CoachError(
        f"there is no best checkpoint in '{place}': no checkpoint was saved after the best evaluation; leave out "
        f"/{BEST} for the newest checkpoint, or train with -s SECONDS, which also saves after each new best evaluation"
    )


def mark_best(directory: Path, name: str) -> None:
    """Record the name of the best checkpoint of a directory."""
    files.write_text(os.path.join(directory, BEST_CHECKPOINT_FILE), name)


def best_checkpoint(directory: Path) -> str | None:
    """The name of the best checkpoint of a directory; None if there is no record."""
    return _name_in(pathlib.Path(directory) / BEST_CHECKPOINT_FILE)


def keep_checkpoints(directory: Path, last: int) -> None:
    """Remove old checkpoints, and the files that savers wrote for them. The best checkpoint is always kept.

    :param last: number of the newest checkpoints to keep; 0 keeps all
    """
    best = best_checkpoint(directory)
    for checkpoint in CheckpointStateReader(str(directory)).get_all()[:-last] if last else []:
        if checkpoint.name != best:
            # rename first, so that a process that is killed during the removal leaves no incomplete checkpoint
            doomed = os.path.join(directory, f"{_TEMPORARY_PREFIX}{checkpoint.name}")
            if os.path.exists(os.path.join(directory, checkpoint.name)):  # missing if only savers have written files
                os.replace(os.path.join(directory, checkpoint.name), doomed)
                shutil.rmtree(doomed)
            for addition in pathlib.Path(directory).glob(f"{checkpoint.name}.*"):
                shutil.rmtree(addition) if addition.is_dir() else addition.unlink()


def _write_contents(directory: str, contents: Mapping[str, Iterable[Any]], manifest: dict[str, Any]) -> None:
    """Write files and their manifest.

    :param contents: the bytes of each file in chunks, by the path in the directory
    """
    parents = {parent for name in contents for parent in pathlib.PurePath(name).parents}
    folders = sorted(os.path.join(directory, parent) for parent in parents - {pathlib.PurePath()})
    for folder in folders:
        os.mkdir(folder)
    written = {name: files.write_synced(os.path.join(directory, name), contents[name]) for name in contents}
    for folder in folders:
        files.sync_directory(folder)
    text = json.dumps({**manifest, "format_version": FORMAT_VERSION, "files": written}, indent=1)
    files.write_synced(os.path.join(directory, MANIFEST_FILE), [text.encode()])
    files.sync_directory(directory)
